/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns streams: their readers, which are tasks of a thread pool, and what heaps go into, which is a
 * ring or chunks. Knows neither what is in packets nor how they become heaps.
 *
 * A stream without a thread has a pool without threads: who asks for a heap runs its readers, and
 * gets the heap while the data is in this core's cache. Where it fills chunks, the pool is that of
 * the ring they go to, and those who ask the ring for a chunk run the readers of all such streams.
 *
 * There are three locks. `stop_lock` is held by who stops the stream, until it is, and is one for
 * all streams that fill the same chunks; `lock` is for the intake and its readers, and is held for
 * as long as a batch of packets takes; the ring has one for itself. Who holds one may take those
 * after it, never the other way round.
 */
#include "recv_stream.h"

#include "chunk_ring.h"
#include "chunks.h"
#include "heap_ring.h"
#include "source.h"
#include "status.h"
#include "sync.h"

#include <stdlib.h>

typedef struct reader {
    spti_task task; /* first, so that one can be had from the other */
    spt_recv_stream *stream;
    spti_source *source;
    uint64_t seen_news; /* when it began to run */
    struct reader *next;
} reader;

struct spt_recv_stream {
    spt_recv_config config;
    spt_thread_pool *pool;
    spt_thread_pool *own_pool; /* that pool, where it is nobody else's; or NULL */
    bool read_by_asking;       /* it has no threads */
    spti_heap_ring ring;
    spti_chunks *chunks; /* that are filled; NULL where heaps go into the ring */
    uint64_t news;       /* times that there may be room again; atomic */

    pthread_mutex_t stop_lock;
    pthread_mutex_t lock;
    spti_intake intake;
    size_t n_reading;  /* threads, where there are none of a pool */
    spti_waits unread; /* until one of them does */
    reader *readers;
    bool started;
};

static bool has_ended(const spt_recv_stream *s)
{
    return spti_intake_has_ended(&s->intake);
}

/* ---- Readers, as tasks ----------------------------------------------------------------------- */

/* Tell those who wait of heaps, or of the end. Not under the lock: this stream may be told, too. */
static void tell(spt_recv_stream *s, bool ended)
{
    spti_heap_ring_announce(&s->ring);
    if (s->chunks != NULL)
        spti_chunks_tell(s->chunks, ended);
}

/* Nothing comes any more. Under the lock; then those who wait are told. */
static void end(spt_recv_stream *s)
{
    spti_intake_end(&s->intake);
    for (const reader *r = s->readers; r != NULL; r = r->next)
        spti_intake_leave(&s->intake, r->source); /* who sends to it is not to wait for it */
    spti_waits_note(&s->unread, false);
    spti_heap_ring_end(&s->ring);
    spti_heap_ring_recycle(&s->ring); /* who gives one back from now on recycles it */
}

static spti_wait run(spti_task *task)
{
    reader *r = (reader *)task;
    spt_recv_stream *s = r->stream;
    pthread_mutex_lock(&s->lock);
    spti_heap_ring_recycle(&s->ring);
    r->seen_news = __atomic_load_n(&s->news, __ATOMIC_SEQ_CST);
    if (s->chunks != NULL)
        spti_chunks_catch_up(s->chunks);
    spti_wait wait = spti_intake_read(&s->intake, r->source);
    bool ended = has_ended(s);
    if (ended)
        end(s);
    spti_sink *sink = s->intake.sink;
    bool due = ended || sink->settle(sink, wait == SPTI_WAIT_TURN ? SPTI_MORE : SPTI_LATER);
    pthread_mutex_unlock(&s->lock);
    if (due)
        tell(s, ended);
    return wait;
}

/* A reader that is idle waits for room, or has nothing to do any more. */
static bool has_work(spti_task *task)
{
    const reader *r = (reader *)task;
    const spt_recv_stream *s = r->stream;
    return !has_ended(s) && __atomic_load_n(&s->news, __ATOMIC_SEQ_CST) != r->seen_news;
}

/* Runs under way see it, and no reader is added any more. */
static void finish(void *stream)
{
    spt_recv_stream *s = stream;
    pthread_mutex_lock(&s->lock);
    end(s);
    pthread_mutex_unlock(&s->lock);
    tell(s, true);
}

static void pool_stopped(spti_task *task)
{
    finish(((reader *)task)->stream);
}

