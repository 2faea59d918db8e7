// SPDX-License-Identifier: BSD-3-Clause
// Chapter 3: a first receiver. It prints what is in each heap as it arrives.
#include "receiving.hpp"

static double mean_square(const spt::group_item &samples)
{
    std::uint64_t sum = 0;
    const std::size_t n = n_numbers(&samples);
    for (std::size_t i = 0; i < n; i++) {
        const auto sample = static_cast<std::uint64_t>(number_at(&samples, i));
        sum += sample * sample;
    }
    return static_cast<double>(static_cast<std::int64_t>(sum)) / static_cast<double>(n);
}

int main(int argc, char **argv)
{
    const auto options = parse_receiver_options(
        argc, argv, "Chapter 3: a first receiver. It prints what is in each heap as it arrives.",
        {});
    const spt::thread_pool thread_pool;
    spt::recv_config config;
    config.contiguous_only = true;
    spt::recv_stream stream(thread_pool, config);
    stream.add_udp(options.endpoint);

    spt::item_group item_group;
    received_heaps heaps(stream, options);
    while (const spt::received_heap heap = heaps.next()) {
        item_group.update(heap);
        say_described(&options, item_group.get());
        const spt::group_item *timestamp = numbers(item_group.get(), "timestamp");
        const spt::group_item *adc_samples = numbers(item_group.get(), "adc_samples");
        if (timestamp != nullptr && adc_samples != nullptr)
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n", number_at(timestamp, 0),
                mean_square(*adc_samples));
        else
            heaps.not_understood++;
    }
    return report_heaps(&heaps, nullptr);
}
