/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the way of heaps from readers, which are tasks of a thread pool, through a ring to whoever
 * gets them. Knows neither what is in packets nor how sockets are read.
 *
 * There are three locks. `stop_lock` is held by who stops the stream, until it is; `lock` is for
 * the depacketizer and its readers, and is held for as long as a batch of packets takes; the ring
 * has one for itself. Who holds one may take those after it, never the other way round.
 */
#include "chunk_ring.h"
#include "chunks.h"
#include "datagrams.h"
#include "depacketizer.h"
#include "heap_ring.h"
#include "spead_tutorial/spt_recv.h"
#include "status.h"
#include "thread_pool.h"
#include "wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMORY_BATCH = 64, /* packets from memory, before others have their turn */
    MOST_QUIET = 4,    /* batches, before anybody is told of the heaps in them */
    MOST_EXPECTED = 8, /* messages in a batch, read to where they belong */
};

typedef struct reader {
    spti_task task; /* first, so that one can be had from the other */
    spt_recv_stream *stream;
    spti_datagrams *datagrams; /* or NULL, for packets in memory: */
    const uint8_t *bytes;
    size_t n_bytes;
    size_t max_size;
    uint64_t seen_news; /* of rings of chunks, when it began to run */
    struct reader *next;
} reader;

struct spt_recv_stream {
    spt_recv_config config;
    spt_thread_pool *pool;

    pthread_mutex_t stop_lock;
    pthread_mutex_t lock;
    spt_depacketizer *depacketizer;
    reader *readers;
    bool started;
    uint64_t batch;                  /* packets that a reader has found so far, this time */
    spt_received_heap *waiting_heap; /* that the ring had no room for */
    uint64_t waiting_since_ns;       /* 0: nobody waits for room */
    unsigned quiet;                  /* batches since somebody was told what is in the ring */
    spt_recv_stats stats;            /* of sockets, those that are closed */

    spti_chunks *chunks;      /* that are filled; NULL where heaps go into the ring */
    spt_received_packet held; /* that has to wait for a chunk, in its reader's memory */
    bool holds;
    bool held_datagram;
    spti_chunk_watch data_watch, free_watch;
    spt_chunk_ring *data_ring, *free_ring;
    uint64_t news; /* from these rings; atomic */

    spti_heap_ring ring;
    bool ended; /* atomic */
};

static bool has_ended(const spt_recv_stream *s)
{
    return __atomic_load_n(&s->ended, __ATOMIC_SEQ_CST);
}

/* ---- From readers to the ring, under the lock ------------------------------------------------ */

/* A reader has to wait, or need not any more: how often, and for how long at most. */
static void note_wait(spt_recv_stream *s, bool waits)
{
    if (waits && s->waiting_since_ns == 0) {
        s->waiting_since_ns = spti_now_ns();
        s->stats.ring_waits++;
    } else if (!waits && s->waiting_since_ns != 0) {
        uint64_t ns = spti_now_ns() - s->waiting_since_ns;
        if (ns > s->stats.longest_ring_wait_ns)
            s->stats.longest_ring_wait_ns = ns;
        s->waiting_since_ns = 0;
    }
}

/* The next heap that is finished, and wanted. */
static spt_received_heap *next_wanted(spt_recv_stream *s)
{
    for (;;) {
        spt_received_heap *heap = spt_depacketizer_next(s->depacketizer);
        if (heap == NULL || heap->state != SPT_HEAP_INCOMPLETE || !s->config.contiguous_only)
            return heap;
        s->stats.incomplete_dropped++;
        s->stats.incomplete_cnt = heap->cnt;
        s->stats.incomplete_received = heap->received_length;
        s->stats.incomplete_length = heap->has_length ? heap->length : 0;
        spt_depacketizer_recycle(s->depacketizer, heap);
    }
}

static void place_packet(spt_recv_stream *s, const spt_received_packet *packet);
static void end(spt_recv_stream *s);

/* The same for chunks: note what is finished, and take the packet that is held; false while it has
 * to wait, or where the stream has ended with it. */
static bool go_on(spt_recv_stream *s)
{
    spti_chunks_collect(s->chunks);
    if (s->holds) {
        place_packet(s, &s->held);
        spti_chunks_collect(s->chunks);
    }
    if (spti_chunks_stuck(s->chunks) && !has_ended(s))
        end(s);
    note_wait(s, s->holds);
    return !s->holds && !has_ended(s);
}

