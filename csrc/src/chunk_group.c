/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns groups: the streams that fill the same chunks, and their window. Knows nothing of how chunks
 * are filled.
 */
#include "recv_stream.h"
#include "status.h"
#include "sync.h"
#include "thread_pool.h"

#include <stdlib.h>

typedef struct member {
    spt_recv_stream *stream;
    const spt_thread_pool *pool;
    struct member *next;
} member;

struct spt_chunk_group {
    spt_chunk_group_config config;
    spti_window *window;
    pthread_mutex_t lock; /* of the members */
    member *members;
};

/* Members are to get on at the same time: those that take turns on a thread lag by as much as is
 * read in a turn, and lose what nobody waits for. */
static spt_status check_pool(const spt_chunk_group *g, const spt_thread_pool *pool, spt_error *err)
{
    size_t n = 1;
    for (const member *m = g->members; m != NULL; m = m->next)
        n += m->pool == pool;
    if (pool == NULL || pool->n_threads >= n)
        return SPT_OK;
    return spti_fail(err, SPT_ERR_ARGUMENT,
                     "the pool has %zu threads for %zu streams of the group: make it with a thread "
                     "for each, or give each a pool",
                     pool->n_threads, n);
}

static spt_status check_member(const spt_chunk_group *g, const spt_thread_pool *pool,
                               const spt_chunk_config *chunks, spt_error *err)
{
    if (chunks->max_chunks == 0 || chunks->max_chunks > g->config.max_chunks)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "max_chunks is %zu: it must be at least 1, and at most the group's %zu",
                         chunks->max_chunks, g->config.max_chunks);
    return check_pool(g, pool, err);
}

spt_recv_stream *spt_chunk_group_add(spt_chunk_group *g, spt_thread_pool *pool,
                                     const spt_recv_config *config, const spt_chunk_config *chunks,
                                     spt_error *err)
{
    SPTI_HOLD(&g->lock);
    if (check_member(g, pool, chunks, err) != SPT_OK)
        return NULL;
    member *m = malloc(sizeof(*m));
    if (m == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a stream of a group");
    spt_chunk_config own = *chunks;
    own.data_ring = g->config.data_ring;
    own.free_ring = g->config.free_ring;
    spt_recv_stream *stream = spti_recv_stream_create_member(pool, config, &own, g->window, err);
    if (stream == NULL) {
        free(m);
        return NULL;
    }
    *m = (member){stream, pool, g->members};
    g->members = m;
    return stream;
}

spt_chunk_group *spt_chunk_group_create(const spt_chunk_group_config *config, spt_error *err)
{
    spt_chunk_group *g = calloc(1, sizeof(*g));
    if (g == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a group of streams");
    g->config = *config;
    pthread_mutex_init(&g->lock, NULL);
    g->window = spti_window_create(config->max_chunks, config->lossless, config->data_ring,
                                   config->free_ring, err);
    if (g->window != NULL)
        return g;
    spt_chunk_group_destroy(g);
    return NULL;
}

void spt_chunk_group_stop(spt_chunk_group *group)
{
    pthread_mutex_lock(&group->lock);
    const member *any = group->members;
    pthread_mutex_unlock(&group->lock);
    if (any != NULL) {
        spt_recv_stream_stop(any->stream); /* and with it the others */
        return;
    }
    spti_window_begin(group->window);
    spt_chunk_ring_stop(group->config.data_ring);
    spt_chunk_ring_stop(group->config.free_ring);
}

void spt_chunk_group_destroy(spt_chunk_group *group)
{
    if (group == NULL)
        return;
    if (group->members != NULL)
        spt_recv_stream_stop(group->members->stream);
    for (member *m = group->members, *next; m != NULL; m = next) {
        next = m->next;
        spti_recv_stream_free(m->stream);
        free(m);
    }
    spti_window_destroy(group->window);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

void spt_chunk_group_read_stats(spt_chunk_group *group, spt_chunk_group_stats *stats)
{
    spti_window_stats(group->window, stats);
}
