/* SPDX-License-Identifier: BSD-3-Clause */
/* A UDP socket for a program that measures, or counts; the program ends where there can be none. */
#ifndef UDP_SOCKET_H
#define UDP_SOCKET_H

#include <stdint.h>
#include <sys/socket.h>

/* Connected: the way to the host is looked for once, and not for each message. */
int connected_to(const char *host, int port);

int bound_to(const char *host, int port);

/* Room in a message for the size of the packets that the kernel cuts it into. */
union segment_size {
    char bytes[CMSG_SPACE(sizeof(uint16_t))];
    struct cmsghdr align;
};

void set_segment_size(struct msghdr *message, union segment_size *room, size_t size);

#endif
