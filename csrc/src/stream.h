/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the stream share: the queue of heaps, and who may touch what of it.
 *
 * The queue is a ring of slots, one for each heap. Senders fill slots at the tail. The worker
 * (whichever thread of the pool runs the task; never two at once) cuts the heaps from the cursor on
 * into a batch of packets, hands the batch to the transport, and frees the slots of whole groups at
 * the head. Who has paused the task is the worker meanwhile. Nothing is allocated after the stream
 * has been made.
 *
 *        head            finished           cursor            tail
 *   ------|------------------|-----------------|----------------|-----> slots
 *         | dealt with, rest | in the batch    | not yet cut    |
 *         | of group is not  |                 |                |
 *
 * Of the files each may call those before it: stream_settle (what has been sent is given back),
 * stream_batch (packets are made), stream_worker (the task), stream_drop (giving up), stream_caller
 * (the work without a thread), stream_wait, stream_queue (senders), stream (making and unmaking).
 */
#ifndef SPTI_STREAM_H
#define SPTI_STREAM_H

#include "thread_pool.h"
#include "transport.h"

#include <pthread.h>

enum {
    SPTI_CACHE_LINE = 64,
    SPTI_HELD_BATCHES = 8, /* where memory is read after it was handed over */
    SPTI_MAX_FAILURES = 7,
    /* About as long as waking a thread takes on a virtual machine. */
    SPTI_LOOK_NS = 30000,
};

/* The states of a completion. */
enum {
    SPTI_WITH_OWNER,
    SPTI_IN_FLIGHT,
    SPTI_LISTED, /* complete, and not yet handed out by spt_stream_poll() */
};

/* Something that is tried only as often as it has lately been of use: after n failures in a row,
 * the next 2^n - 1 occasions are passed over. */
typedef struct spti_habit {
    unsigned failures, skip; /* atomic, since several threads may wait; no order is needed */
} spti_habit;

/* A heap in the queue: two cache lines, which travel from the sender's core to the worker's. */
typedef struct spti_slot {
    _Alignas(SPTI_CACHE_LINE) spt_packetizer packetizer;
    spt_completion *completion;
    double rate;
    size_t group_size; /* heaps whose packets alternate with this one's; in the first of them */
    uint32_t substream;
    uint16_t in_batch; /* packets made, and not dealt with: of all batches */
    bool last;         /* of those that share the completion */
    bool exhausted;    /* no packets are left to make */
} spti_slot;

_Static_assert(sizeof(spti_slot) <= 2 * SPTI_CACHE_LINE, "a slot has grown beyond two cache lines");

struct spt_stream {
    /* Written once, when the stream is made. A slot is its sender's until the tail has passed it,
     * and the worker's until the head has. */
    spti_task task;
    spt_thread_pool *own_pool; /* without threads, or NULL where there is one of the caller's */
    spti_transport *transport;
    spt_stream_config config;
    spti_slot *slots;
    spt_times *times; /* of each slot, or NULL where none are recorded */
    size_t mask;      /* slots - 1: a power of two less one */

    /* The senders', under queue_lock. What one thread writes for each heap is not on a cache line
     * that the other looks at. */
    _Alignas(SPTI_CACHE_LINE) pthread_mutex_t queue_lock;
    bool stopped;
    uint64_t next_cnt, cnt_step;
    size_t seen_head;  /* the head as of late */
    uint64_t gathered; /* atomic: bytes that nobody has been asked to send; for own_pool */
    _Alignas(SPTI_CACHE_LINE) size_t tail; /* atomic: the worker reads it */

    /* The worker's, without a lock. */
    _Alignas(SPTI_CACHE_LINE) size_t head; /* atomic: senders read it */
    size_t given_back; /* atomic: the head, once all completions before it have been given back */
    _Alignas(SPTI_CACHE_LINE) size_t finished, cursor, group_end, group_left, turn;
    const spt_completion *split; /* of the last packet, if there are more to make; only compared */
    bool idle, limited, napping;
    spti_habit nap, spin;
    spt_rate rate;
    uint64_t early_ns;              /* how long before a burst sleep is to end */
    uint64_t wake_ns;               /* when it was to end, or 0 */
    spti_batch *batches;            /* a ring of them */
    size_t n_batches;               /* 1 where memory is free as soon as it was handed over */
    size_t oldest_batch, new_batch; /* the first that is not done, and the one that is made */
    uint64_t heaps, looking_ns;     /* statistics: atomic, since anybody may read them */
    spt_completion *completed, **completed_end; /* complete, and not yet given back */

    /* Of who waits and who polls; the list under done_lock. */
    _Alignas(SPTI_CACHE_LINE) pthread_mutex_t done_lock;
    pthread_cond_t done;
    size_t waiters; /* atomic */
    spti_habit wait_spin;
    uint64_t waiting_looking_ns; /* atomic */
    spt_completion *polled, **polled_end;
    int event_fd;
    int armed; /* atomic: the eventfd should be written to */

