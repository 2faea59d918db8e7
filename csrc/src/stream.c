/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the queue of heaps, and what becomes of each. The only file that knows both packetizer and
 * transport.
 *
 * The queue is a ring of slots, one for each heap. Senders fill slots at the tail, under a lock of
 * their own. The worker (whichever thread of the pool runs the task; never two at once) cuts the
 * heaps from the cursor on into a batch of packets, hands the batch to the transport, and frees the
 * slots of whole groups at the head. Nothing is allocated after the stream has been made.
 *
 *        head            finished           cursor            tail
 *   ------|------------------|-----------------|----------------|-----> slots
 *         | dealt with, rest | in the batch    | not yet cut    |
 *         | of group is not  |                 |                |
 */
#include "heap.h"
#include "status.h"
#include "thread_pool.h"
#include "transport.h"
#include "wire.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    CACHE_LINE = 64,
    BATCH_PACKETS = 256,
    BATCH_PIECES = 1024,
    BATCH_SCRATCH = 32768,
    HELD_LOOK_NS = 1000000, /* between looks whether they are, where a rate limits */
    HELD_BATCHES = 8,       /* where memory is read after it was handed over */
    HELD_MS = 1000,         /* how long who cancels or stops waits for that to end */
    BATCHES_PER_RUN = 8,    /* before other streams of the pool get their turn */
    RUNS_PER_SEND = 16,  /* where the caller's thread does them: signals have to wait meanwhile */
    SMALL_BATCH = 65536, /* bytes; about what one message carries */
    NAP_NS = 20000,
    LOOK_NS = 30000, /* more than falling asleep and being woken costs, on virtual machines too */
    MOST_EARLY_NS = 200000, /* sleep that ends later than this was somebody else's doing */
    MAX_FAILURES = 7,
    GATHERED = 262144,  /* bytes that a stream without a thread lets come together; see there */
    HELP_NS = 10000000, /* who waits looks again: another thread may have done the work */
};

/* The states of a completion. */
enum {
    WITH_OWNER,
    IN_FLIGHT,
    LISTED, /* complete, and not yet handed out by spt_stream_poll() */
};

/* Something that is tried only as often as it has lately been of use: after n failures in a row,
 * the next 2^n - 1 occasions are passed over. */
typedef struct habit {
    unsigned failures, skip; /* atomic, since several threads may wait; no order is needed */
} habit;

/* A heap in the queue: two cache lines, which travel from the sender's core to the worker's. */
typedef struct slot {
    _Alignas(CACHE_LINE) spt_packetizer packetizer;
    spt_completion *completion;
    double rate;
    size_t group_size; /* heaps whose packets alternate with this one's; in the first of them */
    uint32_t substream;
    uint16_t in_batch; /* packets made, and not dealt with: of all batches */
    bool last;         /* of those that share the completion */
    bool exhausted;    /* no packets are left to make */
} slot;

_Static_assert(sizeof(slot) <= 2 * CACHE_LINE, "a slot has grown beyond two cache lines");

struct spt_stream {
    spti_task task;
    spt_thread_pool *own_pool; /* without threads, or NULL where there is one of the caller's */
    spti_transport *transport;
    spt_stream_config config;
    slot *slots;
    spt_times *times; /* of each slot, or NULL where none are recorded */
    size_t mask;      /* slots - 1: a power of two less one */

    /* What one thread writes for each heap is not on a cache line that the other looks at. */
    _Alignas(CACHE_LINE) pthread_mutex_t queue_lock; /* senders */
    bool stopped;
    uint64_t next_cnt, cnt_step;
    size_t seen_head;                 /* the head as of late */
    size_t gathered;                  /* bytes that nobody has been asked to send; own_pool only */
    _Alignas(CACHE_LINE) size_t tail; /* atomic: senders write, the worker reads */

    _Alignas(CACHE_LINE) size_t head; /* atomic: the worker writes, senders read */
    size_t given_back; /* atomic: the head, once all completions before it have been given back */
    _Alignas(CACHE_LINE) size_t finished, cursor, group_end, group_left, turn;
    bool idle, limited, napping;
    habit nap, spin;
    spt_rate rate;
    uint64_t early_ns;              /* how long before a burst sleep is to end */
    uint64_t wake_ns;               /* when it was to end, or 0 */
    spti_batch *batches;            /* a ring of them */
    size_t n_batches;               /* 1 where memory is free as soon as it was handed over */
    size_t oldest_batch, new_batch; /* the first that is not done, and the one that is made */
    uint64_t heaps, looking_ns;     /* statistics */
    spt_completion *completed, **completed_end;

    _Alignas(CACHE_LINE) pthread_mutex_t done_lock; /* what waiters and pollers look at */
    pthread_cond_t done;
    size_t waiters; /* atomic */
    habit wait_spin;
    uint64_t waiting_looking_ns; /* atomic */
    spt_completion *polled, **polled_end;
    int event_fd;
    int armed; /* atomic: the eventfd should be written to */

    pthread_mutex_t timeline_lock;
    spt_times *timeline;
    uint64_t n_timeline; /* ever */
};

static slot *slot_at(const spt_stream *s, size_t index)
{
    return &s->slots[index & s->mask];
}

static spt_times *times_of(const spt_stream *s, const slot *slot)
{
    return &s->times[slot - s->slots];
}

static spti_batch *batch_at(const spt_stream *s, size_t index)
{
    return &s->batches[index % s->n_batches];
}

