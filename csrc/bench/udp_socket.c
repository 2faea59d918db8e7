/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the way from a host and a port to a socket. */
#include "udp_socket.h"
#include "../chapters/command_line.h"

#include <netdb.h>
#include <stdio.h>

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
