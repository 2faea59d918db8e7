/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of the thread pool: tasks that run, wait, are woken, paused and stopped. */
#define CHECK_AFTER end

#include "../src/thread_pool.h"
#include "support.h"

#include <sched.h>
#include <sys/epoll.h>

enum { MANY = 20000, JOBS = 4 };

/* A task that does pieces of work, and can be told what to wait for. */
typedef struct job {
    spti_task task;
    _Atomic int work, done; /* pieces of work, left and done */
    _Atomic int inside;     /* runs under way; never more than one */
    _Atomic int overlap;    /* how often there was more than one */
    int stopped;
    spti_wait wait;
    int awaited; /* of what is done */
} job;

static spt_thread_pool *pool;
static job jobs[JOBS], *const j = jobs; /* of the test: mostly the first */
static int fd = -1;                     /* that it waits for */

static void end_job(job *it)
{
    if (it->task.pool != NULL)
        spti_task_detach(&it->task);
    it->task.pool = NULL;
}

static void end(void)
{
    for (int i = 0; i < JOBS; i++)
        end_job(&jobs[i]);
    for (int i = 0; i < JOBS; i++)
        CHECK_EQUAL(jobs[i].overlap, 0);
    memset(jobs, 0, sizeof(jobs));
    END(spt_thread_pool, pool);
    end_fd(&fd);
}

static spti_wait job_run(spti_task *task)
{
    job *it = (job *)task;
    if (it->inside++ != 0)
        it->overlap++;
    spti_wait wait = SPTI_WAIT_WORK;
    if (it->work > 0) {
        it->work--;
        it->done++;
        wait = it->wait;
    }
    it->inside--;
    return wait;
}

static bool job_has_work(spti_task *task)
{
    return ((job *)task)->work > 0;
}

static void job_stopped(spti_task *task)
{
    ((job *)task)->stopped++;
}

static void begin_job(job *it, spti_wait wait, int waits_for)
{
    *it = (job){.wait = wait};
    it->task.run = job_run;
    it->task.has_work = job_has_work;
    it->task.stopped = job_stopped;
    it->task.fd = waits_for;
    REQUIRE(spti_task_attach(pool, &it->task, NULL) == SPT_OK);
}

static void begin(size_t n_threads, spti_wait wait, int waits_for)
{
    pool = new_pool(n_threads);
    begin_job(j, wait, waits_for);
}

static void add_work(job *it, int n)
{
    it->work += n;
    spti_task_wake(&it->task);
}

static void await_runs(job *it, int n)
{
    it->awaited += n;
    while (it->done < it->awaited)
        sched_yield();
}

static void *wake_often(void *arg)
{
    for (int i = 0; i < MANY; i++)
        add_work(arg, 1);
    return NULL;
}

static void *pause_often(void *arg)
{
    job *it = arg;
    for (int i = 0; i < MANY / 20; i++) {
        spti_task_pause(&it->task);
        CHECK_EQUAL(it->inside, 0);
        spti_task_resume(&it->task);
    }
    return NULL;
}

TEST(no_wake_is_lost_and_no_task_runs_twice_at_a_time_or_paused)
{
    pthread_t wakers[JOBS], pausers[JOBS];
    pool = new_pool(3);
    for (int i = 0; i < JOBS; i++)
        begin_job(&jobs[i], i % 2 ? SPTI_WAIT_TURN : SPTI_WAIT_WORK, -1);
    for (int i = 0; i < JOBS; i++) {
        wakers[i] = start_thread(wake_often, &jobs[i]);
        pausers[i] = start_thread(pause_often, &jobs[i / 2]); /* two of them pause one task */
    }
    for (int i = 0; i < JOBS; i++)
        pthread_join(pausers[i], NULL);
    for (int i = 0; i < JOBS; i++) {
        pthread_join(wakers[i], NULL);
        await_runs(&jobs[i], MANY);
        end_job(&jobs[i]);
        CHECK_EQUAL(jobs[i].done, MANY);
    }
}

