/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns making and unmaking a stream, and what it tells about itself.
 */
#include "stream.h"

#include "status.h"
#include "sync.h"

#include <math.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- Looking at a stream ---- */

size_t spt_stream_num_substreams(const spt_stream *stream)
{
    return stream->transport->n_substreams;
}

_Static_assert(offsetof(spt_stats, errors_by_errno) == 12 * sizeof(uint64_t) &&
                   sizeof(spt_stats) == (12 + SPT_N_ERRNO) * sizeof(uint64_t),
               "spt_stream_stats() reads all members alike: each is a count of 64 bits");

void spt_stream_stats(const spt_stream *stream, spt_stats *stats)
{
    const uint64_t *from = (const uint64_t *)&stream->transport->stats;
    uint64_t *to = (uint64_t *)stats;
    for (size_t i = 0; i < sizeof(*stats) / sizeof(uint64_t); i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    stats->heaps = __atomic_load_n(&stream->heaps, __ATOMIC_RELAXED);
    stats->looking_ns = __atomic_load_n(&stream->looking_ns, __ATOMIC_RELAXED);
    stats->waiting_looking_ns = __atomic_load_n(&stream->waiting_looking_ns, __ATOMIC_RELAXED);
}

size_t spt_stream_timeline(spt_stream *stream, spt_times *times, size_t n)
{
    size_t size = stream->config.timeline;
    if (size == 0)
        return 0;
    SPTI_HOLD(&stream->timeline_lock);
    uint64_t end = stream->n_timeline;
    size_t kept = end < size ? (size_t)end : size;
    if (n > kept)
        n = kept;
    for (size_t i = 0; i < n; i++)
        times[i] = stream->timeline[(end - kept + i) % size];
    return n;
}

size_t spt_stream_memory(spt_stream *stream, void *to, size_t size)
{
    return spti_transport_memory_copy(stream->transport, to, size);
}

/* ---- Making and unmaking ---- */

static spt_status no_memory(const spt_stream_config *c, spt_error *err)
{
    return spti_fail(err, SPT_ERR_MEMORY,
                     "no memory for a queue of %zu heaps and a timeline of %zu", c->max_heaps,
                     c->timeline);
}

static spt_status check_config(const spt_stream_config *c, spt_error *err)
{
    if (c->max_packet_size < SPT_MIN_PACKET_SIZE)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "max_packet_size %zu is too small: the headers alone need %d bytes",
                         c->max_packet_size, SPT_MIN_PACKET_SIZE);
    if (!isfinite(c->rate) || c->rate < 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "rate %g is not a number of bytes per second (0 for no limit)", c->rate);
    if (!(c->burst_rate_ratio >= 1) || !isfinite(c->burst_rate_ratio))
        return spti_fail(err, SPT_ERR_ARGUMENT, "burst_rate_ratio %g is less than 1",
                         c->burst_rate_ratio);
    if (c->max_heaps == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT, "max_heaps must be at least 1");
    if (c->max_heaps > SIZE_MAX / 4 / sizeof(spti_slot) ||
        c->timeline > SIZE_MAX / 4 / sizeof(spt_times))
        return no_memory(c, err);
    return SPT_OK;
}

static spt_status allocate(spt_stream *s, spt_error *err)
{
    size_t n_slots = 1;
    while (n_slots < s->config.max_heaps)
        n_slots *= 2;
    s->mask = n_slots - 1;
    size_t size = s->config.max_packet_size;
    if (size > s->transport->max_packet_size)
        size = s->transport->max_packet_size; /* no packet will be larger */
    s->slots = aligned_alloc(SPTI_CACHE_LINE, n_slots * sizeof(*s->slots));
    if (s->config.timeline > 0)
        s->times = calloc(n_slots, sizeof(*s->times));
    s->timeline = calloc(s->config.timeline + 1, sizeof(*s->timeline));
    if (s->slots == NULL || s->timeline == NULL || (s->config.timeline > 0 && s->times == NULL) ||
        !spti_stream_make_batches(s, size))
        return no_memory(&s->config, err);
    return SPT_OK;
}