    pthread_mutex_t timeline_lock;
    spt_times *timeline;
    uint64_t n_timeline; /* ever */
};

static inline spti_slot *spti_slot_at(const spt_stream *s, size_t index)
{
    return &s->slots[index & s->mask];
}

static inline spt_times *spti_times_of(const spt_stream *s, const spti_slot *slot)
{
    return &s->times[slot - s->slots];
}

static inline spti_batch *spti_batch_at(const spt_stream *s, size_t index)
{
    return &s->batches[index % s->n_batches];
}

/* Whether packets that were handed over may still be read. */
static inline bool spti_stream_holds(const spt_stream *s)
{
    const spti_batch *oldest = spti_batch_at(s, s->oldest_batch);
    return oldest->done < oldest->next;
}

/* Whether a completion is complete or, without one, all up to the tail. */
static inline bool spti_is_done(const spt_stream *s, const spt_completion *completion, size_t tail)
{
    if (completion != NULL)
        return spt_completion_done(completion);
    return (ptrdiff_t)(__atomic_load_n(&s->given_back, __ATOMIC_SEQ_CST) - tail) >= 0;
}

/* ---- Habits ---- */

static inline bool spti_habit_try(spti_habit *h)
{
    unsigned skip = __atomic_load_n(&h->skip, __ATOMIC_RELAXED);
    if (skip == 0)
        return true;
    __atomic_store_n(&h->skip, skip - 1, __ATOMIC_RELAXED);
    return false;
}

static inline void spti_habit_learn(spti_habit *h, bool useful)
{
    unsigned failures = __atomic_load_n(&h->failures, __ATOMIC_RELAXED);
    if (useful)
        failures = 0;
    else if (failures < SPTI_MAX_FAILURES)
        failures++;
    __atomic_store_n(&h->failures, failures, __ATOMIC_RELAXED);
    __atomic_store_n(&h->skip, (1U << failures) - 1, __ATOMIC_RELAXED);
}

static inline void spti_pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- stream_settle.c: for the worker ---- */

/* Completions are their owners' again. */
void spti_give_back(spt_completion *list);

/* Make the descriptor readable, unless it has been since the last poll. */
void spti_stream_signal(spt_stream *s);

/* Deal with what was handed over and is not read any more. */
void spti_stream_settle(spt_stream *s);

/* Finish heaps, and free the slots of groups, in order. */
void spti_stream_retire(spt_stream *s);

/* A heap has been dealt with: it is its owner's again and, with the last of a group, so is the
 * completion. */
void spti_stream_finish_heap(spt_stream *s, spti_slot *slot);

/* Note in a heap's completion what first went wrong. */
void spti_stream_fail(spti_slot *slot, spt_status status, int sys_errno, size_t packet_size,
                      size_t fits);

/* ---- stream_batch.c: for the worker ---- */

/* Allocate them, for packets of at most that size; false without memory. */
bool spti_stream_make_batches(spt_stream *s, size_t packet_size);
void spti_stream_free_batches(spt_stream *s);

/* What is left of the last batch, or one with new packets; NULL where all batches are held. Where
 * there are no packets to make it has none, and at_ns is the time to wait for, or 0. */
spti_batch *spti_stream_next_batch(spt_stream *s, uint64_t *at_ns);

/* Heaps have been exhausted by somebody else: move the cursor from a group that has none left. */
void spti_stream_find_group_again(spt_stream *s);

/* ---- stream_worker.c: what the task of a stream calls ---- */

spti_wait spti_stream_run(spti_task *task);
bool spti_stream_has_work(spti_task *task);

/* ---- stream_drop.c ---- */

/* Refuse further sends. */
void spti_stream_refuse_sends(spt_stream *s);

/* Drop the heaps of a completion, or all, with the status. They are finished at once, also where
 * others are before them: whoever cancels may free their memory when this returns. For the worker.
 */
void spti_stream_drop(spt_stream *s, const spt_completion *completion, spt_status status);

/* What the task of a stream calls when the pool has stopped. */
void spti_stream_pool_stopped(spti_task *task);

/* ---- stream_caller.c: where there is no thread ---- */

/* Send what is in the queue, as far as that goes without waiting. */
void spti_stream_send_gathered(spt_stream *s);

/* Heaps have been queued: send them if there are enough, or tell who polls. */
void spti_stream_gathered(spt_stream *s);

/* A turn of the work, for an event loop, which is to take another where there is more. */
void spti_stream_help_loop(spt_stream *s);

/* Who waits does what there is to wait for. */
spt_status spti_stream_help_until(spt_stream *s, const spt_completion *completion, size_t tail,
                                  int64_t timeout_ns);

/* ---- stream.c ---- */

/* Make a stream. Takes the transport, which is NULL when it could not be made. */
spt_stream *spti_stream_create(spt_thread_pool *pool, spti_transport *transport,
                               const spt_stream_config *config, spt_error *err);

#endif
