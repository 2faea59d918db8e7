/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the threads, and decides which task runs next. Knows nothing of what tasks do.
 *
 * A thread without a task sleeps in ppoll(), which ends when a socket has what a task waits for
 * (all of them are in one epoll set), when a deadline comes, or when the eventfd is written to
 * because there is a new task to run.
 *
 * A pool without threads is the same, but for who runs the tasks: its epoll set, in which there is
 * a timer then, can be watched by an event loop.
 */
#include "thread_pool.h"

#include "status.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct spt_thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t paused; /* a run has ended that spti_task_pause() waits for; or the stopping */
    pthread_t *threads;
    size_t n_threads;
    int epoll_fd, wake_fd;
    int timer_fd; /* where there are no threads, else -1 */
    bool stopping;
    bool stopped;   /* that is over */
    bool signalled; /* wake_fd may be readable */
    bool timed;     /* timer_fd is readable, or will be */
    size_t n_sleeping, n_epolled;
    spti_task *ready, **ready_end;
    spti_task *timers;   /* unsorted: there are few */
    spti_task *attached; /* all */
};

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
static void begin_watch(spt_thread_pool *pool, spti_task *task, spti_state state, uint32_t events)
{
    struct epoll_event event = {.events = EPOLLONESHOT | events, .data.ptr = task};
    if (epoll_ctl(pool->epoll_fd, EPOLL_CTL_MOD, task->fd, &event) != 0) {
        push_ready(pool, task);
        return;
    }
    task->state = state;
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
    pool->signalled = true;
    ssize_t written = write(pool->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)written; /* can only fail when the counter is full: then it is readable anyway */
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
    if (pool->n_sleeping > 0 || pool->timer_fd >= 0)
        signal_fd(pool);
}

