/* SPDX-License-Identifier: BSD-3-Clause */
/* Where packets follow each other with nothing in between, only they say how long they are. */
#ifndef SPTI_RECEIVED_PACKET_H
#define SPTI_RECEIVED_PACKET_H

#include "spead_tutorial/spt_recv.h"

/* How many bytes a packet has, of which there are so many: or at least, where that is more. A fault
 * where nobody can know. */
spt_fault spti_received_packet_size(const uint8_t *bytes, size_t n_bytes, uint64_t *size);

#endif
