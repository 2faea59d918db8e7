/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns rings of chunks. Knows nothing of what is in chunks, nor what streams are.
 *
 * Two locks: `watch_lock` is held while those who watch are told, who take locks of their own then;
 * `lock` is for the ring, and only that of its pool is taken under it.
 *
 * A ring that streams without a thread fill has a pool without threads, which their readers are
 * tasks of: who asks for a chunk runs them, and sleeps in the pool. The pool may come when the
 * descriptor for data is being polled already, which therefore is that of an epoll set.
 */
#include "chunk_ring.h"

#include "clock.h"
#include "status.h"
#include "sync.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A descriptor that is readable while something is so, for those who wait for that. */
typedef struct event {
    int fd;
    bool used; /* it has been handed out */
    bool signalled;
    size_t n_waiting;
} event;

struct spt_chunk_ring {
    size_t capacity;
    pthread_mutex_t lock;
    spt_chunk *first, **end;
    size_t n;
    size_t producers;
    bool stopped;
    bool newest_first; /* of free chunks: their memory is in the cache */
    bool wanted;       /* somebody who watches found no room, or no chunk */
    event data, space;
    int data_set;          /* of data's, and the pool's */
    spt_thread_pool *pool; /* atomic; NULL before a stream needs it */
    pthread_mutex_t watch_lock;
    spti_chunk_watch *watches;
};

/* ---- Waiting, under the lock ----------------------------------------------------------------- */

static void update_event(event *e, bool is_so)
{
    if (is_so && !e->signalled && (e->used || e->n_waiting > 0)) {
        spti_event_add(e->fd, 1);
        e->signalled = true;
    } else if (!is_so && e->signalled) {
        spti_event_empty(e->fd);
        e->signalled = false;
    }
}

static void update(spt_chunk_ring *r)
{
    bool has_data = r->n > 0 || r->stopped;
    /* Who waits since before there was a pool has to help it, and never waits here again. */
    update_event(&r->data, has_data || (r->pool != NULL && r->data.n_waiting > 0));
    if (r->pool != NULL && has_data)
        spti_pool_signal(r->pool);
    update_event(&r->space, r->n < r->capacity || r->stopped);
}

/* Wait until there may be what an event tells of, or that time; false after it, or a signal. */
static bool wait_until(spt_chunk_ring *r, event *e, uint64_t deadline_ns)
{
    struct timespec left;
    if (!spti_time_left(deadline_ns, &left))
        return false;
    e->n_waiting++;
    pthread_mutex_unlock(&r->lock);
    struct pollfd pollfd = {.fd = e->fd, .events = POLLIN};
    int n = ppoll(&pollfd, 1, &left, NULL);
    pthread_mutex_lock(&r->lock);
    e->n_waiting--;
    update(r); /* it may have been signalled for who waited alone */
    return n > 0;
}

/* ---- In and out, under the lock -------------------------------------------------------------- */

static void insert(spt_chunk_ring *r, spt_chunk *chunk)
{
    spt_chunk **at = r->newest_first ? &r->first : r->end;
    chunk->next_ = *at;
    *at = chunk;
    if (r->end == at)
        r->end = &chunk->next_;
    r->n++;
    update(r);
}

static spt_status put(spt_chunk_ring *r, spt_chunk *chunk)
{
    if (r->stopped)
        return SPT_ERR_STOPPED;
    if (r->n >= r->capacity)
        return SPT_PENDING;
    insert(r, chunk);
    return SPT_OK;
}

static spt_status get(spt_chunk_ring *r, spt_chunk **chunk)
{
    *chunk = r->first;
    if (r->first == NULL)
        return r->stopped ? SPT_DONE : SPT_PENDING;
    r->first = r->first->next_;
    if (r->first == NULL)
        r->end = &r->first;
    r->n--;
    update(r);
    return SPT_OK;
}

