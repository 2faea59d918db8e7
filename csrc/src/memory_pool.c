/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns buffers that heaps have left, for those that follow. Where they come from it is told.
 *
 * `users` are the owner and the memory that is away: the last of them frees the pool.
 */
#include "heap_memory.h"
#include "status.h"
#include "sync.h"
#include "thread_pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16 };

struct spt_memory_pool {
    spti_task task; /* makes buffers; first, so that one can be had from the other */
    spt_memory_pool_config config;
    size_t users; /* atomic */
    bool wanted;  /* fewer are free than should be: also read without the lock */

    pthread_mutex_t lock;
    bool destroyed; /* by its owner */
    void **free;    /* the last that came goes first: its bytes may be in the cache still */
    size_t room;    /* how many of them the list has place for */
    spt_memory_pool_stats stats;
};

static bool is_pooled(const spt_memory_pool *pool, size_t size)
{
    return pool->config.lower <= size && size <= pool->config.upper;
}

static void leave(spt_memory_pool *pool)
{
    if (__atomic_sub_fetch(&pool->users, 1, __ATOMIC_SEQ_CST) > 0)
        return;
    pthread_mutex_destroy(&pool->lock);
    free(pool->free);
    free(pool);
}

/* ---- Getting and putting --------------------------------------------------------------------- */

/* Under the lock. */
static void *take_free(spt_memory_pool *pool)
{
    spt_memory_pool_stats *stats = &pool->stats;
    void *memory = NULL;
    if (stats->free > 0)
        memory = pool->free[--stats->free];
    else
        stats->empty++;
    if (stats->free < stats->fewest_free)
        stats->fewest_free = stats->free;
    if (++stats->in_use > stats->most_in_use)
        stats->most_in_use = stats->in_use;
    if (stats->free < pool->config.low_water)
        __atomic_store_n(&pool->wanted, true, __ATOMIC_SEQ_CST);
    return memory;
}

/* Keep a buffer, where there are fewer than so many; else it is to be freed. Under the lock. */
static bool keep(spt_memory_pool *pool, void *memory, size_t most)
{
    size_t *n = &pool->stats.free;
    if (pool->destroyed || *n >= most)
        return false;
    if (*n == pool->room) {
        size_t room = pool->room == 0 ? FIRST_ROOM : 2 * pool->room;
        void **longer = realloc(pool->free, room * sizeof(*longer));
        if (longer == NULL)
            return false;
        pool->free = longer;
        pool->room = room;
    }
    pool->free[(*n)++] = memory;
    return true;
}

static void *get(void *user, size_t size, const spt_received_packet *first)
{
    spt_memory_pool *pool = user;
    const spt_memory_pool_config *config = &pool->config;
    bool pooled = is_pooled(pool, size);
    void *memory = NULL;
    pthread_mutex_lock(&pool->lock);
    pool->stats.gets++;
    if (size > pool->stats.largest)
        pool->stats.largest = size;
    if (pooled)
        memory = take_free(pool);
    else
        pool->stats.passed_by++;
    pthread_mutex_unlock(&pool->lock);
    if (__atomic_load_n(&pool->wanted, __ATOMIC_SEQ_CST))
        spti_task_wake(&pool->task);
    if (memory == NULL)
        memory = config->base.get(config->base.user, pooled ? config->upper : size, first);
    if (memory != NULL) {
        __atomic_add_fetch(&pool->users, 1, __ATOMIC_SEQ_CST);
    } else if (pooled) {
        pthread_mutex_lock(&pool->lock);
        pool->stats.in_use--;
        pthread_mutex_unlock(&pool->lock);
    }
    return memory;
}

static void put(void *user, void *memory, size_t size)
{
    spt_memory_pool *pool = user;
    const spt_memory_pool_config *config = &pool->config;
    bool pooled = is_pooled(pool, size), kept = false;
    if (pooled) {
        pthread_mutex_lock(&pool->lock);
        pool->stats.in_use--;
        kept = keep(pool, memory, config->max_free);
        pthread_mutex_unlock(&pool->lock);
    }
    if (!kept)
        config->base.put(config->base.user, memory, pooled ? config->upper : size);
    leave(pool);
}

spt_heap_memory spt_memory_pool_memory(spt_memory_pool *pool)
{
    return (spt_heap_memory){pool, get, put};
}

void spt_memory_pool_read_stats(spt_memory_pool *pool, spt_memory_pool_stats *stats)
{
    SPTI_HOLD(&pool->lock);
    *stats = pool->stats;
}