static void recycle_returned(spt_recv_stream *s)
{
    spt_received_heap *heap = spti_heap_ring_take_returned(&s->ring);
    while (heap != NULL) {
        spt_received_heap *next = heap->user;
        spt_depacketizer_recycle(s->depacketizer, heap);
        heap = next;
    }
}

/* Put what is finished into the ring; false where it has no room for all. */
static bool hand_over(spt_recv_stream *s)
{
    if (s->chunks != NULL)
        return go_on(s);
    for (;;) {
        if (s->waiting_heap == NULL)
            s->waiting_heap = next_wanted(s);
        if (s->waiting_heap == NULL)
            break;
        if (!spti_heap_ring_put(&s->ring, s->waiting_heap, false)) {
            if (!s->config.drop_when_full) {
                note_wait(s, true);
                return false;
            }
            s->stats.ring_dropped++;
            spt_depacketizer_recycle(s->depacketizer, s->waiting_heap);
        }
        s->waiting_heap = NULL;
        recycle_returned(s); /* whose memory the next heap may get */
    }
    note_wait(s, false);
    return true;
}

/* Nothing comes any more. For what is finished there is room in any case. */
static void end(spt_recv_stream *s)
{
    spt_depacketizer_flush(s->depacketizer);
    s->stats.after_end += s->holds && s->held_datagram;
    s->holds = false;
    if (s->chunks != NULL)
        spti_chunks_end(s->chunks);
    spt_received_heap *heap = s->waiting_heap != NULL ? s->waiting_heap : next_wanted(s);
    for (; heap != NULL; heap = next_wanted(s))
        (void)spti_heap_ring_put(&s->ring, heap, true);
    s->waiting_heap = NULL;
    note_wait(s, false);
    __atomic_store_n(&s->ended, true, __ATOMIC_SEQ_CST);
    spti_heap_ring_end(&s->ring);
    recycle_returned(s); /* those that come back from now on recycle themselves */
    spti_heap_ring_announce(&s->ring);
}

/* Take a packet to its place, or hold it until it has one. */
static void place_packet(spt_recv_stream *s, const spt_received_packet *packet)
{
    uint8_t *to;
    spt_fate fate = spt_depacketizer_take(s->depacketizer, packet, &to);
    s->holds = fate == SPTI_NOT_YET;
    if (s->holds)
        s->held = *packet;
    if (to != NULL)
        memcpy(to, packet->payload, packet->payload_length);
    if (fate != SPT_PLACED)
        return;
    if (packet->is_stop && s->config.stop_on_stop_item) {
        spt_depacketizer_stop(s->depacketizer);
        end(s);
    }
}

/* Take a packet apart, and to its place. Returns the bytes it had; 0 where it is malformed. */
static size_t take_packet(spt_recv_stream *s, const uint8_t *bytes, size_t n_bytes, bool alone)
{
    spt_received_packet packet;
    s->batch++;
    spt_fault fault = spt_received_packet_parse(&packet, bytes, n_bytes);
    if (fault == SPT_FAULT_NONE && alone && packet.size != n_bytes)
        fault = SPT_FAULT_SURPLUS;
    if (fault != SPT_FAULT_NONE) {
        spt_depacketizer_malformed(s->depacketizer, fault);
        return 0;
    }
    place_packet(s, &packet);
    s->held_datagram = alone;
    return packet.size;
}

/* Take packets that go on where the one before ended. Returns how many do. */
static size_t take_run(spt_recv_stream *s, const spti_packet_run *run)
{
    size_t n = spti_depacketizer_take_run(s->depacketizer, run);
    s->batch += n;
    return n;
}

/*
 * Read packets that are likely to come to where they then belong, and look at them before anything
 * else happens to their heap.
 */
static spt_status read_expected(spt_recv_stream *s, reader *r, const spti_guess *guess,
                                spt_error *err)
{
    spti_packet_run run;
    SPTI_TRY(spti_datagrams_read_guess(r->datagrams, guess, &run, err));
    spti_datagrams_right(r->datagrams, guess, take_run(s, &run));
    return SPT_OK;
}

