/* SPDX-License-Identifier: BSD-3-Clause */
/* What streams do with a depacketizer besides what the public header offers. */
#ifndef SPTI_DEPACKETIZER_H
#define SPTI_DEPACKETIZER_H

#include "packet_run.h"
#include "spead_tutorial/spt_recv.h"

/*
 * Take packets that go on where the one before ended: same heap, same size, no items of their own.
 * It is the same as to parse them, to take them and to copy their payloads one by one, and cheaper.
 * Returns how many of the first ones are such packets, and have been placed, from that payload
 * offset on. With the one after them nothing has happened: parse it.
 */
size_t spti_depacketizer_take_run(spt_depacketizer *d, const spti_packet_run *run,
                                  uint64_t *offset);

/*
 * How many packets that would take at most, 0 for none; bytes of each, and where their payloads
 * belong: one after the other, in a part of the heap of which nothing has arrived. They may be read
 * to there before one knows whether they are the ones that come, if they are looked at before any
 * other packet: what is written there and does not belong there is written over, or is not said to
 * have arrived.
 */
size_t spti_depacketizer_expected(const spt_depacketizer *d, size_t *n_bytes, uint8_t **to);

#endif
