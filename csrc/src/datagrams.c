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

#include "sender.h"
#include "status.h"
#include "udp_socket.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum {
    RUN = 65536,         /* bytes of the longest run of packets */
    MEMORY = 8 * RUN,    /* for all messages of a call */
    MAX_MESSAGES = 64,   /* in a call */
    MOST_GUESSED = 64,   /* packets at a time */
    FEWEST_GUESSED = 4,  /* that are worth it, */
    LARGE_PACKET = 4096, /* if they have so many bytes: pieces cost, too */
    MOST_ALONE = 4,      /* messages after a right one */
    MOST_UNGUESSED = 63, /* calls after a wrong one */
    MAX_PREFIX = 64,
};

/* Where a datagram came from. */
typedef union sender_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
} sender_address;

struct spti_datagrams {
    int fd;
    size_t room;        /* bytes for a message */
    size_t n_messages;  /* in a call, at most */
    size_t n, at;       /* messages that came with the last call, and which is being taken */
    size_t offset;      /* in that message, */
    size_t segment;     /* and bytes of each of its packets but the last; 0: it is one */
    size_t whole;       /* packets of that size that are left in it */
    uint64_t sender;    /* whose it is */
    unsigned empty;     /* calls in a row that found nothing */
    size_t last_run;    /* packets of the last message that was read */
    unsigned alone;     /* messages that are to be read one by one */
    unsigned back_off;  /* calls without a guess that the last wrong one was followed by, */
    unsigned unguessed; /* and how many of them are left */
    spt_receive_stats stats;
    struct mmsghdr messages[MAX_MESSAGES];
    struct iovec pieces[MAX_MESSAGES];
    sender_address senders[MAX_MESSAGES];
    spti_control controls[MAX_MESSAGES];
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
            .msg_name = &d->senders[i],
            .msg_namelen = sizeof(d->senders[i]),
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

/* A socket that has been shut down seems readable for ever: whoever was told so finds nothing, and
 * nothing again. */
static bool is_shut_down(spti_datagrams *d)
{
    struct pollfd it = {.fd = d->fd, .events = POLLRDHUP};
    return d->empty++ > 0 && poll(&it, 1, 0) > 0 && (it.revents & POLLRDHUP) != 0;
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
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || is_of_sending(errno))) {
        if (!is_shut_down(d))
            return SPT_PENDING;
        errno = ESHUTDOWN;
    }
    if (n < 0)
        return spti_fail_errno(err, "could not receive from the socket");
    d->empty = 0;
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

static uint64_t sender_of(const struct msghdr *message)
{
    const sender_address *from = message->msg_name;
    if (message->msg_namelen == sizeof(from->ipv4) && from->any.sa_family == AF_INET)
        return spti_sender_of(&from->ipv4.sin_addr, 4, from->ipv4.sin_port);
    if (message->msg_namelen == sizeof(from->ipv6) && from->any.sa_family == AF_INET6)
        return spti_sender_of(&from->ipv6.sin6_addr, 16, from->ipv6.sin6_port);
    return 0; /* a socket of another kind was given */
}

/* What is in a message that has just come. */
static void note_run(spti_datagrams *d, struct mmsghdr *message)
{
    d->segment = spti_udp_segment(&message->msg_hdr);
    d->whole = d->segment > 0 ? message->msg_len / d->segment : 0;
    d->last_run = d->whole > 0 ? d->whole : 1;
    d->sender = sender_of(&message->msg_hdr);
}

bool spti_datagrams_all_taken(const spti_datagrams *d)
{
    return d->at == d->n;
}

bool spti_datagrams_next(spti_datagrams *d, spti_packet_run *run)
{
    if (d->at == d->n)
        return false;
    struct mmsghdr *message = &d->messages[d->at];
    size_t all = message->msg_len, left = all - d->offset;
    if (d->offset == 0)
        note_run(d, message);
    *run = (spti_packet_run){
        .bytes = d->memory + d->at * d->room + d->offset,
        .n_bytes = d->whole > 0 ? d->segment : left,
        .step = d->segment,
        .n = d->whole > 0 ? d->whole : 1,
        .source = d->sender,
    };
    return true;
}

