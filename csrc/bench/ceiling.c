/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast this machine can send at all: bare sendmmsg() loops that send packets of the same sizes
 * as the chapters' programs, and do nothing else. Their headers are zeros, each its packet's own,
 * and which bytes go into which message is worked out once, before the clock starts.
 *
 * With one thread, a batch of heaps is filled and then sent, and so again. With two, one thread
 * fills while the other sends the batch before: the least that a stream with a worker thread does.
 * With several streams, each has a socket, a thread that fills and sends, and where there are
 * enough, a core.
 *
 * What was tried, with heaps of 8 KiB and 1 MiB, before it became as it is: 1 and 8 messages for
 * each system call (a little slower than 64); 4 and 8 batches in flight (slower as soon as they
 * are more than the caches hold, no faster otherwise); batches of 64 to 256 KiB (no faster); a
 * thread that has to wait looking again and again (no faster, and ruinous when another program
 * wants the core), and going to sleep at once (slower with zero-copy); a larger send buffer, and
 * huge pages (no difference). With both threads on one core (taskset) it is faster than with two
 * cores, as is one thread: what costs most is that memory moves from cache to cache.
 */
#include "../chapters/command_line.h"
#include "../chapters/report.h"
#include "batch.h"
#include "udp_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/errqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SEND_BUFFER = 512 * 1024,
    N_BATCHES = 2,
    LOOKS = 100, /* before a thread that waits goes to sleep */
};

/* What sends the heaps of a stream. */
struct ceiling {
    struct settings settings; /* of which the heaps are its own share */
    int core;                 /* to run on; -1: any */
    int fd;
    struct sockaddr_storage to; /* where, if the socket is not connected */
    struct batch batches[N_BATCHES];
    size_t batch_heaps;  /* in each, but the last may have fewer */
    size_t n_batches;    /* to send in all */
    sem_t filled, empty; /* what the two threads hand to each other; the rest is the sender's */
    size_t handed_back;  /* batches ever */
    uint32_t next_id;    /* of zero-copy messages */
    struct counts {
        uint64_t packets, messages, bytes, send_calls, waits, copied;
    } counts;
};

/* ---- Sending ---- */

/* The kernel has let go of messages [first, last]. */
static void release(struct ceiling *c, uint32_t first, uint32_t last)
{
    for (uint32_t id = first; id != last + 1; id++)
        for (struct batch *b = c->batches; b < c->batches + N_BATCHES; b++)
            b->in_flight -= b->in_flight > 0 && id - b->first_id < b->n_messages;
}

/* Read what the kernel says of zero-copy messages; false when there was nothing. */
static bool read_completions(struct ceiling *c)
{
    _Alignas(struct cmsghdr) char control[256];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof(control)};
    if (recvmsg(c->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
        if (errno != EAGAIN)
            fail("could not read completions: %m");
        return false;
    }
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h != NULL; h = CMSG_NXTHDR(&message, h)) {
        struct sock_extended_err e;
        memcpy(&e, CMSG_DATA(h), sizeof(e));
        if (e.ee_origin != SO_EE_ORIGIN_ZEROCOPY || e.ee_errno != 0)
            fail("a packet could not be sent: %s", strerror((int)e.ee_errno));
        if (e.ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
            c->counts.copied += e.ee_data - e.ee_info + 1;
        release(c, e.ee_info, e.ee_data);
    }
    return true;
}

static void send_batch(struct ceiling *c, struct batch *b)
{
    int flags = c->settings.zero_copy ? MSG_ZEROCOPY : 0;
    if (c->settings.zero_copy) {
        b->first_id = c->next_id;
        b->in_flight = b->n_messages;
        c->next_id += (uint32_t)b->n_messages;
    }
    for (size_t next = 0; next < b->n_messages;) {
        size_t n = smaller(b->n_messages - next, c->settings.max_messages);
        int sent = sendmmsg(c->fd, b->messages + next, (unsigned)n, flags);
        c->counts.send_calls++;
        if (sent > 0) {
            next += (size_t)sent;
        } else if (errno == ENOBUFS && c->settings.zero_copy) {
            c->counts.waits++; /* too many completions that nobody has read */
            while (read_completions(c))
                ;
        } else if (errno != EINTR) {
            fail("could not send: %m");
        }
    }
    c->counts.messages += b->n_messages;
    c->counts.packets += b->n_packets;
    c->counts.bytes += b->n_bytes;
}