/* Whether packets that were handed over may still be read. */
static bool holds(const spt_stream *s)
{
    const spti_batch *oldest = batch_at(s, s->oldest_batch);
    return oldest->done < oldest->next;
}

/* ---- Habits ---- */

static bool habit_try(habit *h)
{
    unsigned skip = __atomic_load_n(&h->skip, __ATOMIC_RELAXED);
    if (skip == 0)
        return true;
    __atomic_store_n(&h->skip, skip - 1, __ATOMIC_RELAXED);
    return false;
}

static void habit_learn(habit *h, bool useful)
{
    unsigned failures = __atomic_load_n(&h->failures, __ATOMIC_RELAXED);
    if (useful)
        failures = 0;
    else if (failures < MAX_FAILURES)
        failures++;
    __atomic_store_n(&h->failures, failures, __ATOMIC_RELAXED);
    __atomic_store_n(&h->skip, (1U << failures) - 1, __ATOMIC_RELAXED);
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- The worker: completing ---- */

static void record_times(spt_stream *s, const slot *slot)
{
    spt_times *times = times_of(s, slot);
    times->cnt = slot->packetizer.cnt;
    times->completed_ns = spti_now_ns();
    pthread_mutex_lock(&s->timeline_lock);
    s->timeline[s->n_timeline++ % s->config.timeline] = *times;
    pthread_mutex_unlock(&s->timeline_lock);
}

/* Give the completions back to their owners, who may be waiting. */
static void announce(spt_stream *s)
{
    if (s->completed == NULL)
        return;
    if (s->config.poll) {
        pthread_mutex_lock(&s->done_lock);
        for (spt_completion *c = s->completed; c != NULL; c = c->next_)
            __atomic_store_n(&c->state_, LISTED, __ATOMIC_SEQ_CST);
        *s->polled_end = s->completed;
        s->polled_end = s->completed_end;
        pthread_mutex_unlock(&s->done_lock);
        bool armed = __atomic_exchange_n(&s->armed, 0, __ATOMIC_SEQ_CST);
        if (armed && s->own_pool != NULL) {
            spti_pool_signal(s->own_pool);
        } else if (armed) {
            ssize_t written = write(s->event_fd, &(uint64_t){1}, sizeof(uint64_t));
            (void)written; /* fails only when it is readable already */
        }
    } else {
        for (spt_completion *c = s->completed; c != NULL;) {
            spt_completion *next = c->next_; /* c is its owner's as soon as it is done */
            __atomic_store_n(&c->state_, WITH_OWNER, __ATOMIC_SEQ_CST);
            c = next;
        }
    }
    s->completed = NULL;
    s->completed_end = &s->completed;
    __atomic_store_n(&s->given_back, s->head, __ATOMIC_SEQ_CST);
    size_t waiters = __atomic_load_n(&s->waiters, __ATOMIC_SEQ_CST);
    if (waiters > 0 && s->own_pool != NULL) {
        spti_pool_rouse(s->own_pool);
    } else if (waiters > 0) {
        pthread_mutex_lock(&s->done_lock);
        pthread_cond_broadcast(&s->done);
        pthread_mutex_unlock(&s->done_lock);
    }
}

/* A heap has been dealt with: it is its owner's again and, with the last of a group, so is the
 * completion. */
static void finish_heap(spt_stream *s, slot *slot)
{
    if (s->times != NULL)
        record_times(s, slot);
    spti_heap_return((spt_heap *)(uintptr_t)slot->packetizer.heap);
    spti_count(&s->heaps, 1);
    if (slot->last) {
        slot->completion->next_ = NULL;
        *s->completed_end = slot->completion;
        s->completed_end = &slot->completion->next_;
    }
    slot->completion = NULL; /* finished */
}

/* Finish heaps, and free the slots of groups, in order. */
static void retire(spt_stream *s)
{
    size_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    size_t head = s->head;
    while (s->finished != tail) {
        slot *slot = slot_at(s, s->finished);
        if (!slot->exhausted || slot->in_batch > 0)
            break;
        if (slot->completion != NULL)
            finish_heap(s, slot);
        s->finished++;
        if (slot->last)
            head = s->finished;
    }
    if (head != s->head)
        __atomic_store_n(&s->head, head, __ATOMIC_SEQ_CST); /* before anybody is told */
    announce(s);
}

static void fail(slot *slot, spt_status status, int sys_errno, size_t packet_size, size_t fits)
{
    spt_completion *c = slot->completion;
    if (c->status != SPT_OK)
        return; /* the first error is the one that is told */
    c->status = status;
    c->sys_errno = sys_errno;
    c->failed_cnt = slot->packetizer.cnt;
    c->failed_packet_size = packet_size;
    c->fitting_packet_size = fits;
}

/* Note when packets [first, batch->next) were handed over. */
static void note_times(spt_stream *s, const spti_batch *batch, size_t first, uint64_t before_ns)
{
    uint64_t after_ns = spti_now_ns();
    for (size_t i = first; i < batch->next; i++) {
        const spti_packet *packet = &batch->packets[i];
        if (packet->error != 0)
            continue;
        spt_times *times = times_of(s, packet->sender);
        times->bytes += packet->size;
        if (times->first_packet_ns == 0)
            times->first_packet_ns = before_ns;
        times->last_packet_ns = after_ns;
    }
}

/* Deal with the packets of a batch that were handed over and are not held, in order. */
static void settle_batch(spt_stream *s, spti_batch *batch)
{
    for (; batch->done < batch->next; batch->done++) {
        const spti_packet *packet = &batch->packets[batch->done];
        if (spti_transport_holds(s->transport, packet))
            break;
        slot *slot = packet->sender;
        slot->in_batch--;
        if (packet->error != 0) {
            size_t fits = packet->error == EMSGSIZE ? s->transport->fits : 0;
            fail(slot, SPT_ERR_SYSTEM, packet->error, packet->size, fits);
            continue;
        }
        slot->completion->bytes += packet->size;
    }
}

static void settle(spt_stream *s)
{
    if (s->transport->ops->release != NULL)
        s->transport->ops->release(s->transport);
    for (;; s->oldest_batch++) {
        spti_batch *batch = batch_at(s, s->oldest_batch);
        settle_batch(s, batch);
        if (batch->done < batch->n || s->oldest_batch == s->new_batch)
            break;
    }
    retire(s);
}

/* ---- The worker: making packets ---- */

/* Move the cursor to the next group that has packets to make; false when there is none. The cursor
 * never stays on a group without: its slots may be freed and filled again at any time. */
static bool find_group(spt_stream *s)
{
    while (s->group_left == 0) {
        s->cursor = s->group_end;
        if (s->cursor == __atomic_load_n(&s->tail, __ATOMIC_SEQ_CST))
            return false;
        s->turn = s->cursor;
        s->group_end = s->cursor + slot_at(s, s->cursor)->group_size;
        for (size_t i = s->cursor; i != s->group_end; i++)
            s->group_left += !slot_at(s, i)->exhausted;
    }
    return true;
}

/* The heap that the next packet comes from, or NULL. */
static slot *next_slot(spt_stream *s)
{
    if (s->group_left == 0 && !find_group(s))
        return NULL;
    for (;; s->turn++) {
        if (s->turn == s->group_end)
            s->turn = s->cursor;
        if (!slot_at(s, s->turn)->exhausted)
            return slot_at(s, s->turn);
    }
}

static void exhaust(spt_stream *s, slot *slot)
{
    slot->exhausted = true;
    if (--s->group_left == 0)
        s->cursor = s->group_end;
}

static bool has_room(const spti_batch *batch)
{
    return batch->n < BATCH_PACKETS && batch->n_pieces < BATCH_PIECES &&
           batch->scratch_used < BATCH_SCRATCH;
}

static void add_packet(spt_stream *s, spti_batch *batch, slot *slot)
{
    spt_packet made;
    spt_status status = spt_packetizer_next(&slot->packetizer, batch->scratch + batch->scratch_used,
                                            batch->pieces + batch->n_pieces, &made);
    s->turn++;
    if (slot->packetizer.done)
        exhaust(s, slot);
    if (status != SPT_OK)
        return; /* cannot be: heaps with nothing to send do not exist */
    slot->in_batch++;
    batch->packets[batch->n++] = (spti_packet){
        .first_piece = (uint32_t)batch->n_pieces,
        .n_pieces = (uint16_t)made.n_pieces,
        .size = (uint32_t)made.size,
        .substream = slot->substream,
        .sender = slot,
    };
    batch->n_pieces += made.n_pieces;
    batch->scratch_used += (made.scratch_used + 7) & ~(size_t)7;
    if (s->limited)
        spt_rate_sent(&s->rate, made.size, slot->rate);
}

/* 0, or when the next packet may go. */
static uint64_t rate_limit(spt_stream *s, const slot *slot)
{
    s->limited = s->limited || slot->rate > 0;
    if (!s->limited)
        return 0;
    uint64_t now_ns = spti_now_ns();
    if (s->idle)
        spt_rate_idle(&s->rate, now_ns);
    s->idle = false;
    return spt_rate_next(&s->rate, now_ns);
}

/* A batch to make packets in: the last one again, if that is done with; NULL where all are held. */
static spti_batch *free_batch(spt_stream *s)
{
    const spti_batch *last = batch_at(s, s->new_batch);
    if (last->done < last->n) {
        if (s->new_batch + 1 - s->oldest_batch == s->n_batches)
            return NULL;
        s->new_batch++;
    }
    return batch_at(s, s->new_batch);
}

/* Fill a batch. Returns 0, or the time to wait for before more can be added. */
static uint64_t fill_batch(spt_stream *s, spti_batch *batch)
{
    batch->n = batch->next = batch->done = 0;
    batch->n_pieces = batch->scratch_used = 0;
    while (has_room(batch)) {
        slot *slot = next_slot(s);
        if (slot == NULL) {
            s->idle = true;
            return 0;
        }
        uint64_t at_ns = rate_limit(s, slot);
        if (at_ns > 0)
            return at_ns;
        add_packet(s, batch, slot);
    }
    return 0;
}

/*
 * After a batch that did not even fill one message the worker naps for a moment. The heaps that
 * come meanwhile share messages and system calls, and their senders need not wake anybody, which
 * would cost them more than queueing a heap does. It is of no use where a heap finds no company, or
 * where the nap kept a sender waiting for room in the queue.
 */
static bool should_nap(spt_stream *s, uint64_t n_bytes)
{
    if (s->own_pool != NULL || holds(s) || n_bytes >= SMALL_BATCH || !habit_try(&s->nap))
        return false;
    s->napping = true;
    s->task.deadline_ns = spti_now_ns() + NAP_NS;
    return true;
}

static void end_nap(spt_stream *s)
{
    s->napping = false;
    size_t queued = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE) - s->cursor;
    habit_learn(&s->nap, queued >= 2 && queued < s->config.max_heaps);
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
    if (s->own_pool != NULL || holds(s) || !habit_try(&s->spin))
        return false;
    uint64_t begin_ns = spti_now_ns(), now_ns = begin_ns;
    bool more = false;
    while (!more && (now_ns = spti_now_ns()) < begin_ns + LOOK_NS) {
        pause_briefly();
        more = s->cursor != __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    }
    habit_learn(&s->spin, more);
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
        pause_briefly();
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

/* What there is to wait for when there are no packets to make before that time; 0: before a heap
 * comes. Packets that are held may be done with earlier. */
static spti_wait wait_for_more(spt_stream *s, uint64_t at_ns)
{
    if (at_ns == 0)
        return holds(s) ? SPTI_WAIT_ANY : SPTI_WAIT_WORK;
    s->task.deadline_ns = s->wake_ns = at_ns - s->early_ns;
    uint64_t look_ns = spti_now_ns() + HELD_LOOK_NS;
    if (holds(s) && look_ns < s->task.deadline_ns) {
        s->task.deadline_ns = look_ns;
        s->wake_ns = 0; /* not a sleep to learn from */
    }
    return SPTI_WAIT_TIME;
}

/* Hand over what is left of a batch. */
static spt_status send_batch(spt_stream *s, spti_batch *batch)
{
    size_t first = batch->next;
    uint64_t before_ns = s->times != NULL ? spti_now_ns() : 0;
    spt_status status = s->transport->ops->send(s->transport, batch);
    if (s->times != NULL)
        note_times(s, batch, first, before_ns);
    settle(s);
    return status;
}

static spti_wait stream_run(spti_task *task)
{
    spt_stream *s = (spt_stream *)task;
    if (s->napping)
        end_nap(s);
    if (s->wake_ns > 0)
        end_sleep(s);
    if (holds(s))
        settle(s);
    for (int i = 0; i < BATCHES_PER_RUN; i++) {
        spti_batch *batch = batch_at(s, s->new_batch);
        if (batch->next == batch->n) {
            batch = free_batch(s);
            if (batch == NULL)
                return SPTI_WAIT_NEWS;
            uint64_t at_ns = fill_batch(s, batch);
            if (batch->n == 0) {
                if (at_ns > 0 ? due_soon(s, at_ns) : more_soon(s))
                    continue;
                return wait_for_more(s, at_ns);
            }
        }
        uint64_t bytes = s->transport->stats.bytes;
        if (send_batch(s, batch) == SPT_PENDING)
            return s->transport->full ? SPTI_WAIT_NEWS : SPTI_WAIT_WRITABLE;
        if (should_nap(s, s->transport->stats.bytes - bytes))
            return SPTI_WAIT_TIME;
    }
    return SPTI_WAIT_TURN;
}

static bool stream_has_work(spti_task *task)
{
    const spt_stream *s = (const spt_stream *)task;
    return s->cursor != __atomic_load_n(&s->tail, __ATOMIC_SEQ_CST);
}

/* ---- Giving up: with the task paused, so that the caller is the worker ---- */

static bool is_of(const slot *slot, const spt_completion *completion)
{
    return slot->completion != NULL && (completion == NULL || slot->completion == completion);
}

/* Make no more packets of the heaps of a completion, or of all, and forget those not handed over.
 */
static void make_no_more(spt_stream *s, const spt_completion *completion, size_t tail,
                         spt_status status)
{
    spti_batch *batch = batch_at(s, s->new_batch);
    size_t kept = batch->next;
    for (size_t i = batch->next; i < batch->n; i++) {
        slot *slot = batch->packets[i].sender;
        if (!is_of(slot, completion)) {
            batch->packets[kept++] = batch->packets[i];
            continue;
        }
        fail(slot, status, 0, 0, 0);
        slot->in_batch--;
    }
    batch->n = kept;
    for (size_t i = s->finished; i != tail; i++) {
        slot *slot = slot_at(s, i);
        if (!is_of(slot, completion))
            continue;
        if (!slot->exhausted)
            fail(slot, status, 0, 0, 0);
        slot->exhausted = true;
    }
    s->group_left = 0;
    for (size_t i = s->cursor; i != s->group_end; i++)
        s->group_left += !slot_at(s, i)->exhausted;
    if (s->group_left == 0)
        find_group(s);
}

/* Wait until their memory is not read any more; for a device that never lets go, not for ever. */
static void await_release(spt_stream *s, const spt_completion *completion, size_t tail)
{
    uint64_t end_ns = spti_now_ns() + (uint64_t)HELD_MS * 1000000U;
    for (size_t i = s->finished; i != tail; i++) {
        const slot *slot = slot_at(s, i);
        while ((ptrdiff_t)(i - s->finished) >= 0 && is_of(slot, completion) && slot->in_batch > 0) {
            struct pollfd news = {.fd = s->transport->fd};
            if (spti_now_ns() >= end_ns)
                s->transport->released = s->transport->handed;
            else
                poll(&news, 1, HELD_MS);
            settle(s);
        }
    }
}

/* Drop the heaps of a completion, or all, with the status. They are finished at once, also where
 * others are before them: whoever cancels may free their memory when this returns. */
static void drop(spt_stream *s, const spt_completion *completion, spt_status status)
{
    size_t tail = __atomic_load_n(&s->tail, __ATOMIC_ACQUIRE);
    make_no_more(s, completion, tail, status);
    await_release(s, completion, tail);
    for (size_t i = s->finished; i != tail; i++)
        if (is_of(slot_at(s, i), completion))
            finish_heap(s, slot_at(s, i));
    retire(s);
}

static void refuse_sends(spt_stream *s)
{
    pthread_mutex_lock(&s->queue_lock);
    s->stopped = true;
    pthread_mutex_unlock(&s->queue_lock);
}

static void stream_pool_stopped(spti_task *task)
{
    spt_stream *s = (spt_stream *)task;
    refuse_sends(s);
    drop(s, NULL, SPT_ERR_STOPPED);
}

void spt_stream_stop(spt_stream *stream)
{
    refuse_sends(stream);
    spti_task_pause(&stream->task);
    drop(stream, NULL, SPT_ERR_STOPPED);
    spti_task_resume(&stream->task);
}

void spt_stream_cancel(spt_stream *stream, spt_completion *completion)
{
    if (spt_completion_done(completion))
        return;
    spti_task_pause(&stream->task);
    drop(stream, completion, SPT_ERR_CANCELLED);
    spti_task_resume(&stream->task);
}

/* ---- Senders ---- */

static spt_status check_reference(const spt_stream *s, const spt_heap_reference *r, spt_error *err)
{
    uint64_t mask = spti_address_mask(r->heap->flavour.heap_address_bits);
    if (r->substream_index >= s->transport->n_substreams)
        return spti_fail(err, SPT_ERR_GROUP,
                         "substream %zu does not exist: the stream has %zu, counted from 0",
                         r->substream_index, s->transport->n_substreams);
    if (r->cnt >= 0 && (uint64_t)r->cnt > mask)
        return spti_fail(err, SPT_ERR_GROUP,
                         "heap count %" PRId64 " is out of range: the flavour has %d bits for it "
                         "(%" PRIu64 " at most)",
                         r->cnt, r->heap->flavour.heap_address_bits, mask);
    if (!isfinite(r->rate))
        return spti_fail(err, SPT_ERR_GROUP, "the heap's rate must be a finite number");
    return SPT_OK;
}

static spt_status check_send(const spt_stream *s, const spt_heap_reference *heaps, size_t n,
                             const spt_completion *completion, spt_error *err)
{
    if (n == 0)
        return spti_fail(err, SPT_ERR_GROUP, "a group must have at least one heap");
    if (__atomic_load_n(&completion->state_, __ATOMIC_SEQ_CST) != WITH_OWNER)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the completion is in use: wait for it (or take it from "
                         "spt_stream_poll) before sending with it again");
    if (s->config.max_packet_size > s->transport->max_packet_size) {
        (void)spti_fail(err, SPT_ERR_SYSTEM,
                        "cannot send packets of %zu bytes: %s; lower max_packet_size",
                        s->config.max_packet_size, s->transport->limit);
        if (err != NULL)
            err->sys_errno = EMSGSIZE;
        return SPT_ERR_SYSTEM;
    }
    for (size_t i = 0; i < n; i++)
        SPTI_TRY(check_reference(s, &heaps[i], err));
    return SPT_OK;
}

/* Fill free slots from the tail on; the worker does not see them yet. */
static spt_status fill_slots(spt_stream *s, const spt_heap_reference *heaps, size_t n,
                             spt_group_mode mode, spt_completion *completion, uint64_t *next_cnt,
                             spt_error *err)
{
    uint64_t queued_ns = s->config.timeline > 0 ? spti_now_ns() : 0;
    for (size_t i = 0; i < n; i++) {
        const spt_heap_reference *r = &heaps[i];
        slot *slot = slot_at(s, s->tail + i);
        uint64_t cnt = (uint64_t)r->cnt;
        if (r->cnt < 0) {
            cnt = *next_cnt;
            *next_cnt += s->cnt_step;
        }
        size_t size = s->config.max_packet_size;
        if (s->config.equal_packets)
            size = spt_equal_packet_size(r->heap, size);
        SPTI_TRY(spt_packetizer_init(&slot->packetizer, r->heap, cnt, size, err));
        slot->completion = completion;
        slot->rate = r->rate;
        slot->substream = (uint32_t)r->substream_index;
        slot->group_size = mode == SPT_GROUP_ROUND_ROBIN ? n : 1;
        slot->last = i == n - 1;
        slot->exhausted = false;
        slot->in_batch = 0;
        if (s->times != NULL)
            *times_of(s, slot) = (spt_times){.queued_ns = queued_ns};
    }
    return SPT_OK;
}

static spt_status enqueue(spt_stream *s, const spt_heap_reference *heaps, size_t n,
                          spt_group_mode mode, spt_completion *completion, spt_error *err)
{
    if (s->stopped)
        return spti_fail(err, SPT_ERR_STOPPED,
                         "the stream is closed, or its thread pool has been stopped");
    if (n > s->config.max_heaps - (s->tail - s->seen_head))
        s->seen_head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
    size_t used = s->tail - s->seen_head;
    if (n > s->config.max_heaps)
        return spti_fail(err, SPT_ERR_QUEUE_FULL,
                         "a group of %zu heaps never fits in a queue of %zu: raise max_heaps", n,
                         s->config.max_heaps);
    if (n > s->config.max_heaps - used)
        return spti_fail(err, SPT_ERR_QUEUE_FULL,
                         "the queue is full (%zu of max_heaps=%zu in flight, %zu more asked for): "
                         "wait for a heap to complete, or raise max_heaps",
                         used, s->config.max_heaps, n);
    uint64_t next_cnt = s->next_cnt;
    SPTI_TRY(fill_slots(s, heaps, n, mode, completion, &next_cnt, err));
    s->next_cnt = next_cnt;
    for (size_t i = 0; i < n; i++)
        spti_heap_borrow(heaps[i].heap);
    completion->status = SPT_OK;
    completion->sys_errno = 0;
    completion->bytes = 0;
    completion->failed_cnt = 0;
    completion->failed_packet_size = 0;
    completion->fitting_packet_size = 0;
    __atomic_store_n(&completion->state_, IN_FLIGHT, __ATOMIC_RELAXED);
    __atomic_store_n(&s->tail, s->tail + n, __ATOMIC_SEQ_CST);
    return SPT_OK;
}

/* A completion or, without one, all up to the tail. */
static bool is_done(const spt_stream *s, const spt_completion *completion, size_t tail)
{
    if (completion != NULL)
        return spt_completion_done(completion);
    return (ptrdiff_t)(__atomic_load_n(&s->given_back, __ATOMIC_SEQ_CST) - tail) >= 0;
}

/* ---- Senders that do the work, where there is no thread for it ----
 *
 * It pays to fill and to send while the data is in the cache, and to send much with one call: so
 * heaps are gathered until there are a few messages of them, or somebody waits. With one message
 * (64 KiB) the last heap often begins another; a megabyte is more than some caches hold. What a
 * rate limits has nothing to gain from going early.
 */

/* What is gathered is about to be sent; returns whether there was any. */
static bool take_gathered(spt_stream *s)
{
    pthread_mutex_lock(&s->queue_lock);
    bool any = s->gathered > 0;
    s->gathered = 0;
    pthread_mutex_unlock(&s->queue_lock);
    return any;
}

static void send_gathered(spt_stream *s)
{
    take_gathered(s);
    spti_task_wake(&s->task);
    /* What is left, of a very large heap or of what a rate holds up, is for who waits. */
    for (int i = 0; i < (s->config.rate > 0 ? 1 : RUNS_PER_SEND); i++)
        if (!spti_pool_help(s->own_pool, 0, false))
            break;
}

static spt_status gather(spt_stream *s, const spt_heap_reference *heaps, size_t n_heaps,
                         spt_group_mode mode, spt_completion *completion, spt_error *err)
{
    pthread_mutex_lock(&s->queue_lock);
    spt_status status = enqueue(s, heaps, n_heaps, mode, completion, err);
    for (size_t i = 0; status == SPT_OK && i < n_heaps; i++)
        s->gathered += SPTI_PREFIX + heaps[i].heap->payload_length;
    bool enough = s->gathered >= GATHERED && !(s->config.rate > 0);
    pthread_mutex_unlock(&s->queue_lock);
    if (enough || status == SPT_ERR_QUEUE_FULL)
        send_gathered(s);
    if (status == SPT_OK && s->config.poll && __atomic_exchange_n(&s->armed, 0, __ATOMIC_SEQ_CST))
        spti_pool_signal(s->own_pool);
    return status;
}

/* A turn of the work, for an event loop, which is to take another where there is more. */
static void help_loop(spt_stream *s)
{
    take_gathered(s);
    spti_task_wake(&s->task);
    bool more = spti_pool_help(s->own_pool, 0, true);
    __atomic_store_n(&s->armed, 1, __ATOMIC_SEQ_CST);
    if (more || take_gathered(s)) /* gathered by another thread while it was not armed */
        spti_pool_signal(s->own_pool);
}

/* Who waits does what there is to wait for. */
static spt_status help_until(spt_stream *s, const spt_completion *completion, size_t tail,
                             int64_t timeout_ns)
{
    uint64_t begin_ns = spti_now_ns();
    uint64_t end_ns = timeout_ns < 0 ? UINT64_MAX : begin_ns + (uint64_t)timeout_ns;
    __atomic_add_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    take_gathered(s);
    spti_task_wake(&s->task);
    bool done = false;
    for (uint64_t now_ns = begin_ns; !done; now_ns = spti_now_ns()) {
        uint64_t until_ns = end_ns - now_ns < HELP_NS ? end_ns : now_ns + HELP_NS;
        spti_pool_help(s->own_pool, timeout_ns == 0 ? 0 : until_ns, true);
        done = is_done(s, completion, tail);
        if (!done && spti_now_ns() >= end_ns)
            break;
    }
    __atomic_sub_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    if (s->config.poll) /* it may have taken the signal that was for the event loop */
        spti_pool_signal(s->own_pool);
    return done ? SPT_OK : SPT_PENDING;
}

spt_status spt_stream_send_heaps(spt_stream *stream, const spt_heap_reference *heaps,
                                 size_t n_heaps, spt_group_mode mode, spt_completion *completion,
                                 spt_error *err)
{
    SPTI_TRY(check_send(stream, heaps, n_heaps, completion, err));
    if (stream->own_pool != NULL) {
        spt_status status = gather(stream, heaps, n_heaps, mode, completion, err);
        if (status != SPT_ERR_QUEUE_FULL)
            return status;
        /* What was in the queue has gone now, unless something holds it up. */
        return gather(stream, heaps, n_heaps, mode, completion, err);
    }
    pthread_mutex_lock(&stream->queue_lock);
    spt_status status = enqueue(stream, heaps, n_heaps, mode, completion, err);
    pthread_mutex_unlock(&stream->queue_lock);
    if (status == SPT_OK)
        spti_task_wake(&stream->task);
    return status;
}

spt_status spt_stream_send_heap(spt_stream *stream, spt_heap *heap, spt_completion *completion,
                                spt_error *err)
{
    spt_heap_reference reference = {.heap = heap, .cnt = -1, .rate = -1.0};
    return spt_stream_send_heaps(stream, &reference, 1, SPT_GROUP_SERIAL, completion, err);
}

static spt_status send_to_all(spt_stream *stream, spt_heap *heap, spt_error *err)
{
    spt_heap_reference end = {.heap = heap, .cnt = -1, .rate = -1.0};
    SPTI_TRY(spt_stream_flush(stream, -1)); /* for room in the queue */
    for (; end.substream_index < stream->transport->n_substreams; end.substream_index++) {
        spt_completion sent = {0};
        SPTI_TRY(spt_stream_send_heaps(stream, &end, 1, SPT_GROUP_SERIAL, &sent, err));
        SPTI_TRY(spt_stream_wait(stream, &sent, -1, err));
    }
    return SPT_OK;
}

spt_status spt_stream_send_end(spt_stream *stream, const spt_flavour *flavour, spt_error *err)
{
    if (stream->config.poll)
        return spti_fail(
            err, SPT_ERR_ARGUMENT,
            "on a stream with config.poll send a heap with spt_heap_add_end() yourself: "
            "its completion is taken by spt_stream_poll()");
    spt_error local;
    spt_heap *heap = spt_heap_create(flavour, err != NULL ? err : &local);
    if (heap == NULL)
        return err != NULL ? err->status : local.status;
    spt_status status = spt_heap_add_end(heap, err);
    if (status == SPT_OK)
        status = send_to_all(stream, heap, err);
    spt_heap_destroy(heap);
    return status;
}

spt_status spt_stream_set_cnt_sequence(spt_stream *stream, uint64_t next, uint64_t step,
                                       spt_error *err)
{
    if (step == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "the step of heap counts must not be 0: receivers tell heaps apart by "
                         "their count");
    pthread_mutex_lock(&stream->queue_lock);
    stream->next_cnt = next;
    stream->cnt_step = step;
    pthread_mutex_unlock(&stream->queue_lock);
    return SPT_OK;
}

size_t spt_stream_num_substreams(const spt_stream *stream)
{
    return stream->transport->n_substreams;
}

/* ---- Completions ---- */

bool spt_completion_done(const spt_completion *completion)
{
    return __atomic_load_n(&completion->state_, __ATOMIC_SEQ_CST) != IN_FLIGHT;
}

/* The same as more_soon(), for those who wait. */
static bool done_soon(spt_stream *s, const spt_completion *completion, size_t tail)
{
    if (!habit_try(&s->wait_spin))
        return false;
    uint64_t begin_ns = spti_now_ns(), now_ns = begin_ns;
    bool done = false;
    while (!done && (now_ns = spti_now_ns()) < begin_ns + LOOK_NS) {
        pause_briefly();
        done = is_done(s, completion, tail);
    }
    habit_learn(&s->wait_spin, done);
    __atomic_add_fetch(&s->waiting_looking_ns, now_ns - begin_ns, __ATOMIC_RELAXED);
    return done;
}

/* Wait for a completion or, without one, until all before the tail have been given back. */
static spt_status wait_until(spt_stream *s, const spt_completion *completion, size_t tail,
                             int64_t timeout_ns)
{
    if (is_done(s, completion, tail))
        return SPT_OK;
    if (s->own_pool != NULL)
        return help_until(s, completion, tail, timeout_ns);
    if (done_soon(s, completion, tail))
        return SPT_OK;
    struct timespec until =
        spti_timespec(timeout_ns < 0 ? 0 : spti_now_ns() + (uint64_t)timeout_ns);
    int timed_out = 0;
    pthread_mutex_lock(&s->done_lock);
    __atomic_add_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    while (!is_done(s, completion, tail) && timed_out != ETIMEDOUT)
        timed_out = timeout_ns < 0 ? pthread_cond_wait(&s->done, &s->done_lock)
                                   : pthread_cond_timedwait(&s->done, &s->done_lock, &until);
    __atomic_sub_fetch(&s->waiters, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&s->done_lock);
    return is_done(s, completion, tail) ? SPT_OK : SPT_PENDING;
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
    uint64_t count;
    ssize_t got = read(s->event_fd, &count, sizeof(count));
    (void)got; /* not readable is as good */
    __atomic_store_n(&s->armed, 1, __ATOMIC_SEQ_CST);
}

size_t spt_stream_poll(spt_stream *stream, spt_completion **completions, size_t n)
{
    if (!stream->config.poll)
        return 0;
    if (stream->own_pool != NULL)
        help_loop(stream);
    else
        disarm(stream);
    size_t found = 0;
    pthread_mutex_lock(&stream->done_lock);
    while (found < n && stream->polled != NULL) {
        spt_completion *c = stream->polled;
        stream->polled = c->next_;
        __atomic_store_n(&c->state_, WITH_OWNER, __ATOMIC_SEQ_CST);
        completions[found++] = c;
    }
    if (stream->polled == NULL)
        stream->polled_end = &stream->polled;
    pthread_mutex_unlock(&stream->done_lock);
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

/* ---- Looking at a stream ---- */

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
    pthread_mutex_lock(&stream->timeline_lock);
    uint64_t end = stream->n_timeline;
    size_t kept = end < size ? (size_t)end : size;
    if (n > kept)
        n = kept;
    for (size_t i = 0; i < n; i++)
        times[i] = stream->timeline[(end - kept + i) % size];
    pthread_mutex_unlock(&stream->timeline_lock);
    return n;
}

size_t spt_stream_memory(spt_stream *stream, void *to, size_t size)
{
    return spti_transport_memory_copy(stream->transport, to, size);
}

/* ---- Making and unmaking ---- */

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
    if (c->max_heaps > SIZE_MAX / 4 / sizeof(slot) ||
        c->timeline > SIZE_MAX / 4 / sizeof(spt_times))
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a queue of %zu heaps", c->max_heaps);
    return SPT_OK;
}