TEST(a_deadline_ends_a_wait)
{
    begin(1, SPTI_WAIT_TIME, -1);
    j->task.deadline_ns = spti_now_ns() + 1000000;
    add_work(j, 3);
    await_runs(j, 3);
    CHECK(spti_now_ns() >= j->task.deadline_ns);
}

TEST(a_task_that_waits_for_hours_can_be_paused_and_resumed)
{
    begin(1, SPTI_WAIT_TIME, -1);
    j->task.deadline_ns = UINT64_MAX;
    add_work(j, 2);
    await_runs(j, 1);
    spti_task_pause(&j->task);
    spti_task_resume(&j->task); /* is a reason to run */
    await_runs(j, 1);
    CHECK_EQUAL(j->done, 2);
}

TEST(a_writable_descriptor_ends_a_wait)
{
    int ends[2];
    static char buffer[65536];
    REQUIRE(pipe(ends) == 0);
    OWN_FD int other = ends[0];
    fd = ends[1];
    REQUIRE(write(fd, buffer, sizeof(buffer)) == sizeof(buffer)); /* the pipe is full */
    begin(1, SPTI_WAIT_WRITABLE, fd);
    add_work(j, 2);
    await_runs(j, 1);
    REQUIRE(read(other, buffer, sizeof(buffer)) == sizeof(buffer));
    await_runs(j, 1);
    CHECK_EQUAL(j->done, 2);
}

/* A socket whose packets are refused: poll() reports an error until it is used again. */
static int refused_socket(void)
{
    int port;
    return fd = connect_to_nobody(&port);
}

TEST(news_of_a_socket_end_a_wait_that_room_does_not)
{
    begin(1, SPTI_WAIT_NEWS, refused_socket());
    add_work(j, 2);
    await_runs(j, 1);
    usleep(1000);
    CHECK_EQUAL(j->done, 1);
    REQUIRE(send(fd, "x", 1, 0) == 1);
    await_runs(j, 1);
}

TEST(who_waits_for_anything_is_ended_by_work_and_by_news)
{
    begin(1, SPTI_WAIT_ANY, refused_socket());
    for (int i = 0; i < 2; i++) { /* the second time while it listens */
        add_work(j, 1);
        await_runs(j, 1);
    }
    j->work++; /* without a wake */
    REQUIRE(send(fd, "x", 1, 0) == 1);
    await_runs(j, 1);
    CHECK_EQUAL(j->done, 3);
}

static _Atomic long epoll_waits;
static uint64_t slow_until_ns;

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);

int __wrap_epoll_wait(int of, struct epoll_event *events, int n, int timeout)
{
    epoll_waits++;
    while (spti_now_ns() < slow_until_ns)
        continue;
    return __real_epoll_wait(of, events, n, timeout);
}

TEST(an_error_on_an_idle_socket_does_not_keep_threads_awake)
{
    job *idle = &jobs[0], *timer = &jobs[1];
    begin(1, SPTI_WAIT_WORK, refused_socket());
    REQUIRE(send(fd, "x", 1, 0) == 1);
    begin_job(timer, SPTI_WAIT_TIME, -1);
    for (int round = 0; round < 2; round++) {
        epoll_waits = 0;
        for (int i = 0; i < 20; i++) {
            spti_task_pause(&timer->task);
            timer->task.deadline_ns = spti_now_ns() + 1000000;
            spti_task_resume(&timer->task);
            add_work(timer, 2);
            await_runs(timer, 2);
        }
        CHECK(epoll_waits < 500);
        spti_task_pause(&idle->task); /* being paused while it waits must not arm it either */
        spti_task_resume(&idle->task);
    }
}

/* ---- Pools without threads ------------------------------------------------------------------- */

/* Does what an event loop does as long as there is something to do; whether that ends. */
static bool loop_comes_to_rest(void)
{
    for (int i = 0; i < 10; i++) {
        if (!is_readable(spti_pool_fd(pool), 0))
            return true;
        spti_pool_help(pool, 0, true);
    }
    return false;
}

