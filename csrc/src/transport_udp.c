/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a UDP socket and how packets become system calls. Knows nothing of heaps.
 *
 * What makes it fast: many messages in a sendmmsg(), and many packets in a message. With generic
 * segmentation offload (UDP_SEGMENT, Linux 4.18) a message is a run of packets of one size to one
 * endpoint, of which only the last may be shorter; the kernel carries the run through its layers
 * once, and cuts it at the end. Where it refuses (a packet size beyond the MTU, an interface that
 * cannot), the run is sent again as single packets, and such runs are not tried again.
 */
#include "transport.h"

#include "status.h"
#include "transport_zero_copy.h"
#include "udp_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef MSG_ZEROCOPY
#define MSG_ZEROCOPY 0x4000000
#endif

enum {
    LOWEST_PORT = 1,       /* to send to */
    MAX_MESSAGES = 64,     /* in one sendmmsg() */
    MAX_SEGMENTS = 128,    /* UDP_MAX_SEGMENTS, since Linux 6.9; */
    OLD_MAX_SEGMENTS = 64, /* before */
    MAX_PIECES = 1024,     /* UIO_MAXIOV */
    MAX_MERGED = 65440,    /* longer messages the kernel cuts itself, at once: with all headers they
                              would reach the 65536 bytes that devices take whole */
    IPV4_HEADERS = 20 + 8, /* IPv4 counts its own header, */
    IPV6_HEADERS = 8,      /* IPv6 does not, */
    IPV6_OVERHEAD = 40 + 8 /* but a link's MTU does */
};

typedef struct udp_transport {
    spti_transport base;
    struct sockaddr_storage *addresses;
    socklen_t address_length;
    bool connected; /* to the only endpoint: then the kernel need not look for the way each time */
    size_t gso_limit; /* packets of this size and more are not merged */
    size_t max_segments;
    spti_zero_copy zero_copy;
    struct mmsghdr messages[MAX_MESSAGES];
    spti_control controls[MAX_MESSAGES];
} udp_transport;

/* ---- Sending ---- */

/* How many packets from first on can share a message. */
static size_t run_length(const udp_transport *u, const spti_batch *batch, size_t first)
{
    const spti_packet *p = &batch->packets[first];
    size_t most = batch->n - first < u->max_segments ? batch->n - first : u->max_segments;
    size_t size = p->size;
    size_t end = p->first_piece + p->n_pieces; /* of the pieces */
    size_t n = 1;
    if (p->size >= u->gso_limit)
        return 1;
    while (n < most) {
        const spti_packet *q = &p[n];
        size += q->size;
        if (q->size > p->size || q->substream != p->substream || q->first_piece != end ||
            size > MAX_MERGED || end + q->n_pieces - p->first_piece > MAX_PIECES)
            break;
        end += q->n_pieces;
        n++;
        if (q->size < p->size)
            break;
    }
    return n;
}

static void prepare(udp_transport *u, size_t m, const spti_batch *batch, size_t first, size_t n)
{
    const spti_packet *p = &batch->packets[first];
    const spti_packet *last = &p[n - 1];
    struct msghdr *message = &u->messages[m].msg_hdr;
    *message = (struct msghdr){
        .msg_name = u->connected ? NULL : &u->addresses[p->substream],
        .msg_namelen = u->connected ? 0 : u->address_length,
        .msg_iov = &batch->pieces[p->first_piece],
        .msg_iovlen = last->first_piece + last->n_pieces - p->first_piece,
    };
    if (n > 1)
        spti_udp_set_segment(message, &u->controls[m], (uint16_t)p->size);
}

/* The largest packet that goes through a connected socket in one piece; 0 where nobody knows. */
static size_t route_size(int fd, bool v4)
{
    int mtu = 0;
    socklen_t length = sizeof(mtu);
    int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
    if (getsockopt(fd, level, v4 ? IP_MTU : IPV6_MTU, &mtu, &length) != 0)
        return 0;
    size_t most = SPTI_MAX_DATAGRAM - (size_t)(v4 ? IPV4_HEADERS : IPV6_HEADERS);
    size_t size = (size_t)mtu - (size_t)(v4 ? IPV4_HEADERS : IPV6_OVERHEAD);
    return (size < most ? size : most) & ~(size_t)7;
}

