// SPDX-License-Identifier: BSD-3-Clause
// Chapter 6: bigger packets.
#include "chapter.hpp"
#include <algorithm>
#include <memory>
#include <optional>

// A heap in flight: leave it alone until it has been sent.
struct state {
    explicit state(std::size_t heap_size)
        : memory(std::make_unique_for_overwrite<std::int8_t[]>(heap_size)),
          adc_samples(memory.get(), heap_size)
    {
    }

    std::uint64_t timestamp = 0;
    std::unique_ptr<std::int8_t[]> memory;
    std::span<std::int8_t> adc_samples;
    std::optional<spt::heap> heap;
    spt::completion sent;
};

// A heap with both items. It refers to their values: they are read when the heap is sent.
static spt::heap make_heap(const std::uint64_t &timestamp, std::span<const std::int8_t> adc_samples,
                           unsigned parts)
{
    return spt::heap(
        {
            spt::immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
            spt::array(0x3300, "adc_samples", "Samples of the converter", adc_samples),
        },
        parts);
}

int main(int argc, char **argv)
{
    const auto options =
        parse_options(argc, argv, "Chapter 6: bigger packets.", "npd", {.packet_size = 9000});
    const spt::thread_pool thread_pool;
    spt::stream_config config;
    config.rate = 0;
    config.max_heaps = 2;
    config.max_packet_size = options.packet_size;
    spt::udp_stream stream(thread_pool, options.endpoint, config);

    const std::size_t heap_size = options.heap_size;
    std::unique_ptr<state> old_state;
    const usage start = usage_now();
    for (std::size_t i = 0; i < options.n_heaps; i++) {
        auto new_state = std::make_unique<state>(heap_size);
        std::ranges::fill(new_state->adc_samples, static_cast<std::int8_t>(i)); // wraps
        new_state->timestamp = i * heap_size;
        new_state->heap =
            make_heap(new_state->timestamp, new_state->adc_samples, i == 0 ? SPT_ALL : SPT_VALUES);
        stream.async_send(*new_state->heap, new_state->sent);
        if (old_state)
            old_state->sent.wait();
        old_state = std::move(new_state);
    }
    if (old_state)
        old_state->sent.wait();
    const usage used = usage_since(start);
    stream.send_end();
    report(options, stream, used);
}
