/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread pool runs tasks. A task has something to do now and then; its run function does a
 * bounded share of it and says what it waits for. No task runs on two threads at a time.
 *
 * A pool may have no threads of its own: then tasks run on those that help it.
 */
#ifndef SPTI_THREAD_POOL_H
#define SPTI_THREAD_POOL_H

#include "clock.h"
#include "spead_tutorial/spt.h"

#include <pthread.h>

/* What a task waits for after a run. */
typedef enum spti_wait {
    SPTI_WAIT_TURN,     /* nothing: there is more to do, but others go first */
    SPTI_WAIT_WORK,     /* spti_task_wake() */
    SPTI_WAIT_TIME,     /* task->deadline_ns */
    SPTI_WAIT_WRITABLE, /* room in task->fd, or news */
    SPTI_WAIT_READABLE, /* something in task->fd, spti_task_wake(), or news */
    SPTI_WAIT_NEWS,     /* in the error queue of task->fd */
    SPTI_WAIT_ANY,      /* spti_task_wake() or news */
} spti_wait;

/* Where a task is. */
typedef enum spti_state {
    SPTI_IDLE,    /* nothing to do: spti_task_wake() makes it ready */
    SPTI_READY,   /* in the list of those that are to run */
    SPTI_TIMED,   /* in the list of those with a deadline */
    SPTI_WATCHED, /* its socket is waited for; if nothing is scheduled, spti_task_wake(), too */
    SPTI_RUNNING,
    SPTI_PAUSING, /* running, and somebody waits for the end of that */
    SPTI_PAUSED,  /* out of the pool's hands */
} spti_state;

typedef struct spti_task {
    spt_thread_pool *pool;
    spti_wait (*run)(struct spti_task *task);
    /* Whether there is work; asked after a run that waits for spti_task_wake(). */
    bool (*has_work)(struct spti_task *task);
    /* The pool has stopped, and will not run the task any more. */
    void (*stopped)(struct spti_task *task);
    int fd; /* to wait for, or -1 */
    uint64_t deadline_ns;
    /* Private to the pool. */
    int scheduled;    /* atomic: a run is due, under way, or waited for */
    spti_state state; /* the rest under the pool's lock */
    bool heard;       /* that the pool has stopped */
    struct spti_task *next, *next_attached;
} spti_task;

/* What tells those who sleep, or watch the pool, to look. */
enum spti_told {
    SPTI_TOLD_BY_EVENT = 1, /* wake_fd may be readable */
    SPTI_TOLD_BY_TIMER = 2, /* timer_fd is readable, or will be */
};

/* Private to the pool: of its own lock, but for what is written once, when it is made. */
struct spt_thread_pool {
    pthread_mutex_t lock;
    pthread_cond_t paused; /* a run has ended that spti_task_pause() waits for; or the stopping */
    pthread_t *threads;
    size_t n_threads;
    int epoll_fd, wake_fd;
    int timer_fd; /* where there are no threads, else -1 */
    bool stopping;
    bool stopped;    /* that is over */
    unsigned told;   /* of spti_told: what helpers have not taken yet */
    bool fd_used;    /* atomic: an event loop may watch it */
    size_t n_asking; /* atomic: threads in spti_pool_ask() */
    size_t n_sleeping, n_epolled;
    spti_task *ready, **ready_end;
    spti_task *timers;   /* unsorted: there are few */
    spti_task *attached; /* all */
};

/* Attach a task whose run, has_work, stopped and fd are set. */
spt_status spti_task_attach(spt_thread_pool *pool, spti_task *task, spt_error *err);

/* There is work. Cheap when the task already runs. */
void spti_task_wake(spti_task *task);

/* Take a task out of the pool's hands, waiting for a run under way to end. */
void spti_task_pause(spti_task *task);

/* Hand a paused task back. */
void spti_task_resume(spti_task *task);

/* Pause for good. */
void spti_task_detach(spti_task *task);

/* Make a pool without threads. */
spt_thread_pool *spti_pool_without_threads(spt_error *err);

/* What there is after somebody has helped. */
typedef enum spti_help {
    SPTI_HELPED,      /* nothing that could be done now */
    SPTI_HELP_MORE,   /* a task that is ready still */
    SPTI_HELP_SIGNAL, /* a signal for the process came, and ended the wait */
} spti_help;

/* Run a task that is ready. Where none is, wait for one until that time, for which signals must be
 * taken; 0: do not wait. */
spti_help spti_pool_help(spt_thread_pool *pool, uint64_t until_ns, bool take_signals);

/* Something that tasks of a pool without threads bring. */
typedef struct spti_request {
    /* Try to get it. */
    spt_status (*get)(struct spti_request *request);
    /* A thread begins to run tasks for it, or ends: does an event loop look out then? Or NULL. */
    void (*note)(struct spti_request *request, bool begins, bool watched);
} spti_request;

/* Run tasks until it can be got, and that does not answer SPT_PENDING any more; or that time is
 * over, or a signal came. What is left to be done then is for another thread, or an event loop. */
spt_status spti_pool_ask(spt_thread_pool *pool, int64_t timeout_ns, spti_request *request);

/* Have those who wait in spti_pool_help() look again. */
void spti_pool_rouse(spt_thread_pool *pool);

/* The same, and those who watch spti_pool_fd(). */
void spti_pool_signal(spt_thread_pool *pool);

/* Of a pool without threads: readable when there is something to help with. */
int spti_pool_fd(const spt_thread_pool *pool);

/* Somebody polls that who asks for what tasks bring when it is readable: as it is now, at first. */
void spti_pool_be_watched(spt_thread_pool *pool);

/* ---- Of the pool's own ---- */

/* Run tasks, or wait for one, until the pool stops. */
void spti_pool_work(spt_thread_pool *pool);

/* Tell a task that has not been told that the pool has stopped; false when all have. Under the
 * lock, which it lets go: tasks may be detached meanwhile, so each call looks through the list
 * afresh. */
bool spti_pool_tell_stopped(spt_thread_pool *pool);

#endif