/* Wait until the kernel does not read a batch's memory any more. */
static void await_completions(struct ceiling *c, const struct batch *b)
{
    while (b->in_flight > 0)
        read_completions(c);
}

/* ---- The loops ---- */

/* The batch that a number stands for: a single one will do where it is sent before the next. */
static struct batch *batch_of(struct ceiling *c, size_t number)
{
    bool alone = c->settings.threads == 1 && !c->settings.zero_copy;
    return &c->batches[alone ? 0 : number % N_BATCHES];
}

/* Make the batch with a number ready: its memory is ours, and the kernel does not read it. */
static struct batch *fill_batch(struct ceiling *c, size_t number)
{
    const struct settings *s = &c->settings;
    struct batch *b = batch_of(c, number);
    size_t first = number * c->batch_heaps;
    size_t n = smaller(c->batch_heaps, s->heaps - first);
    if (n != b->n_heaps)
        lay_out(s, b, n); /* the last */
    if (s->fresh)
        forget_samples(b);
    if (s->fill)
        for (size_t i = 0; i < n; i++)
            memset(b->memory + i * s->heap_size, (int)((first + i) % 256), s->heap_size);
    return b;
}

static void one_thread(struct ceiling *c)
{
    for (size_t i = 0; i < c->n_batches; i++) {
        await_completions(c, batch_of(c, i));
        send_batch(c, fill_batch(c, i));
    }
    for (size_t i = 0; i < N_BATCHES; i++)
        await_completions(c, &c->batches[i]);
}

/* Hand back the batches before one, as far as the kernel has let go of them. */
static void hand_back(struct ceiling *c, size_t end)
{
    for (; c->handed_back < end && c->batches[c->handed_back % N_BATCHES].in_flight == 0;
         c->handed_back++)
        sem_post(&c->empty);
}

static void wait_for(sem_t *semaphore)
{
    for (int i = 0; i < LOOKS; i++) {
        if (sem_trywait(semaphore) == 0)
            return;
        sched_yield();
    }
    while (sem_wait(semaphore) != 0)
        ; /* a signal came */
}

/* Wait until the batch with a number has been filled, and hand back those before it meanwhile. */
static void wait_for_batch(struct ceiling *c, size_t number)
{
    while (c->handed_back < number) {
        if (sem_trywait(&c->filled) == 0)
            return;
        read_completions(c);
        hand_back(c, number);
    }
    wait_for(&c->filled);
}

static void *send_all(void *arg)
{
    struct ceiling *c = arg;
    for (size_t i = 0; i < c->n_batches; i++) {
        wait_for_batch(c, i);
        send_batch(c, &c->batches[i % N_BATCHES]);
        hand_back(c, i + 1);
    }
    for (size_t i = 0; i < N_BATCHES; i++)
        await_completions(c, &c->batches[i]);
    return NULL;
}

static void two_threads(struct ceiling *c)
{
    pthread_t sender = start_thread(send_all, c);
    for (size_t i = 0; i < c->n_batches; i++) {
        wait_for(&c->empty);
        fill_batch(c, i);
        sem_post(&c->filled);
    }
    pthread_join(sender, NULL);
}

static void *run_stream(void *arg)
{
    struct ceiling *c = arg;
    spt_error err = {0};
    if (c->core >= 0)
        check(spt_set_affinity(c->core, &err), &err);
    one_thread(c);
    return NULL;
}

static void many_streams(struct ceiling *streams, size_t n)
{
    pthread_t *threads = alloc_zeros(n * sizeof(*threads));
    for (size_t k = 0; k < n; k++)
        threads[k] = start_thread(run_stream, &streams[k]);
    for (size_t k = 0; k < n; k++)
        pthread_join(threads[k], NULL);
    free(threads);
}

