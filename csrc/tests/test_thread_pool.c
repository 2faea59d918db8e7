/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of thread_pool.c: tasks that run, wait, are woken, paused and stopped. */
#include "../src/thread_pool.h"

#include "check.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANY = 20000 };

/* A task that does pieces of work, and can be told what to wait for. */
typedef struct job {
    spti_task task;
    int work;    /* atomic: pieces left */
    int done;    /* atomic: pieces done */
    int inside;  /* atomic: runs under way; never more than one */
    int overlap; /* atomic: how often there was more than one */
    int stopped;
    spti_wait wait;
    sem_t ran;
} job;

static spti_wait job_run(spti_task *task)
{
    job *j = (job *)task;
    if (__atomic_fetch_add(&j->inside, 1, __ATOMIC_SEQ_CST) != 0)
        __atomic_fetch_add(&j->overlap, 1, __ATOMIC_SEQ_CST);
    spti_wait wait = SPTI_WAIT_WORK;
    if (__atomic_load_n(&j->work, __ATOMIC_SEQ_CST) > 0) {
        __atomic_fetch_sub(&j->work, 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_add(&j->done, 1, __ATOMIC_SEQ_CST);
        sem_post(&j->ran);
        wait = j->wait;
    }
    __atomic_fetch_sub(&j->inside, 1, __ATOMIC_SEQ_CST);
    return wait;
}

static bool job_has_work(spti_task *task)
{
    return __atomic_load_n(&((job *)task)->work, __ATOMIC_SEQ_CST) > 0;
}

static void job_stopped(spti_task *task)
{
    ((job *)task)->stopped++;
}

static void job_init(job *j, spt_thread_pool *pool, spti_wait wait, int fd)
{
    *j = (job){.wait = wait};
    sem_init(&j->ran, 0, 0);
    j->task.run = job_run;
    j->task.has_work = job_has_work;
    j->task.stopped = job_stopped;
    j->task.fd = fd;
    REQUIRE(spti_task_attach(pool, &j->task, NULL) == SPT_OK);
}

static void add_work(job *j, int n)
{
    __atomic_fetch_add(&j->work, n, __ATOMIC_SEQ_CST);
    spti_task_wake(&j->task);
}

static void await_runs(job *j, int n)
{
    for (int i = 0; i < n; i++)
        while (sem_wait(&j->ran) != 0)
            ;
}

static spt_thread_pool *new_pool(size_t n_threads)
{
    spt_thread_pool *pool = spt_thread_pool_create(n_threads, NULL, 0, NULL);
    REQUIRE(pool != NULL);
    return pool;
}

static void test_work_is_done_once_for_each_wake(void)
{
    spt_thread_pool *pool = new_pool(1);
    job j;
    job_init(&j, pool, SPTI_WAIT_TURN, -1);
    for (int i = 0; i < MANY; i++)
        add_work(&j, 1);
    await_runs(&j, MANY);
    CHECK_EQUAL(__atomic_load_n(&j.done, __ATOMIC_SEQ_CST), MANY);
    spti_task_detach(&j.task);
    spt_thread_pool_destroy(pool);
}

static void *wake_often(void *arg)
{
    for (int i = 0; i < MANY; i++)
        add_work(arg, 1);
    return NULL;
}

static void test_no_wake_is_lost_and_no_task_runs_twice_at_a_time(void)
{
    spt_thread_pool *pool = new_pool(3);
    job jobs[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        job_init(&jobs[i], pool, i % 2 ? SPTI_WAIT_TURN : SPTI_WAIT_WORK, -1);
    for (int i = 0; i < 4; i++)
        REQUIRE(pthread_create(&threads[i], NULL, wake_often, &jobs[i]) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        await_runs(&jobs[i], MANY);
        spti_task_detach(&jobs[i].task);
        CHECK_EQUAL(jobs[i].done, MANY);
        CHECK_EQUAL(jobs[i].overlap, 0);
    }
    spt_thread_pool_destroy(pool);
}

static void *pause_often(void *arg)
{
    job *j = arg;
    for (int i = 0; i < MANY / 20; i++) {
        spti_task_pause(&j->task);
        CHECK_EQUAL(__atomic_load_n(&j->inside, __ATOMIC_SEQ_CST), 0);
        spti_task_resume(&j->task);
    }
    return NULL;
}

static void test_a_paused_task_does_not_run_and_loses_no_work(void)
{
    spt_thread_pool *pool = new_pool(2);
    job j;
    pthread_t wakers[2], pausers[2];
    job_init(&j, pool, SPTI_WAIT_WORK, -1);
    for (int i = 0; i < 2; i++) {
        REQUIRE(pthread_create(&wakers[i], NULL, wake_often, &j) == 0);
        REQUIRE(pthread_create(&pausers[i], NULL, pause_often, &j) == 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(wakers[i], NULL);
        pthread_join(pausers[i], NULL);
    }
    await_runs(&j, 2 * MANY);
    spti_task_detach(&j.task);
    CHECK_EQUAL(j.done, 2 * MANY);
    spt_thread_pool_destroy(pool);
}

static void test_a_deadline_ends_a_wait(void)
{
    spt_thread_pool *pool = new_pool(1);
    job j;
    job_init(&j, pool, SPTI_WAIT_TIME, -1);
    j.task.deadline_ns = spti_now_ns() + 1000000;
    add_work(&j, 3);
    await_runs(&j, 3);
    CHECK(spti_now_ns() >= j.task.deadline_ns);
    spti_task_detach(&j.task);
    spt_thread_pool_destroy(pool);
}

static void test_a_task_that_waits_for_hours_can_be_paused_and_resumed(void)
{
    spt_thread_pool *pool = new_pool(1);
    job j;
    job_init(&j, pool, SPTI_WAIT_TIME, -1);
    j.task.deadline_ns = UINT64_MAX;
    add_work(&j, 2);
    await_runs(&j, 1);
    spti_task_pause(&j.task);
    spti_task_resume(&j.task); /* is a reason to run */
    await_runs(&j, 1);
    spti_task_detach(&j.task);
    CHECK_EQUAL(j.done, 2);
    spt_thread_pool_destroy(pool);
}

static void test_a_writable_descriptor_ends_a_wait(void)
{
    spt_thread_pool *pool = new_pool(1);
    job j;
    int ends[2];
    static char buffer[65536];
    REQUIRE(pipe(ends) == 0);
    REQUIRE(write(ends[1], buffer, sizeof(buffer)) == sizeof(buffer)); /* the pipe is full */
    job_init(&j, pool, SPTI_WAIT_WRITABLE, ends[1]);
    add_work(&j, 2);
    await_runs(&j, 1);
    REQUIRE(read(ends[0], buffer, sizeof(buffer)) == sizeof(buffer));
    await_runs(&j, 1);
    spti_task_detach(&j.task);
    CHECK_EQUAL(j.done, 2);
    spt_thread_pool_destroy(pool);
    close(ends[0]);
    close(ends[1]);
}

static long epoll_waits; /* atomic */
static uint64_t slow_until_ns;

int __real_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout);

int __wrap_epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    __atomic_fetch_add(&epoll_waits, 1, __ATOMIC_SEQ_CST);
    while (spti_now_ns() < slow_until_ns)
        ;
    return __real_epoll_wait(fd, events, n, timeout);
}

static bool is_readable(int fd, int timeout_ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, timeout_ms) == 1;
}

