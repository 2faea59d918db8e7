/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 17: power by the thread that reads, from data that is in its cache. */
#include "receiving.h"

int main(int argc, char **argv)
{
    struct receiver_options options = parse_receiver_options(
        argc, argv, "Chapter 17: power by the thread that reads, from data that is in its cache.",
        (struct receiver_options){0});
    spt_error err = {0};
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.contiguous_only = true;
    spt_recv_stream *stream = check_made(spt_recv_stream_create(NULL, &config, &err), &err);
    check(spt_recv_stream_add_udp(stream, &options.endpoint, NULL, &err), &err);

    spt_item_group *item_group = check_made(spt_item_group_create(0, &err), &err);
    struct heaps heaps = heaps_of(stream, &options);
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
    return status;
}
