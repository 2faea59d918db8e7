/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the threads, and what they sleep in: made, and ended. Knows nothing of which task runs.
 */
#include "thread_pool.h"

#include "status.h"
#include "sync.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

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

static void *thread_main(void *pool)
{
    spti_pool_work(pool);
    return NULL;
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
    pthread_t *threads = calloc(n_threads > 0 ? n_threads : 1, sizeof(*threads));
    if (pool == NULL || threads == NULL) {
        free(threads);
        free(pool);
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a pool of %zu threads", n_threads);
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
    if (n_threads == 0)
        return SPTI_NULL(err, SPT_ERR_ARGUMENT,
                         "a thread pool needs at least one thread; a stream that is made with NULL "
                         "for a pool needs none");
    spt_thread_pool *pool = create(n_threads, err);
    if (pool != NULL && start_threads(pool, n_threads, affinity, n_affinity, err) != SPT_OK) {
        spt_thread_pool_destroy(pool);
        return NULL;
    }
    return pool;
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
    spti_event_add(pool->wake_fd, 1);
    for (size_t i = 0; i < pool->n_threads; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_mutex_lock(&pool->lock);
    while (spti_pool_tell_stopped(pool))
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
