/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 19: one of an array's receivers, which gathers what all senders send in chunks. */
#include "receiving.h"

enum {
    CHUNK = 1 << 20,     /* bytes of each sender's samples in a chunk, or somewhat less */
    WINDOW = 8,          /* chunks that are filled: so far may a sender be ahead of another */
    CHUNKS = WINDOW + 3, /* with two in the ring, and one with the program */
};

/* What a place function has to know. */
struct known {
    int64_t heap_size, n_heaps, sender;
};

/* Say where a heap belongs: in the row of the sender whose port it came to. */
static void place(spt_place_data *data, size_t size, void *user)
{
    (void)size;
    const struct known *known = user;
    int64_t length = data->items[0], timestamp = data->items[1];
    if (timestamp < 0)
        return; /* it is the one with the descriptors */
    if (length == known->heap_size && timestamp % known->heap_size == 0) {
        int64_t i = timestamp / known->heap_size;
        data->chunk_id = i / known->n_heaps;
        data->heap_index = (uint64_t)(known->sender * known->n_heaps + i % known->n_heaps);
        data->heap_offset = data->heap_index * (uint64_t)known->heap_size;
    } else
        data->batch_stats[0]++;
}

/* Mean of the squares of the heaps that are there. */
static double mean_square(const spt_chunk *chunk, size_t heap_size)
{
    const int8_t *samples = chunk->data;
    double total = 0;
    for (size_t i = 0; i < chunk->present_size; i++)
        if (chunk->present[i])
            total += mean_square_int8(samples + i * heap_size, heap_size);
    return total / (double)n_present(chunk);
}

/* How many senders have a heap there. */
static size_t n_there(const spt_chunk *chunk, size_t n_heaps)
{
    size_t there = 0;
    for (size_t i = 0; i < chunk->present_size; i += n_heaps)
        there += memchr(chunk->present + i, 1, n_heaps) != NULL;
    return there;
}

/* Add the stream of a sender. */
static spt_recv_stream *add_stream(spt_chunk_group *group, spt_thread_pool *thread_pool,
                                   struct known *known, spt_error *err)
{
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.max_heaps = 2;
    const spt_chunk_config chunk_config = {
        .items = (const uint64_t[]){SPT_ID_HEAP_LENGTH, 0x1600},
        .n_items = 2,
        .max_chunks = 1,
        .place = place,
        .place_user = known,
        .n_stats = 1,
    };
    return check_made(spt_chunk_group_add(group, thread_pool, &config, &chunk_config, err), err);
}

int main(int argc, char **argv)
{
    struct receiver_options options = parse_receiver_options(
        argc, argv,
        "Chapter 19: one of an array's receivers, which gathers what all senders send in chunks.",
        (struct receiver_options){.heap_size = 1 << 20, .senders = 1});
    size_t heap_size = options.heap_size, senders = options.senders;
    size_t n_heaps = larger(1, CHUNK / heap_size); /* of each sender in a chunk */
    spt_error err = {0};
    spt_chunk_ring *filled = check_made(spt_chunk_ring_create(2, &err), &err);
    spt_chunk_ring *free_ones = check_made(spt_chunk_ring_create(CHUNKS, &err), &err);
    const spt_chunk_group_config config = {
        .max_chunks = WINDOW,
        .lossless = !options.lossy,
        .data_ring = filled,
        .free_ring = free_ones,
    };
    spt_chunk_group *group = check_made(spt_chunk_group_create(&config, &err), &err);
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(senders, NULL, 0, &err), &err);
    struct known *known = alloc_zeros(senders * sizeof(*known));
    spt_recv_stream **streams = alloc_zeros(senders * sizeof(spt_recv_stream *));
    for (size_t i = 0; i < senders; i++) {
        known[i] = (struct known){(int64_t)heap_size, (int64_t)n_heaps, (int64_t)i};
        streams[i] = add_stream(group, thread_pool, &known[i], &err);
    }
    spt_chunk chunks[CHUNKS] = {0};
    for (size_t i = 0; i < CHUNKS; i++) {
        chunks[i].data = alloc_zeros(chunks[i].data_size = senders * n_heaps * heap_size);
        chunks[i].present = alloc_zeros(chunks[i].present_size = senders * n_heaps);
        check(spt_chunk_ring_put(free_ones, &chunks[i], 0), &err);
    }
    spt_receive_config udp = SPT_RECEIVE_CONFIG_DEFAULT;
    udp.interface_address = options.interface;
    for (size_t i = 0; i < senders; i++) {
        spt_endpoint endpoint = {options.endpoint.host, options.endpoint.port + (int)i};
        check(spt_recv_stream_add_udp(streams[i], &endpoint, &udp, &err), &err);
    }

    struct heaps heaps = chunks_of_all(group, streams, senders, filled, &options);
    size_t received = 0;
    spt_chunk *chunk;
    while ((chunk = next_chunk(&heaps)) != NULL) {
        size_t n = n_present(chunk);
        if (n > 0) {
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f Senders: %zu of %zu\n",
                chunk->chunk_id * (int64_t)(n_heaps * heap_size), mean_square(chunk, heap_size),
                n_there(chunk, n_heaps), senders);
            received += n;
        }
        (void)!spt_chunk_ring_put(free_ones, chunk, 0); /* it is stopped after silence */
    }
    return report_heaps(&heaps, "Received %zu heaps\n", received); /* the kernel frees everything */
}
