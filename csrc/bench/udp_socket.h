/* SPDX-License-Identifier: BSD-3-Clause */
/* A UDP socket for a program that measures, or counts; the program ends where there can be none. */
#ifndef UDP_SOCKET_H
#define UDP_SOCKET_H

/* Of the core: how the size of the packets is said that a message is a run of. */
#include "../src/udp_socket.h"

/* Connected: the way to the host is looked for once, and not for each message. */
int connected_to(const char *host, int port);

int bound_to(const char *host, int port);

#endif
