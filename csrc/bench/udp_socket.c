/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the way from a host and a port to a socket, and the size of packets in a message. */
#include "udp_socket.h"
#include "../chapters/command_line.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

typedef int attaching(int fd, const struct sockaddr *address, socklen_t size);

static int attached(const char *host, int port, attaching *attach, const char *what)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    char digits[16];
    snprintf(digits, sizeof(digits), "%d", port);
    int status = getaddrinfo(host, digits, &hints, &found);
    if (status != 0)
        fail("%s %s port %d: %s", what, host, port, gai_strerror(status));
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || attach(fd, found->ai_addr, found->ai_addrlen) != 0)
        fail("%s %s port %d: %m", what, host, port);
    freeaddrinfo(found);
    return fd;
}

int connected_to(const char *host, int port)
{
    return attached(host, port, connect, "cannot send to");
}

int bound_to(const char *host, int port)
{
    return attached(host, port, bind, "cannot listen at");
}

void set_segment_size(struct msghdr *message, union segment_size *room, size_t size)
{
    uint16_t value = (uint16_t)size;
    message->msg_control = room;
    message->msg_controllen = sizeof(room->bytes);
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(value));
    memcpy(CMSG_DATA(header), &value, sizeof(value));
}