static void init(spt_stream *s, spti_transport *transport, const spt_stream_config *config)
{
    *s = (spt_stream){
        .task = {.run = spti_stream_run,
                 .has_work = spti_stream_has_work,
                 .stopped = spti_stream_pool_stopped,
                 .fd = transport->fd},
        .transport = transport,
        .config = *config,
        .next_cnt = 1,
        .cnt_step = 1,
        .idle = true,
        .limited = config->rate > 0,
        .early_ns = SPTI_LOOK_NS,
        .n_batches = transport->ops->release != NULL ? SPTI_HELD_BATCHES : 1,
        .completed_end = &s->completed,
        .polled_end = &s->polled,
        .event_fd = -1,
        .armed = 1,
    };
    spt_rate_init(&s->rate, config->rate, config->burst_size, config->burst_rate_ratio);
    pthread_mutex_init(&s->queue_lock, NULL);
    pthread_mutex_init(&s->done_lock, NULL);
    pthread_mutex_init(&s->timeline_lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->done, &attr);
    pthread_condattr_destroy(&attr);
}

/* Join the pool or, without one, have one of its own that has no threads. */
static spt_status attach(spt_stream *s, spt_thread_pool *pool, spt_error *err)
{
    if (pool == NULL) {
        pool = s->own_pool = spti_pool_without_threads(err);
        if (pool == NULL)
            return SPT_ERR_SYSTEM;
    } else if (s->config.poll) {
        s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->event_fd < 0)
            return spti_fail_errno(err, "could not make an eventfd");
    }
    return spti_task_attach(pool, &s->task, err);
}

static void free_stream(spt_stream *s)
{
    pthread_mutex_destroy(&s->queue_lock);
    pthread_mutex_destroy(&s->done_lock);
    pthread_mutex_destroy(&s->timeline_lock);
    pthread_cond_destroy(&s->done);
    if (s->event_fd >= 0)
        close(s->event_fd);
    spt_thread_pool_destroy(s->own_pool);
    free(s->slots);
    free(s->times);
    spti_stream_free_batches(s);
    free(s->timeline);
    s->transport->ops->destroy(s->transport);
    free(s);
}

spt_stream *spti_stream_create(spt_thread_pool *pool, spti_transport *transport,
                               const spt_stream_config *config, spt_error *err)
{
    if (transport == NULL)
        return NULL;
    spt_stream *s = aligned_alloc(SPTI_CACHE_LINE, sizeof(*s));
    if (s == NULL) {
        transport->ops->destroy(transport);
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a stream");
    }
    init(s, transport, config);
    if (allocate(s, err) != SPT_OK || attach(s, pool, err) != SPT_OK) {
        free_stream(s);
        return NULL;
    }
    return s;
}

spt_stream *spt_stream_create_udp(spt_thread_pool *pool, const spt_endpoint *endpoints,
                                  size_t n_endpoints, const spt_stream_config *config,
                                  const spt_udp_config *udp, spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return spti_stream_create(pool, spti_transport_udp(endpoints, n_endpoints, udp, err), config,
                              err);
}

spt_stream *spt_stream_create_udp_socket(spt_thread_pool *pool, int socket,
                                         const spt_endpoint *endpoints, size_t n_endpoints,
                                         const spt_stream_config *config, const spt_udp_config *udp,
                                         spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return spti_stream_create(
        pool, spti_transport_udp_socket(socket, endpoints, n_endpoints, udp, err), config, err);
}

spt_stream *spt_stream_create_memory(spt_thread_pool *pool, const spt_stream_config *config,
                                     spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return spti_stream_create(pool, spti_transport_memory(err), config, err);
}

spt_stream *spt_stream_create_tcp(spt_thread_pool *pool, const spt_endpoint *endpoint,
                                  const spt_stream_config *config, const spt_tcp_config *tcp,
                                  spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return spti_stream_create(pool, spti_transport_tcp(NULL, endpoint, tcp, err), config, err);
}

spt_stream *spt_stream_create_tcp_socket(spt_thread_pool *pool, int socket,
                                         const spt_stream_config *config, spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return spti_stream_create(pool, spti_transport_tcp(&socket, NULL, NULL, err), config, err);
}

spt_stream *spt_stream_create_inproc(spt_thread_pool *pool, spt_inproc_queue *const *queues,
                                     size_t n_queues, const spt_stream_config *config,
                                     spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return spti_stream_create(pool, spti_transport_inproc(queues, n_queues, err), config, err);
}

void spt_stream_destroy(spt_stream *stream)
{
    if (stream == NULL)
        return;
    spti_stream_refuse_sends(stream);
    spti_task_detach(&stream->task);
    spti_stream_drop(stream, NULL, SPT_ERR_STOPPED);
    spti_give_back(stream->polled);
    free_stream(stream);
}