/* A reader of a stream that has not been started is not. */
static bool is_attached(const reader *r)
{
    return r->task.pool != NULL;
}

/* There may be room again, for heaps or chunks, which readers wait for. */
static void wake_readers(void *stream)
{
    spt_recv_stream *s = stream;
    __atomic_add_fetch(&s->news, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&s->lock);
    for (reader *r = s->readers; r != NULL && !has_ended(s); r = r->next)
        if (is_attached(r))
            spti_task_wake(&r->task);
    pthread_mutex_unlock(&s->lock);
    if (s->read_by_asking && s->chunks != NULL) /* it may be an event loop that is to read */
        spti_pool_signal(s->pool);
}

/* ---- Readers come ---------------------------------------------------------------------------- */

_Static_assert(sizeof(spt_receive_stats) == 7 * sizeof(uint64_t), "add_stats() adds all members");

static void add_stats(const reader *r, spt_receive_stats *all)
{
    spt_receive_stats one = {0};
    if (r->source->ops->read_stats != NULL)
        r->source->ops->read_stats(r->source, &one);
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
    r->source->ops->close(r->source);
    free(r);
}

/* Under the lock. */
static spt_status attach(spt_recv_stream *s, reader *r, spt_error *err)
{
    SPTI_TRY(spti_task_attach(s->pool, &r->task, err));
    spti_task_wake(&r->task);
    if (s->read_by_asking)
        spti_pool_signal(s->pool);
    if (s->own_pool != NULL)
        spti_waits_note(&s->unread, s->n_reading == 0);
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

/* Takes the source, which is NULL where it could not be opened, with the error. */
static spt_status add_reader(spt_recv_stream *s, spti_source *source, spt_error *err)
{
    if (source == NULL)
        return err->status;
    reader *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        source->ops->close(source);
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a reader");
    }
    *r = (reader){
        .task = {.run = run, .has_work = has_work, .stopped = pool_stopped, .fd = source->fd},
        .stream = s,
        .source = source,
    };
    pthread_mutex_lock(&s->lock);
    spt_status status = check_adding(s, err);
    if (status == SPT_OK && !s->config.explicit_start)
        status = attach(s, r, err);
    if (status == SPT_OK) {
        r->next = s->readers;
        s->readers = r;
        if (s->chunks != NULL)
            spti_window_begin(spti_chunks_window(s->chunks));
    }
    pthread_mutex_unlock(&s->lock);
    if (status != SPT_OK)
        destroy_reader(r);
    return status;
}

spt_status spt_recv_stream_add_udp(spt_recv_stream *stream, const spt_endpoint *endpoint,
                                   const spt_receive_config *config, spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_udp(-1, endpoint, config, err), err);
}

spt_status spt_recv_stream_add_udp_socket(spt_recv_stream *stream, int socket,
                                          const spt_receive_config *config, spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_udp(socket, NULL, config, err), err);
}

spt_status spt_recv_stream_add_memory(spt_recv_stream *stream, const void *bytes, size_t n_bytes,
                                      spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_memory(bytes, n_bytes, err), err);
}

spt_status spt_recv_stream_add_inproc(spt_recv_stream *stream, spt_inproc_queue *queue,
                                      spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_inproc(queue, err), err);
}

spt_status spt_recv_stream_add_tcp(spt_recv_stream *stream, const spt_endpoint *endpoint,
                                   const spt_receive_config *config, spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_tcp(-1, endpoint, config, err), err);
}

spt_status spt_recv_stream_add_tcp_socket(spt_recv_stream *stream, int acceptor,
                                          const spt_receive_config *config, spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_tcp(acceptor, NULL, config, err), err);
}

spt_status spt_recv_stream_add_udp_pcap(spt_recv_stream *stream, const char *path,
                                        const char *filter, spt_error *err)
{
    err = SPTI_SOME(err);
    return add_reader(stream, spti_source_pcap(path, filter, err), err);
}

spt_status spt_recv_stream_start(spt_recv_stream *stream, spt_error *err)
{
    SPTI_HOLD(&stream->lock);
    stream->started = true;
    if (has_ended(stream))
        return spti_fail(err, SPT_ERR_STOPPED, "the stream has ended: make a new one");
    for (reader *r = stream->readers; r != NULL; r = r->next)
        if (!is_attached(r))
            SPTI_TRY(attach(stream, r, err));
    return SPT_OK;
}