/* Let go of the lock, and then tell those who watch, if there is what they wanted. */
static void let_go(spt_chunk_ring *r, spt_status status)
{
    bool wanted = r->wanted && status == SPT_OK;
    r->wanted = r->wanted && !wanted;
    pthread_mutex_unlock(&r->lock);
    if (!wanted)
        return;
    SPTI_HOLD(&r->watch_lock);
    for (spti_chunk_watch *it = r->watches; it != NULL; it = it->next)
        it->tell(it->user);
}

/* ---- For everybody --------------------------------------------------------------------------- */

spt_status spt_chunk_ring_put(spt_chunk_ring *ring, spt_chunk *chunk, int64_t timeout_ns)
{
    uint64_t until = spti_deadline(timeout_ns);
    pthread_mutex_lock(&ring->lock);
    spt_status status;
    bool more = timeout_ns != 0;
    while ((status = put(ring, chunk)) == SPT_PENDING && more)
        more = wait_until(ring, &ring->space, until);
    let_go(ring, status);
    return status;
}

/* Get a chunk; wait until then, unless it is for readers that nobody runs. */
static spt_status get_or_wait(spt_chunk_ring *ring, int64_t timeout_ns, spt_chunk **chunk)
{
    uint64_t until = spti_deadline(timeout_ns);
    pthread_mutex_lock(&ring->lock);
    spt_status status;
    bool more = timeout_ns != 0;
    while ((status = get(ring, chunk)) == SPT_PENDING && more && ring->pool == NULL)
        more = wait_until(ring, &ring->data, until);
    let_go(ring, status);
    return status;
}

typedef struct request {
    spti_request request; /* first, so that one can be had from the other */
    spt_chunk_ring *ring;
    spt_chunk **chunk;
} request;

static spt_status get_now(spti_request *asked)
{
    const request *it = (request *)asked;
    return get_or_wait(it->ring, 0, it->chunk);
}

spt_status spt_chunk_ring_get(spt_chunk_ring *ring, int64_t timeout_ns, spt_chunk **chunk)
{
    uint64_t until = spti_deadline(timeout_ns);
    spt_status status = SPT_PENDING;
    spt_thread_pool *pool = __atomic_load_n(&ring->pool, __ATOMIC_SEQ_CST);
    if (pool == NULL) {
        status = get_or_wait(ring, timeout_ns, chunk);
        pool = __atomic_load_n(&ring->pool, __ATOMIC_SEQ_CST);
    }
    if (pool == NULL || status != SPT_PENDING)
        return status;
    uint64_t now = spti_now_ns();
    int64_t left_ns = timeout_ns <= 0 ? timeout_ns : until > now ? (int64_t)(until - now) : 0;
    request it = {{get_now, NULL}, ring, chunk};
    return spti_pool_ask(pool, left_ns, &it.request);
}

size_t spt_chunk_ring_size(spt_chunk_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    return ring->n;
}

size_t spt_chunk_ring_capacity(const spt_chunk_ring *ring)
{
    return ring->capacity;
}

void spt_chunk_ring_stop(spt_chunk_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->stopped = true;
    update(ring);
    let_go(ring, SPT_OK);
}

void spt_chunk_ring_add_producer(spt_chunk_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    ring->producers++;
}

bool spt_chunk_ring_remove_producer(spt_chunk_ring *ring)
{
    bool last = spti_chunk_ring_leave(ring);
    if (last)
        spt_chunk_ring_stop(ring);
    return last;
}

static int event_fd(spt_chunk_ring *r, event *e)
{
    SPTI_HOLD(&r->lock);
    e->used = true;
    update(r);
    return e->fd;
}

int spt_chunk_ring_data_fd(spt_chunk_ring *ring)
{
    (void)event_fd(ring, &ring->data);
    spt_thread_pool *pool = __atomic_load_n(&ring->pool, __ATOMIC_SEQ_CST);
    if (pool != NULL)
        spti_pool_be_watched(pool);
    return ring->data_set;
}

int spt_chunk_ring_space_fd(spt_chunk_ring *ring)
{
    return event_fd(ring, &ring->space);
}

/* ---- For streams ----------------------------------------------------------------------------- */

