/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast this machine can receive at all: a bare recvmmsg() loop that copies each packet's
 * payload to where two of its words say, and does nothing else. It believes what it reads as far as
 * it has to in order to stay within its memory, and takes packets of blast alone.
 *
 * Heaps go to two places in turn, as they would with an allocator that gives out first what it got
 * last. A few messages of 64 KiB in a call are faster than many: they stay in the cache.
 */
#include "../src/wire.h"
#include "receiving.h"
#include "udp_socket.h"

#include <errno.h>
#include <stdio.h>

enum {
    RUN = 65536,
    PLACES = 2,
    /* 64-bit words of a packet, and bytes of what is before its items' pointers. */
    COUNT = 1,
    OFFSET = 3,
    LENGTH = 4,
    CONTROL = 5,
    PREFIX = 40,
};

struct loop {
    struct receiving r;
    uint8_t *memory, *heaps;
    struct mmsghdr messages[RECEIVE_MESSAGES];
    struct iovec pieces[RECEIVE_MESSAGES];
    spti_control controls[RECEIVE_MESSAGES];
    uint64_t bytes, whole; /* of payload, and heaps that these make */
    bool ended;
};

static uint64_t word(const uint8_t *packet, size_t i)
{
    return spti_get(packet + SPTI_POINTER * i, SPTI_POINTER) & spti_address_mask(40);
}

static void take(struct loop *l, const uint8_t *packet, size_t size)
{
    l->r.packets++;
    size_t header = size < PREFIX ? size : 8 * (1 + (word(packet, 0) & 0xffff));
    bool is_end = size > PREFIX && word(packet, CONTROL) == 2 && packet[8 * CONTROL + 2] == 6;
    uint64_t offset = word(packet, OFFSET), n = word(packet, LENGTH);
    if (is_end || header + n != size || offset + n > l->r.common.heap_size) {
        l->ended = true;
        return;
    }
    uint64_t cnt = word(packet, COUNT);
    if (l->r.copy)
        memcpy(l->heaps + cnt % PLACES * l->r.common.heap_size + offset, packet + header, n);
    l->bytes += n;
    if (offset + n == l->r.common.heap_size) {
        receiving_heaps(&l->r, 1);
        if (l->r.check)
            receiving_check(&l->r, cnt, l->heaps + cnt % PLACES * l->r.common.heap_size);
    }
}

static void receive(struct loop *l)
{
    for (size_t i = 0; i < RECEIVE_MESSAGES; i++) {
        l->pieces[i] = (struct iovec){l->memory + i * RUN, RUN};
        l->messages[i].msg_hdr = (struct msghdr){
            .msg_iov = &l->pieces[i],
            .msg_iovlen = 1,
            .msg_control = &l->controls[i],
            .msg_controllen = sizeof(l->controls[i]),
        };
    }
    int n =
        recvmmsg(l->r.common.socket, l->messages, (unsigned)l->r.messages, MSG_WAITFORONE, NULL);
    l->r.calls++;
    if (n < 0 && errno != EINTR) {
        perror("receive_bare: could not receive");
        exit(1);
    }
    for (int i = 0; i < n; i++) {
        size_t size = l->messages[i].msg_len, run = spti_udp_segment(&l->messages[i].msg_hdr);
        size_t segment = run > 0 ? run : size;
        for (size_t at = 0; at < size && !l->ended; at += segment)
            take(l, l->memory + (size_t)i * RUN + at, smaller(segment, size - at));
    }
}

int main(int argc, char **argv)
{
    struct loop l = {.r = receiving_begin(argc, argv,
                                          "How fast this machine can receive: bare system calls.",
                                          "bgc")};
    if (l.r.gro && setsockopt(l.r.common.socket, IPPROTO_UDP, UDP_GRO, &(int){1}, sizeof(int)) != 0)
        perror("receive_bare: there is no UDP_GRO here");
    l.memory = alloc_touched(RECEIVE_MESSAGES * RUN);
    l.heaps = alloc_touched(PLACES * l.r.common.heap_size);
    receiving_ready(&l.r);
    while (!l.ended)
        receive(&l);
    int status = receiving_end(&l.r);
    free(l.memory);
    free(l.heaps);
    return status;
}