/* Does what an event loop does as long as there is something to do; whether that ends. */
static bool loop_comes_to_rest(spt_thread_pool *pool)
{
    for (int i = 0; i < 10; i++) {
        if (!is_readable(spti_pool_fd(pool), 0))
            return true;
        spti_pool_help(pool, 0, true);
    }
    return false;
}

/* A task in a pool without threads that has run once, and is to run again soon. */
static void wait_for_time(job *j, spt_thread_pool *pool)
{
    job_init(j, pool, SPTI_WAIT_TIME, -1);
    j->task.deadline_ns = spti_now_ns() + 20000000;
    j->work = 2;
    spti_task_wake(&j->task);
    spti_pool_help(pool, 0, true);
    CHECK_EQUAL(j->done, 1);
}

static void test_a_timer_that_ends_as_signals_are_taken_is_not_lost(void)
{
    spt_thread_pool *pool = spti_pool_without_threads(NULL);
    job j;
    wait_for_time(&j, pool);
    slow_until_ns = j.task.deadline_ns;
    spti_pool_help(pool, 0, true); /* begins before that time, and ends after it */
    slow_until_ns = 0;
    CHECK(loop_comes_to_rest(pool));
    CHECK_EQUAL(j.done, 2);
    spti_task_detach(&j.task);
    spt_thread_pool_destroy(pool);
}

