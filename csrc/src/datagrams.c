/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a UDP socket that is received from, and the memory that datagrams come into. Knows nothing
 * of what is in them.
 *
 * What makes it fast: many messages in a recvmmsg(), and with generic receive offload (UDP_GRO,
 * Linux 5.0) a run of equal packets in a message, which the kernel has carried up through its
 * layers once. Each needs room for the longest run. There are few such buffers, so that they are
 * still in the cache when they are read, and when they are written to again.
 *
 * What is faster still is to copy once instead of twice: whoever knows how the next packets begin,
 * and where their payloads belong, has the kernel write these there, a run at a time.
 */
#include "datagrams.h"

#include "status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum {
    RUN = 65536,       /* bytes of the longest run of packets */
    MEMORY = 8 * RUN,  /* for all messages of a call */
    MAX_MESSAGES = 64, /* in a call */
    MAX_DATAGRAM = 65535,
    MOST_GUESSED = 64,   /* packets at a time */
    FEWEST_GUESSED = 4,  /* that are worth it, */
    LARGE_PACKET = 4096, /* if they have so many bytes: pieces cost, too */
    MOST_ALONE = 4,      /* messages after a right one */
    MOST_UNGUESSED = 63, /* calls after a wrong one */
    MAX_PREFIX = 64,
};

typedef union control {
    char bytes[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
} control;

struct spti_datagrams {
    int fd;
    size_t room;        /* bytes for a message */
    size_t n_messages;  /* in a call, at most */
    size_t n, at;       /* messages that came with the last call, and which is being taken */
    size_t offset;      /* in that message, */
    size_t segment;     /* and bytes of each of its packets but the last; 0: it is one */
    size_t whole;       /* packets of that size that are left in it */
    size_t last_run;    /* packets of the last message that was read */
    unsigned alone;     /* messages that are to be read one by one */
    unsigned back_off;  /* calls without a guess that the last wrong one was followed by, */
    unsigned unguessed; /* and how many of them are left */
    spt_receive_stats stats;
    struct mmsghdr messages[MAX_MESSAGES];
    struct iovec pieces[MAX_MESSAGES];
    control controls[MAX_MESSAGES];
    struct iovec guessed_pieces[2 * MOST_GUESSED + 1];
    uint8_t prefixes[MOST_GUESSED][MAX_PREFIX];
    uint8_t *memory;
};

/* ---- Receiving ---- */

static void prepare(spti_datagrams *d)
{
    for (size_t i = 0; i < d->n_messages; i++) {
        d->pieces[i] = (struct iovec){d->memory + i * d->room, d->room};
        d->messages[i].msg_hdr = (struct msghdr){
            .msg_iov = &d->pieces[i],
            .msg_iovlen = 1,
            .msg_control = &d->controls[i],
            .msg_controllen = sizeof(d->controls[i]),
        };
    }
}

/* Whether an error is of something that was sent through the same socket: whoever uses it next is
 * told (see udp(7)), and may go on. */
static bool is_of_sending(int error)
{
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
           error == EHOSTDOWN || error == EMSGSIZE;
}

/* Take what has come into the first messages. */
static spt_status receive(spti_datagrams *d, size_t n_messages, spt_error *err)
{
    d->n = d->at = d->offset = 0;
    int n;
    do
        n = recvmmsg(d->fd, d->messages, (unsigned)n_messages, MSG_DONTWAIT, NULL);
    while (n < 0 && errno == EINTR);
    d->stats.calls++;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || is_of_sending(errno)))
        return SPT_PENDING;
    if (n < 0)
        return spti_fail_errno(err, "could not receive from the socket");
    d->n = (size_t)n;
    d->stats.messages += d->n;
    return SPT_OK;
}

/* After a guess that was right it reads some messages one by one: with each there may be enough for
 * the next one. */
spt_status spti_datagrams_read(spti_datagrams *d, spt_error *err)
{
    size_t n = d->alone > 0 ? 1 : d->n_messages;
    d->alone -= d->alone > 0;
    d->unguessed -= d->unguessed > 0;
    prepare(d);
    return receive(d, n, err);
}

