/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What senders and receivers need of a UDP socket, and partly of one of TCP: to make one, or to
 * duplicate one that is given, its addresses and options, multicast groups, and the size of the
 * packets that a message is a run of.
 */
#ifndef SPTI_UDP_SOCKET_H
#define SPTI_UDP_SOCKET_H

#include "spead_tutorial/spt.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { SPTI_MAX_DATAGRAM = 65535 }; /* what a length field of IPv4 or UDP holds */

/* Find the address of an endpoint, whose port is not less than that; family: AF_UNSPEC, or what it
 * has to be of. */
spt_status spti_udp_resolve(const spt_endpoint *endpoint, int lowest_port, int family,
                            struct sockaddr_storage *to, socklen_t *length, spt_error *err);

/* Whether one to listen at has no host: it is listened at by any address. */
bool spti_udp_is_any(const spt_endpoint *own);

/* The same of one to listen at, at any port, and where it has no host at any address: of both
 * families, or where there is no IPv6 of IPv4; and what it is called then. */
spt_status spti_udp_resolve_own(const spt_endpoint *endpoint, spt_endpoint *named,
                                struct sockaddr_storage *to, socklen_t *length, spt_error *err);

/* The port that a socket is bound to; 0 for none. */
int spti_udp_port(int fd);

/* Make a socket of that type, SOCK_DGRAM or SOCK_STREAM; its descriptor is the caller's. Own: what
 * it is to listen at, or NULL. */
spt_status spti_socket_open(int family, int type, const spt_endpoint *own, int *fd, spt_error *err);

/* Duplicate a socket that is given, if it is of that type, SOCK_DGRAM or SOCK_STREAM, and say of
 * which family it is. */
spt_status spti_socket_duplicate(int given, int type, int *fd, int *family, spt_error *err);

/* Set an option, which errors call so. */
spt_status spti_udp_set(int fd, int level, int option, int value, const char *what, spt_error *err);

/* The size of the buffer, SO_SNDBUF or SO_RCVBUF: as much of it as is allowed; 0: as it is. */
spt_status spti_udp_set_buffer(int fd, int option, size_t size, spt_error *err);

/* Whether it is the address of an interface: NULL, "" and "0.0.0.0" leave it to the system. */
bool spti_udp_names_interface(const char *text);

/* Refuse an interface that is of another family or scope than an address to send to or to receive
 * at: packets would go by another one. */
spt_status spti_udp_check_interface(const struct sockaddr_storage *address, const char *text,
                                    unsigned index, spt_error *err);

/* The address of an interface, in words. */
spt_status spti_udp_interface(const char *text, struct in_addr *to, spt_error *err);

bool spti_udp_is_multicast(const struct sockaddr_storage *address);

/* Join a group on an interface: of IPv4 on one that is named, or the system's choice where that is
 * NULL or empty; of IPv6 on that of its scope. */
spt_status spti_udp_join(int fd, const struct sockaddr_storage *group, const char *interface,
                         spt_error *err);

/* ---- Messages that are runs of packets ---- */

/* Room for what is said of one. */
typedef struct spti_control {
    _Alignas(struct cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
} spti_control;

/* Have a message that is sent cut into packets of a size. */
static inline void spti_udp_set_segment(struct msghdr *message, spti_control *control,
                                        uint16_t size)
{
    message->msg_control = control;
    message->msg_controllen = CMSG_SPACE(sizeof(size));
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(size));
    memcpy(CMSG_DATA(header), &size, sizeof(size));
}

/* Bytes of each packet but the last of a message that was received; 0 where it is one packet. */
static inline size_t spti_udp_segment(struct msghdr *message)
{
    for (struct cmsghdr *it = CMSG_FIRSTHDR(message); it != NULL; it = CMSG_NXTHDR(message, it))
        if (it->cmsg_level == IPPROTO_UDP && it->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(it), sizeof(size));
            return size > 0 ? (size_t)size : 0;
        }
    return 0;
}

#endif
