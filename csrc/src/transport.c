/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what all transports count, and copy, alike. Knows nothing of any one of them. */
#include "transport.h"

#include <string.h>

uint8_t *spti_packet_copy(const spti_batch *batch, const spti_packet *packet, uint8_t *to)
{
    const struct iovec *piece = &batch->pieces[packet->first_piece];
    for (uint32_t i = 0; i < packet->n_pieces; i++, piece++)
        to = (uint8_t *)memcpy(to, piece->iov_base, piece->iov_len) + piece->iov_len;
    return to;
}

void spti_transport_taken(spti_transport *t, const spti_batch *batch, size_t first, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = first; i < first + n; i++)
        bytes += batch->packets[i].size;
    spti_count(&t->stats.packets, n);
    spti_count(&t->stats.bytes, bytes);
    spti_count(&t->stats.messages, 1);
    if (n > 1)
        spti_count(&t->stats.gso_messages, 1);
}

void spti_transport_failed(spti_transport *t, spti_batch *batch, size_t first, size_t n, int error)
{
    for (size_t i = first; i < first + n; i++)
        batch->packets[i].error = error;
    spti_count(&t->stats.errors, n);
    if (error > 0 && error < SPT_N_ERRNO)
        spti_count(&t->stats.errors_by_errno[error], n);
}
