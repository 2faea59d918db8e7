/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a TCP connection that packets go through, one after the other. Knows nothing of heaps.
 *
 * The kernel takes as many bytes as it has room for, which may end in the midst of a packet. What
 * it has taken is cut off the batch's pieces, so that what is left goes on where that stopped.
 */
#include "transport.h"

#include "status.h"
#include "udp_socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LOWEST_PORT = 1,
    MAX_PIECES = 1024, /* UIO_MAXIOV */
};

typedef struct tcp_transport {
    spti_transport base;
    bool is_own; /* it was made here, not given */
    int error;   /* with which the connection ended, or 0 */
    uint8_t
        *rest; /* of a packet that was begun and then dropped: the receiver has to find the next */
    size_t rest_begin, rest_end;
    size_t rest_of; /* how large that packet is */
} tcp_transport;

/* ---- Sending ---- */

/* Returns how many bytes have been taken: 0 where there is no room, or it has ended. */
static size_t call(tcp_transport *c, struct iovec *pieces, size_t n_pieces)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n_pieces};
    ssize_t n;
    do
        n = sendmsg(c->base.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    spti_count(&c->base.stats.send_calls, 1);
    if (n >= 0)
        return (size_t)n;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        spti_count(&c->base.stats.waits, 1);
    else
        c->error = errno;
    return 0;
}

/* Whether no rest is left. */
static bool send_rest(tcp_transport *c)
{
    while (c->rest_begin < c->rest_end) {
        struct iovec piece = {c->rest + c->rest_begin, c->rest_end - c->rest_begin};
        size_t n = call(c, &piece, 1);
        c->rest_begin += n;
        if (n == 0)
            return false;
        if (c->rest_begin == c->rest_end) {
            spti_count(&c->base.stats.packets, 1);
            spti_count(&c->base.stats.bytes, c->rest_of);
        }
    }
    return true;
}

/* Packets from the next one on, as far as their pieces follow each other. */
static size_t find_pieces(const spti_batch *batch, struct iovec **first)
{
    const spti_packet *packet = &batch->packets[batch->next];
    size_t begin = packet->first_piece, end = begin + packet->n_pieces;
    for (size_t i = batch->next + 1; i < batch->n && batch->packets[i].first_piece == end; i++)
        end += batch->packets[i].n_pieces;
    while (batch->pieces[begin].iov_len == 0) /* which has gone */
        begin++;
    *first = &batch->pieces[begin];
    return end - begin < MAX_PIECES ? end - begin : MAX_PIECES;
}

/* Cut so many bytes off a packet, or as many as it has. Returns how many it had. */
static size_t cut(const spti_batch *batch, const spti_packet *packet, size_t n)
{
    size_t left = n;
    for (uint32_t i = 0; i < packet->n_pieces && left > 0; i++) {
        struct iovec *piece = &batch->pieces[packet->first_piece + i];
        size_t taken = piece->iov_len < left ? piece->iov_len : left;
        piece->iov_base = (uint8_t *)piece->iov_base + taken;
        piece->iov_len -= taken;
        left -= taken;
    }
    return n - left;
}

/* How much of a packet has not gone. */
static size_t left_of(const spti_batch *batch, const spti_packet *packet)
{
    size_t left = 0;
    for (uint32_t i = 0; i < packet->n_pieces; i++)
        left += batch->pieces[packet->first_piece + i].iov_len;
    return left;
}

static void taken(tcp_transport *c, spti_batch *batch, size_t n)
{
    while (n > 0) {
        const spti_packet *packet = &batch->packets[batch->next];
        n -= cut(batch, packet, n);
        if (n == 0 && left_of(batch, packet) > 0)
            return;
        spti_transport_taken(&c->base, batch, batch->next++, 1);
    }
}

static spt_status tcp_send(spti_transport *t, spti_batch *batch)
{
    tcp_transport *c = (tcp_transport *)t;
    bool room = send_rest(c);
    while (room && c->error == 0 && batch->next < batch->n) {
        struct iovec *pieces;
        size_t n_pieces = find_pieces(batch, &pieces);
        size_t n = call(c, pieces, n_pieces);
        taken(c, batch, n);
        room = n > 0;
    }
    if (c->error == 0)
        return room ? SPT_OK : SPT_PENDING;
    spti_transport_failed(t, batch, batch->next, batch->n - batch->next, c->error);
    batch->next = batch->n;
    return SPT_OK;
}

static void tcp_keep(spti_transport *t, const spti_batch *batch)
{
    tcp_transport *c = (tcp_transport *)t;
    const spti_packet *packet = &batch->packets[batch->next];
    size_t left = left_of(batch, packet);
    if (left == packet->size || c->error != 0)
        return;
    free(c->rest);
    c->rest = malloc(left);
    c->rest_begin = c->rest_end = 0;
    c->rest_of = packet->size;
    if (c->rest == NULL)
        c->error = ENOMEM;
    else
        c->rest_end = (size_t)(spti_packet_copy(batch, packet, c->rest) - c->rest);
}