static bool make_batch(spti_batch *batch, size_t packet_size)
{
    batch->packets = calloc(BATCH_PACKETS, sizeof(*batch->packets));
    batch->pieces = calloc(BATCH_PIECES + SPT_MAX_PIECES(packet_size), sizeof(*batch->pieces));
    batch->scratch = malloc(BATCH_SCRATCH + packet_size);
    return batch->packets != NULL && batch->pieces != NULL && batch->scratch != NULL;
}

static void free_batches(spt_stream *s)
{
    for (size_t i = 0; s->batches != NULL && i < s->n_batches; i++) {
        free(s->batches[i].packets);
        free(s->batches[i].pieces);
        free(s->batches[i].scratch);
    }
    free(s->batches);
}

static spt_status allocate(spt_stream *s, spt_error *err)
{
    size_t n_slots = 1;
    while (n_slots < s->config.max_heaps)
        n_slots *= 2;
    s->mask = n_slots - 1;
    size_t size = s->config.max_packet_size;
    if (size > s->transport->max_packet_size)
        size = s->transport->max_packet_size; /* no send will get as far as using it */
    s->slots = aligned_alloc(CACHE_LINE, n_slots * sizeof(*s->slots));
    if (s->config.timeline > 0)
        s->times = calloc(n_slots, sizeof(*s->times));
    s->timeline = calloc(s->config.timeline + 1, sizeof(*s->timeline));
    s->batches = calloc(s->n_batches, sizeof(*s->batches));
    bool made = s->slots != NULL && s->timeline != NULL && s->batches != NULL &&
                (s->config.timeline == 0 || s->times != NULL);
    for (size_t i = 0; made && i < s->n_batches; i++)
        made = make_batch(&s->batches[i], size);
    if (!made)
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a queue of %zu heaps",
                         s->config.max_heaps);
    return SPT_OK;
}