/* ---- Setting up ---- */

static void open_socket(struct ceiling *c)
{
    const struct settings *s = &c->settings;
    c->fd = connected_to(s->host, s->port);
    if (s->unconnected) {
        socklen_t size = sizeof(c->to);
        const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
        if (getpeername(c->fd, (struct sockaddr *)&c->to, &size) != 0 ||
            connect(c->fd, &nobody, sizeof(nobody)) != 0)
            fail("could not let go of the way to %s: %m", s->host);
        c->settings.to = &c->to;
    }
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER}, sizeof(int)) != 0)
        fail("could not set the socket's send buffer: %m");
    if (s->zero_copy && setsockopt(c->fd, SOL_SOCKET, SO_ZEROCOPY, &(int){1}, sizeof(int)) != 0)
        fail("could not have the socket read memory in place: %m");
}

/* Set up the k-th stream. */
static void set_up(struct ceiling *c, const struct settings *all, size_t k)
{
    c->settings = *all;
    c->settings.heaps = all->heaps / all->streams + (k < all->heaps % all->streams);
    c->core = all->streams <= n_usable_cores() ? usable_core(k) : -1;
    const struct settings *s = &c->settings;
    c->batch_heaps = s->batch_size > s->heap_size ? s->batch_size / s->heap_size : 1;
    c->n_batches = (s->heaps + c->batch_heaps - 1) / c->batch_heaps;
    if (sem_init(&c->filled, 0, 0) != 0 || sem_init(&c->empty, 0, N_BATCHES) != 0)
        fail("could not make a semaphore: %m");
    open_socket(c);
    for (size_t i = 0; i < N_BATCHES; i++)
        batch_init(s, &c->batches[i], c->batch_heaps);
}

static void tear_down(struct ceiling *c)
{
    for (size_t i = 0; i < N_BATCHES; i++)
        batch_fini(&c->batches[i]);
    close(c->fd);
    sem_destroy(&c->filled);
    sem_destroy(&c->empty);
}

/* ---- The command line ---- */

static struct settings parse(int argc, char **argv)
{
    struct settings s = {.heap_size = 1024 * 1024,
                         .packet_size = 9000,
                         .heaps = 10000,
                         .batch_size = 512 * 1024,
                         .max_messages = 64,
                         .max_segments = max_segments(),
                         .pieces = 1,
                         .streams = 1,
                         .threads = 2,
                         .fill = true};
    const struct word words[] = {
        {"-t", "THREADS", "1: fill, then send; 2: one fills while the other sends (%)", WORD_INT,
         &s.threads, .range = {1, 2}},
        {"-s", "STREAMS", "so many at once, each as with -t 1, which it needs (%)", WORD_SIZE,
         &s.streams, .range = {1, 1024}},
        {"-m", "MESSAGES", "in a system call, at most (%)", WORD_SIZE, &s.max_messages,
         .range = {1, UIO_MAXIOV}},
        {"-k", "PACKETS", "in a message, at most; 1: no segmentation offload (%)", WORD_SIZE,
         &s.max_segments, .range = {1, s.max_segments}},
        {"--pieces", "N", "a packet's payload is gathered from (%)", WORD_SIZE, &s.pieces,
         .range = {1, UIO_MAXIOV - 1}},
        {"--unconnected", NULL, "every message says where it goes", WORD_ON, .to = &s.unconnected},
        {"-z", NULL, "the kernel reads the memory in place (MSG_ZEROCOPY)", WORD_ON,
         .to = &s.zero_copy},
        {"--huge-pages", NULL, "samples in huge pages: more packets in a message, with -z", WORD_ON,
         .to = &s.huge_pages},
        {"--fresh", NULL, "memory that is new for each batch", WORD_ON, .to = &s.fresh},
        {"--no-fill", NULL, "send the same bytes again and again", WORD_OFF, .to = &s.fill},
        {"-n", "HEAPS", "heaps to send (%)", WORD_SIZE, &s.heaps, .range = {1, WORD_MOST}},
        {"-H", "BYTES", "bytes of samples in a heap (%)", WORD_SIZE, &s.heap_size,
         .range = {1, WORD_MOST}},
        {"-p", "BYTES", "bytes in a packet at most, UDP and IP not counted (%)", WORD_SIZE,
         &s.packet_size, .range = {64, MAX_DATAGRAM}},
        {"-b", "BYTES", "bytes of samples in a batch, at least a heap (%)", WORD_SIZE,
         &s.batch_size, .range = {1, WORD_MOST}},
        {"--json", NULL, "print a JSON object, not the rate", WORD_ON, .to = &s.json},
        {"host", NULL, "name or address to send to", WORD_TEXT, .to = &s.host},
        {"port", NULL, "UDP port to send to, 1 to 65535", WORD_INT, &s.port, .range = {1, 65535}},
        {NULL},
    };
    read_words(argc, argv, "How fast this machine can send: bare system calls, without SPEAD.",
               "-t 2 -n 524288 -H 8192 192.168.31.2 8888", "", words);
    if (s.streams > 1 && s.threads != 1)
        usage_error("several streams (-s) have a thread each: they need -t 1");
    if (s.fresh && (s.huge_pages || !s.fill))
        usage_error("--fresh is for ordinary memory that is filled");
    if (s.pieces > 1 && (s.zero_copy || s.pieces * s.max_segments >= UIO_MAXIOV))
        usage_error("a message has no room for so many pieces");
    s.packet_size &= ~(size_t)7; /* as packetizers do */
    return s;
}

