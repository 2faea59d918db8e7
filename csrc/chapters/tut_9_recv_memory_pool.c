/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 9: heaps are received into memory that others have left, in a pool. */
#include "receiving.h"

/* Where heaps are: being put together, in the ring, in this program. One more may be between them.
 */
enum { MAX_HEAPS = 2, RING_HEAPS = 2, HELD = 1, BETWEEN = 1 };
enum { BUFFERS = MAX_HEAPS + RING_HEAPS + HELD + BETWEEN };
enum { DESCRIPTORS = 8192 }; /* bytes that may be in a heap besides its samples */

int main(int argc, char **argv)
{
    struct receiver_options options = parse_receiver_options(
        argc, argv, "Chapter 9: heaps are received into memory that others have left, in a pool.",
        (struct receiver_options){.heap_size = 1 << 20, .buffers = BUFFERS});
    spt_error err = {0};
    spt_memory_pool_config sizes = {
        .upper = options.heap_size + DESCRIPTORS,
        .max_free = options.buffers,
        .initial = options.buffers,
    };
    spt_memory_pool *pool = check_made(spt_memory_pool_create(NULL, &sizes, &err), &err);
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.max_heaps = MAX_HEAPS;
    config.heaps.memory = spt_memory_pool_memory(pool);
    config.ring_heaps = RING_HEAPS;
    config.contiguous_only = true;
    spt_recv_stream *stream = check_made(spt_recv_stream_create(thread_pool, &config, &err), &err);
    check(spt_recv_stream_add_udp(stream, &options.endpoint, NULL, &err), &err);

    spt_item_group *item_group = check_made(spt_item_group_create(0, &err), &err);
    struct heaps heaps = heaps_of(stream, &options);
    heaps.pool = pool;
    size_t received = 0;
    spt_received_heap *heap;
    while ((heap = next_heap(&heaps)) != NULL) {
        size_t undescribed;
        check(spt_item_group_update(item_group, heap, &undescribed, &err), &err);
        say_described(&options, item_group);
        const spt_group_item *timestamp = numbers(item_group, "timestamp");
        const spt_group_item *adc_samples = numbers(item_group, "adc_samples");
        if (timestamp != NULL && is_int8(adc_samples)) {
            const int8_t *samples = (const int8_t *)adc_samples->value.data;
            double power = mean_square_int8(samples, n_numbers(adc_samples));
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n", number_at(timestamp, 0),
                power);
            received++;
        } else
            heaps.not_understood++;
        spt_recv_stream_return(stream, heap);
    }
    int status = report_heaps(&heaps, "Received %zu heaps\n", received);
    spt_item_group_destroy(item_group);
    spt_recv_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    spt_memory_pool_destroy(pool);
    return status;
}
