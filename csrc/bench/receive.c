/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives heaps into memory that is used again and again, and counts them: to be measured. */
#include "receiving.h"

#include <spead_tutorial/spt_recv.h>

#include <pthread.h>
#include <stdio.h>

enum { LIVE = 4 };

/* Buffers of one size, last in, first out; what is larger passes by. */
struct buffers {
    pthread_mutex_t lock;
    size_t size, n, room;
    void **free;
};

static void *get(void *user, size_t size, const spt_received_packet *first)
{
    struct buffers *b = user;
    (void)first;
    pthread_mutex_lock(&b->lock);
    void *memory = size == b->size && b->n > 0 ? b->free[--b->n] : NULL;
    pthread_mutex_unlock(&b->lock);
    return memory != NULL ? memory : malloc(size);
}

static void put(void *user, void *memory, size_t size)
{
    struct buffers *b = user;
    pthread_mutex_lock(&b->lock);
    bool kept = size == b->size && b->n < b->room;
    if (kept)
        b->free[b->n++] = memory;
    pthread_mutex_unlock(&b->lock);
    if (!kept)
        free(memory);
}

static void buffers_init(struct buffers *b, size_t size, size_t n)
{
    *b = (struct buffers){PTHREAD_MUTEX_INITIALIZER, size, n, n, alloc_bytes(n * sizeof(void *))};
    for (size_t i = 0; i < n; i++)
        b->free[i] = alloc_touched(size);
}

static void buffers_fini(struct buffers *b)
{
    while (b->n > 0)
        free(b->free[--b->n]);
    free(b->free);
}

static void receive(struct receiving *r, spt_recv_stream *stream)
{
    spt_received_heap *heap;
    spt_status status;
    while ((status = spt_recv_stream_get(stream, -1, &heap)) != SPT_DONE) {
        if (status != SPT_OK)
            continue; /* a signal */
        if (heap->state == SPT_HEAP_COMPLETE && heap->length == r->heap_size) {
            receiving_heaps(r, 1);
            if (r->check)
                receiving_check(r, heap->cnt, heap->payload);
        } else {
            r->incomplete++;
        }
        spt_recv_stream_return(stream, heap);
    }
}

int main(int argc, char **argv)
{
    struct receiving r = receiving_begin(
        argc, argv, "Receives heaps into memory that is used again and again.", "go");
    spt_error err = {0};
    struct buffers buffers;
    /* Heaps that are finished: in the ring, with us, given back, and waiting for the ring. */
    buffers_init(&buffers, r.heap_size, LIVE + r.ring + LIVE + r.ring);
    spt_thread_pool *pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_recv_config config = spt_recv_config_default();
    config.heaps.max_heaps = LIVE;
    config.heaps.allow_out_of_order = r.out_of_order;
    config.heaps.max_heap_size = larger(config.heaps.max_heap_size, r.heap_size);
    config.heaps.memory = (spt_heap_memory){&buffers, get, put};
    config.ring_heaps = r.ring;
    spt_recv_stream *stream = check_made(spt_recv_stream_create(pool, &config, &err), &err);
    spt_receive_config socket = SPT_RECEIVE_CONFIG_DEFAULT;
    socket.max_size = larger(socket.max_size, r.packet_size);
    socket.gro = r.gro;
    check(spt_recv_stream_add_udp_socket(stream, r.socket, &socket, &err), &err);
    receiving_ready(&r);
    receive(&r, stream);
    spt_recv_stats stats;
    spt_recv_stream_stats(stream, &stats);
    r.packets = stats.account.packets + stats.after_end;
    r.calls = stats.sockets.calls;
    int status = receiving_end(&r);
    spt_recv_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    buffers_fini(&buffers);
    return status;
}
