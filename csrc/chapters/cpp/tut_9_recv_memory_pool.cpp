// SPDX-License-Identifier: BSD-3-Clause
// Chapter 9: heaps are received into memory that others have left, in a pool.
#include "receiving.hpp"

// Where heaps are: being put together, in the ring, in this program. One more may be between them.
constexpr std::size_t MAX_HEAPS = 2, RING_HEAPS = 2, HELD = 1, BETWEEN = 1;
constexpr std::size_t BUFFERS = MAX_HEAPS + RING_HEAPS + HELD + BETWEEN;
constexpr std::size_t DESCRIPTORS = 8192; // bytes that may be in a heap besides its samples

int main(int argc, char **argv)
{
    const auto options = parse_receiver_options(
        argc, argv, "Chapter 9: heaps are received into memory that others have left, in a pool.",
        {.heap_size = 1 << 20, .buffers = BUFFERS});
    spt::memory_pool_config sizes;
    sizes.upper = options.heap_size + DESCRIPTORS;
    sizes.max_free = options.buffers;
    sizes.initial = options.buffers;
    const spt::memory_pool pool(sizes);
    const spt::thread_pool thread_pool;
    spt::recv_config config;
    config.heaps.max_heaps = MAX_HEAPS;
    config.heaps.memory = pool.memory();
    config.ring_heaps = RING_HEAPS;
    config.contiguous_only = true;
    spt::recv_stream stream(thread_pool, config);
    stream.add_udp(options.endpoint);

    spt::item_group item_group;
    received_heaps heaps(stream, options);
    heaps.pool = pool.get();
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