/* Whether it can be foreseen what comes, and where it may be written before one has seen it. */
static bool foresee(const spt_recv_stream *s, const reader *r, spti_guess *guess)
{
    guess->prefix = SPTI_PREFIX;
    guess->n = spti_depacketizer_expected(s->depacketizer, &guess->n_bytes, &guess->to);
    if (guess->n == 0 || guess->n_bytes > r->max_size ||
        !spti_datagrams_worth_a_guess(r->datagrams, guess))
        return false;
    size_t payload = guess->n * (guess->n_bytes - SPTI_PREFIX);
    return spti_depacketizer_may_overwrite(s->depacketizer, payload);
}

/* Read what has come; what is likely to come, for as long as it does. */
static spt_status read_more(spt_recv_stream *s, reader *r, spt_error *err)
{
    for (int i = 0; i < MOST_EXPECTED; i++) {
        spti_guess guess;
        if (!foresee(s, r, &guess))
            return spti_datagrams_read(r->datagrams, err);
        SPTI_TRY(read_expected(s, r, &guess, err));
        if (!spti_datagrams_all_taken(r->datagrams))
            break;
    }
    return SPT_OK;
}

/* The stream has ended: count what was read and is not looked at. */
static void leave(spt_recv_stream *s, reader *r)
{
    spti_packet_run run;
    while (r->datagrams != NULL && spti_datagrams_next(r->datagrams, &run)) {
        s->stats.after_end += run.n;
        spti_datagrams_take(r->datagrams, &run, run.n);
    }
}

/* Take the first one of those that came. */
static void take_datagram(spt_recv_stream *s, const reader *r, const spti_packet_run *run)
{
    if (run->n_bytes <= r->max_size) {
        take_packet(s, run->bytes, run->n_bytes, true);
        return;
    }
    s->batch++;
    spt_depacketizer_malformed(s->depacketizer, SPT_FAULT_SURPLUS);
}

static spti_wait read_datagrams(spt_recv_stream *s, reader *r)
{
    spti_packet_run run;
    while (spti_datagrams_next(r->datagrams, &run)) {
        size_t n = run.n_bytes > r->max_size ? 0 : take_run(s, &run);
        spti_datagrams_take(r->datagrams, &run, n > 0 ? n : 1);
        if (n > 0)
            continue;
        take_datagram(s, r, &run);
        if (has_ended(s))
            leave(s, r);
        else if (!hand_over(s))
            return SPTI_WAIT_WORK;
    }
    if (has_ended(s))
        return SPTI_WAIT_WORK;
    spt_error err;
    spt_status status = read_more(s, r, &err);
    if (status == SPT_PENDING)
        return SPTI_WAIT_READABLE;
    if (status == SPT_OK)
        return SPTI_WAIT_TURN;
    s->stats.sys_errno = err.sys_errno;
    end(s);
    return SPTI_WAIT_WORK;
}

static spti_wait read_memory(spt_recv_stream *s, reader *r)
{
    for (int i = 0; i < MEMORY_BATCH && r->n_bytes > 0; i++) {
        size_t used = take_packet(s, r->bytes, r->n_bytes, false);
        r->bytes += used;
        r->n_bytes = used > 0 ? r->n_bytes - used : 0;
        if (has_ended(s) || !hand_over(s))
            return SPTI_WAIT_WORK;
    }
    if (r->n_bytes > 0)
        return SPTI_WAIT_TURN;
    end(s);
    return SPTI_WAIT_WORK;
}

/* ---- Readers, as tasks ----------------------------------------------------------------------- */

/*
 * Whether what is in the ring is to be told now. To be woken costs more than to get a heap: while
 * more comes, several are told of at once, but soon.
 */
static bool is_time_to_tell(spt_recv_stream *s, spti_wait wait)
{
    size_t n = spti_heap_ring_size(&s->ring);
    s->quiet = n > 0 ? s->quiet + 1 : 0;
    bool tell =
        n > 0 && (wait != SPTI_WAIT_TURN || n > s->config.ring_heaps / 2 || s->quiet == MOST_QUIET);
    if (tell)
        s->quiet = 0;
    return tell;
}

/* At the end chunks may have gone back to a ring that other streams wait for. Not under the lock:
 * this stream is told, too. */
static void tell_of_free_chunks(spt_recv_stream *s)
{
    if (s->chunks != NULL)
        spti_chunk_ring_tell(s->free_ring);
}

