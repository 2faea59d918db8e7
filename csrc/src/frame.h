/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP datagrams in frames as a network has them, and which of them are asked for. */
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
    const uint8_t *addresses[2]; /* from and to, of IPv4 or IPv6; NULL where they are not there */
    size_t address_size;
    uint16_t ports[2]; /* 0 where they are not there */
    const uint8_t *payload;
    size_t n_bytes;
} spti_frame;

/* Look at a frame of some kind, of which so many bytes are there. */
spti_frame_kind spti_frame_parse(spti_frame *frame, unsigned link, const uint8_t *bytes,
                                 size_t n_bytes);

/* Conditions, all of which hold. */
typedef struct spti_frame_filter {
    size_t n;
    struct {
        bool of[2]; /* from, to: either will do */
        uint16_t port;
        uint8_t address[16];
        size_t address_size; /* 0: it is of the port */
    } conditions[8];
} spti_frame_filter;

/* What is understood of libpcap's language: "udp", "port" and "host", after "src" or "dst" or
 * neither, joined by "and". Empty: everything. */
spt_status spti_frame_filter_parse(spti_frame_filter *filter, const char *text, spt_error *err);

/* Whether a frame is asked for, as far as it is known where it comes from and goes to. */
bool spti_frame_filter_takes(const spti_frame_filter *filter, const spti_frame *frame);

#endif