static struct counts sum_of_counts(const struct ceiling *streams, size_t n)
{
    struct counts sum = {0};
    for (const struct ceiling *c = streams; c < streams + n; c++) {
        sum.packets += c->counts.packets;
        sum.messages += c->counts.messages;
        sum.bytes += c->counts.bytes;
        sum.send_calls += c->counts.send_calls;
        sum.waits += c->counts.waits;
        sum.copied += c->counts.copied;
    }
    return sum;
}

static void print(const struct ceiling *streams, const struct settings *s, const struct usage *u)
{
    size_t payload_bytes = s->heaps * s->heap_size;
    if (!s->json) {
        printf("%.2f MB/s\n", (double)payload_bytes / (double)u->elapsed_ns * 1e3);
        return;
    }
    struct counts counts = sum_of_counts(streams, s->streams);
    printf("{\"program\": \"ceiling\", \"language\": \"c\", \"streams\": %zu, \"threads\": %d, ",
           s->streams, s->threads);
    printf("\"gso\": %s, \"zero_copy\": %s, \"fill\": %s, \"batch_heaps\": %zu, ",
           s->max_segments > 1 ? "true" : "false", s->zero_copy ? "true" : "false",
           s->fill ? "true" : "false", streams->batch_heaps);
    printf("\"heaps\": %zu, \"heap_size\": %zu, \"packet_size\": %zu, \"payload_bytes\": %zu, ",
           s->heaps, s->heap_size, s->packet_size, payload_bytes);
    printf("\"spead_bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"messages\": %" PRIu64 ", ",
           counts.bytes, counts.packets, counts.messages);
    printf("\"send_calls\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"errors\": 0, ",
           counts.send_calls, counts.waits);
    printf("\"zero_copy_messages\": %" PRIu64 ", \"zero_copy_copied\": %" PRIu64 ", ",
           s->zero_copy ? counts.messages : 0, counts.copied);
    print_usage(u);
    puts("}");
}

int main(int argc, char **argv)
{
    struct settings settings = parse(argc, argv);
    struct ceiling *streams = alloc_zeros(settings.streams * sizeof(*streams));
    for (size_t k = 0; k < settings.streams; k++)
        set_up(&streams[k], &settings, k);
    struct usage start = usage_now();
    if (settings.streams > 1)
        many_streams(streams, settings.streams);
    else if (settings.threads == 1)
        one_thread(streams);
    else
        two_threads(streams);
    struct usage used = usage_since(start);
    print(streams, &settings, &used);
    for (size_t k = 0; k < settings.streams; k++)
        tear_down(&streams[k]);
    free(streams);
    return 0;
}