static void init_locks(spt_stream *s)
{
    pthread_mutex_init(&s->queue_lock, NULL);
    pthread_mutex_init(&s->done_lock, NULL);
    pthread_mutex_init(&s->timeline_lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->done, &attr);
    pthread_condattr_destroy(&attr);
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
    free_batches(s);
    free(s->timeline);
    s->transport->ops->destroy(s->transport);
    free(s);
}

/* Takes the transport, which is NULL when it could not be made. */
static spt_stream *create(spt_thread_pool *pool, spti_transport *transport,
                          const spt_stream_config *config, spt_error *err)
{
    if (transport == NULL)
        return NULL;
    spt_stream *s = aligned_alloc(CACHE_LINE, sizeof(*s));
    if (s == NULL) {
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a stream");
        transport->ops->destroy(transport);
        return NULL;
    }
    memset(s, 0, sizeof(*s));
    s->transport = transport;
    s->config = *config;
    s->n_batches = transport->ops->release != NULL ? HELD_BATCHES : 1;
    s->next_cnt = s->cnt_step = 1;
    s->idle = true;
    s->limited = config->rate > 0;
    s->early_ns = LOOK_NS;
    s->completed_end = &s->completed;
    s->polled_end = &s->polled;
    s->event_fd = -1;
    s->armed = 1;
    spt_rate_init(&s->rate, config->rate, config->burst_size, config->burst_rate_ratio);
    init_locks(s);
    s->task.run = stream_run;
    s->task.has_work = stream_has_work;
    s->task.stopped = stream_pool_stopped;
    s->task.fd = transport->fd;
    if (allocate(s, err) != SPT_OK)
        goto fail;
    if (config->poll && pool != NULL) {
        s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (s->event_fd < 0) {
            (void)spti_fail_errno(err, "could not make an eventfd");
            goto fail;
        }
    }
    if (pool == NULL)
        pool = s->own_pool = spti_pool_without_threads(err);
    if (pool == NULL || spti_task_attach(pool, &s->task, err) != SPT_OK)
        goto fail;
    return s;
fail:
    free_stream(s);
    return NULL;
}

