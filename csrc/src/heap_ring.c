/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the heaps that are finished and not got yet, and those that have been given back; decides
 * which are dropped, and when those who wait are told. Knows nothing of packets, nor who receives.
 */
#include "heap_ring.h"

#include "clock.h"
#include "status.h"
#include "sync.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Before anybody is told of heaps: batches that they came in, and bytes that they have. Those are
 * to be got, and their memory to be used again, while they are in the cache. */
enum { MOST_QUIET = 4, MOST_UNTOLD = 256 * 1024 };

static bool take(spti_sink *sink, spt_received_heap *heap, bool last);
static bool settle(spti_sink *sink, spti_pace pace);

spt_status spti_heap_ring_init(spti_heap_ring *ring, const spt_recv_config *config, spt_error *err)
{
    *ring = (spti_heap_ring){
        .sink = {.take = take, .settle = settle},
        .capacity = config->ring_heaps,
        .drops = config->drop_when_full,
        .contiguous_only = config->contiguous_only,
        .event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
    };
    pthread_mutex_init(&ring->lock, NULL);
    if (ring->event_fd < 0)
        return spti_fail_errno(err, "could not make the stream's event");
    if (ring->capacity == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT, "ring_heaps is 0: it must be at least 1");
    return SPT_OK;
}

void spti_heap_ring_fini(spti_heap_ring *ring)
{
    if (ring->event_fd >= 0)
        close(ring->event_fd);
    pthread_mutex_destroy(&ring->lock);
}

/* ---- Events, under the lock ------------------------------------------------------------------ */

/* Tell whoever watches the descriptor. */
static void signal_event(spti_heap_ring *ring)
{
    if (ring->signalled || !ring->fd_used || !(ring->n > 0 || ring->ended))
        return;
    ring->signalled = true;
    spti_event_add(ring->event_fd, 1);
}

static void clear_event(spti_heap_ring *ring)
{
    if (!ring->signalled || ring->n > 0 || ring->ended)
        return;
    spti_event_empty(ring->event_fd);
    ring->signalled = false;
}

/* ---- For who receives ------------------------------------------------------------------------ */

static void append(spti_heap_ring *ring, spt_received_heap *heap)
{
    heap->user = NULL;
    if (ring->n == 0)
        ring->first = heap;
    else
        ring->last->user = heap;
    ring->last = heap;
    __atomic_store_n(&ring->n, ring->n + 1, __ATOMIC_SEQ_CST);
    ring->untold += heap->received_length;
}

/* Put a heap in if there is room, or if it has to be. */
static bool put(spti_heap_ring *ring, spt_received_heap *heap, bool in_any_case)
{
    SPTI_HOLD(&ring->lock);
    bool room = in_any_case || ring->n < ring->capacity;
    if (room)
        append(ring, heap);
    else
        ring->blocked = !ring->drops;
    return room;
}

/* Whether a heap is to be got: something of it may be missing. */
static bool is_wanted(const spti_heap_ring *ring, const spt_received_heap *heap)
{
    if (heap->state != SPT_HEAP_INCOMPLETE || !ring->contiguous_only)
        return true;
    ring->stats->incomplete_dropped++;
    ring->stats->incomplete_cnt = heap->cnt;
    ring->stats->incomplete_received = heap->received_length;
    ring->stats->incomplete_length = heap->has_length ? heap->length : 0;
    return false;
}

static bool take(spti_sink *sink, spt_received_heap *heap, bool last)
{
    spti_heap_ring *ring = (spti_heap_ring *)sink;
    bool wanted = is_wanted(ring, heap);
    if (wanted && put(ring, heap, last)) {
        spti_heap_ring_recycle(ring); /* whose memory the next heap may get */
        return true;
    }
    if (wanted && !ring->drops)
        return false;
    ring->stats->ring_dropped += wanted;
    spt_depacketizer_recycle(ring->depacketizer, heap);
    return true;
}

/* To be woken costs more than to get a heap: while more comes, several are told of at once, but
 * soon. */