/* Bytes of each packet of a run but the last; 0 where a message is one packet. */
static size_t segment_size(struct msghdr *message)
{
    for (struct cmsghdr *it = CMSG_FIRSTHDR(message); it != NULL; it = CMSG_NXTHDR(message, it))
        if (it->cmsg_level == IPPROTO_UDP && it->cmsg_type == UDP_GRO) {
            int size;
            memcpy(&size, CMSG_DATA(it), sizeof(size));
            return size > 0 ? (size_t)size : 0;
        }
    return 0;
}

/* What is in a message that has just come. */
static void note_run(spti_datagrams *d, struct mmsghdr *message)
{
    d->segment = segment_size(&message->msg_hdr);
    d->whole = d->segment > 0 ? message->msg_len / d->segment : 0;
    d->last_run = d->whole > 0 ? d->whole : 1;
}

bool spti_datagrams_all_taken(const spti_datagrams *d)
{
    return d->at == d->n;
}

bool spti_datagrams_next(spti_datagrams *d, spt_packet_run *run)
{
    if (d->at == d->n)
        return false;
    struct mmsghdr *message = &d->messages[d->at];
    size_t all = message->msg_len, left = all - d->offset;
    if (d->offset == 0)
        note_run(d, message);
    *run = (spt_packet_run){
        .bytes = d->memory + d->at * d->room + d->offset,
        .n_bytes = d->whole > 0 ? d->segment : left,
        .step = d->segment,
        .n = d->whole > 0 ? d->whole : 1,
    };
    return true;
}

void spti_datagrams_take(spti_datagrams *d, const spt_packet_run *run, size_t n)
{
    d->offset += n * run->n_bytes;
    d->whole -= d->whole > 0 ? n : 0;
    if (d->offset == d->messages[d->at].msg_len) {
        d->at++;
        d->offset = 0;
    }
    d->stats.datagrams += n;
    d->stats.bytes += n * run->n_bytes;
}

/* ---- Guessing ---- */

bool spti_datagrams_worth_a_guess(const spti_datagrams *d, const spti_guess *guess)
{
    return d->room == RUN && d->unguessed == 0 && d->last_run >= FEWEST_GUESSED &&
           guess->n >= FEWEST_GUESSED && guess->n_bytes >= LARGE_PACKET &&
           guess->prefix <= MAX_PREFIX;
}

/* How many packets a message is read as that has a guess, and what they are to be cut into. */
static size_t cut_guess(spti_datagrams *d, const spti_guess *guess)
{
    size_t payload = guess->n_bytes - guess->prefix;
    size_t n = guess->n < MOST_GUESSED ? guess->n : MOST_GUESSED;
    n = n < RUN / guess->n_bytes ? n : RUN / guess->n_bytes;
    struct iovec *piece = d->guessed_pieces;
    for (size_t i = 0; i < n; i++) {
        *piece++ = (struct iovec){d->prefixes[i], guess->prefix};
        *piece++ = (struct iovec){guess->to + i * payload, payload};
    }
    /* What is beyond them comes to where it would be without a guess. */
    *piece = (struct iovec){d->memory + n * guess->n_bytes, RUN - n * guess->n_bytes};
    return n;
}

spt_status spti_datagrams_read_guess(spti_datagrams *d, const spti_guess *guess,
                                     spt_packet_run *run, spt_error *err)
{
    prepare(d);
    size_t most = cut_guess(d, guess);
    struct msghdr *message = &d->messages[0].msg_hdr;
    message->msg_iov = d->guessed_pieces;
    message->msg_iovlen = 2 * most + 1;
    SPTI_TRY(receive(d, 1, err));
    size_t all = d->messages[0].msg_len;
    note_run(d, &d->messages[0]);
    size_t each = d->segment > 0 ? d->segment : all;
    size_t came = each == guess->n_bytes ? all / each : 0;
    *run = (spt_packet_run){
        .bytes = d->prefixes,
        .n_bytes = guess->n_bytes,
        .step = sizeof(d->prefixes[0]),
        .n = came < most ? came : most,
        .in_place = true,
    };
    return SPT_OK;
}

/*
 * A wrong guess costs a call for a single message, and a copy. Where senders take turns at a socket
 * each one is wrong: so after one that is, calls go without, twice as many as after the one before.
 */
