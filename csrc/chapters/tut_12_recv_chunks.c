/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 12: small heaps, gathered in chunks of about 1 MiB. */
#include "receiving.h"

enum {
    CHUNK = 1 << 20, /* bytes of samples in a chunk, or somewhat less */
    CHUNKS = 4,      /* one that is filled, two in the ring, and one with the program */
};

/* What the place function has to know. */
struct known {
    int64_t heap_size, chunk_size;
};

/* Say where a heap belongs: called by the stream's thread. */
static void place(spt_place_data *data, size_t size, void *user)
{
    (void)size;
    const struct known *known = user;
    int64_t length = data->items[0], timestamp = data->items[1];
    if (timestamp < 0)
        return; /* there are no samples in it: it has the descriptors */
    if (length == known->heap_size && timestamp % known->heap_size == 0) {
        data->chunk_id = timestamp / known->chunk_size;
        data->heap_offset = (uint64_t)(timestamp % known->chunk_size);
        data->heap_index = data->heap_offset / (uint64_t)known->heap_size;
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

static spt_recv_stream *make_stream(spt_thread_pool *thread_pool, struct known *known,
                                    spt_chunk_ring *filled, spt_chunk_ring *free_ones,
                                    spt_error *err)
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
        .data_ring = filled,
        .free_ring = free_ones,
    };
    return check_made(spt_recv_stream_create_chunks(thread_pool, &config, &chunk_config, err), err);
}

int main(int argc, char **argv)
{
    struct receiver_options options = parse_receiver_options(
        argc, argv, "Chapter 12: small heaps, gathered in chunks of about 1 MiB.",
        (struct receiver_options){.heap_size = 1 << 20});
    size_t n_heaps = larger(1, CHUNK / options.heap_size); /* in a chunk */
    size_t chunk_size = n_heaps * options.heap_size;
    struct known known = {(int64_t)options.heap_size, (int64_t)chunk_size};
    spt_error err = {0};
    size_t n_cores = n_usable_cores(); /* the last two: the stream's thread's, and this one's */
    int core = usable_core(n_cores - smaller(n_cores, 2));
    spt_thread_pool *thread_pool =
        check_made(spt_thread_pool_create(1, &core, n_cores > 1, &err), &err);
    check(spt_set_affinity(usable_core(n_cores - 1), &err), &err);

    spt_chunk_ring *filled = check_made(spt_chunk_ring_create(2, &err), &err);
    spt_chunk_ring *free_ones = check_made(spt_chunk_ring_create(CHUNKS, &err), &err);
    spt_recv_stream *stream = make_stream(thread_pool, &known, filled, free_ones, &err);
    spt_chunk chunks[CHUNKS] = {0};
    for (size_t i = 0; i < CHUNKS; i++) {
        chunks[i].data = alloc_zeros(chunks[i].data_size = chunk_size);
        chunks[i].present = alloc_zeros(chunks[i].present_size = n_heaps);
        check(spt_chunk_ring_put(free_ones, &chunks[i], 0), &err);
    }
    check(spt_recv_stream_add_udp(stream, &options.endpoint, NULL, &err), &err);

    struct heaps heaps = chunks_of(stream, filled, &options);
    size_t received = 0;
    spt_chunk *chunk;
    while ((chunk = next_chunk(&heaps)) != NULL) {
        size_t n = n_present(chunk);
        if (n > 0) {
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n",
                chunk->chunk_id * known.chunk_size, mean_square(chunk, options.heap_size));
            received += n;
        }
        (void)!spt_chunk_ring_put(free_ones, chunk, 0); /* it is stopped after silence */
    }
    int status = report_heaps(&heaps, "Received %zu heaps\n", received);
    spt_recv_stream_destroy(stream);
    spt_chunk_ring_destroy(free_ones);
    spt_chunk_ring_destroy(filled);
    for (size_t i = 0; i < CHUNKS; i++) {
        free(chunks[i].data);
        free(chunks[i].present);
    }
    spt_thread_pool_destroy(thread_pool);
    return status;
}
