// SPDX-License-Identifier: BSD-3-Clause
// Chapter 17: power by the thread that reads, from data that is in its cache.
#include "receiving.hpp"

int main(int argc, char **argv)
{
    const auto options = parse_receiver_options(
        argc, argv, "Chapter 17: power by the thread that reads, from data that is in its cache.",
        {});
    spt::recv_config config;
    config.contiguous_only = true;
    spt::recv_stream stream(spt::no_thread, config);
    stream.add_udp(options.endpoint);

    spt::item_group item_group;
    received_heaps heaps(stream, options);
    std::size_t received = 0;
    while (const spt::received_heap heap = heaps.next()) {
        item_group.update(heap);
        say_described(&options, item_group.get());
        const spt::group_item *timestamp = numbers(item_group.get(), "timestamp");
        const spt::group_item *adc_samples = numbers(item_group.get(), "adc_samples");
        if (timestamp != nullptr && is_int8(adc_samples)) {
            const auto samples = spt::values<std::int8_t>(*adc_samples);
            const double power = mean_square_int8(samples.data(), samples.size());
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n", number_at(timestamp, 0),
                power);
            received++;
        } else
            heaps.not_understood++;
    }
    return report_heaps(&heaps, "Received %zu heaps\n", received);
}
