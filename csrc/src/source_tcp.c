/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns packets that come through a TCP connection, one after the other: the first one that a socket
 * that listens is asked for, and no second. Where a packet ends only it can say: one that is too
 * long is passed over; behind one that does not say, no other can be found.
 *
 * What is waited for is first the one socket, and then the other: the descriptor is an epoll set
 * that has either.
 */
#include "source.h"

#include "received_packet.h"
#include "status.h"
#include "udp_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    ROOM = 524288, /* bytes that are read at once: as many as the item pointers that fit a packet */
    SMALLEST = 8,  /* that a packet has at least */
    /* A sender whose machine is gone is given up after a minute: */
    IDLE_S = 30,
    BETWEEN_S = 10,
    PROBES = 3,
};

typedef struct tcp_source {
    spti_source base;
    int listening, connection; /* or -1 */
    size_t max_size;           /* of a packet */
    size_t room, begin, end;   /* of what was read, and not taken */
    uint64_t needed;           /* bytes, before it is worth looking again */
    uint64_t passing;          /* bytes up to the next packet */
    spt_receive_stats stats;
    uint8_t *memory;
} tcp_source;

/* ---- Packets --------------------------------------------------------------------------------- */

static size_t n_there(const tcp_source *s)
{
    return s->end - s->begin;
}

/* Let go of what was taken, or is too long, as far as it is there; false where it is not all. */
static bool pass(tcp_source *s)
{
    size_t n = s->passing < n_there(s) ? (size_t)s->passing : n_there(s);
    s->begin += n;
    s->passing -= n;
    return s->passing == 0;
}

/* Find the next packet, of which the size is 0 where not all of it is there. One that is too long
 * is found once it has said so. */
static spt_fault measure(tcp_source *s, uint64_t *size)
{
    *size = 0;
    if (n_there(s) < s->needed)
        return SPT_FAULT_NONE;
    spt_fault fault = spti_received_packet_size(s->memory + s->begin, n_there(s), &s->needed);
    if (fault == SPT_FAULT_POINTERS)
        return SPT_FAULT_NONE;
    if (fault == SPT_FAULT_NONE && (s->needed <= n_there(s) || s->needed > s->max_size))
        *size = s->needed;
    return fault;
}

static void took(tcp_source *s, size_t n_packets, uint64_t n_bytes)
{
    s->passing = n_bytes;
    s->needed = SMALLEST;
    s->stats.datagrams += n_packets;
}

/* Take packets that are expected: they are known without a look at all of their items. */
static bool take_expected(tcp_source *s, spti_intake *in)
{
    size_t size;
    uint8_t *to;
    if (spti_depacketizer_expected(in->depacketizer, &size, &to) == 0 || size > s->max_size ||
        size > n_there(s))
        return false;
    spti_packet_run run = {
        .bytes = s->memory + s->begin, .n_bytes = size, .step = size, .n = n_there(s) / size};
    size_t n = spti_intake_take_run(in, &run);
    if (n > 0)
        took(s, n, n * size);
    return n > 0;
}

/* Take what is there as a whole; false where something has to wait, or it has ended. */
static bool take_packets(tcp_source *s, spti_intake *in)
{
    while (pass(s)) {
        if (take_expected(s, in))
            continue;
        uint64_t size;
        spt_fault fault = measure(s, &size);
        if (fault != SPT_FAULT_NONE) {
            s->begin = s->end;
            spti_intake_malformed(in, fault);
            spti_intake_fail(in, EPROTO);
            return false;
        }
        if (size == 0)
            return true;
        const uint8_t *packet = s->memory + s->begin;
        took(s, 1, size);
        if (size > s->max_size)
            spti_intake_malformed(in, SPT_FAULT_SURPLUS);
        else
            (void)spti_intake_take(in, packet, (size_t)size, true, 0);
        if (!spti_intake_go_on(in))
            return false;
    }
    return true;
}

/* ---- Sockets --------------------------------------------------------------------------------- */

static bool is_passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ECONNABORTED ||
           error == EPROTO;
}

static int watch(const tcp_source *s, int operation, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(s->base.fd, operation, fd, &event);
}

static void stop_listening(tcp_source *s)
{
    watch(s, EPOLL_CTL_DEL, s->listening); /* it may be somebody else's, too, and stay open */
    close(s->listening);
    s->listening = -1;
}

static void look_after(int fd)
{
    /* Without them, it takes longer to find out that a sender is gone. */
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){IDLE_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){BETWEEN_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &(int){PROBES}, sizeof(int));
}

static spti_wait accept_one(tcp_source *s, spti_intake *in)
{
    /* Whoever else has the socket may have made it wait again, and taken what had come. */
    (void)fcntl(s->listening, F_SETFL, fcntl(s->listening, F_GETFL) | O_NONBLOCK);
    int fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && is_passing(errno))
        return SPTI_WAIT_READABLE;
    if (fd >= 0) {
        stop_listening(s);
        s->connection = fd;
        look_after(fd);
        if (watch(s, EPOLL_CTL_ADD, fd) == 0)
            return SPTI_WAIT_TURN;
    }
    spti_intake_fail(in, errno);
    return SPTI_WAIT_WORK;
}

/* Nothing more comes, with an error or without. */
static spti_wait end(tcp_source *s, spti_intake *in, int error)
{
    if (n_there(s) > 0)
        spti_intake_malformed(in, SPT_FAULT_PAYLOAD); /* it has stopped in the midst of a packet */
    s->begin = s->end;
    if (error != 0)
        spti_intake_fail(in, error);
    else
        spti_intake_end(in);
    return SPTI_WAIT_WORK;
}