/* Have the timer end when the task is due; helpers that sleep do not know of it. */
static void set_timer(spt_thread_pool *pool, const spti_task *task)
{
    if (pool->timer_fd < 0)
        return;
    struct itimerspec at = {.it_value = spti_timespec(task->deadline_ns)};
    timerfd_settime(pool->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    pool->timed = true;
}

/* ---- Threads ---- */

static void empty(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got; /* another thread may have been faster */
}

/* Collect the tasks whose sockets have room, and signals if wanted, without waiting. */
static void collect(spt_thread_pool *pool, bool take_signals)
{
    pool->signalled = pool->signalled && !take_signals;
    struct epoll_event events[16];
    int n = epoll_wait(pool->epoll_fd, events, 16, 0);
    for (int i = 0; i < n; i++) {
        spti_task *task = events[i].data.ptr;
        if (task == NULL) {
            if (take_signals && !pool->stopping) /* that all threads must see */
                empty(pool->wake_fd);
        } else if (events[i].data.ptr == &pool->timer_fd) {
            if (take_signals) {
                empty(pool->timer_fd);
                pool->timed = false;
            }
        } else if (task->state == SPTI_WATCHED || task->state == SPTI_LISTENING) {
            pool->n_epolled--; /* ONESHOT: the kernel has done the same */
            __atomic_store_n(&task->scheduled, 1, __ATOMIC_SEQ_CST);
            push_ready(pool, task);
        }
    }
}

static void sleep_until(spt_thread_pool *pool, uint64_t deadline_ns)
{
    uint64_t now = deadline_ns > 0 ? spti_now_ns() : 0;
    struct timespec left = spti_timespec(deadline_ns > now ? deadline_ns - now : 0);
    struct pollfd pollfd = {.fd = pool->epoll_fd, .events = POLLIN};
    pool->n_sleeping++;
    pthread_mutex_unlock(&pool->lock);
    int n = ppoll(&pollfd, 1, deadline_ns > 0 ? &left : NULL, NULL);
    pthread_mutex_lock(&pool->lock);
    pool->n_sleeping--;
    if (n > 0)
        collect(pool, true);
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
        begin_watch(pool, task, SPTI_WATCHED, EPOLLOUT);
        break;
    case SPTI_WAIT_READABLE:
        begin_watch(pool, task, SPTI_WATCHED, EPOLLIN);
        break;
    case SPTI_WAIT_NEWS:
        begin_watch(pool, task, SPTI_WATCHED, 0);
        break;
    case SPTI_WAIT_ANY:
    case SPTI_WAIT_WORK:
        /* Work that came since the run found none saw `scheduled` set, and woke nobody. */
        task->state = SPTI_IDLE;
        __atomic_store_n(&task->scheduled, 0, __ATOMIC_SEQ_CST);
        if (task->has_work(task) && !__atomic_exchange_n(&task->scheduled, 1, __ATOMIC_SEQ_CST))
            push_ready(pool, task);
        else if (wait == SPTI_WAIT_ANY)
            begin_watch(pool, task, SPTI_LISTENING, 0);
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

static void *thread_main(void *arg)
{
    spt_thread_pool *pool = arg;
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* ns: bursts are tens of microseconds apart */
    pthread_mutex_lock(&pool->lock);
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
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

bool spti_pool_help(spt_thread_pool *pool, uint64_t until_ns, bool take_signals)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->n_epolled > 0 || ((pool->signalled || pool->timed) && take_signals))
        collect(pool, take_signals); /* first: the end of a timer that it takes is seen below */
    uint64_t deadline_ns = expire_timers(pool);
    if (pool->ready == NULL && until_ns > 0) {
        sleep_until(pool, deadline_ns > 0 && deadline_ns < until_ns ? deadline_ns : until_ns);
        expire_timers(pool);
    }
    spti_task *task = pop_ready(pool);
    if (task != NULL)
        run(pool, task);
    bool more = pool->ready != NULL;
    pthread_mutex_unlock(&pool->lock);
    return more;
}

void spti_pool_rouse(spt_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    rouse(pool);
    pthread_mutex_unlock(&pool->lock);
}

void spti_pool_signal(spt_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    call_for_help(pool);
    pthread_mutex_unlock(&pool->lock);
}

int spti_pool_fd(const spt_thread_pool *pool)
{
    return pool->epoll_fd;
}

/* ---- Tasks ---- */

/* Have the pool watch the task's socket, or not any more. Under the lock: a thread looks at the
 * tasks that events name under the same, and a socket that is not waited for reports errors too. */
static int watch(spt_thread_pool *pool, spti_task *task, int operation)
{
    struct epoll_event event = {.events = EPOLLONESHOT, .data.ptr = task};
    return task->fd < 0 ? 0 : epoll_ctl(pool->epoll_fd, operation, task->fd, &event);
}

static spt_status attach(spt_thread_pool *pool, spti_task *task, spt_error *err)
{
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

spt_status spti_task_attach(spt_thread_pool *pool, spti_task *task, spt_error *err)
{
    pthread_mutex_lock(&pool->lock);
    spt_status status = attach(pool, task, err);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void spti_task_wake(spti_task *task)
{
    /* Mostly it is so: then the cache line is looked at, not written. */
    if (__atomic_load_n(&task->scheduled, __ATOMIC_SEQ_CST) ||
        __atomic_exchange_n(&task->scheduled, 1, __ATOMIC_SEQ_CST))
        return;
    spt_thread_pool *pool = task->pool;
    pthread_mutex_lock(&pool->lock);
    /* Somebody who resumed it may have been faster, and a run under way looks for work at its end.
     */
    if (task->state == SPTI_LISTENING)
        end_watch(pool, task);
    if (task->state == SPTI_IDLE || task->state == SPTI_LISTENING) {
        push_ready(pool, task);
        rouse(pool);
    }
    pthread_mutex_unlock(&pool->lock);
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
    } else if (task->state == SPTI_WATCHED || task->state == SPTI_LISTENING) {
        end_watch(pool, task);
    }
    task->state = SPTI_PAUSED;
}

void spti_task_pause(spti_task *task)
{
    spt_thread_pool *pool = task->pool;
    pthread_mutex_lock(&pool->lock);
    take(pool, task);
    pthread_mutex_unlock(&pool->lock);
}

void spti_task_resume(spti_task *task)
{
    spt_thread_pool *pool = task->pool;
    pthread_mutex_lock(&pool->lock);
    __atomic_store_n(&task->scheduled, 1, __ATOMIC_SEQ_CST);
    push_ready(pool, task);
    call_for_help(pool);
    pthread_cond_broadcast(&pool->paused);
    pthread_mutex_unlock(&pool->lock);
}

void spti_task_detach(spti_task *task)
{
    spt_thread_pool *pool = task->pool;
    spti_task_pause(task);
    pthread_mutex_lock(&pool->lock);
    for (spti_task **at = &pool->attached; *at != NULL; at = &(*at)->next_attached)
        if (*at == task) {
            *at = task->next_attached;
            break;
        }
    watch(pool, task, EPOLL_CTL_DEL); /* or an event may still name it once it is freed */
    pthread_cond_broadcast(&pool->paused);
    pthread_mutex_unlock(&pool->lock);
}

/* ---- Public ---- */

spt_status spt_set_affinity(int core, spt_error *err)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (core < 0 || core >= CPU_SETSIZE)
        return spti_fail(err, SPT_ERR_ARGUMENT, "there is no core %d", core);
    CPU_SET((size_t)core, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0)
        return spti_fail_errno(err, "could not run on core %d (see nproc for how many there are)",
                               core);
    return SPT_OK;
}

static int start_thread(spt_thread_pool *pool, const int *core)
{
    pthread_t *thread = &pool->threads[pool->n_threads];
    int error = pthread_create(thread, NULL, thread_main, pool);
    if (error != 0)
        return error;
    pool->n_threads++;
    if (core == NULL || *core < 0)
        return 0;
    cpu_set_t cores; /* not by an attribute, which musl has none for */
    CPU_ZERO(&cores);
    if (*core < CPU_SETSIZE)
        CPU_SET((size_t)*core, &cores);
    return pthread_setaffinity_np(*thread, sizeof(cores), &cores);
}

static spt_status start_threads(spt_thread_pool *pool, size_t n_threads, const int *affinity,
                                size_t n_affinity, spt_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    int error = 0;
    const int *core = NULL;
    while (pool->n_threads < n_threads && error == 0) {
        core = n_affinity > 0 ? &affinity[pool->n_threads % n_affinity] : NULL;
        error = start_thread(pool, core);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return SPT_OK;
    errno = error;
    return core == NULL ? spti_fail_errno(err, "could not start a thread")
                        : spti_fail_errno(err, "could not start a thread on core %d", *core);
}

static spt_status watch_own(spt_thread_pool *pool, int fd, void *name)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = name};
    return fd < 0 || epoll_ctl(pool->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 ? SPT_ERR_SYSTEM
                                                                               : SPT_OK;
}

/* A pool that has no threads yet. */
static spt_thread_pool *create(size_t n_threads, spt_error *err)
{
    spt_thread_pool *pool = calloc(1, sizeof(*pool));
    pthread_t *threads = calloc(n_threads + 1, sizeof(*threads));
    if (pool == NULL || threads == NULL) {
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a pool of %zu threads", n_threads);
        free(threads);
        free(pool);
        return NULL;
    }
    pool->threads = threads;
    pool->ready_end = &pool->ready;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->paused, NULL);
    pool->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pool->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pool->timer_fd =
        n_threads > 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watch_own(pool, pool->wake_fd, NULL) == SPT_OK &&
        (n_threads > 0 || watch_own(pool, pool->timer_fd, &pool->timer_fd) == SPT_OK))
        return pool;
    (void)spti_fail_errno(err, "could not make the thread pool's event queue");
    spt_thread_pool_destroy(pool);
    return NULL;
}