static spti_wait run(spti_task *task)
{
    reader *r = (reader *)task;
    spt_recv_stream *s = r->stream;
    spti_wait wait = SPTI_WAIT_WORK;
    pthread_mutex_lock(&s->lock);
    recycle_returned(s);
    r->seen_news = __atomic_load_n(&s->news, __ATOMIC_SEQ_CST);
    s->batch = 0;
    if (!has_ended(s) && hand_over(s))
        wait = r->datagrams != NULL ? read_datagrams(s, r) : read_memory(s, r);
    s->stats.batches += s->batch > 0;
    if (s->batch > s->stats.max_batch)
        s->stats.max_batch = s->batch;
    if (s->chunks != NULL)
        spti_chunks_end_batch(s->chunks);
    if (has_ended(s))
        leave(s, r);
    bool tell = is_time_to_tell(s, wait), ended = has_ended(s);
    pthread_mutex_unlock(&s->lock);
    if (tell)
        spti_heap_ring_announce(&s->ring);
    if (ended)
        tell_of_free_chunks(s);
    return wait;
}

/* A reader that is idle waits for room in the ring, or has nothing to do any more. */
static bool has_work(spti_task *task)
{
    const reader *r = (reader *)task;
    const spt_recv_stream *s = r->stream;
    if (s->chunks != NULL)
        return !has_ended(s) && __atomic_load_n(&s->news, __ATOMIC_SEQ_CST) != r->seen_news;
    return !has_ended(s) && spti_heap_ring_size(&s->ring) < s->config.ring_heaps;
}

static void pool_stopped(spti_task *task)
{
    spt_recv_stream *s = ((reader *)task)->stream;
    pthread_mutex_lock(&s->lock);
    if (!has_ended(s))
        end(s);
    pthread_mutex_unlock(&s->lock);
    tell_of_free_chunks(s);
}

/* Counts of a socket, added to those of all. */
static void add_stats(const reader *r, spt_receive_stats *all)
{
    spt_receive_stats one;
    if (r->datagrams == NULL)
        return;
    spti_datagrams_stats(r->datagrams, &one);
    all->datagrams += one.datagrams;
    all->bytes += one.bytes;
    all->messages += one.messages;
    all->calls += one.calls;
    all->in_place += one.in_place;
    all->dropped += one.dropped;
    all->buffer_size += one.buffer_size;
}

static void destroy_reader(reader *r)
{
    spti_datagrams_close(r->datagrams);
    free(r);
}

/* A reader of a stream that has not been started is not. */
static bool is_attached(const reader *r)
{
    return r->task.pool != NULL;
}

/* Under the lock. */
static spt_status attach(spt_recv_stream *s, reader *r, spt_error *err)
{
    SPTI_TRY(spti_task_attach(s->pool, &r->task, err));
    spti_task_wake(&r->task);
    return SPT_OK;
}

/* Under the lock: whether a reader can be added. */
static spt_status check_adding(const spt_recv_stream *s, spt_error *err)
{
    if (has_ended(s))
        return spti_fail(err, SPT_ERR_STOPPED, "the stream has ended: make a new one");
    if (s->config.explicit_start && s->started)
        return spti_fail(err, SPT_ERR_BUSY,
                         "the stream has been started: readers are to be added before that");
    return SPT_OK;
}

/* Takes the datagrams. */
static spt_status add_reader(spt_recv_stream *s, spti_datagrams *datagrams, const void *bytes,
                             size_t n_bytes, size_t max_size, spt_error *err)
{
    reader *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        spti_datagrams_close(datagrams);
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a reader");
    }
    *r = (reader){
        .task = {.run = run, .has_work = has_work, .stopped = pool_stopped, .fd = -1},
        .stream = s,
        .datagrams = datagrams,
        .bytes = bytes,
        .n_bytes = n_bytes,
        .max_size = max_size,
    };
    if (datagrams != NULL)
        r->task.fd = spti_datagrams_fd(datagrams);
    pthread_mutex_lock(&s->lock);
    spt_status status = check_adding(s, err);
    if (status == SPT_OK && !s->config.explicit_start)
        status = attach(s, r, err);
    if (status == SPT_OK) {
        r->next = s->readers;
        s->readers = r;
    }
    pthread_mutex_unlock(&s->lock);
    if (status != SPT_OK)
        destroy_reader(r);
    return status;
}