static spti_wait receive(tcp_source *s, spti_intake *in)
{
    memmove(s->memory, s->memory + s->begin, n_there(s));
    s->end -= s->begin;
    s->begin = 0;
    ssize_t n;
    do
        n = recv(s->connection, s->memory + s->end, s->room - s->end, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    s->stats.calls++;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return SPTI_WAIT_READABLE;
    if (n <= 0)
        return end(s, in, n < 0 ? errno : 0);
    s->end += (size_t)n;
    s->stats.bytes += (uint64_t)n;
    s->stats.messages++;
    return take_packets(s, in) ? SPTI_WAIT_TURN : SPTI_WAIT_WORK;
}

static spti_wait tcp_read(spti_source *source, spti_intake *in)
{
    tcp_source *s = (tcp_source *)source;
    if (!take_packets(s, in)) /* what had to wait */
        return SPTI_WAIT_WORK;
    return s->connection < 0 ? accept_one(s, in) : receive(s, in);
}

static void close_sockets(tcp_source *s)
{
    if (s->listening >= 0)
        stop_listening(s);
    if (s->connection >= 0) {
        shutdown(s->connection, SHUT_RDWR); /* a child of the process may have it, too */
        close(s->connection);
    }
    s->connection = -1;
}

/* The sender must not wait for somebody who does not read any more. */
static size_t tcp_leave(spti_source *source)
{
    tcp_source *s = (tcp_source *)source;
    uint64_t size;
    size_t n = 0;
    for (; pass(s) && measure(s, &size) == SPT_FAULT_NONE && size > 0; n++)
        took(s, 1, size);
    s->begin = s->end;
    close_sockets(s);
    return n;
}

static void tcp_read_stats(const spti_source *source, spt_receive_stats *stats)
{
    const tcp_source *s = (const tcp_source *)source;
    int fd = s->connection >= 0 ? s->connection : s->listening, size = 0;
    socklen_t length = sizeof(size);
    if (fd >= 0)
        getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &length);
    *stats = s->stats;
    stats->buffer_size = (uint64_t)size;
}

static void tcp_close(spti_source *source)
{
    tcp_source *s = (tcp_source *)source;
    close_sockets(s);
    if (s->base.fd >= 0)
        close(s->base.fd);
    free(s->memory);
    free(s);
}

static const spti_source_ops tcp_ops = {tcp_read, tcp_leave, tcp_read_stats, tcp_close};

/* ---- Setting up ------------------------------------------------------------------------------ */

static spt_status listen_at(int *fd, const spt_endpoint *endpoint, const spt_receive_config *config,
                            spt_error *err)
{
    spt_endpoint named;
    struct sockaddr_storage address;
    socklen_t length;
    SPTI_TRY(spti_udp_resolve_own(endpoint, &named, &address, &length, err));
    SPTI_TRY(spti_socket_open(address.ss_family, SOCK_STREAM, endpoint, fd, err));
    SPTI_TRY(spti_udp_set(*fd, SOL_SOCKET, SO_REUSEADDR, 1, "reuse of its address", err));
    SPTI_TRY(spti_udp_set_buffer(*fd, SO_RCVBUF, config->buffer_size, err));
    if (bind(*fd, (const struct sockaddr *)&address, length) == 0 && listen(*fd, 1) == 0)
        return SPT_OK;
    return spti_fail_errno(err, "could not listen on '%.100s', port %d%s", named.host, named.port,
                           errno == EADDRINUSE ? ", which is in use (ss -tlpn says by what)" : "");
}

static spt_status duplicate(int *fd, int given, spt_error *err)
{
    int family, listens = 0;
    socklen_t length = sizeof(listens);
    SPTI_TRY(spti_socket_duplicate(given, SOCK_STREAM, fd, &family, err));
    getsockopt(*fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
    if (!listens)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the socket that was given does not listen: call its listen() first");
    if (fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK) != 0)
        return spti_fail_errno(err, "could not have the socket not wait");
    return SPT_OK;
}

static spt_status set_up(tcp_source *s, spt_error *err)
{
    s->base.port = spti_udp_port(s->listening);
    s->room = s->max_size > ROOM ? s->max_size : ROOM;
    s->memory = s->room < SIZE_MAX / 2 ? malloc(s->room) : NULL;
    if (s->memory == NULL)
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for packets of up to %zu bytes",
                         s->max_size);
    s->base.fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->base.fd < 0 || watch(s, EPOLL_CTL_ADD, s->listening) != 0)
        return spti_fail_errno(err, "could not watch the socket");
    return SPT_OK;
}

spti_source *spti_source_tcp(int given, const spt_endpoint *endpoint,
                             const spt_receive_config *config, spt_error *err)
{
    static const spt_receive_config defaults = SPT_RECEIVE_TCP_CONFIG_DEFAULT;
    config = config == NULL ? &defaults : config;
    tcp_source *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a reader");
    *s = (tcp_source){
        .base = {.ops = &tcp_ops, .fd = -1},
        .listening = -1,
        .connection = -1,
        .max_size = config->max_size,
        .needed = SMALLEST,
    };
    spt_status status = SPT_OK;
    if (config->max_size < SMALLEST)
        status = spti_fail(err, SPT_ERR_ARGUMENT, "max_size is %zu: packets have at least %d bytes",
                           config->max_size, SMALLEST);
    else
        status = endpoint == NULL ? duplicate(&s->listening, given, err)
                                  : listen_at(&s->listening, endpoint, config, err);
    if (status == SPT_OK)
        status = set_up(s, err);
    if (status == SPT_OK)
        return &s->base;
    tcp_close(&s->base);
    return NULL;
}