/* ---- Making buffers -------------------------------------------------------------------------- */

/* Make one, with its pages, where there are fewer than so many; false without one more. */
static bool make_one(spt_memory_pool *pool, size_t most)
{
    const spt_memory_pool_config *config = &pool->config;
    void *memory = config->base.get(config->base.user, config->upper, NULL);
    if (memory == NULL)
        return false;
    memset(memory, 0, config->upper);
    pthread_mutex_lock(&pool->lock);
    bool kept = keep(pool, memory, most);
    pthread_mutex_unlock(&pool->lock);
    if (!kept)
        config->base.put(config->base.user, memory, config->upper);
    return kept;
}

static spti_wait refill(spti_task *task)
{
    spt_memory_pool *pool = (spt_memory_pool *)task;
    pthread_mutex_lock(&pool->lock);
    bool wanted = pool->stats.free < pool->config.low_water;
    /* A request that comes from now on asks again. */
    __atomic_store_n(&pool->wanted, false, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->lock);
    return wanted && make_one(pool, pool->config.max_free) ? SPTI_WAIT_TURN : SPTI_WAIT_WORK;
}

static bool is_wanted(spti_task *task)
{
    return __atomic_load_n(&((spt_memory_pool *)task)->wanted, __ATOMIC_SEQ_CST);
}

static void threads_stopped(spti_task *task)
{
    (void)task; /* then nobody makes any more: the pool is as one without threads */
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static spt_status check_config(const spt_memory_pool_config *config, const spt_thread_pool *threads,
                               spt_error *err)
{
    if (config->upper == 0 || config->lower > config->upper)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "lower is %zu and upper is %zu: upper must be at least 1, and lower at "
                         "most upper",
                         config->lower, config->upper);
    if (config->low_water > config->max_free)
        return spti_fail(
            err, SPT_ERR_ARGUMENT,
            "low_water is %zu and max_free is %zu: more cannot be wanted than are kept",
            config->low_water, config->max_free);
    if (config->low_water > 0 && threads == NULL)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "low_water is %zu, and no thread is there to make buffers: give a thread "
                         "pool",
                         config->low_water);
    return spti_heap_memory_check(&config->base, err);
}

static spt_status fill(spt_memory_pool *pool, spt_error *err)
{
    const spt_memory_pool_config *config = &pool->config;
    for (size_t i = 0; i < config->initial; i++)
        if (!make_one(pool, config->initial))
            return spti_fail(err, SPT_ERR_MEMORY,
                             "no memory for %zu buffers of %zu bytes: there was enough for %zu",
                             config->initial, config->upper, i);
    pool->stats.fewest_free = pool->stats.free;
    return SPT_OK;
}

/* Have a thread make what is wanting, now and later. */
static spt_status attach(spt_memory_pool *pool, spt_thread_pool *threads, spt_error *err)
{
    if (pool->config.low_water == 0)
        return SPT_OK;
    pool->task = (spti_task){
        .run = refill,
        .has_work = is_wanted,
        .stopped = threads_stopped,
        .fd = -1,
    };
    SPTI_TRY(spti_task_attach(threads, &pool->task, err));
    if (pool->stats.free < pool->config.low_water)
        spti_task_wake(&pool->task);
    return SPT_OK;
}

spt_memory_pool *spt_memory_pool_create(spt_thread_pool *threads,
                                        const spt_memory_pool_config *config, spt_error *err)
{
    if (check_config(config, threads, err) != SPT_OK)
        return NULL;
    spt_memory_pool *pool = calloc(1, sizeof(*pool));
    if (pool == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a pool");
    pool->config = *config;
    pool->config.base = spti_heap_memory_or_malloc(config->base);
    pool->users = 1;
    pthread_mutex_init(&pool->lock, NULL);
    if (fill(pool, err) == SPT_OK && attach(pool, threads, err) == SPT_OK)
        return pool;
    spt_memory_pool_destroy(pool);
    return NULL;
}

void spt_memory_pool_destroy(spt_memory_pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->task.pool != NULL)
        spti_task_detach(&pool->task);
    pthread_mutex_lock(&pool->lock);
    pool->destroyed = true; /* what comes back from now on is freed */
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < pool->stats.free; i++)
        pool->config.base.put(pool->config.base.user, pool->free[i], pool->config.upper);
    leave(pool);
}
