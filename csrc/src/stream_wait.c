/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the ways to learn that heaps are complete: to ask, to wait, to poll; and what went wrong in
 * words.
 */
#include "stream.h"

#include "status.h"
#include "sync.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool spt_completion_done(const spt_completion *completion)
{
    return __atomic_load_n(&completion->state_, __ATOMIC_SEQ_CST) != SPTI_IN_FLIGHT;
}

/* Before going to sleep, look for as long as that would take, as the worker does. */
static bool done_soon(spt_stream *s, const spt_completion *completion, size_t tail)
{
    if (!spti_habit_try(&s->wait_spin))
        return false;
    uint64_t begin_ns = spti_now_ns(), now_ns = begin_ns;
    bool done = false;
    while (!done && (now_ns = spti_now_ns()) < begin_ns + SPTI_LOOK_NS) {
        spti_pause_briefly();
        done = spti_is_done(s, completion, tail);
    }
    spti_habit_learn(&s->wait_spin, done);
    __atomic_add_fetch(&s->waiting_looking_ns, now_ns - begin_ns, __ATOMIC_RELAXED);
    return done;
}

/* Wait for a completion or, without one, until all before the tail have been given back. */
static spt_status wait_until(spt_stream *s, const spt_completion *completion, size_t tail,
                             int64_t timeout_ns)
{
    if (spti_is_done(s, completion, tail))
        return SPT_OK;
    if (s->own_pool != NULL)
        return spti_stream_help_until(s, completion, tail, timeout_ns);
    if (done_soon(s, completion, tail))
        return SPT_OK;
    struct timespec until =
        spti_timespec(timeout_ns < 0 ? 0 : spti_now_ns() + (uint64_t)timeout_ns);
    int timed_out = 0;
    pthread_mutex_lock(&s->done_lock);
    __atomic_add_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    while (!spti_is_done(s, completion, tail) && timed_out != ETIMEDOUT)
        timed_out = timeout_ns < 0 ? pthread_cond_wait(&s->done, &s->done_lock)
                                   : pthread_cond_timedwait(&s->done, &s->done_lock, &until);
    __atomic_sub_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&s->done_lock);
    return spti_is_done(s, completion, tail) ? SPT_OK : SPT_PENDING;
}

spt_status spt_stream_wait(spt_stream *stream, spt_completion *completion, int64_t timeout_ns,
                           spt_error *err)
{
    if (wait_until(stream, completion, 0, timeout_ns) == SPT_PENDING)
        return SPT_PENDING;
    return spt_completion_explain(completion, err);
}

spt_status spt_stream_flush(spt_stream *stream, int64_t timeout_ns)
{
    pthread_mutex_lock(&stream->queue_lock);
    size_t tail = stream->tail;
    pthread_mutex_unlock(&stream->queue_lock);
    return wait_until(stream, NULL, tail, timeout_ns);
}

/* Make the eventfd unreadable until more is complete. */
static void disarm(spt_stream *s)
{
    spti_event_empty(s->event_fd);
    __atomic_store_n(&s->armed, 1, __ATOMIC_SEQ_CST);
}

size_t spt_stream_poll(spt_stream *stream, spt_completion **completions, size_t n)
{
    if (!stream->config.poll)
        return 0;
    if (stream->own_pool != NULL)
        spti_stream_help_loop(stream);
    size_t found = 0;
    SPTI_HOLD(&stream->done_lock);
    while (found < n && stream->polled != NULL) {
        spt_completion *c = stream->polled;
        stream->polled = c->next_;
        __atomic_store_n(&c->state_, SPTI_WITH_OWNER, __ATOMIC_SEQ_CST);
        completions[found++] = c;
    }
    if (stream->polled != NULL) {
        spti_stream_signal(stream);
        return found;
    }
    stream->polled_end = &stream->polled;
    if (stream->own_pool == NULL)
        disarm(stream);
    return found;
}

int spt_stream_fd(const spt_stream *stream)
{
    if (stream->own_pool != NULL)
        return stream->config.poll ? spti_pool_fd(stream->own_pool) : -1;
    return stream->event_fd;
}

static const char *way_out(int sys_errno)
{
    switch (sys_errno) {
    case EMSGSIZE:
        return "it is larger than the network takes; lower max_packet_size";
    case ECONNREFUSED:
        return "nothing listens at the destination; start the receiver first";
    case ENETUNREACH:
    case EHOSTUNREACH:
        return "there is no way to the destination; check its address, and that the interface is "
               "up";
    case ENETDOWN:
        return "the interface is down";
    case ENOBUFS:
        return "the interface's queue is full; send at a lower rate";
    case EPIPE:
    case ECONNRESET:
        return "the receiver has closed the connection: make a new stream once it listens again";
    case ETIMEDOUT:
        return "the receiver does not answer any more: make a new stream once it does";
    case ECANCELED:
        return "the queue has been stopped, and takes no more";
    case EPERM:
    case EACCES:
        return "the system does not allow it; is it a broadcast address, or a firewall?";
    default:
        return "see the statistics of the stream for how many packets failed";
    }
}

spt_status spt_completion_explain(const spt_completion *c, spt_error *err)
{
    switch (c->status) {
    case SPT_OK:
        return SPT_OK;
    case SPT_ERR_SYSTEM:
        if (err != NULL) {
            char to[32] = "";
            if (c->fitting_packet_size > 0)
                snprintf(to, sizeof(to), " to %zu", c->fitting_packet_size);
            (void)spti_fail(err, c->status,
                            "heap %" PRIu64 ": a packet of %zu bytes could not be sent: %s: %s%s",
                            c->failed_cnt, c->failed_packet_size, strerror(c->sys_errno),
                            way_out(c->sys_errno), to);
            err->sys_errno = c->sys_errno;
        }
        return c->status;
    default:
        return spti_fail(err, c->status, "heap %" PRIu64 " was not sent: %s", c->failed_cnt,
                         spt_status_text(c->status));
    }
}