spt_status spt_recv_stream_add_udp(spt_recv_stream *stream, const spt_endpoint *endpoint,
                                   const spt_receive_config *config, spt_error *err)
{
    static const spt_receive_config defaults = SPT_RECEIVE_CONFIG_DEFAULT;
    config = config == NULL ? &defaults : config;
    spt_error own;
    err = err == NULL ? &own : err;
    spti_datagrams *datagrams = spti_datagrams_open(endpoint, config, err);
    if (datagrams == NULL)
        return err->status;
    return add_reader(stream, datagrams, NULL, 0, config->max_size, err);
}

spt_status spt_recv_stream_add_udp_socket(spt_recv_stream *stream, int socket,
                                          const spt_receive_config *config, spt_error *err)
{
    static const spt_receive_config defaults = SPT_RECEIVE_CONFIG_DEFAULT;
    config = config == NULL ? &defaults : config;
    spt_error own;
    err = err == NULL ? &own : err;
    spti_datagrams *datagrams = spti_datagrams_open_socket(socket, config, err);
    if (datagrams == NULL)
        return err->status;
    return add_reader(stream, datagrams, NULL, 0, config->max_size, err);
}

spt_status spt_recv_stream_add_memory(spt_recv_stream *stream, const void *bytes, size_t n_bytes,
                                      spt_error *err)
{
    return add_reader(stream, NULL, bytes, n_bytes, SIZE_MAX, err);
}