static void tcp_destroy(spti_transport *t)
{
    tcp_transport *c = (tcp_transport *)t;
    if (t->fd >= 0 && c->error == 0)
        (void)send_rest(c); /* of a cancelled heap's packet, if nothing came after it */
    if (t->fd >= 0 && c->is_own)
        shutdown(t->fd, SHUT_WR); /* a child of the process may have it, too */
    if (t->fd >= 0)
        close(t->fd);
    free(c->rest);
    free(c);
}

static const spti_transport_ops tcp_ops = {tcp_send, NULL, tcp_destroy, tcp_keep};

/* ---- Connecting ---- */

/* With an address of a family, which is found out where it is AF_UNSPEC. */
static spt_status try_family(int *fd, const spt_endpoint *endpoint, int *family,
                             const spt_tcp_config *config, spt_error *err)
{
    struct sockaddr_storage from, to;
    socklen_t from_length = 0, to_length;
    if (config->interface_address != NULL && config->interface_address[0] != '\0') {
        spt_endpoint interface = {config->interface_address, 0};
        SPTI_TRY(spti_udp_resolve(&interface, 0, *family, &from, &from_length, err));
        *family = from.ss_family;
    }
    SPTI_TRY(spti_udp_resolve(endpoint, LOWEST_PORT, *family, &to, &to_length, err));
    *family = to.ss_family;
    SPTI_TRY(spti_socket_open(*family, SOCK_STREAM, NULL, fd, err));
    SPTI_TRY(spti_udp_set_buffer(*fd, SO_SNDBUF, config->buffer_size, err));
    SPTI_TRY(spti_udp_set(*fd, IPPROTO_TCP, TCP_NODELAY, 1, "delay", err));
    if (from_length > 0 && bind(*fd, (const struct sockaddr *)&from, from_length) != 0)
        return spti_fail_errno(err, "could not send from interface address '%.60s'",
                               config->interface_address);
    if (connect(*fd, (const struct sockaddr *)&to, to_length) != 0)
        return spti_fail_errno(err,
                               "could not connect to host '%.100s', port %d: is the receiver "
                               "listening there?",
                               endpoint->host, endpoint->port);
    return SPT_OK;
}

/* A name such as localhost may have addresses of both, and its receiver listen at one. */
static spt_status make_connection(int *fd, const spt_endpoint *endpoint,
                                  const spt_tcp_config *config, spt_error *err)
{
    int family = AF_UNSPEC;
    spt_error first, second;
    spt_status status = try_family(fd, endpoint, &family, config, &first);
    if (status == SPT_ERR_SYSTEM && *fd >= 0 && first.sys_errno != EINTR) {
        close(*fd);
        *fd = -1;
        family = family == AF_INET6 ? AF_INET : AF_INET6;
        spt_status other = try_family(fd, endpoint, &family, config, &second);
        if (other == SPT_OK)
            return SPT_OK;
        if (other == SPT_ERR_SYSTEM && second.sys_errno == EINTR)
            first = second; /* a signal came: its caller tries again */
    }
    if (status != SPT_OK)
        *err = first;
    return status;
}

static spt_status duplicate(int *fd, int given, spt_error *err)
{
    int family;
    struct sockaddr_storage peer;
    socklen_t length = sizeof(peer);
    SPTI_TRY(spti_socket_duplicate(given, SOCK_STREAM, fd, &family, err));
    if (getpeername(*fd, (struct sockaddr *)&peer, &length) != 0)
        return spti_fail_errno(err, "the socket that was given has to be connected");
    return SPT_OK;
}

spti_transport *spti_transport_tcp(const int *given, const spt_endpoint *endpoint,
                                   const spt_tcp_config *config, spt_error *err)
{
    static const spt_tcp_config defaults = SPT_TCP_CONFIG_DEFAULT;
    err = SPTI_SOME(err);
    tcp_transport *c = calloc(1, sizeof(*c));
    if (c == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a connection");
    c->base = (spti_transport){
        .ops = &tcp_ops,
        .n_substreams = 1,
        .max_packet_size = UINT32_MAX,
        .limit = "a packet's size has 32 bits",
        .fd = -1,
    };
    c->is_own = given == NULL;
    spt_status status = given != NULL ? duplicate(&c->base.fd, *given, err)
                                      : make_connection(&c->base.fd, endpoint,
                                                        config == NULL ? &defaults : config, err);
    if (status == SPT_OK)
        return &c->base;
    tcp_destroy(&c->base);
    return NULL;
}
