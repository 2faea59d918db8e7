/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has sent something, as a number: two senders have the same by a rare chance only, and then
 * they count as one. 0 is nobody. */
#ifndef SPTI_SENDER_H
#define SPTI_SENDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* One number of two, in an order. */
static inline uint64_t spti_mix(uint64_t a, uint64_t b)
{
    uint64_t mixed = (a ^ (b << 32 | b >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
    return mixed ^ mixed >> 29;
}

/* Of an address of so many bytes, 16 at most, and a port, both in any one order. */
static inline uint64_t spti_sender_of(const void *address, size_t size, uint16_t port)
{
    uint64_t halves[2] = {0, 0};
    if (size > 0)
        memcpy(halves, address, size);
    uint64_t mixed = spti_mix(spti_mix(halves[0], halves[1]), (uint64_t)port + 1);
    return mixed == 0 ? 1 : mixed;
}

#endif