void spti_datagrams_take(spti_datagrams *d, const spti_packet_run *run, size_t n)
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
                                     spti_packet_run *run, spt_error *err)
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
    *run = (spti_packet_run){
        .bytes = d->prefixes,
        .n_bytes = guess->n_bytes,
        .step = sizeof(d->prefixes[0]),
        .n = came < most ? came : most,
        .source = d->sender,
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

static spt_status bind_socket(const spti_datagrams *d, const struct sockaddr_storage *address,
                              socklen_t length, const spt_endpoint *endpoint, bool reuse_port,
                              spt_error *err)
{
    if (bind(d->fd, (const struct sockaddr *)address, length) == 0)
        return SPT_OK;
    if (errno == EADDRINUSE && reuse_port)
        return spti_fail_errno(err,
                               "port %d is in use by a socket that does not share it (reuse_port), "
                               "or by another user (ss -ulpne says who): end that, or choose "
                               "another port",
                               endpoint->port);
    if (errno == EADDRINUSE)
        return spti_fail_errno(err,
                               "port %d is in use: end what listens there (ss -ulpn says what), "
                               "or choose another",
                               endpoint->port);
    return spti_fail_errno(err, "could not listen on '%.100s', port %d", endpoint->host,
                           endpoint->port);
}

static spt_status open_bound(spti_datagrams *d, const spt_endpoint *endpoint,
                             const spt_receive_config *config, spt_error *err)
{
    spt_endpoint named;
    struct sockaddr_storage address;
    socklen_t length;
    bool names_interface = spti_udp_names_interface(config->interface_address);
    if (spti_udp_is_any(endpoint) && (names_interface || config->interface_index > 0))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "an interface goes with a multicast group or an address: give one");
    SPTI_TRY(spti_udp_resolve_own(endpoint, &named, &address, &length, err));
    SPTI_TRY(spti_udp_check_interface(&address, config->interface_address, config->interface_index,
                                      err));
    if (config->interface_index > 0)
        ((struct sockaddr_in6 *)&address)->sin6_scope_id = config->interface_index;
    SPTI_TRY(spti_socket_open(address.ss_family, SOCK_DGRAM, endpoint, &d->fd, err));
    bool group = spti_udp_is_multicast(&address);
    if (!group && names_interface) {
        struct in_addr own;
        SPTI_TRY(spti_udp_interface(config->interface_address, &own, err));
        if (own.s_addr != ((struct sockaddr_in *)&address)->sin_addr.s_addr)
            return spti_fail(err, SPT_ERR_ARGUMENT,
                             "'%.60s' is neither a multicast group nor interface address '%.60s'",
                             named.host, config->interface_address);
    }
    if (group && config->reuse_port)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "reuse_port is not for multicast groups such as '%.60s': every socket "
                         "gets all of a group's packets without it",
                         named.host);
    if (config->reuse_port)
        SPTI_TRY(spti_udp_set(d->fd, SOL_SOCKET, SO_REUSEPORT, 1, "shared port", err));
    if (group) /* which several may listen to */
        setsockopt(d->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    /* Before anything can come; what there is, the statistics say. */
    SPTI_TRY(spti_udp_set_buffer(d->fd, SO_RCVBUF, config->buffer_size, err));
    SPTI_TRY(bind_socket(d, &address, length, &named, config->reuse_port, err));
    return group ? spti_udp_join(d->fd, &address, config->interface_address, err) : SPT_OK;
}

/* Cut the memory into messages: of a run each where there are runs. */
static spt_status cut(spti_datagrams *d, const spt_receive_config *config, spt_error *err)
{
    size_t max_size = config->max_size < SPTI_MAX_DATAGRAM ? config->max_size : SPTI_MAX_DATAGRAM;
    if (max_size == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT, "max_size is 0: packets have at least 1 byte");
    int on = config->gro;
    bool runs = setsockopt(d->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0 && config->gro;
    d->room = runs ? RUN : max_size + 1; /* by which one sees that it was longer */
    d->n_messages = MEMORY / d->room < MAX_MESSAGES ? MEMORY / d->room : MAX_MESSAGES;
    d->memory = malloc(MEMORY);
    return d->memory == NULL ? spti_fail(err, SPT_ERR_MEMORY, "no memory for packets") : SPT_OK;
}

spti_datagrams *spti_datagrams_open(int given, const spt_endpoint *endpoint,
                                    const spt_receive_config *config, spt_error *err)
{
    spti_datagrams *d = calloc(1, sizeof(*d));
    if (d == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a socket");
    d->fd = -1;
    spt_status status = endpoint == NULL
                            ? spti_socket_duplicate(given, SOCK_DGRAM, &d->fd, &(int){0}, err)
                            : open_bound(d, endpoint, config, err);
    if (status == SPT_OK)
        status = cut(d, config, err);
    if (status == SPT_OK)
        return d;
    spti_datagrams_close(d);
    return NULL;
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

void spti_datagrams_stats(const spti_datagrams *d, spt_receive_stats *stats)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof(info);
    *stats = d->stats;
    getsockopt(d->fd, SOL_SOCKET, SO_MEMINFO, info, &length);
    stats->dropped = info[SK_MEMINFO_DROPS];
    stats->buffer_size = info[SK_MEMINFO_RCVBUF];
}
