/* SPDX-License-Identifier: BSD-3-Clause */
/* A receiver with one fault: PROGRAM HOST PORT FAULT [mended]; without one, it has none. */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 8, ROOM = 65536, LARGE_BUFFER = 1 << 22, SMALL_BUFFER = 1 << 13 };

static uint8_t rooms[BATCH][ROOM];

static int receiving(const char *host, const char *port, int buffer, int merged)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    inet_pton(AF_INET, host, &at.sin_addr);
    if (buffer > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &merged, sizeof(merged));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0)
        err(1, "bind");
    return fd;
}

static void read_one(int fd)
{
    if (recv(fd, rooms[0], ROOM, 0) < 0)
        err(1, "recv");
}

static void read_many(int fd)
{
    struct iovec pieces[BATCH];
    struct mmsghdr messages[BATCH];
    memset(messages, 0, sizeof(messages));
    for (int i = 0; i < BATCH; i++) {
        pieces[i] = (struct iovec){rooms[i], ROOM};
        messages[i].msg_hdr.msg_iov = &pieces[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    if (recvmmsg(fd, messages, BATCH, MSG_WAITFORONE, NULL) < 0)
        err(1, "recvmmsg");
}

/* Keep what was read in memory that is new. */
static void keep(void)
{
    size_t size = 1 << 18;
    uint8_t *kept = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (kept == MAP_FAILED)
        err(1, "mmap");
    memset(kept, 1, size);
    munmap(kept, size);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        errx(1, "HOST PORT [FAULT [mended]]");
    const char *fault = argc > 3 ? argv[3] : "";
    bool faulty = argc < 5, sleeps = faulty && strcmp(fault, "sleeps") == 0,
         one = faulty && strcmp(fault, "call-per-packet") == 0,
         small = faulty && strcmp(fault, "small-buffer") == 0,
         fresh = faulty && strcmp(fault, "fresh-memory") == 0;
    int fd = receiving(argv[1], argv[2], small ? SMALL_BUFFER : LARGE_BUFFER,
                       !(sleeps || one || small || fresh));
    for (;;) {
        if (sleeps || one || fresh)
            read_one(fd);
        else
            read_many(fd);
        if (sleeps)
            nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
        if (fresh)
            keep();
    }
}
