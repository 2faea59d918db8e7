/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives small heaps into chunks, whose memory is used again and again: to be measured. */
#include "place.h"
#include "receiving.h"

enum { CHUNK = 1 << 20, CHUNKS = 8, WINDOW = 2, LIVE = 4 };

static void receive(struct receiving *r, spt_chunk_ring *filled, spt_chunk_ring *free_ones)
{
    spt_chunk *chunk;
    spt_status status;
    while ((status = spt_chunk_ring_get(filled, -1, &chunk)) != SPT_DONE) {
        if (status != SPT_OK)
            continue; /* a signal */
        size_t n = 0;
        for (size_t i = 0; i < chunk->present_size; i++)
            if (chunk->present[i]) {
                n++;
                if (r->check)
                    receiving_check(r, (uint64_t)chunk->chunk_id * chunk->present_size + i,
                                    (const uint8_t *)chunk->data + i * r->common.heap_size);
            }
        receiving_heaps(r, n);
        (void)!spt_chunk_ring_put(free_ones, chunk, -1);
    }
}

static spt_recv_stream *make_stream(spt_thread_pool *pool, struct chunk_shape *shape,
                                    spt_chunk_ring *filled, spt_chunk_ring *free_ones)
{
    spt_error err = {0};
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.max_heaps = LIVE;
    const spt_chunk_config chunks = {
        .place = place,
        .place_user = shape,
        .items = (const uint64_t[]){SPT_ID_HEAP_CNT},
        .n_items = 1,
        .max_chunks = WINDOW,
        .data_ring = filled,
        .free_ring = free_ones,
    };
    return check_made(spt_recv_stream_create_chunks(pool, &config, &chunks, &err), &err);
}

int main(int argc, char **argv)
{
    struct receiving r =
        receiving_begin(argc, argv, "Receives small heaps into chunks of about 1 MiB.", "g");
    size_t heaps = larger(1, CHUNK / r.common.heap_size);
    struct chunk_shape shape = {(int64_t)heaps, (int64_t)r.common.heap_size};
    spt_error err = {0};
    spt_thread_pool *pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_chunk_ring *filled = check_made(spt_chunk_ring_create(CHUNKS, &err), &err);
    spt_chunk_ring *free_ones = check_made(spt_chunk_ring_create(CHUNKS, &err), &err);
    spt_recv_stream *stream = make_stream(pool, &shape, filled, free_ones);
    spt_chunk chunks[CHUNKS] = {0};
    for (size_t i = 0; i < CHUNKS; i++) {
        chunks[i].data = alloc_touched(chunks[i].data_size = heaps * r.common.heap_size);
        chunks[i].present = alloc_zeros(chunks[i].present_size = heaps);
        check(spt_chunk_ring_put(free_ones, &chunks[i], 0), &err);
    }
    spt_receive_config socket = SPT_RECEIVE_CONFIG_DEFAULT;
    socket.max_size = larger(socket.max_size, r.common.packet_size);
    socket.gro = r.gro;
    check(spt_recv_stream_add_udp_socket(stream, r.common.socket, &socket, &err), &err);
    receiving_ready(&r);
    receive(&r, filled, free_ones);
    spt_recv_stats stats;
    spt_recv_stream_stats(stream, &stats);
    r.packets = stats.account.packets + stats.after_end;
    r.calls = stats.sockets.calls;
    r.incomplete = stats.account.heaps_evicted + stats.account.heaps_flushed;
    int status = receiving_end(&r);
    spt_recv_stream_destroy(stream);
    spt_chunk_ring_destroy(free_ones);
    spt_chunk_ring_destroy(filled);
    for (size_t i = 0; i < CHUNKS; i++) {
        free(chunks[i].data);
        free(chunks[i].present);
    }
    spt_thread_pool_destroy(pool);
    return status;
}