/* A task in a pool without threads that has run once, and is to run again soon. */
static void begin_without_threads(void)
{
    pool = spti_pool_without_threads(NULL);
    begin_job(j, SPTI_WAIT_TIME, -1);
    j->task.deadline_ns = spti_now_ns() + 20000000;
    j->work = 2;
    spti_task_wake(&j->task);
    spti_pool_help(pool, 0, true);
    CHECK_EQUAL(j->done, 1);
}

TEST(a_timer_that_ends_as_signals_are_taken_is_not_lost)
{
    begin_without_threads();
    slow_until_ns = j->task.deadline_ns;
    spti_pool_help(pool, 0, true); /* begins before that time, and ends after it */
    slow_until_ns = 0;
    CHECK(loop_comes_to_rest());
    CHECK_EQUAL(j->done, 2);
}

TEST(a_timer_that_ends_after_signals_were_taken_keeps_no_loop_busy)
{
    begin_without_threads();
    j->wait = SPTI_WAIT_WORK;
    spti_pool_help(pool, 0, true);
    CHECK(is_readable(spti_pool_fd(pool), -1));
    CHECK(loop_comes_to_rest());
    CHECK_EQUAL(j->done, 2);
}

TEST(a_call_that_comes_before_a_helper_waits_has_it_look_again)
{
    pool = spti_pool_without_threads(NULL);
    spti_pool_signal(pool);
    CHECK_EQUAL(spti_pool_help(pool, UINT64_MAX, true), SPTI_HELPED); /* and does not wait */
}

TEST(a_pool_that_stops_tells_every_task_once)
{
    pool = new_pool(3);
    for (int i = 0; i < 3; i++)
        begin_job(&jobs[i], SPTI_WAIT_WORK, -1);
    end_job(&jobs[1]);
    spt_thread_pool_stop(pool);
    spt_thread_pool_stop(pool);
    CHECK_EQUAL(jobs[0].stopped, 1, jobs[1].stopped, 0, jobs[2].stopped, 1);
    job late = {.task.fd = -1};
    CHECK_EQUAL(spti_task_attach(pool, &late.task, NULL), SPT_ERR_STOPPED);
}

static pthread_barrier_t at_once;

static void *stop_at_once(void *none)
{
    pthread_barrier_wait(&at_once);
    spt_thread_pool_stop(pool);
    CHECK_EQUAL(j->stopped, 1);
    return none;
}

TEST(threads_that_stop_a_pool_at_once_all_wait_until_it_is)
{
    for (int round = 0; round < 50; round++) {
        begin(3, SPTI_WAIT_WORK, -1);
        pthread_barrier_init(&at_once, NULL, 2);
        pthread_t other = start_thread(stop_at_once, NULL);
        stop_at_once(NULL);
        pthread_join(other, NULL);
        pthread_barrier_destroy(&at_once);
        end();
    }
}

TEST(threads_run_on_the_cores_that_are_asked_for)
{
    cpu_set_t cores;
    REQUIRE(sched_getaffinity(0, sizeof(cores), &cores) == 0);
    int core = 0, missing = CPU_SETSIZE - 1;
    while (!CPU_ISSET((size_t)core, &cores))
        core++;
    OWN(spt_thread_pool) one = NEW(spt_thread_pool_create(2, &core, 1, NULL));
    int any[] = {core, -1}; /* the second */
    OWN(spt_thread_pool) two = NEW(spt_thread_pool_create(2, any, 2, NULL));
    if (!CPU_ISSET((size_t)missing, &cores)) {
        char named[32];
        snprintf(named, sizeof(named), "core %d", missing);
        CHECK_REFUSED(SPT_ERR_SYSTEM, named, spt_thread_pool_create(1, &missing, 1, &err));
        CHECK_REFUSED(SPT_ERR_SYSTEM, "", spt_set_affinity(missing, &err));
    }
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_set_affinity(-1, &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "", spt_thread_pool_create(0, NULL, 0, &err));
}
