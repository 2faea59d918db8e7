/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the planted senders in C share: HOST PORT [HEAPS], and heaps of 1 MiB cut into packets by
 * hand, for those that use plain sockets. They send for as long as their heaps last.
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
    HEAPS = 20000,
    PACKET_SIZE = 9000,
    HEADER = 48, /* 8 bytes and five items: count, length, offset, length here, the samples */
    PAYLOAD = PACKET_SIZE - HEADER,
    PACKETS = (HEAP_SIZE + PAYLOAD - 1) / PAYLOAD, /* of a heap */
};

struct arguments {
    const char *host;
    int port;
    size_t heaps;
};

_Noreturn static inline void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

static inline struct arguments parse(int argc, char **argv)
{
    if (argc < 3 || argc > 4)
        fail("expected HOST PORT [HEAPS]");
    return (struct arguments){argv[1], atoi(argv[2]),
                              argc > 3 ? strtoul(argv[3], NULL, 10) : HEAPS};
}

/* A plain socket that sends to one place. */
static inline int connected(struct arguments to)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)to.port)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (inet_pton(AF_INET, to.host, &address.sin_addr) != 1)
        fail("HOST is no address");
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        fail(strerror(errno));
    return fd;
}

/* A heap of samples, and its packets: of each a header and a piece of the samples. */
struct heap {
    uint8_t samples[HEAP_SIZE];
    uint64_t headers[PACKETS][HEADER / 8];
    struct iovec pieces[PACKETS][2];
};

/* Make an item pointer of SPEAD-64-40; immediate ones hold a number, the other an address. */
static inline uint64_t item(int immediate, uint64_t id, uint64_t value)
{
    return htobe64((uint64_t)immediate << 63 | id << 40 | value);
}

/* Fill the samples, and write the headers. */
static inline void fill(struct heap *heap, uint64_t count)
{
    memset(heap->samples, (int)(count % 256), sizeof(heap->samples));
    for (size_t i = 0; i < PACKETS; i++) {
        size_t offset = i * PAYLOAD;
        size_t length = offset + PAYLOAD > HEAP_SIZE ? HEAP_SIZE - offset : PAYLOAD;
        uint64_t *header = heap->headers[i];
        header[0] = htobe64(UINT64_C(0x5304030500000005));
        header[1] = item(1, 1, count);
        header[2] = item(1, 2, HEAP_SIZE);
        header[3] = item(1, 3, offset);
        header[4] = item(1, 4, length);
        header[5] = item(0, 0x3300, 0);
        heap->pieces[i][0] = (struct iovec){header, HEADER};
        heap->pieces[i][1] = (struct iovec){heap->samples + offset, length};
    }
}

/* Send all of some messages: the kernel may take fewer in a call. */
static inline void send_all(int fd, struct mmsghdr *messages, unsigned n)
{
    while (n > 0) {
        int sent = sendmmsg(fd, messages, n, 0);
        if (sent < 0)
            fail(strerror(errno));
        messages += sent;
        n -= (unsigned)sent;
    }
}

#endif