/* The kernel has refused to cut a run of n packets: learn from it. */
static bool gso_refused(udp_transport *u, size_t n, size_t packet_size, int error)
{
    if (error == EINVAL && n > OLD_MAX_SEGMENTS) {
        u->max_segments = OLD_MAX_SEGMENTS;
        return true;
    }
    if (error == EINVAL || error == EMSGSIZE) {
        u->gso_limit = packet_size; /* beyond the MTU, most likely */
        return true;
    }
    if (error == EIO || error == EOPNOTSUPP) {
        u->gso_limit = 0; /* no checksum offload, or a tunnel: never here */
        return true;
    }
    return false;
}

/* That nobody took a packet sent before is told once, instead of sending this one, and only to who
 * is connected. A sender may start before its receiver: it is tried again, as if nobody had said.
 */
static bool told_of_another(const udp_transport *u)
{
    return u->connected && errno == ECONNREFUSED;
}

/* Messages of packets from batch->next on. */
typedef struct call {
    size_t runs[MAX_MESSAGES]; /* packets in each */
    size_t n, n_bytes;
    bool zero_copy;
} call;

static void make_messages(udp_transport *u, const spti_batch *batch, bool zero_copy, call *c)
{
    c->n = c->n_bytes = 0;
    c->zero_copy = zero_copy;
    for (size_t at = batch->next; at < batch->n && c->n < MAX_MESSAGES; at += c->runs[c->n++]) {
        size_t n = run_length(u, batch, at);
        if (zero_copy)
            n = spti_zero_copy_run(&u->zero_copy, batch, at, n);
        if (n == 0)
            return; /* what does not fit is for another call, with a copy */
        c->runs[c->n] = n;
        c->n_bytes += n * batch->packets[at].size;
        prepare(u, c->n, batch, at, n);
    }
}

static void taken(udp_transport *u, spti_batch *batch, const call *c, size_t n_messages)
{
    spti_transport *t = &u->base;
    for (size_t m = 0; m < n_messages; m++) {
        spti_transport_taken(t, batch, batch->next, c->runs[m]);
        if (c->zero_copy)
            spti_zero_copy_taken(&u->zero_copy, t, batch, batch->next, c->runs[m]);
        batch->next += c->runs[m];
    }
}

/* The first message of a call has been refused. The others have not been tried. */
static void refused(udp_transport *u, spti_batch *batch, size_t n, int error)
{
    spti_transport *t = &u->base;
    if (n == 1 && error == EMSGSIZE)
        t->fits = route_size(t->fd, u->addresses[0].ss_family == AF_INET);
    if (n == 1 || !gso_refused(u, n, batch->packets[batch->next].size, error)) {
        spti_transport_failed(t, batch, batch->next, n, error);
        batch->next += n;
    }
}

/* Send messages; move batch->next past those that are dealt with. */
static spt_status send_messages(udp_transport *u, spti_batch *batch, const call *c)
{
    spti_transport *t = &u->base;
    int flags = MSG_DONTWAIT | (c->zero_copy ? MSG_ZEROCOPY : 0);
    int sent;
    do
        sent = sendmmsg(t->fd, u->messages, (unsigned)c->n, flags);
    while (sent < 0 && (errno == EINTR || told_of_another(u)));
    int error = errno;
    spti_count(&t->stats.send_calls, 1);
    t->full = false;
    if (sent > 0) {
        taken(u, batch, c, (size_t)sent);
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
        spti_count(&t->stats.waits, 1);
        return SPT_PENDING;
    } else if (!c->zero_copy) {
        refused(u, batch, c->runs[0], error);
    } else if (!spti_zero_copy_refused(&u->zero_copy, t, error)) {
        spti_count(&t->stats.waits, 1);
        return SPT_PENDING;
    }
    return SPT_OK;
}