static void note_guess(spti_datagrams *d, bool right)
{
    unsigned longer = d->back_off < MOST_UNGUESSED ? 2 * d->back_off + 1 : MOST_UNGUESSED;
    d->back_off = d->unguessed = right ? 0 : longer;
    d->alone = right ? MOST_ALONE : 0;
}

void spti_datagrams_right(spti_datagrams *d, const spti_guess *guess, size_t n_right)
{
    size_t all = d->messages[0].msg_len, right = n_right * guess->n_bytes;
    size_t n_pieces = d->messages[0].msg_hdr.msg_iovlen - 1;
    size_t at = right;
    for (size_t i = 2 * n_right; i < n_pieces && at < all; i++) {
        const struct iovec *piece = &d->guessed_pieces[i];
        size_t n = piece->iov_len < all - at ? piece->iov_len : all - at;
        memcpy(d->memory + at, piece->iov_base, n);
        at += n;
    }
    note_guess(d, n_right > 0 && at == right); /* nothing is not right: it is an empty datagram */
    d->stats.in_place += n_right;
    d->stats.datagrams += n_right;
    d->stats.bytes += right;
    d->offset = right;
    d->whole -= d->whole > 0 ? n_right : 0;
    if (n_right > 0 && right == all)
        d->at = 1;
}

/* ---- Setting up ---- */

/* As many bytes as are allowed, of those that are asked for: what there is, the statistics say. */
static spt_status set_buffer(const spti_datagrams *d, size_t wanted, spt_error *err)
{
    int size = wanted > INT32_MAX / 2 ? INT32_MAX / 2 : (int)wanted;
    if (wanted > 0 && setsockopt(d->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) != 0)
        return spti_fail_errno(err, "could not set the socket's receive buffer");
    return SPT_OK;
}

static spt_status join(const spti_datagrams *d, const struct sockaddr_storage *address,
                       const spt_receive_config *config, spt_error *err)
{
    if (address->ss_family == AF_INET6) {
        struct ipv6_mreq group = {.ipv6mr_interface = config->interface_index};
        group.ipv6mr_multiaddr = ((const struct sockaddr_in6 *)address)->sin6_addr;
        if (!IN6_IS_ADDR_MULTICAST(&group.ipv6mr_multiaddr))
            return SPT_OK;
        if (setsockopt(d->fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof(group)) != 0)
            return spti_fail_errno(err, "could not join the multicast group on interface %u",
                                   config->interface_index);
        return SPT_OK;
    }
    struct ip_mreq group = {.imr_multiaddr = ((const struct sockaddr_in *)address)->sin_addr};
    const char *text = config->interface_address;
    if (!IN_MULTICAST(ntohl(group.imr_multiaddr.s_addr)))
        return SPT_OK;
    if (text != NULL && text[0] != '\0' && inet_pton(AF_INET, text, &group.imr_interface) != 1)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "interface address '%.60s' is not an IPv4 address such as 192.168.31.1",
                         text);
    if (setsockopt(d->fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)) != 0)
        return spti_fail_errno(err, "could not join the multicast group%s%.60s",
                               text != NULL ? " on interface " : "", text != NULL ? text : "");
    return SPT_OK;
}

