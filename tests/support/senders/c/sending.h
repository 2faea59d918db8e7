/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the planted senders in C and C++ share: HOST PORT HEAPS [mended], and heaps of 1 MiB that
 * lie in memory as they are sent, packet after packet.
 */
#ifndef SENDING_H
#define SENDING_H

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    HEAP_SIZE = 1 << 20,
    PACKET_SIZE = 9000,
    HEADER = 48, /* 8 bytes and five items: count, length, offset, length here, the samples */
    UDP_LARGEST = 65507,
    SEGMENTS = 64, /* in a message, at most */
    OFFLOAD = 103, /* UDP_SEGMENT, for headers that lack it */
};

struct sender {
    int fd;
    size_t heaps;
    int mended;
    size_t packet;  /* bytes within UDP */
    size_t message; /* bytes in a call: of one packet, or of as many as fit */
    size_t size;    /* bytes of a heap with all its headers */
    uint8_t *wire;
};

static inline void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Have heaps cut into packets of a size, with segmentation offload or without. */
static inline void cut(struct sender *s, size_t packet, int offload)
{
    size_t payload = packet - HEADER, packets = (HEAP_SIZE + payload - 1) / payload;
    int segment = offload ? (int)packet : 0;
    s->packet = packet;
    s->message = packet * (offload ? least(UDP_LARGEST / packet, SEGMENTS) : 1);
    s->size = HEAP_SIZE + packets * HEADER;
    s->wire = (uint8_t *)realloc(s->wire, s->size);
    must(setsockopt(s->fd, IPPROTO_UDP, OFFLOAD, &segment, sizeof(segment)) == 0, "setsockopt");
}

/* Nothing is wrong with it. */
static inline struct sender sender_of(int argc, char **argv)
{
    struct sender s;
    struct sockaddr_in to;
    memset(&s, 0, sizeof(s));
    memset(&to, 0, sizeof(to));
    must(argc >= 4, "HOST PORT HEAPS [mended]");
    s.heaps = strtoul(argv[3], NULL, 10);
    s.mended = argc > 4;
    s.fd = socket(AF_INET, SOCK_DGRAM, 0);
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t)atoi(argv[2]));
    must(inet_pton(AF_INET, argv[1], &to.sin_addr) == 1, "HOST");
    must(connect(s.fd, (struct sockaddr *)&to, sizeof(to)) == 0, "connect");
    cut(&s, PACKET_SIZE, 1);
    return s;
}

/* Make an item pointer of SPEAD-64-40; immediate ones hold a number, the other an address. */
static inline uint64_t item(uint64_t immediate, uint64_t id, uint64_t value)
{
    return htobe64(immediate << 63 | id << 40 | value);
}

/* Write a heap: its headers, and its samples, which are all equal if none are given. */
static inline void fill(struct sender *s, uint64_t count, const uint8_t *samples)
{
    uint8_t *at = s->wire;
    for (size_t offset = 0, n; offset < HEAP_SIZE; offset += n, at += n) {
        n = least(s->packet - HEADER, HEAP_SIZE - offset);
        const uint64_t header[] = {htobe64(UINT64_C(0x5304030500000005)),
                                   item(1, 1, count),
                                   item(1, 2, HEAP_SIZE),
                                   item(1, 3, offset),
                                   item(1, 4, n),
                                   item(0, 0x3300, 0)};
        memcpy(at, header, HEADER);
        at += HEADER;
        if (samples != NULL)
            memcpy(at, samples + offset, n);
        else
            memset(at, (int)(count % 256), n);
    }
}

static inline void send_heap(const struct sender *s)
{
    for (size_t at = 0; at < s->size; at += s->message)
        must(send(s->fd, s->wire + at, least(s->message, s->size - at), 0) >= 0, "send");
}

#endif