/* ---- Getting heaps --------------------------------------------------------------------------- */

static spt_status get(spt_recv_stream *s, int64_t timeout_ns, spt_received_heap **heap)
{
    bool room_wanted;
    spt_status status = spti_heap_ring_get(&s->ring, timeout_ns, heap, &room_wanted);
    if (room_wanted)
        wake_readers(s);
    return status;
}

typedef struct request {
    spti_request request; /* first, so that one can be had from the other */
    spt_recv_stream *stream;
    spt_received_heap **heap;
} request;

static spt_status get_now(spti_request *asked)
{
    const request *it = (request *)asked;
    return get(it->stream, 0, it->heap);
}

/* A thread begins to read, or ends. Where an event loop looks out for packets none need. */
static void note_reading(spti_request *asked, bool begins, bool watched)
{
    spt_recv_stream *s = ((request *)asked)->stream;
    SPTI_HOLD(&s->lock);
    s->n_reading += begins ? 1 : (size_t)-1;
    bool unread = s->own_pool != NULL && s->n_reading == 0 && !watched && !has_ended(s);
    spti_waits_note(&s->unread, unread);
}

spt_status spt_recv_stream_get(spt_recv_stream *stream, int64_t timeout_ns,
                               spt_received_heap **heap)
{
    if (!stream->read_by_asking)
        return get(stream, timeout_ns, heap);
    request it = {{get_now, note_reading}, stream, heap};
    return spti_pool_ask(stream->pool, timeout_ns, &it.request);
}

void spt_recv_stream_return(spt_recv_stream *stream, spt_received_heap *heap)
{
    if (heap == NULL || !spti_heap_ring_return(&stream->ring, heap))
        return; /* the next run of a reader recycles it */
    SPTI_HOLD(&stream->lock);
    spti_heap_ring_recycle(&stream->ring);
}

size_t spt_recv_stream_ready(spt_recv_stream *stream)
{
    size_t n = spti_heap_ring_size(&stream->ring);
    return n < stream->config.ring_heaps ? n : stream->config.ring_heaps;
}

int spt_recv_stream_fd(spt_recv_stream *stream)
{
    if (!stream->read_by_asking)
        return spti_heap_ring_fd(&stream->ring);
    spti_pool_be_watched(stream->pool);
    return spti_pool_fd(stream->pool);
}

