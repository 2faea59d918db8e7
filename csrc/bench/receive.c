/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives heaps into memory that is used again and again, and counts them: to be measured. */
#include "receiving.h"

#include <spead_tutorial/spt_recv.h>

/* Bytes that a heap may have besides its samples: some senders' timestamps are longer. */
enum { LIVE = 4, MORE = 8192 };

static void receive(struct receiving *r, spt_recv_stream *stream)
{
    spt_received_heap *heap;
    spt_status status;
    while ((status = spt_recv_stream_get(stream, -1, &heap)) != SPT_DONE) {
        if (status != SPT_OK)
            continue; /* a signal */
        if (heap->state == SPT_HEAP_COMPLETE && heap->length >= r->common.heap_size) {
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
        argc, argv, "Receives heaps into memory that is used again and again.", "gomt");
    spt_error err = {0};
    /* Heaps that are finished: in the ring, with us, given back, and waiting for the ring. */
    size_t n = 2 * (LIVE + r.ring);
    spt_memory_pool_config kept = {
        r.common.heap_size, r.common.heap_size + MORE, n, r.pool ? n : 0, 0, {0}};
    spt_memory_pool *memory = check_made(spt_memory_pool_create(NULL, &kept, &err), &err);
    spt_thread_pool *pool = NULL;
    if (r.thread)
        pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.max_heaps = LIVE;
    config.heaps.allow_out_of_order = r.out_of_order;
    config.heaps.max_heap_size = larger(config.heaps.max_heap_size, r.common.heap_size + MORE);
    if (r.pool)
        config.heaps.memory = spt_memory_pool_memory(memory);
    config.ring_heaps = r.ring;
    spt_recv_stream *stream = check_made(spt_recv_stream_create(pool, &config, &err), &err);
    spt_receive_config socket = SPT_RECEIVE_CONFIG_DEFAULT;
    socket.max_size = larger(socket.max_size, r.common.packet_size);
    socket.gro = r.gro;
    check(spt_recv_stream_add_udp_socket(stream, r.common.socket, &socket, &err), &err);
    receiving_ready(&r);
    receive(&r, stream);
    spt_recv_stats stats;
    spt_recv_stream_stats(stream, &stats);
    r.packets = stats.account.packets + stats.after_end;
    r.calls = stats.sockets.calls;
    int status = receiving_end(&r);
    spt_recv_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_memory_pool_destroy(memory);
    return status;
}