static spt_status udp_send(spti_transport *t, spti_batch *batch)
{
    udp_transport *u = (udp_transport *)t;
    call c;
    while (batch->next < batch->n) {
        bool zero_copy = spti_zero_copy_try(&u->zero_copy);
        make_messages(u, batch, zero_copy, &c);
        if (zero_copy && !spti_zero_copy_pays(c.n, c.n_bytes))
            make_messages(u, batch, false, &c);
        SPTI_TRY(send_messages(u, batch, &c));
    }
    return SPT_OK;
}

static void udp_release(spti_transport *t)
{
    spti_zero_copy_release(&((udp_transport *)t)->zero_copy, t);
}

static void udp_destroy(spti_transport *t)
{
    udp_transport *u = (udp_transport *)t;
    if (t->fd >= 0)
        close(t->fd);
    free(u->addresses);
    free(u);
}

static const spti_transport_ops udp_ops = {udp_send, NULL, udp_destroy, NULL};
static const spti_transport_ops zero_copy_ops = {udp_send, udp_release, udp_destroy, NULL};

/* ---- Setting up ---- */

static spt_status set_interface_address(int fd, const char *text, const udp_transport *u,
                                        spt_error *err)
{
    struct sockaddr_in local = {.sin_family = AF_INET};
    SPTI_TRY(spti_udp_interface(text, &local.sin_addr, err));
    if (spti_udp_is_multicast(&u->addresses[0])) /* an address has as many bytes as an int */
        SPTI_TRY(spti_udp_set(fd, IPPROTO_IP, IP_MULTICAST_IF, (int)local.sin_addr.s_addr,
                              "multicast interface", err));
    if (bind(fd, (const struct sockaddr *)&local, sizeof(local)) != 0)
        return spti_fail_errno(err, "could not send from interface address '%.60s'", text);
    return SPT_OK;
}

static spt_status set_ttl(int fd, int ttl, const udp_transport *u, spt_error *err)
{
    if (ttl > 255)
        return spti_fail(err, SPT_ERR_ARGUMENT, "ttl %d is out of range: 0 to 255", ttl);
    for (size_t i = 0; i < u->base.n_substreams; i++)
        if (!spti_udp_is_multicast(&u->addresses[i]))
            return spti_fail(err, SPT_ERR_ARGUMENT,
                             "ttl is for multicast, but endpoint %zu is not a multicast address",
                             i);
    return u->addresses[0].ss_family == AF_INET
               ? spti_udp_set(fd, IPPROTO_IP, IP_MULTICAST_TTL, ttl, "multicast ttl", err)
               : spti_udp_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, ttl, "multicast hop limit",
                              err);
}

static spt_status configure_socket(int fd, const spt_udp_config *config, const udp_transport *u,
                                   spt_error *err)
{
    SPTI_TRY(spti_udp_set_buffer(fd, SO_SNDBUF, config->buffer_size, err));
    bool v4 = u->addresses[0].ss_family == AF_INET;
    if (config->dont_fragment)
        SPTI_TRY(
            v4 ? spti_udp_set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "fragmentation", err)
               : spti_udp_set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO,
                              "fragmentation", err));
    if (config->ttl >= 0)
        SPTI_TRY(set_ttl(fd, config->ttl, u, err));
    SPTI_TRY(spti_udp_check_interface(&u->addresses[0], config->interface_address,
                                      config->interface_index, err));
    if (v4 && config->interface_address != NULL && config->interface_address[0] != '\0')
        SPTI_TRY(set_interface_address(fd, config->interface_address, u, err));
    if (config->interface_index > 0)
        SPTI_TRY(spti_udp_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)config->interface_index,
                              "multicast interface index", err));
    return SPT_OK;
}

static spt_status open_socket(udp_transport *u, const spt_udp_config *config, spt_error *err)
{
    SPTI_TRY(spti_socket_open(u->addresses[0].ss_family, SOCK_DGRAM, NULL, &u->base.fd, err));
    SPTI_TRY(configure_socket(u->base.fd, config, u, err));
    /* Where there is no way yet, or none that is allowed, sending will say so. */
    u->connected =
        u->base.n_substreams == 1 &&
        connect(u->base.fd, (const struct sockaddr *)&u->addresses[0], u->address_length) == 0;
    return SPT_OK;
}

