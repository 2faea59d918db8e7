/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which task runs next, on whichever thread has none. Knows nothing of what tasks do.
 *
 * A thread without a task sleeps in ppoll(), which ends when a socket has what a task waits for
 * (all of them are in one epoll set), when a deadline comes, or when the eventfd is written to
 * because there is a new task to run.
 *
 * A pool without threads is the same, but for who runs the tasks: its epoll set, in which there is
 * a timer then, can be watched by an event loop.
 *
 * There are three ways to wait in the core, since none does what the others do:
 * - ppoll(), here and in rings of chunks, for what only descriptors tell: sockets, timers, and what
 *   an event loop watches;
 * - a condition variable, where threads wait for each other under a lock that they take anyway: for
 *   a task to pause, for a completion. It costs no system call while nobody waits;
 * - a futex, where a heap is waited for: as cheap, but it ends when a signal comes, such as that of
 *   Ctrl-C. Who waits for a completion from Python wakes up now and then to look for signals.
 */
#include "thread_pool.h"

#include "status.h"
#include "sync.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* ---- Lists, under the lock ---- */

static void push_ready(spt_thread_pool *pool, spti_task *task)
{
    task->next = NULL;
    task->state = SPTI_READY;
    *pool->ready_end = task;
    pool->ready_end = &task->next;
}

static spti_task *pop_ready(spt_thread_pool *pool)
{
    spti_task *task = pool->ready;
    if (task != NULL) {
        pool->ready = task->next;
        if (pool->ready == NULL)
            pool->ready_end = &pool->ready;
    }
    return task;
}

static void unlist(spt_thread_pool *pool, spti_task *task)
{
    spti_task **at = task->state == SPTI_TIMED ? &pool->timers : &pool->ready;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    if (pool->ready_end == &task->next)
        pool->ready_end = at;
}

/* Move the tasks whose time has come; return the next deadline, 0 for none. */
static uint64_t expire_timers(spt_thread_pool *pool)
{
    uint64_t next = 0;
    if (pool->timers == NULL)
        return 0;
    uint64_t now = spti_now_ns();
    for (spti_task **at = &pool->timers; *at != NULL;) {
        spti_task *task = *at;
        if (task->deadline_ns <= now) {
            *at = task->next;
            push_ready(pool, task);
        } else {
            if (next == 0 || task->deadline_ns < next)
                next = task->deadline_ns;
            at = &task->next;
        }
    }
    return next;
}

/* Have the socket say once when it has room, or has news of what was sent: those it always tells.
 * Where it cannot, the task finds out why. */
static void begin_watch(spt_thread_pool *pool, spti_task *task, uint32_t events)
{
    struct epoll_event event = {.events = EPOLLONESHOT | events, .data.ptr = task};
    if (epoll_ctl(pool->epoll_fd, EPOLL_CTL_MOD, task->fd, &event) != 0) {
        push_ready(pool, task);
        return;
    }
    task->state = SPTI_WATCHED;
    pool->n_epolled++;
}

/* Also a socket that is not waited for reports errors: once, not all the time. */
static void end_watch(spt_thread_pool *pool, spti_task *task)
{
    struct epoll_event event = {.events = EPOLLONESHOT, .data.ptr = task};
    epoll_ctl(pool->epoll_fd, EPOLL_CTL_MOD, task->fd, &event);
    pool->n_epolled--;
}

static void signal_fd(spt_thread_pool *pool)
{
    pool->told |= SPTI_TOLD_BY_EVENT;
    spti_event_add(pool->wake_fd, 1);
}

/* Wake one sleeping thread, where there is one. */
static void rouse(spt_thread_pool *pool)
{
    if (pool->n_sleeping > 0)
        signal_fd(pool);
}

/* The same, for a task that nobody is about to run: an event loop may watch the pool. */
static void call_for_help(spt_thread_pool *pool)
{
    if (!(pool->told & SPTI_TOLD_BY_EVENT) && (pool->n_sleeping > 0 || pool->timer_fd >= 0))
        signal_fd(pool);
}