int spt_recv_stream_port(spt_recv_stream *stream)
{
    SPTI_HOLD(&stream->lock);
    const reader *r = stream->readers; /* the last one is the first */
    while (r != NULL && r->source->port == 0)
        r = r->next;
    return r == NULL ? 0 : r->source->port;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static void destroy(spt_recv_stream *s)
{
    spti_chunks_destroy(s->chunks);
    spt_depacketizer_destroy(s->intake.depacketizer);
    spti_heap_ring_fini(&s->ring);
    spt_thread_pool_destroy(s->own_pool);
    pthread_mutex_destroy(&s->stop_lock);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Where there is no pool, those who ask read: for heaps, or a ring for chunks. */
static spt_status find_pool(spt_recv_stream *s, const spt_chunk_config *chunks, spt_error *err)
{
    if (s->pool != NULL)
        return SPT_OK;
    s->read_by_asking = true;
    if (chunks == NULL)
        s->pool = s->own_pool = spti_pool_without_threads(err);
    else
        s->pool = spti_chunk_ring_pool(chunks->data_ring, err);
    return s->pool == NULL ? SPT_ERR_SYSTEM : SPT_OK;
}

/* What heaps are put together by, and where they go: into the ring, or chunks. */
static spt_status set_up(spt_recv_stream *s, const spt_chunk_config *chunks, spti_window *of_group,
                         spt_error *err)
{
    spti_intake *in = &s->intake;
    SPTI_TRY(spti_heap_ring_init(&s->ring, &s->config, err));
    in->sink = &s->ring.sink;
    const spti_placing *placing = NULL;
    if (chunks != NULL) {
        s->chunks = spti_chunks_create(chunks, of_group, s->config.stop_on_stop_item, err);
        if (s->chunks == NULL)
            return SPT_ERR_ARGUMENT;
        in->sink = spti_chunks_sink(s->chunks);
        placing = spti_chunks_placing(s->chunks);
    }
    SPTI_TRY(find_pool(s, chunks, err));
    in->depacketizer = spti_depacketizer_create(&s->config.heaps, placing, err);
    if (in->depacketizer == NULL)
        return SPT_ERR_ARGUMENT;
    s->ring.depacketizer = in->depacketizer;
    s->ring.stats = &in->stats;
    if (chunks == NULL)
        return SPT_OK;
    return spti_chunks_serve(s->chunks, in->depacketizer, wake_readers, s, err);
}

static spt_recv_stream *create(spt_thread_pool *pool, const spt_recv_config *config,
                               const spt_chunk_config *chunks, spti_window *of_group,
                               spt_error *err)
{
    spt_recv_stream *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a stream");
    s->config = *config;
    s->pool = pool;
    s->intake.stop_on_stop_item = config->stop_on_stop_item;
    pthread_mutex_init(&s->stop_lock, NULL);
    pthread_mutex_init(&s->lock, NULL);
    if (set_up(s, chunks, of_group, err) == SPT_OK)
        return s;
    destroy(s);
    return NULL;
}

spt_recv_stream *spt_recv_stream_create(spt_thread_pool *pool, const spt_recv_config *config,
                                        spt_error *err)
{
    return create(pool, config, NULL, NULL, err);
}

spt_recv_stream *spt_recv_stream_create_chunks(spt_thread_pool *pool, const spt_recv_config *config,
                                               const spt_chunk_config *chunks, spt_error *err)
{
    return create(pool, config, chunks, NULL, err);
}

spt_recv_stream *spti_recv_stream_create_member(spt_thread_pool *pool,
                                                const spt_recv_config *config,
                                                const spt_chunk_config *chunks, spti_window *window,
                                                spt_error *err)
{
    return create(pool, config, chunks, window, err);
}

/* Under the lock of who stops. Readers are detached outside of the other one, which a run that
 * this waits for takes. */
static void let_go(void *stream)
{
    spt_recv_stream *s = stream;
    if (s->read_by_asking)
        spti_pool_signal(s->pool);
    if (s->chunks != NULL)
        spti_chunks_stop_rings(s->chunks);
    for (reader *r = s->readers; r != NULL; r = r->next)
        if (is_attached(r))
            spti_task_detach(&r->task);
    SPTI_HOLD(&s->lock);
    for (reader *r = s->readers, *next; r != NULL; r = next) {
        next = r->next;
        spti_intake_leave(&s->intake, r->source);
        add_stats(r, &s->intake.stats.sockets);
        destroy_reader(r);
    }
    s->readers = NULL;
}

void spt_recv_stream_stop(spt_recv_stream *stream)
{
    spti_window *window = stream->chunks == NULL ? NULL : spti_chunks_window(stream->chunks);
    SPTI_HOLD(window == NULL ? &stream->stop_lock : spti_window_stop_lock(window));
    if (window == NULL) {
        finish(stream);
        let_go(stream);
    } else { /* what all of them have begun is put into the ring before that is stopped */
        spti_window_for_all(window, finish);
        spti_window_for_all(window, let_go);
    }
}

void spti_recv_stream_free(spt_recv_stream *stream)
{
    for (spt_received_heap *heap; spt_recv_stream_get(stream, 0, &heap) == SPT_OK;)
        spt_depacketizer_recycle(stream->intake.depacketizer, heap);
    destroy(stream);
}

void spt_recv_stream_destroy(spt_recv_stream *stream)
{
    if (stream == NULL)
        return;
    spt_recv_stream_stop(stream);
    spti_recv_stream_free(stream);
}

void spt_recv_stream_stats(spt_recv_stream *stream, spt_recv_stats *stats)
{
    SPTI_HOLD(&stream->lock);
    *stats = stream->intake.stats;
    stats->ring_waits = stream->intake.waits.n;
    stats->longest_ring_wait_ns = stream->intake.waits.longest_ns;
    stats->longest_unread_ns = stream->unread.longest_ns;
    spt_depacketizer_account(stream->intake.depacketizer, &stats->account);
    for (const reader *r = stream->readers; r != NULL; r = r->next)
        add_stats(r, &stats->sockets);
}

void spt_recv_stream_chunk_stats(spt_recv_stream *stream, spt_chunk_stats *stats,
                                 uint64_t *place_stats)
{
    SPTI_HOLD(&stream->lock);
    spti_chunks_stats(stream->chunks, stats, place_stats);
}
