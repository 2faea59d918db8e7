/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the task of a stream: it makes batches and hands them over, and when there is nothing to
 * do, it says what it waits for, or looks and naps where that costs less.
 */
#include "stream.h"

enum {
    HELD_LOOK_NS = 1000000, /* between looks for packets that are held, where a rate limits */
    STEPS_PER_RUN = 8,      /* before other streams of the pool get their turn */
    SMALL_BATCH = 65536,    /* bytes; about what one message carries */
    NAP_NS = 20000,
    MOST_EARLY_NS = 200000, /* sleep that ends later than this was somebody else's doing */
};

/*
 * After a batch that did not even fill one message the worker naps for a moment. The heaps that
 * come meanwhile share messages and system calls, and their senders need not wake anybody, which
 * would cost them more than queueing a heap does. It is of no use where a heap finds no company, or
 * where the nap kept a sender waiting for room in the queue.
 */
static bool begin_nap(spt_stream *s, uint64_t n_bytes)
{
    if (s->own_pool != NULL || spti_stream_holds(s) || n_bytes >= SMALL_BATCH ||
        spti_stream_has_work(&s->task) || !spti_habit_try(&s->nap))
        return false;
    s->napping = true;
    s->task.deadline_ns = spti_now_ns() + NAP_NS;
    return true;
}

static void end_nap(spt_stream *s)
{
    s->napping = false;
    size_t queued = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) - s->cursor;
    spti_habit_learn(&s->nap, queued >= 2 && queued < s->config.max_heaps);
}

/* Times are those that were read to look: what came after the last is too short to count. */
static void count_looking(spt_stream *s, uint64_t ns)
{
    if (s->own_pool != NULL)
        __atomic_add_fetch(&s->waiting_looking_ns, ns, __ATOMIC_RELAXED);
    else
        spti_count(&s->looking_ns, ns);
}

/* Before going to sleep for want of heaps, look for as long as that would take. */
static bool more_soon(spt_stream *s)
{
    if (s->own_pool != NULL || spti_stream_holds(s) || !spti_habit_try(&s->spin))
        return false;
    uint64_t begin_ns = spti_now_ns(), now_ns = begin_ns;
    bool more = false;
    while (!more && (now_ns = spti_now_ns()) < begin_ns + SPTI_LOOK_NS) {
        spti_pause_briefly();
        more = s->cursor != __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    }
    spti_habit_learn(&s->spin, more);
    count_looking(s, now_ns - begin_ns);
    return more;
}

/*
 * The last moment before a burst is waited for awake: sleep ends too late, by more than a fast
 * stream may catch up before the next burst. How much too late is a machine's own, from a few
 * microseconds to the time between bursts, and is learnt: at once where sleep was too long, slowly
 * where it was not. A stream that never sleeps forgets, and tries again.
 */
static bool due_soon(spt_stream *s, uint64_t at_ns)
{
    uint64_t begin_ns = spti_now_ns(), now_ns;
    if (at_ns > begin_ns + s->early_ns)
        return false;
    s->early_ns -= s->early_ns / 256;
    while ((now_ns = spti_now_ns()) < at_ns)
        spti_pause_briefly();
    count_looking(s, now_ns - begin_ns);
    return true;
}

static void end_sleep(spt_stream *s)
{
    uint64_t now_ns = spti_now_ns(), wake_ns = s->wake_ns;
    s->wake_ns = 0;
    if (now_ns < wake_ns) /* somebody paused it */
        return;
    uint64_t late_ns = now_ns - wake_ns;
    if (late_ns <= s->early_ns)
        s->early_ns -= (s->early_ns - late_ns) / 16;
    else if (late_ns <= MOST_EARLY_NS)
        s->early_ns = late_ns;
}

/* What to wait for when there are no packets to make before that time; 0: before a heap comes.
 * Packets that are held may be done with earlier. */
static spti_wait wait_for_more(spt_stream *s, uint64_t at_ns)
{
    if (at_ns > 0 ? due_soon(s, at_ns) : more_soon(s))
        return SPTI_WAIT_TURN;
    if (at_ns == 0)
        return spti_stream_holds(s) ? SPTI_WAIT_ANY : SPTI_WAIT_WORK;
    s->task.deadline_ns = s->wake_ns = at_ns - s->early_ns;
    uint64_t look_ns = spti_now_ns() + HELD_LOOK_NS;
    if (spti_stream_holds(s) && look_ns < s->task.deadline_ns) {
        s->task.deadline_ns = look_ns;
        s->wake_ns = 0; /* not a sleep to learn from */
    }
    return SPTI_WAIT_TIME;
}

/* Note when packets [first, batch->next) were handed over. */
static void note_times(spt_stream *s, const spti_batch *batch, size_t first, uint64_t before_ns)
{
    uint64_t after_ns = spti_now_ns();
    for (size_t i = first; i < batch->next; i++) {
        const spti_packet *packet = &batch->packets[i];
        if (packet->error != 0)
            continue;
        spt_times *times = spti_times_of(s, packet->sender);
        times->bytes += packet->size;
        if (times->first_packet_ns == 0)
            times->first_packet_ns = before_ns;
        times->last_packet_ns = after_ns;
    }
}

/* Hand over what is left of a batch. */
static spti_wait send_batch(spt_stream *s, spti_batch *batch)
{
    size_t first = batch->next;
    uint64_t bytes = s->transport->stats.bytes;
    uint64_t before_ns = s->times != NULL ? spti_now_ns() : 0;
    spt_status status = s->transport->ops->send(s->transport, batch);
    if (s->times != NULL)
        note_times(s, batch, first, before_ns);
    spti_stream_settle(s);
    if (status == SPT_PENDING)
        return s->transport->full ? SPTI_WAIT_NEWS : SPTI_WAIT_WRITABLE;
    return begin_nap(s, s->transport->stats.bytes - bytes) ? SPTI_WAIT_TIME : SPTI_WAIT_TURN;
}

/* A step of the work. Returns SPTI_WAIT_TURN where another may follow at once. */
static spti_wait take_step(spt_stream *s)
{
    uint64_t at_ns = 0;
    spti_batch *batch = spti_stream_next_batch(s, &at_ns);
    if (batch == NULL)
        return SPTI_WAIT_NEWS;
    return batch->next == batch->n ? wait_for_more(s, at_ns) : send_batch(s, batch);
}

spti_wait spti_stream_run(spti_task *task)
{
    spt_stream *s = (spt_stream *)task;
    if (s->napping)
        end_nap(s);
    if (s->wake_ns > 0)
        end_sleep(s);
    if (spti_stream_holds(s))
        spti_stream_settle(s);
    spti_wait wait = SPTI_WAIT_TURN;
    for (int i = 0; wait == SPTI_WAIT_TURN && i < STEPS_PER_RUN; i++)
        wait = take_step(s);
    return wait;
}

bool spti_stream_has_work(spti_task *task)
{
    const spt_stream *s = (const spt_stream *)task;
    return s->cursor != __atomic_load_n(&s->tail, __ATOMIC_SEQ_CST);
}
