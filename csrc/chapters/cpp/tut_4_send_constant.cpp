// SPDX-License-Identifier: BSD-3-Clause
// Chapter 4: the same loop with constant samples, which are quickly made.
#include "chapter.hpp"
#include <algorithm>
#include <memory>

int main(int argc, char **argv)
{
    const auto options = parse_options(
        argc, argv, "Chapter 4: the same loop with constant samples, which are quickly made.",
        "nHcd", {.n_heaps = 100});
    const spt::thread_pool thread_pool(1, std::span(&options.cores[1], options.pinned));
    if (options.pinned)
        spt::thread_pool::set_affinity(options.cores[0]);
    spt::stream_config config;
    config.rate = 0;
    spt::udp_stream stream(thread_pool, options.endpoint, config);

    const std::size_t heap_size = options.heap_size;
    const usage start = usage_now();
    for (std::size_t i = 0; i < options.n_heaps; i++) {
        const std::uint64_t timestamp = i * heap_size;
        const auto memory = std::make_unique_for_overwrite<std::int8_t[]>(heap_size);
        const std::span adc_samples(memory.get(), heap_size);
        std::ranges::fill(adc_samples, static_cast<std::int8_t>(i)); // wraps
        const spt::heap heap(
            {
                spt::immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
                spt::array(0x3300, "adc_samples", "Samples of the converter", adc_samples),
            },
            i == 0 ? SPT_ALL : SPT_VALUES);
        stream.send(heap);
    }
    const usage used = usage_since(start);
    stream.send_end();
    report(options, stream, used);
}