/* Have the timer end when the task is due; helpers that sleep do not know of it. */
static void set_timer(spt_thread_pool *pool, const spti_task *task)
{
    if (pool->timer_fd < 0)
        return;
    struct itimerspec at = {.it_value = spti_timespec(task->deadline_ns)};
    timerfd_settime(pool->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    pool->told |= SPTI_TOLD_BY_TIMER;
}

/* ---- Threads ---- */

/* Collect the tasks whose sockets have room, and signals if wanted, without waiting. */
static void collect(spt_thread_pool *pool, bool take_signals)
{
    if (take_signals)
        pool->told &= ~(unsigned)SPTI_TOLD_BY_EVENT;
    struct epoll_event events[16];
    int n = epoll_wait(pool->epoll_fd, events, 16, 0);
    for (int i = 0; i < n; i++) {
        spti_task *task = events[i].data.ptr;
        if (task == NULL) {
            if (take_signals && !pool->stopping) /* that all threads must see */
                spti_event_empty(pool->wake_fd);
        } else if (events[i].data.ptr == &pool->timer_fd) {
            if (take_signals) {
                spti_event_empty(pool->timer_fd);
                pool->told &= ~(unsigned)SPTI_TOLD_BY_TIMER;
            }
        } else if (task->state == SPTI_WATCHED) {
            pool->n_epolled--; /* ONESHOT: the kernel has done the same */
            __atomic_store_n(&task->scheduled, 1, __ATOMIC_SEQ_CST);
            push_ready(pool, task);
        }
    }
}

/* Returns whether a signal for the process ended it. */
static bool sleep_until(spt_thread_pool *pool, uint64_t deadline_ns)
{
    uint64_t now = deadline_ns > 0 ? spti_now_ns() : 0;
    struct timespec left = spti_timespec(deadline_ns > now ? deadline_ns - now : 0);
    struct pollfd pollfd = {.fd = pool->epoll_fd, .events = POLLIN};
    pool->n_sleeping++;
    pthread_mutex_unlock(&pool->lock);
    int n = ppoll(&pollfd, 1, deadline_ns > 0 ? &left : NULL, NULL);
    bool by_signal = n < 0 && errno == EINTR;
    pthread_mutex_lock(&pool->lock);
    pool->n_sleeping--;
    if (n > 0)
        collect(pool, true);
    return by_signal;
}

/* File a task that has run under what it waits for. */
static void park(spt_thread_pool *pool, spti_task *task, spti_wait wait)
{
    if (task->state == SPTI_PAUSING) {
        task->state = SPTI_PAUSED;
        pthread_cond_broadcast(&pool->paused);
        return;
    }
    switch (wait) {
    case SPTI_WAIT_TURN:
        push_ready(pool, task);
        break;
    case SPTI_WAIT_TIME:
        task->state = SPTI_TIMED;
        task->next = pool->timers;
        pool->timers = task;
        set_timer(pool, task);
        break;
    case SPTI_WAIT_WRITABLE:
        begin_watch(pool, task, EPOLLOUT);
        break;
    case SPTI_WAIT_NEWS:
        begin_watch(pool, task, 0);
        break;
    case SPTI_WAIT_READABLE:
    case SPTI_WAIT_ANY:
    case SPTI_WAIT_WORK:
        /* Work that came since the run found none saw `scheduled` set, and woke nobody. */
        task->state = SPTI_IDLE;
        __atomic_store_n(&task->scheduled, 0, __ATOMIC_SEQ_CST);
        if (task->has_work(task) && !__atomic_exchange_n(&task->scheduled, 1, __ATOMIC_SEQ_CST))
            push_ready(pool, task);
        else if (wait != SPTI_WAIT_WORK)
            begin_watch(pool, task, wait == SPTI_WAIT_READABLE ? EPOLLIN : 0);
        break;
    }
}

/* Under the lock, which is let go meanwhile. */
static void run(spt_thread_pool *pool, spti_task *task)
{
    task->state = SPTI_RUNNING;
    pthread_mutex_unlock(&pool->lock);
    spti_wait wait = task->run(task);
    pthread_mutex_lock(&pool->lock);
    park(pool, task, wait);
}

void spti_pool_work(spt_thread_pool *pool)
{
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* ns: bursts are tens of microseconds apart */
    SPTI_HOLD(&pool->lock);
    while (!pool->stopping) {
        uint64_t deadline_ns = expire_timers(pool);
        if (pool->n_epolled > 0 && pool->ready != NULL)
            collect(pool, true); /* a busy task must not keep the others waiting */
        spti_task *task = pop_ready(pool);
        if (task == NULL) {
            sleep_until(pool, deadline_ns);
            continue;
        }
        if (pool->ready != NULL)
            rouse(pool);
        run(pool, task);
    }
}

/* Wait for a task until then, or until the earlier of both where a task has a deadline. */
static spti_help await_ready(spt_thread_pool *pool, uint64_t until_ns, uint64_t deadline_ns)
{
    uint64_t first_ns = deadline_ns > 0 && deadline_ns < until_ns ? deadline_ns : until_ns;
    bool by_signal = sleep_until(pool, first_ns);
    expire_timers(pool);
    return by_signal ? SPTI_HELP_SIGNAL : SPTI_HELPED;
}

spti_help spti_pool_help(spt_thread_pool *pool, uint64_t until_ns, bool take_signals)
{
    SPTI_HOLD(&pool->lock);
    spti_help help = SPTI_HELPED;
    unsigned told = take_signals ? pool->told : 0;
    if (pool->n_epolled > 0 || told != 0)
        collect(pool, take_signals); /* first: the end of a timer that it takes is seen below */
    uint64_t deadline_ns = expire_timers(pool);
    /* Who was called, perhaps before it began to wait, looks again at what it waits for. */
    if (pool->ready == NULL && until_ns > 0 && !(told & SPTI_TOLD_BY_EVENT))
        help = await_ready(pool, until_ns, deadline_ns);
    spti_task *task = pop_ready(pool);
    if (task != NULL)
        run(pool, task);
    return help == SPTI_HELPED && pool->ready != NULL ? SPTI_HELP_MORE : help;
}

enum { MOST_RUNS = 16 }; /* for who asks and does not wait */

static void note(spti_request *request, bool begins, bool watched)
{
    if (request->note != NULL)
        request->note(request, begins, watched);
}

spt_status spti_pool_ask(spt_thread_pool *pool, int64_t timeout_ns, spti_request *request)
{
    uint64_t deadline_ns = spti_deadline(timeout_ns);
    spti_help help = SPTI_HELP_MORE;
    spt_status status;
    int i = 0;
    __atomic_add_fetch(&pool->n_asking, 1, __ATOMIC_SEQ_CST);
    for (; (status = request->get(request)) == SPT_PENDING; i++) {
        if (i == 0)
            note(request, true, false);
        bool wait = timeout_ns != 0 && spti_now_ns() < deadline_ns;
        bool go_on = wait ? help != SPTI_HELP_SIGNAL : help == SPTI_HELP_MORE && i < MOST_RUNS;
        if (!go_on)
            break;
        help = spti_pool_help(pool, wait ? deadline_ns : 0, true);
    }
    bool more = status != SPT_PENDING || help == SPTI_HELP_MORE;
    bool watched = __atomic_load_n(&pool->fd_used, __ATOMIC_SEQ_CST);
    bool others = __atomic_sub_fetch(&pool->n_asking, 1, __ATOMIC_SEQ_CST) > 0;
    if (i > 0)
        note(request, false, watched && !more);
    if ((others || watched) && more)
        spti_pool_signal(pool);
    return status;
}

void spti_pool_rouse(spt_thread_pool *pool)
{
    SPTI_HOLD(&pool->lock);
    rouse(pool);
}

void spti_pool_signal(spt_thread_pool *pool)
{
    SPTI_HOLD(&pool->lock);
    call_for_help(pool);
}

int spti_pool_fd(const spt_thread_pool *pool)
{
    return pool->epoll_fd;
}

void spti_pool_be_watched(spt_thread_pool *pool)
{
    if (!__atomic_exchange_n(&pool->fd_used, true, __ATOMIC_SEQ_CST))
        spti_pool_signal(pool); /* there may be something already */
}

/* ---- Tasks ---- */

/* Have the pool watch the task's socket, or not any more. Under the lock: a thread looks at the
 * tasks that events name under the same, and a socket that is not waited for reports errors too. */
static int watch(spt_thread_pool *pool, spti_task *task, int operation)
{
    struct epoll_event event = {.events = EPOLLONESHOT, .data.ptr = task};
    return task->fd < 0 ? 0 : epoll_ctl(pool->epoll_fd, operation, task->fd, &event);
}

spt_status spti_task_attach(spt_thread_pool *pool, spti_task *task, spt_error *err)
{
    SPTI_HOLD(&pool->lock);
    if (pool->stopping)
        return spti_fail(err, SPT_ERR_STOPPED,
                         "the thread pool has been stopped: make a new one for this stream");
    if (watch(pool, task, EPOLL_CTL_ADD) != 0)
        return spti_fail_errno(err, "could not watch the stream's socket");
    task->pool = pool;
    task->next_attached = pool->attached;
    pool->attached = task;
    return SPT_OK;
}

void spti_task_wake(spti_task *task)
{
    /* Mostly it is so: then the cache line is looked at, not written. */
    if (__atomic_load_n(&task->scheduled, __ATOMIC_SEQ_CST) ||
        __atomic_exchange_n(&task->scheduled, 1, __ATOMIC_SEQ_CST))
        return;
    spt_thread_pool *pool = task->pool;
    SPTI_HOLD(&pool->lock);
    /* Somebody who resumed it may have been faster, and a run under way looks for work at its end.
     * A run too many, of a task that has found something to wait for meanwhile, does no harm. */
    bool watched = task->state == SPTI_WATCHED;
    if (watched)
        end_watch(pool, task);
    if (watched || task->state == SPTI_IDLE) {
        push_ready(pool, task);
        rouse(pool);
    }
}

/* Under the lock, which is let go while somebody else has the task, or it runs. */
static void take(spt_thread_pool *pool, spti_task *task)
{
    while (task->state == SPTI_PAUSED || task->state == SPTI_PAUSING)
        pthread_cond_wait(&pool->paused, &pool->lock);
    if (task->state == SPTI_RUNNING) {
        task->state = SPTI_PAUSING;
        while (task->state == SPTI_PAUSING)
            pthread_cond_wait(&pool->paused, &pool->lock);
    } else if (task->state == SPTI_READY || task->state == SPTI_TIMED) {
        unlist(pool, task);
    } else if (task->state == SPTI_WATCHED) {
        end_watch(pool, task);
    }
    task->state = SPTI_PAUSED;
}

void spti_task_pause(spti_task *task)
{
    spt_thread_pool *pool = task->pool;
    SPTI_HOLD(&pool->lock);
    take(pool, task);
}

void spti_task_resume(spti_task *task)
{
    spt_thread_pool *pool = task->pool;
    SPTI_HOLD(&pool->lock);
    __atomic_store_n(&task->scheduled, 1, __ATOMIC_SEQ_CST);
    push_ready(pool, task);
    call_for_help(pool);
    pthread_cond_broadcast(&pool->paused);
}

void spti_task_detach(spti_task *task)
{
    spt_thread_pool *pool = task->pool;
    SPTI_HOLD(&pool->lock);
    take(pool, task);
    spti_task **at = &pool->attached;
    while (*at != task)
        at = &(*at)->next_attached;
    *at = task->next_attached;
    watch(pool, task, EPOLL_CTL_DEL); /* or an event may still name it once it is freed */
    pthread_cond_broadcast(&pool->paused);
}

bool spti_pool_tell_stopped(spt_thread_pool *pool)
{
    spti_task *task = pool->attached;
    while (task != NULL && task->heard)
        task = task->next_attached;
    if (task == NULL)
        return false;
    if (task->state == SPTI_PAUSED) { /* its owner may be about to detach it */
        pthread_cond_wait(&pool->paused, &pool->lock);
        return true;
    }
    take(pool, task);
    task->heard = true;
    pthread_mutex_unlock(&pool->lock);
    task->stopped(task);
    pthread_mutex_lock(&pool->lock);
    task->state = SPTI_IDLE;
    pthread_cond_broadcast(&pool->paused);
    return true;
}