spt_status spt_route_packet_size(const spt_endpoint *endpoint, size_t *size, spt_error *err)
{
    struct sockaddr_storage address;
    socklen_t length;
    int fd;
    SPTI_TRY(spti_udp_resolve(endpoint, LOWEST_PORT, AF_UNSPEC, &address, &length, err));
    SPTI_TRY(spti_socket_open(address.ss_family, SOCK_DGRAM, NULL, &fd, err));
    spt_status status = SPT_OK;
    if (connect(fd, (const struct sockaddr *)&address, length) != 0)
        status = spti_fail_errno(err, "there is no way to host '%.100s'", endpoint->host);
    else
        *size = route_size(fd, address.ss_family == AF_INET);
    close(fd);
    return status;
}

/* With the caller's socket, or NULL for one of our own. */
static spt_status set_up(udp_transport *u, const int *given, const spt_endpoint *endpoints,
                         size_t n_endpoints, const spt_udp_config *config, spt_error *err)
{
    int family = AF_UNSPEC;
    if (given != NULL)
        SPTI_TRY(spti_socket_duplicate(*given, SOCK_DGRAM, &u->base.fd, &family, err));
    if (given != NULL && config->zero_copy)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "zero_copy is for streams with a socket of their own: what others send "
                         "through yours is counted with it");
    for (size_t i = 0; i < n_endpoints; i++) {
        SPTI_TRY(spti_udp_resolve(&endpoints[i], LOWEST_PORT, family, &u->addresses[i],
                                  &u->address_length, err));
        family = u->addresses[i].ss_family;
    }
    bool v4 = family == AF_INET;
    u->base.n_substreams = n_endpoints;
    u->base.max_packet_size = (size_t)(SPTI_MAX_DATAGRAM - (v4 ? IPV4_HEADERS : IPV6_HEADERS));
    u->base.limit = v4 ? "UDP over IPv4 carries 65507 bytes at most"
                       : "UDP over IPv6 carries 65527 bytes at most";
    if (given == NULL)
        SPTI_TRY(open_socket(u, config, err));
    int gso;
    socklen_t length = sizeof(gso);
    bool known = getsockopt(u->base.fd, IPPROTO_UDP, UDP_SEGMENT, &gso, &length) == 0;
    u->gso_limit = config->gso && known ? SIZE_MAX : 0;
    u->max_segments = MAX_SEGMENTS;
    if (config->zero_copy)
        spti_zero_copy_init(&u->zero_copy, u->base.fd);
    return SPT_OK;
}

static spti_transport *make(const int *given, const spt_endpoint *endpoints, size_t n_endpoints,
                            const spt_udp_config *config, spt_error *err)
{
    static const spt_udp_config defaults = SPT_UDP_CONFIG_DEFAULT;
    if (config == NULL)
        config = &defaults;
    if (n_endpoints == 0)
        return SPTI_NULL(err, SPT_ERR_ARGUMENT, "a stream needs at least one endpoint");
    udp_transport *u = calloc(1, sizeof(*u));
    if (u != NULL)
        u->addresses = calloc(n_endpoints, sizeof(*u->addresses));
    if (u == NULL || u->addresses == NULL) {
        free(u);
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for %zu endpoints", n_endpoints);
    }
    u->base.ops = config->zero_copy ? &zero_copy_ops : &udp_ops;
    u->base.fd = -1;
    if (set_up(u, given, endpoints, n_endpoints, config, err) != SPT_OK) {
        udp_destroy(&u->base);
        return NULL;
    }
    return &u->base;
}

spti_transport *spti_transport_udp(const spt_endpoint *endpoints, size_t n_endpoints,
                                   const spt_udp_config *config, spt_error *err)
{
    return make(NULL, endpoints, n_endpoints, config, err);
}

spti_transport *spti_transport_udp_socket(int socket, const spt_endpoint *endpoints,
                                          size_t n_endpoints, const spt_udp_config *config,
                                          spt_error *err)
{
    return make(&socket, endpoints, n_endpoints, config, err);
}
