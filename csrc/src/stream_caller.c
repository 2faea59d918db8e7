/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the work of senders where there is no thread for it.
 *
 * It pays to fill and to send while the data is in the cache, and to send much with one call: so
 * heaps are gathered until there are a few messages of them, or somebody waits. With one message
 * (64 KiB) the last heap often begins another; a megabyte is more than some caches hold. What a
 * rate limits has nothing to gain from going early.
 */
#include "stream.h"

#include "sync.h"

enum {
    RUNS_PER_SEND = 16, /* signals have to wait meanwhile */
    GATHERED = 262144,  /* bytes */
    HELP_NS = 10000000, /* who waits looks again: another thread may have done the work */
};

/* What is gathered is about to be sent; returns whether there was any. */
static bool take_gathered(spt_stream *s)
{
    SPTI_HOLD(&s->queue_lock);
    bool any = s->gathered > 0;
    __atomic_store_n(&s->gathered, 0, __ATOMIC_RELAXED);
    return any;
}

void spti_stream_send_gathered(spt_stream *s)
{
    take_gathered(s);
    spti_task_wake(&s->task);
    /* What is left, of a very large heap or of what a rate holds up, is for who waits. */
    for (int i = 0; i < (s->config.rate > 0 ? 1 : RUNS_PER_SEND); i++)
        if (spti_pool_help(s->own_pool, 0, false) != SPTI_HELP_MORE)
            break;
}

void spti_stream_gathered(spt_stream *s)
{
    bool enough = __atomic_load_n(&s->gathered, __ATOMIC_RELAXED) >= GATHERED;
    if (enough && !(s->config.rate > 0))
        spti_stream_send_gathered(s);
    if (s->config.poll)
        spti_stream_signal(s);
}

void spti_stream_help_loop(spt_stream *s)
{
    take_gathered(s);
    spti_task_wake(&s->task);
    bool more = spti_pool_help(s->own_pool, 0, true) == SPTI_HELP_MORE;
    __atomic_store_n(&s->armed, 1, __ATOMIC_SEQ_CST);
    if (more || take_gathered(s)) /* gathered by another thread while it was not armed */
        spti_pool_signal(s->own_pool);
}

spt_status spti_stream_help_until(spt_stream *s, const spt_completion *completion, size_t tail,
                                  int64_t timeout_ns)
{
    uint64_t now_ns = spti_now_ns();
    uint64_t end_ns = timeout_ns < 0 ? UINT64_MAX : now_ns + (uint64_t)timeout_ns;
    bool done;
    __atomic_add_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    take_gathered(s);
    spti_task_wake(&s->task);
    do {
        uint64_t until_ns = end_ns - now_ns < HELP_NS ? end_ns : now_ns + HELP_NS;
        spti_pool_help(s->own_pool, timeout_ns == 0 ? 0 : until_ns, true);
        done = spti_is_done(s, completion, tail);
        now_ns = spti_now_ns();
    } while (!done && now_ns < end_ns);
    __atomic_sub_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    if (s->config.poll) /* it may have taken the signal that was for the event loop */
        spti_pool_signal(s->own_pool);
    return done ? SPT_OK : SPT_PENDING;
}