spt_stream *spt_stream_create_udp(spt_thread_pool *pool, const spt_endpoint *endpoints,
                                  size_t n_endpoints, const spt_stream_config *config,
                                  const spt_udp_config *udp, spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return create(pool, spti_transport_udp(endpoints, n_endpoints, udp, err), config, err);
}

spt_stream *spt_stream_create_udp_socket(spt_thread_pool *pool, int socket,
                                         const spt_endpoint *endpoints, size_t n_endpoints,
                                         const spt_stream_config *config, const spt_udp_config *udp,
                                         spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return create(pool, spti_transport_udp_socket(socket, endpoints, n_endpoints, udp, err), config,
                  err);
}

spt_stream *spt_stream_create_memory(spt_thread_pool *pool, const spt_stream_config *config,
                                     spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    return create(pool, spti_transport_memory(err), config, err);
}

void spt_stream_destroy(spt_stream *stream)
{
    if (stream == NULL)
        return;
    refuse_sends(stream);
    spti_task_detach(&stream->task);
    drop(stream, NULL, SPT_ERR_STOPPED);
    for (spt_completion *c = stream->polled; c != NULL;) {
        spt_completion *next = c->next_;
        __atomic_store_n(&c->state_, WITH_OWNER, __ATOMIC_SEQ_CST);
        c = next;
    }
    free_stream(stream);
}
