/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP datagrams in frames as a network has them. */
#ifndef SPTI_FRAME_H
#define SPTI_FRAME_H

#include "spead_tutorial/spt.h"

/* Kinds of frames, by the numbers that capture files have for them. */
enum {
    SPTI_LINK_ETHERNET = 1,
    SPTI_LINK_RAW = 101, /* IP, without anything before it */
    SPTI_LINK_COOKED = 113,
    SPTI_LINK_IPV4 = 228,
    SPTI_LINK_IPV6 = 229,
    SPTI_LINK_COOKED_2 = 276,
};

bool spti_link_is_known(unsigned link);

typedef enum spti_frame_kind {
    SPTI_FRAME_OTHER,    /* no UDP */
    SPTI_FRAME_FRAGMENT, /* a part of a datagram */
    SPTI_FRAME_CUT,      /* not all of it is there */
    SPTI_FRAME_UDP,
} spti_frame_kind;

typedef struct spti_frame {
    const uint8_t *addresses[2]; /* from and to */
    size_t address_size;         /* of IPv4 or IPv6; 0 where they are not there */
    bool has_ports;
    uint16_t ports[2];
    const uint8_t *payload;
    size_t n_bytes;
} spti_frame;

/* Look at a frame of some kind, of which so many bytes are there. */
spti_frame_kind spti_frame_parse(spti_frame *frame, unsigned link, const uint8_t *bytes,
                                 size_t n_bytes);

#endif
