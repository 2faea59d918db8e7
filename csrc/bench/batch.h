/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes into which message: heaps that are sent together, cut into packets once. */
#ifndef BATCH_H
#define BATCH_H

#include "udp_socket.h"

#include <spead_tutorial/spt.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { MAX_DATAGRAM = 65507 }; /* UDP over IPv4 */

/* How all of them are sent. */
struct settings {
    size_t heaps, heap_size, packet_size, batch_size;
    size_t max_messages, max_segments; /* messages in a call; packets in a message */
    size_t pieces;                     /* that a packet's payload is gathered from */
    const struct sockaddr_storage *to; /* which every message says; NULL: its socket is connected */
    size_t streams;
    int threads;
    bool zero_copy, huge_pages, fresh, fill, unconnected, json;
    const char *host;
    int port;
};

/* Heaps that are handed over together, and the messages that carry them. */
struct batch {
    uint8_t *memory;
    size_t size;           /* of that */
    spt_memory huge_pages; /* which it is in, if it is */
    struct mmsghdr *messages;
    struct iovec *pieces; /* a header and the payload's for each packet */
    uint8_t *headers;
    spti_control *controls;
    size_t n_heaps, n_messages;
    uint64_t n_packets, n_bytes;
    uint32_t first_id; /* of its zero-copy messages */
    size_t in_flight;  /* zero-copy messages whose memory the kernel still reads */
};

/* How many packets a message may have here. */
size_t max_segments(void);

/* Make room for n heaps, and lay them out; the program ends where there is none. */
void batch_init(const struct settings *s, struct batch *b, size_t n);
void batch_fini(struct batch *b);

/* Give the pages back, as free() does: what writes there next touches new ones. */
void forget_samples(struct batch *b);

/* Cut the first n heaps of a batch into packets, and gather these into messages: packets of one
 * size, the last of which may be shorter. */
void lay_out(const struct settings *s, struct batch *b, size_t n);

#endif