static bool watch(spt_chunk_ring *r, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(r->data_set, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Under the lock. */
static void make_pool(spt_chunk_ring *r, spt_error *err)
{
    spt_thread_pool *pool = spti_pool_without_threads(err);
    if (pool == NULL)
        return;
    if (!watch(r, spti_pool_fd(pool))) {
        (void)spti_fail_errno(err, "could not watch the readers of a ring of chunks");
        spt_thread_pool_destroy(pool);
        return;
    }
    if (r->data.used)
        spti_pool_be_watched(pool);
    __atomic_store_n(&r->pool, pool, __ATOMIC_SEQ_CST);
    update(r);
}

spt_thread_pool *spti_chunk_ring_pool(spt_chunk_ring *ring, spt_error *err)
{
    SPTI_HOLD(&ring->lock);
    if (ring->pool == NULL)
        make_pool(ring, err);
    return ring->pool;
}

void spti_chunk_ring_newest_first(spt_chunk_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    ring->newest_first = true;
}

void spti_chunk_ring_watch(spt_chunk_ring *ring, spti_chunk_watch *watch)
{
    SPTI_HOLD(&ring->watch_lock);
    watch->next = ring->watches;
    ring->watches = watch;
}

void spti_chunk_ring_unwatch(spt_chunk_ring *ring, spti_chunk_watch *watch)
{
    SPTI_HOLD(&ring->watch_lock);
    spti_chunk_watch **at = &ring->watches;
    while (*at != NULL && *at != watch)
        at = &(*at)->next;
    if (*at != NULL)
        *at = watch->next;
}

spt_status spti_chunk_ring_try_put(spt_chunk_ring *ring, spt_chunk *chunk)
{
    SPTI_HOLD(&ring->lock);
    spt_status status = put(ring, chunk);
    ring->wanted = ring->wanted || status == SPT_PENDING;
    return status;
}

spt_status spti_chunk_ring_try_get(spt_chunk_ring *ring, spt_chunk **chunk)
{
    SPTI_HOLD(&ring->lock);
    spt_status status = get(ring, chunk);
    ring->wanted = ring->wanted || status == SPT_PENDING;
    return status;
}

void spti_chunk_ring_put_last(spt_chunk_ring *ring, spt_chunk *chunk)
{
    SPTI_HOLD(&ring->lock);
    insert(ring, chunk);
}

void spti_chunk_ring_tell(spt_chunk_ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    let_go(ring, SPT_OK);
}

bool spti_chunk_ring_leave(spt_chunk_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    bool last = ring->producers > 0 && --ring->producers == 0;
    ring->stopped = ring->stopped || last;
    update(ring);
    return last;
}

bool spti_chunk_ring_stopped(spt_chunk_ring *ring)
{
    SPTI_HOLD(&ring->lock);
    return ring->stopped;
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

spt_chunk_ring *spt_chunk_ring_create(size_t capacity, spt_error *err)
{
    if (capacity == 0)
        return SPTI_NULL(err, SPT_ERR_ARGUMENT, "a ring of 0 chunks: it must have at least 1");
    spt_chunk_ring *r = calloc(1, sizeof(*r));
    if (r == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a ring of chunks");
    r->capacity = capacity;
    r->end = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_init(&r->watch_lock, NULL);
    r->data.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->space.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->data_set = epoll_create1(EPOLL_CLOEXEC);
    if (r->data.fd >= 0 && r->space.fd >= 0 && r->data_set >= 0 && watch(r, r->data.fd))
        return r;
    (void)spti_fail_errno(err, "could not make the events of a ring of chunks");
    spt_chunk_ring_destroy(r);
    return NULL;
}

void spt_chunk_ring_destroy(spt_chunk_ring *ring)
{
    if (ring == NULL)
        return;
    spt_thread_pool_destroy(ring->pool);
    if (ring->data_set >= 0)
        close(ring->data_set);
    if (ring->data.fd >= 0)
        close(ring->data.fd);
    if (ring->space.fd >= 0)
        close(ring->space.fd);
    pthread_mutex_destroy(&ring->lock);
    pthread_mutex_destroy(&ring->watch_lock);
    free(ring);
}