static bool is_multicast(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_MULTICAST(&((const struct sockaddr_in6 *)address)->sin6_addr);
    return IN_MULTICAST(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
}

static spt_status bind_socket(spti_datagrams *d, const struct addrinfo *info,
                              const spt_endpoint *endpoint, const spt_receive_config *config,
                              spt_error *err)
{
    struct sockaddr_storage address = {0};
    memcpy(&address, info->ai_addr, info->ai_addrlen);
    d->fd = socket(info->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (d->fd < 0)
        return spti_fail_errno(err, "could not make a UDP socket");
    int on = 1; /* several may listen to a group */
    if (is_multicast(&address))
        setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    SPTI_TRY(set_buffer(d, config->buffer_size, err)); /* before anything can come */
    if (bind(d->fd, info->ai_addr, info->ai_addrlen) != 0)
        return errno == EADDRINUSE
                   ? spti_fail_errno(err,
                                     "port %d is in use: end what listens there (ss -ulpn says "
                                     "what), or choose another",
                                     endpoint->port)
                   : spti_fail_errno(err, "could not listen on '%.100s', port %d", endpoint->host,
                                     endpoint->port);
    return join(d, &address, config, err);
}

static spt_status open_bound(spti_datagrams *d, const spt_endpoint *endpoint,
                             const spt_receive_config *config, spt_error *err)
{
    if (endpoint->port < 0 || endpoint->port > 65535)
        return spti_fail(err, SPT_ERR_ARGUMENT, "port %d is out of range: 0 to 65535",
                         endpoint->port);
    char port[8];
    snprintf(port, sizeof(port), "%d", endpoint->port);
    const char *host =
        endpoint->host != NULL && endpoint->host[0] != '\0' ? endpoint->host : "0.0.0.0";
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "could not look up host '%.100s': %s; check its spelling, or give an "
                         "address",
                         host, gai_strerror(code));
    spt_endpoint named = {host, endpoint->port};
    spt_status status = bind_socket(d, found, &named, config, err);
    freeaddrinfo(found);
    return status;
}

static spt_status duplicate(spti_datagrams *d, int given, spt_error *err)
{
    int type = 0;
    socklen_t length = sizeof(type);
    if (given < 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the socket that was given is closed: its descriptor is %d", given);
    if (getsockopt(given, SOL_SOCKET, SO_TYPE, &type, &length) != 0)
        return spti_fail_errno(err, "the socket that was given cannot be used");
    if (type != SOCK_DGRAM)
        return spti_fail(err, SPT_ERR_ARGUMENT, "the socket that was given is not a UDP socket");
    d->fd = fcntl(given, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return d->fd < 0 ? spti_fail_errno(err, "could not duplicate the socket") : SPT_OK;
}

/* Cut the memory into messages: of a run each where there are runs. */
static spt_status cut(spti_datagrams *d, const spt_receive_config *config, spt_error *err)
{
    if (config->max_size == 0 || config->max_size > MAX_DATAGRAM)
        return spti_fail(err, SPT_ERR_ARGUMENT, "max_size is %zu: packets have 1 to %d bytes",
                         config->max_size, MAX_DATAGRAM);
    int on = config->gro;
    bool runs = setsockopt(d->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0 && config->gro;
    d->room = runs ? RUN : config->max_size + 1; /* by which one sees that it was longer */
    d->n_messages = MEMORY / d->room < MAX_MESSAGES ? MEMORY / d->room : MAX_MESSAGES;
    d->memory = malloc(MEMORY);
    return d->memory == NULL ? spti_fail(err, SPT_ERR_MEMORY, "no memory for packets") : SPT_OK;
}

static spti_datagrams *open_any(int given, const spt_endpoint *endpoint,
                                const spt_receive_config *config, spt_error *err)
{
    spti_datagrams *d = calloc(1, sizeof(*d));
    if (d == NULL) {
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a socket");
        return NULL;
    }
    d->fd = -1;
    spt_status status =
        endpoint == NULL ? duplicate(d, given, err) : open_bound(d, endpoint, config, err);
    if (status == SPT_OK)
        status = cut(d, config, err);
    if (status == SPT_OK)
        return d;
    spti_datagrams_close(d);
    return NULL;
}

spti_datagrams *spti_datagrams_open(const spt_endpoint *endpoint, const spt_receive_config *config,
                                    spt_error *err)
{
    return open_any(-1, endpoint, config, err);
}

spti_datagrams *spti_datagrams_open_socket(int socket, const spt_receive_config *config,
                                           spt_error *err)
{
    return open_any(socket, NULL, config, err);
}

void spti_datagrams_close(spti_datagrams *d)
{
    if (d == NULL)
        return;
    if (d->fd >= 0)
        close(d->fd);
    free(d->memory);
    free(d);
}

int spti_datagrams_fd(const spti_datagrams *d)
{
    return d->fd;
}

int spti_datagrams_port(const spti_datagrams *d)
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof(address);
    if (getsockname(d->fd, (struct sockaddr *)&address, &length) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

void spti_datagrams_stats(const spti_datagrams *d, spt_receive_stats *stats)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof(info);
    *stats = d->stats;
    getsockopt(d->fd, SOL_SOCKET, SO_MEMINFO, info, &length);
    stats->dropped = info[SK_MEMINFO_DROPS];
    stats->buffer_size = info[SK_MEMINFO_RCVBUF];
}
