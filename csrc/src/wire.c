/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the bytes of headers and item pointers. Knows nothing of heaps. */
#include "wire.h"

uint8_t *spti_put_prefix(uint8_t *to, unsigned address_bits, size_t n_pointers, uint64_t cnt,
                         uint64_t heap_length, uint64_t payload_offset, uint64_t payload_length)
{
    *to++ = SPTI_MAGIC;
    *to++ = SPTI_VERSION;
    *to++ = (uint8_t)(8 - address_bits / 8);
    *to++ = (uint8_t)(address_bits / 8);
    to = spti_put(to, n_pointers + SPTI_MANDATORY_POINTERS,
                  4); /* two reserved bytes, two of count */
    to = spti_put_immediate(to, address_bits, SPT_ID_HEAP_CNT, cnt);
    to = spti_put_immediate(to, address_bits, SPT_ID_HEAP_LENGTH, heap_length);
    to = spti_put_immediate(to, address_bits, SPT_ID_PAYLOAD_OFFSET, payload_offset);
    return spti_put_immediate(to, address_bits, SPT_ID_PAYLOAD_LENGTH, payload_length);
}
