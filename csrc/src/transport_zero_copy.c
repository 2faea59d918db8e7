/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the numbers of messages that the kernel reads in place. Knows nothing of how they are made.
 *
 * The kernel numbers the messages of a socket that it takes with MSG_ZEROCOPY, from 0 on, and says
 * of ranges of numbers, through the socket's error queue, that it does not read them any more, and
 * whether it has copied them after all (Documentation/networking/msg_zerocopy.rst). The ranges may
 * come in any order. A message may have at most so many fragments: pieces of memory that lie within
 * one page, so that more packets fit where pages are large.
 */
#include "transport_zero_copy.h"

#include <time.h> /* first: linux/errqueue.h has a struct timespec, and does not say where from */

#include <errno.h>
#include <linux/errqueue.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_ZEROCOPY
#define SO_ZEROCOPY 60
#endif

enum {
    MAX_FRAGMENTS = 17,   /* MAX_SKB_FRAGS of the kernels that have fewest */
    LARGE_PAGE = 1 << 21, /* guessed: a wrong guess is refused */
    WORTH = 10240,        /* bytes in a message: below, the book-keeping costs more */
    COPIED_IN_ROW = 64,   /* messages: then it is no use */
    A_WHILE = 4096,       /* calls: until it is tried again what was of no use */
    NEWS_PER_CALL = 16,   /* each a range of messages */
    NEWS_BYTES = 128,     /* of control data: more than is ever filled */
};

void spti_zero_copy_init(spti_zero_copy *z, int fd)
{
    z->on = setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)) == 0;
}

bool spti_zero_copy_try(spti_zero_copy *z)
{
    if (z->careful > 0)
        z->careful--;
    if (z->skip == 0)
        return z->on;
    z->skip--;
    return false;
}

bool spti_zero_copy_pays(size_t n_messages, size_t n_bytes)
{
    return n_messages > 0 && n_bytes / n_messages >= WORTH;
}

/* ---- What fits ---- */

static size_t pages(const struct iovec *piece, size_t page_size)
{
    uintptr_t first = (uintptr_t)piece->iov_base / page_size;
    uintptr_t last = ((uintptr_t)piece->iov_base + piece->iov_len - 1) / page_size;
    return last - first + 1;
}

size_t spti_zero_copy_run(const spti_zero_copy *z, const spti_batch *batch, size_t first, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t fragments = 0;
    for (size_t i = 0; i < n; i++) {
        const spti_packet *packet = &batch->packets[first + i];
        const struct iovec *piece = &batch->pieces[packet->first_piece];
        for (size_t k = 0; k < packet->n_pieces; k++, piece++)
            fragments += pages(piece, z->careful > 0 || piece->iov_len < page ? page : LARGE_PAGE);
        if (fragments > MAX_FRAGMENTS)
            return i;
    }
    return n;
}

/* ---- What became of it ---- */

void spti_zero_copy_taken(spti_zero_copy *z, spti_transport *t, const spti_batch *batch,
                          size_t first, size_t n)
{
    z->released[t->handed % SPTI_ZERO_COPY_HELD] =
        false; /* what was given up may have come since */
    for (size_t i = first; i < first + n; i++) {
        batch->packets[i].held = true;
        batch->packets[i].message = t->handed;
    }
    t->handed++;
    spti_count(&t->stats.zero_copy_messages, 1);
}

static void release_range(spti_zero_copy *z, spti_transport *t, uint32_t first, uint32_t last)
{
    if ((int32_t)(last + 1 - t->handed) > 0)
        t->handed = last + 1; /* refused when it had its number already */
    for (uint32_t i = first; i != last + 1; i++)
        if (i - t->released < SPTI_ZERO_COPY_HELD)
            z->released[i % SPTI_ZERO_COPY_HELD] = true;
    while (t->released != t->handed && z->released[t->released % SPTI_ZERO_COPY_HELD])
        z->released[t->released++ % SPTI_ZERO_COPY_HELD] = false;
}

static void learn(spti_zero_copy *z, spti_transport *t, uint64_t n, bool copied)
{
    z->copied = copied ? z->copied + n : 0;
    if (copied)
        spti_count(&t->stats.zero_copy_copied, n);
    if (z->copied < COPIED_IN_ROW)
        return;
    z->copied = 0;
    z->skip = A_WHILE;
}

static void take_news(spti_zero_copy *z, spti_transport *t, struct msghdr *news)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(news); h != NULL; h = CMSG_NXTHDR(news, h)) {
        struct sock_extended_err e;
        if (h->cmsg_len < CMSG_LEN(sizeof(e)))
            continue;
        memcpy(&e, CMSG_DATA(h), sizeof(e));
        if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY || e.ee_errno != 0)
            continue;
        release_range(z, t, e.ee_info, e.ee_data);
        learn(z, t, (uint64_t)(e.ee_data - e.ee_info) + 1,
              (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0);
    }
}

/* Returns how many pieces of news there were. */
static int take_all_news(spti_zero_copy *z, spti_transport *t)
{
    int n, all = 0;
    do {
        _Alignas(struct cmsghdr) char control[NEWS_PER_CALL][NEWS_BYTES];
        struct mmsghdr news[NEWS_PER_CALL];
        for (size_t i = 0; i < NEWS_PER_CALL; i++)
            news[i].msg_hdr =
                (struct msghdr){.msg_control = control[i], .msg_controllen = NEWS_BYTES};
        n = recvmmsg(t->fd, news, NEWS_PER_CALL, MSG_ERRQUEUE | MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++)
            take_news(z, t, &news[i].msg_hdr);
        all += n > 0 ? n : 0;
    } while (n == NEWS_PER_CALL);
    if (n < 0 && errno == EBADF)
        t->released = t->handed; /* somebody has closed the socket: there will be no news */
    return all;
}

bool spti_zero_copy_refused(spti_zero_copy *z, spti_transport *t, int error)
{
    uint32_t released = t->released;
    take_all_news(z, t); /* also: what was refused late has been given a number */
    if (error == ENOBUFS && t->released != t->handed) {
        t->full = t->released == released; /* of memory for news, or for what is pinned */
        return !t->full;
    }
    if (error == EMSGSIZE && z->careful == 0)
        z->careful = A_WHILE; /* too many fragments: pages are small */
    else
        z->skip = error == ENOBUFS ? A_WHILE : 1; /* if that is refused too, it is an error */
    return true;
}

void spti_zero_copy_release(spti_zero_copy *z, spti_transport *t)
{
    int error;
    if (t->released == t->handed || take_all_news(z, t) > 0)
        return;
    /* Nobody listened to another packet: until that has been read, there seems to be news. */
    getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)});
}
