/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 3: a first receiver. It prints what is in each heap as it arrives. */
#include "receiving.h"

static double mean_square(const spt_group_item *samples)
{
    uint64_t sum = 0;
    size_t n = n_numbers(samples);
    for (size_t i = 0; i < n; i++) {
        uint64_t sample = (uint64_t)number_at(samples, i);
        sum += sample * sample;
    }
    return (double)(int64_t)sum / (double)n;
}

int main(int argc, char **argv)
{
    struct receiver_options options = parse_receiver_options(
        argc, argv, "Chapter 3: a first receiver. It prints what is in each heap as it arrives.",
        (struct receiver_options){0});
    spt_error err = {0};
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.contiguous_only = true;
    spt_recv_stream *stream = check_made(spt_recv_stream_create(thread_pool, &config, &err), &err);
    check(spt_recv_stream_add_udp(stream, &options.endpoint, NULL, &err), &err);

    spt_item_group *item_group = check_made(spt_item_group_create(0, &err), &err);
    struct heaps heaps = heaps_of(stream, &options);
    spt_received_heap *heap;
    while ((heap = next_heap(&heaps)) != NULL) {
        size_t undescribed;
        check(spt_item_group_update(item_group, heap, &undescribed, &err), &err);
        say_described(&options, item_group);
        const spt_group_item *timestamp = numbers(item_group, "timestamp");
        const spt_group_item *adc_samples = numbers(item_group, "adc_samples");
        if (timestamp != NULL && adc_samples != NULL)
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n", number_at(timestamp, 0),
                mean_square(adc_samples));
        else
            heaps.not_understood++;
        spt_recv_stream_return(stream, heap);
    }
    int status = report_heaps(&heaps, NULL);
    spt_item_group_destroy(item_group);
    spt_recv_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return status;
}