spt_thread_pool *spti_pool_without_threads(spt_error *err)
{
    return create(0, err);
}

spt_thread_pool *spt_thread_pool_create(size_t n_threads, const int *affinity, size_t n_affinity,
                                        spt_error *err)
{
    if (n_threads == 0) {
        (void)spti_fail(err, SPT_ERR_ARGUMENT,
                        "a thread pool needs at least one thread; a stream that is made with NULL "
                        "for a pool needs none");
        return NULL;
    }
    spt_thread_pool *pool = create(n_threads, err);
    if (pool != NULL && start_threads(pool, n_threads, affinity, n_affinity, err) != SPT_OK) {
        spt_thread_pool_destroy(pool);
        return NULL;
    }
    return pool;
}

/* Tell a task that has not been told; false when all have. Under the lock, which it lets go: tasks
 * may be detached meanwhile, so each call looks through the list afresh. */
static bool tell_one_stopped(spt_thread_pool *pool)
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

void spt_thread_pool_stop(spt_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool first = !pool->stopping;
    pool->stopping = true;
    while (!first && !pool->stopped)
        pthread_cond_wait(&pool->paused, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    if (!first)
        return;
    ssize_t written = write(pool->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)written;
    for (size_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_mutex_lock(&pool->lock);
    while (tell_one_stopped(pool))
        ;
    pool->stopped = true;
    pthread_cond_broadcast(&pool->paused);
    pthread_mutex_unlock(&pool->lock);
}

void spt_thread_pool_destroy(spt_thread_pool *pool)
{
    if (pool == NULL)
        return;
    spt_thread_pool_stop(pool);
    if (pool->epoll_fd >= 0)
        close(pool->epoll_fd);
    if (pool->wake_fd >= 0)
        close(pool->wake_fd);
    if (pool->timer_fd >= 0)
        close(pool->timer_fd);
    pthread_cond_destroy(&pool->paused);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}