spt_status spt_recv_stream_start(spt_recv_stream *stream, spt_error *err)
{
    spt_recv_stream *s = stream;
    spt_status status = SPT_OK;
    pthread_mutex_lock(&s->lock);
    if (has_ended(s))
        status = spti_fail(err, SPT_ERR_STOPPED, "the stream has ended: make a new one");
    for (reader *r = s->readers; r != NULL && status == SPT_OK; r = r->next)
        if (!is_attached(r))
            status = attach(s, r, err);
    s->started = true;
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- Getting heaps --------------------------------------------------------------------------- */

/* There is room in the ring again, which readers wait for. */
static void wake_readers(spt_recv_stream *s)
{
    pthread_mutex_lock(&s->lock);
    for (reader *r = s->readers; r != NULL; r = r->next)
        if (is_attached(r))
            spti_task_wake(&r->task);
    pthread_mutex_unlock(&s->lock);
}

/* The same for a free chunk, or room in the ring for filled ones. */
static void tell_readers(void *stream)
{
    spt_recv_stream *s = stream;
    __atomic_add_fetch(&s->news, 1, __ATOMIC_SEQ_CST);
    wake_readers(s);
}

spt_status spt_recv_stream_get(spt_recv_stream *stream, int64_t timeout_ns,
                               spt_received_heap **heap)
{
    bool room_wanted;
    spt_status status = spti_heap_ring_get(&stream->ring, timeout_ns, heap, &room_wanted);
    if (room_wanted)
        wake_readers(stream);
    return status;
}

void spt_recv_stream_return(spt_recv_stream *stream, spt_received_heap *heap)
{
    if (heap == NULL || !spti_heap_ring_return(&stream->ring, heap))
        return; /* the next run of a reader recycles it */
    pthread_mutex_lock(&stream->lock);
    recycle_returned(stream);
    pthread_mutex_unlock(&stream->lock);
}

size_t spt_recv_stream_ready(spt_recv_stream *stream)
{
    size_t n = spti_heap_ring_size(&stream->ring);
    return n < stream->config.ring_heaps ? n : stream->config.ring_heaps;
}

int spt_recv_stream_fd(spt_recv_stream *stream)
{
    return spti_heap_ring_fd(&stream->ring);
}

int spt_recv_stream_port(spt_recv_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    const reader *r = stream->readers; /* the last one is the first */
    while (r != NULL && r->datagrams == NULL)
        r = r->next;
    int port = r == NULL ? 0 : spti_datagrams_port(r->datagrams);
    pthread_mutex_unlock(&stream->lock);
    return port;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void destroy(spt_recv_stream *s)
{
    spti_heap_ring_fini(&s->ring);
    spt_depacketizer_destroy(s->depacketizer);
    spti_chunks_destroy(s->chunks);
    pthread_mutex_destroy(&s->stop_lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static spt_status set_up(spt_recv_stream *s, spt_error *err)
{
    spti_placing placing = {0};
    if (s->chunks != NULL)
        placing = spti_chunks_placing(s->chunks);
    s->depacketizer =
        spti_depacketizer_create(&s->config.heaps, s->chunks != NULL ? &placing : NULL, err);
    return s->depacketizer == NULL ? SPT_ERR_ARGUMENT : SPT_OK;
}

/* Have chunks filled, and be told by their rings. */
static void serve_chunks(spt_recv_stream *s, const spt_chunk_config *config)
{
    spti_chunks_serve(s->chunks, s->depacketizer);
    s->data_ring = config->data_ring;
    s->free_ring = config->free_ring;
    s->data_watch = s->free_watch = (spti_chunk_watch){.tell = tell_readers, .user = s};
    spti_chunk_ring_watch(s->data_ring, &s->data_watch);
    spti_chunk_ring_watch(s->free_ring, &s->free_watch);
}

static spt_recv_stream *create(spt_thread_pool *pool, const spt_recv_config *config,
                               const spt_chunk_config *chunks, spt_error *err)
{
    spt_recv_stream *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a stream");
        return NULL;
    }
    s->config = *config;
    s->pool = pool;
    pthread_mutex_init(&s->stop_lock, NULL);
    pthread_mutex_init(&s->lock, NULL);
    bool made = spti_heap_ring_init(&s->ring, config, err) == SPT_OK;
    if (made && chunks != NULL)
        s->chunks = spti_chunks_create(chunks, s->config.stop_on_stop_item, err);
    made = made && (s->chunks != NULL) == (chunks != NULL) && set_up(s, err) == SPT_OK;
    if (!made) {
        destroy(s);
        return NULL;
    }
    if (chunks != NULL)
        serve_chunks(s, chunks);
    return s;
}

spt_recv_stream *spt_recv_stream_create(spt_thread_pool *pool, const spt_recv_config *config,
                                        spt_error *err)
{
    return create(pool, config, NULL, err);
}

spt_recv_stream *spt_recv_stream_create_chunks(spt_thread_pool *pool, const spt_recv_config *config,
                                               const spt_chunk_config *chunks, spt_error *err)
{
    return create(pool, config, chunks, err);
}

/* Under the lock of who stops. */
static void stop(spt_recv_stream *s)
{
    pthread_mutex_lock(&s->lock);
    if (!has_ended(s))
        end(s); /* runs under way see it, and no reader is added any more */
    pthread_mutex_unlock(&s->lock);
    if (s->chunks != NULL) {
        spt_chunk_ring_stop(s->data_ring);
        spt_chunk_ring_stop(s->free_ring);
    }
    for (reader *r = s->readers; r != NULL; r = r->next)
        if (is_attached(r))
            spti_task_detach(
                &r->task); /* not under the lock, which a run that it waits for takes */
    pthread_mutex_lock(&s->lock);
    for (reader *r = s->readers, *next; r != NULL; r = next) {
        next = r->next;
        leave(s, r);
        add_stats(r, &s->stats.sockets);
        destroy_reader(r);
    }
    s->readers = NULL;
    pthread_mutex_unlock(&s->lock);
}

void spt_recv_stream_stop(spt_recv_stream *stream)
{
    pthread_mutex_lock(&stream->stop_lock);
    stop(stream);
    pthread_mutex_unlock(&stream->stop_lock);
}

void spt_recv_stream_destroy(spt_recv_stream *stream)
{
    if (stream == NULL)
        return;
    spt_recv_stream_stop(stream);
    if (stream->chunks != NULL) {
        spti_chunk_ring_unwatch(stream->data_ring, &stream->data_watch);
        spti_chunk_ring_unwatch(stream->free_ring, &stream->free_watch);
    }
    for (spt_received_heap *heap; spt_recv_stream_get(stream, 0, &heap) == SPT_OK;)
        spt_depacketizer_recycle(stream->depacketizer, heap);
    destroy(stream);
}

void spt_recv_stream_stats(spt_recv_stream *stream, spt_recv_stats *stats)
{
    pthread_mutex_lock(&stream->lock);
    *stats = stream->stats;
    spt_depacketizer_account(stream->depacketizer, &stats->account);
    for (const reader *r = stream->readers; r != NULL; r = r->next)
        add_stats(r, &stats->sockets);
    pthread_mutex_unlock(&stream->lock);
}

void spt_recv_stream_chunk_stats(spt_recv_stream *stream, spt_chunk_stats *stats,
                                 uint64_t *place_stats)
{
    pthread_mutex_lock(&stream->lock);
    spti_chunks_stats(stream->chunks, stats, place_stats);
    pthread_mutex_unlock(&stream->lock);
}
