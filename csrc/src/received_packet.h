/* SPDX-License-Identifier: BSD-3-Clause */
/* Where packets follow each other with nothing in between, only they say how long they are. */
#ifndef SPTI_RECEIVED_PACKET_H
#define SPTI_RECEIVED_PACKET_H

#include "spead_tutorial/spt_recv.h"

/* How many bytes a packet has, of which there are so many. SPT_FAULT_POINTERS where not all of its
 * item pointers are there: bytes up to the end of what has to be there next. Another fault where it
 * does not say. */
spt_fault spti_received_packet_size(const uint8_t *bytes, size_t n_bytes, uint64_t *size);

#endif