static bool settle(spti_sink *sink, spti_pace pace)
{
    spti_heap_ring *ring = (spti_heap_ring *)sink;
    size_t n = spti_heap_ring_size(ring);
    ring->quiet = n > 0 ? ring->quiet + 1 : 0;
    bool soon = n > ring->capacity / 2 || ring->untold >= MOST_UNTOLD || ring->quiet == MOST_QUIET;
    bool tell = n > 0 && (pace != SPTI_MORE || soon);
    if (tell)
        ring->quiet = 0;
    if (tell || n == 0)
        ring->untold = 0;
    return tell;
}

void spti_heap_ring_recycle(spti_heap_ring *ring)
{
    if (__atomic_load_n(&ring->returned, __ATOMIC_SEQ_CST) == NULL)
        return;
    spt_received_heap *heap = __atomic_exchange_n(&ring->returned, NULL, __ATOMIC_SEQ_CST);
    while (heap != NULL) {
        spt_received_heap *next = heap->user;
        spt_depacketizer_recycle(ring->depacketizer, heap);
        heap = next;
    }
}

void spti_heap_ring_end(spti_heap_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    __atomic_store_n(&ring->ended, true, __ATOMIC_SEQ_CST);
}

/* ---- For everybody --------------------------------------------------------------------------- */

/* Under the lock. */
static spt_received_heap *pop(spti_heap_ring *ring)
{
    spt_received_heap *heap = ring->first;
    if (ring->n == 0)
        return NULL;
    ring->first = heap->user;
    heap->user = NULL;
    __atomic_store_n(&ring->n, ring->n - 1, __ATOMIC_SEQ_CST);
    clear_event(ring);
    return heap;
}

/* Wait until there may be something, or that time; false after it, or a signal. */
static bool wait_until(spti_heap_ring *ring, uint64_t deadline_ns)
{
    struct timespec left;
    if (!spti_time_left(deadline_ns, &left))
        return false;
    ring->n_waiting++;
    uint32_t known = __atomic_load_n(&ring->announced, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&ring->lock);
    long failed = syscall(SYS_futex, &ring->announced, FUTEX_WAIT_PRIVATE, known, &left, NULL, 0);
    bool news = failed == 0 || errno == EAGAIN; /* that came before it waited */
    pthread_mutex_lock(&ring->lock);
    ring->n_waiting--;
    return news;
}

spt_status spti_heap_ring_get(spti_heap_ring *ring, int64_t timeout_ns, spt_received_heap **heap,
                              bool *room_wanted)
{
    uint64_t deadline_ns = spti_deadline(timeout_ns);
    pthread_mutex_lock(&ring->lock);
    bool more = true;
    while ((*heap = pop(ring)) == NULL && !ring->ended && more)
        more = timeout_ns != 0 && wait_until(ring, deadline_ns);
    /* Who finds no room says so under the lock under which room is made: either it finds room, or
     * is found here. That it still runs does no harm, as it looks for room before it idles. */
    *room_wanted = *heap != NULL && ring->blocked && !ring->ended;
    if (*heap != NULL)
        ring->blocked = false;
    bool ended = ring->ended;
    pthread_mutex_unlock(&ring->lock);
    return *heap != NULL ? SPT_OK : ended ? SPT_DONE : SPT_PENDING;
}

/* Who waits is woken outside of the lock, for which it would have to wait again. */
void spti_heap_ring_announce(spti_heap_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    signal_event(ring);
    bool wake = ring->n_waiting > 0 && (ring->n > 0 || ring->ended);
    if (wake)
        __atomic_fetch_add(&ring->announced, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&ring->lock);
    if (wake)
        syscall(SYS_futex, &ring->announced, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

bool spti_heap_ring_return(spti_heap_ring *ring, spt_received_heap *heap)
{
    spt_received_heap *next = __atomic_load_n(&ring->returned, __ATOMIC_SEQ_CST);
    do
        heap->user = next;
    while (!__atomic_compare_exchange_n(&ring->returned, &next, heap, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST));
    return __atomic_load_n(&ring->ended, __ATOMIC_SEQ_CST);
}

size_t spti_heap_ring_size(const spti_heap_ring *ring)
{
    return __atomic_load_n(&ring->n, __ATOMIC_SEQ_CST);
}

int spti_heap_ring_fd(spti_heap_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    ring->fd_used = true;
    signal_event(ring);
    return ring->event_fd;
}