static void test_a_timer_that_ends_after_signals_were_taken_keeps_no_loop_busy(void)
{
    spt_thread_pool *pool = spti_pool_without_threads(NULL);
    job j;
    wait_for_time(&j, pool);
    j.wait = SPTI_WAIT_WORK;
    spti_pool_help(pool, 0, true);
    CHECK(is_readable(spti_pool_fd(pool), -1));
    CHECK(loop_comes_to_rest(pool));
    CHECK_EQUAL(j.done, 2);
    spti_task_detach(&j.task);
    spt_thread_pool_destroy(pool);
}

/* A socket whose packets are refused: poll() reports an error until it is used again. */
static int refused_socket(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int nobody = socket(AF_INET, SOCK_DGRAM, 0), fd = socket(AF_INET, SOCK_DGRAM, 0);
    REQUIRE(bind(nobody, (struct sockaddr *)&address, sizeof(address)) == 0);
    REQUIRE(getsockname(nobody, (struct sockaddr *)&address, &length) == 0);
    close(nobody);
    REQUIRE(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
}

static int socket_with_an_error(void)
{
    int fd = refused_socket();
    REQUIRE(send(fd, "x", 1, 0) == 1);
    return fd;
}

static void test_news_of_a_socket_end_a_wait_that_room_does_not(void)
{
    spt_thread_pool *pool = new_pool(1);
    job j;
    int fd = refused_socket();
    job_init(&j, pool, SPTI_WAIT_NEWS, fd);
    add_work(&j, 2);
    await_runs(&j, 1);
    usleep(1000);
    CHECK_EQUAL(__atomic_load_n(&j.done, __ATOMIC_SEQ_CST), 1);
    REQUIRE(send(fd, "x", 1, 0) == 1);
    await_runs(&j, 1);
    spti_task_detach(&j.task);
    spt_thread_pool_destroy(pool);
    close(fd);
}

static void test_who_waits_for_anything_is_ended_by_work_and_by_news(void)
{
    spt_thread_pool *pool = new_pool(1);
    job j;
    int fd = refused_socket();
    job_init(&j, pool, SPTI_WAIT_ANY, fd);
    add_work(&j, 1);
    await_runs(&j, 1);
    add_work(&j, 1); /* while it listens */
    await_runs(&j, 1);
    __atomic_fetch_add(&j.work, 1, __ATOMIC_SEQ_CST); /* without a wake */
    REQUIRE(send(fd, "x", 1, 0) == 1);
    await_runs(&j, 1);
    spti_task_detach(&j.task);
    CHECK_EQUAL(j.done, 3);
    CHECK_EQUAL(j.overlap, 0);
    spt_thread_pool_destroy(pool);
    close(fd);
}

static void test_an_error_on_an_idle_socket_does_not_keep_threads_awake(void)
{
    spt_thread_pool *pool = new_pool(1);
    job idle, timer;
    int fd = socket_with_an_error();
    job_init(&idle, pool, SPTI_WAIT_WORK, fd);
    job_init(&timer, pool, SPTI_WAIT_TIME, -1);
    for (int round = 0; round < 2; round++) {
        __atomic_store_n(&epoll_waits, 0, __ATOMIC_SEQ_CST);
        for (int i = 0; i < 20; i++) {
            spti_task_pause(&timer.task);
            timer.task.deadline_ns = spti_now_ns() + 1000000;
            spti_task_resume(&timer.task);
            add_work(&timer, 2);
            await_runs(&timer, 2);
        }
        CHECK(__atomic_load_n(&epoll_waits, __ATOMIC_SEQ_CST) < 500);
        spti_task_pause(&idle.task); /* being paused while it waits must not arm it either */
        spti_task_resume(&idle.task);
    }
    spti_task_detach(&idle.task);
    spti_task_detach(&timer.task);
    spt_thread_pool_destroy(pool);
    close(fd);
}

static void test_a_pool_that_stops_tells_every_task_once(void)
{
    spt_thread_pool *pool = new_pool(3);
    job jobs[3];
    for (int i = 0; i < 3; i++)
        job_init(&jobs[i], pool, SPTI_WAIT_WORK, -1);
    spti_task_detach(&jobs[1].task);
    spt_thread_pool_stop(pool);
    spt_thread_pool_stop(pool);
    CHECK_EQUAL(jobs[0].stopped, 1);
    CHECK_EQUAL(jobs[1].stopped, 0);
    CHECK_EQUAL(jobs[2].stopped, 1);
    spti_task_detach(&jobs[0].task);
    spti_task_detach(&jobs[2].task);
    job late;
    late = (job){.task.fd = -1};
    CHECK_EQUAL(spti_task_attach(pool, &late.task, NULL), SPT_ERR_STOPPED);
    spt_thread_pool_destroy(pool);
}

static job stopped_at_once;
static pthread_barrier_t at_once;

static void *stop_at_once(void *pool)
{
    pthread_barrier_wait(&at_once);
    spt_thread_pool_stop(pool);
    CHECK_EQUAL(stopped_at_once.stopped, 1);
    return NULL;
}

static void test_threads_that_stop_a_pool_at_once_all_wait_until_it_is(void)
{
    for (int round = 0; round < 50; round++) {
        spt_thread_pool *pool = new_pool(3);
        job_init(&stopped_at_once, pool, SPTI_WAIT_WORK, -1);
        pthread_t other;
        pthread_barrier_init(&at_once, NULL, 2);
        REQUIRE(pthread_create(&other, NULL, stop_at_once, pool) == 0);
        stop_at_once(pool);
        pthread_join(other, NULL);
        pthread_barrier_destroy(&at_once);
        spti_task_detach(&stopped_at_once.task);
        spt_thread_pool_destroy(pool);
    }
}

static void test_threads_run_on_the_cores_that_are_asked_for(void)
{
    cpu_set_t cores;
    REQUIRE(sched_getaffinity(0, sizeof(cores), &cores) == 0);
    int core = 0;
    while (!CPU_ISSET((size_t)core, &cores))
        core++;
    spt_thread_pool *pool = spt_thread_pool_create(2, &core, 1, NULL);
    REQUIRE(pool != NULL);
    spt_thread_pool_destroy(pool);
    pool = spt_thread_pool_create(2, (int[]){core, -1}, 2, NULL); /* the second on any */
    REQUIRE(pool != NULL);
    spt_thread_pool_destroy(pool);
    int missing = CPU_SETSIZE - 1;
    spt_error err = {0};
    if (!CPU_ISSET((size_t)missing, &cores)) {
        CHECK(spt_thread_pool_create(1, &missing, 1, &err) == NULL);
        char named[32];
        snprintf(named, sizeof(named), "core %d", missing);
        CHECK(strstr(err.message, named) != NULL);
        CHECK_EQUAL(spt_set_affinity(missing, &err), SPT_ERR_SYSTEM);
    }
    CHECK_EQUAL(spt_set_affinity(-1, &err), SPT_ERR_ARGUMENT);
    CHECK(spt_thread_pool_create(0, NULL, 0, &err) == NULL);
    CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
}

int main(void)
{
    RUN(test_work_is_done_once_for_each_wake);
    RUN(test_no_wake_is_lost_and_no_task_runs_twice_at_a_time);
    RUN(test_a_paused_task_does_not_run_and_loses_no_work);
    RUN(test_a_deadline_ends_a_wait);
    RUN(test_a_task_that_waits_for_hours_can_be_paused_and_resumed);
    RUN(test_a_writable_descriptor_ends_a_wait);
    RUN(test_news_of_a_socket_end_a_wait_that_room_does_not);
    RUN(test_who_waits_for_anything_is_ended_by_work_and_by_news);
    RUN(test_an_error_on_an_idle_socket_does_not_keep_threads_awake);
    RUN(test_a_timer_that_ends_as_signals_are_taken_is_not_lost);
    RUN(test_a_timer_that_ends_after_signals_were_taken_keeps_no_loop_busy);
    RUN(test_a_pool_that_stops_tells_every_task_once);
    RUN(test_threads_that_stop_a_pool_at_once_all_wait_until_it_is);
    RUN(test_threads_run_on_the_cores_that_are_asked_for);
    return check_done();
}
