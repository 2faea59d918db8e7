// SPDX-License-Identifier: BSD-3-Clause
// Chapter 10, first step: more heaps in flight.
#include "chapter.hpp"
#include <algorithm>
#include <deque>
#include <optional>

// Memory for a heap, to leave alone until it has been sent.
struct state {
    explicit state(std::size_t heap_size) : adc_samples(heap_size, 1) {}

    std::uint64_t timestamp = 0;
    std::vector<std::int8_t> adc_samples;
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
    const auto options = parse_options(argc, argv, "Chapter 10, first step: more heaps in flight.",
                                       "nHpd", {.packet_size = 9000});
    const std::size_t heap_size = options.heap_size;
    const std::size_t n_states =
        std::min(options.n_heaps, std::max<std::size_t>(2, 1024UL * 1024 / heap_size));
    const spt::thread_pool thread_pool;
    spt::stream_config config;
    config.rate = 0;
    config.max_heaps = n_states;
    config.max_packet_size = options.packet_size;
    spt::udp_stream stream(thread_pool, options.endpoint, config);

    std::deque<state> states; // which leaves them where they are
    while (states.size() < n_states)
        states.emplace_back(heap_size);
    const usage start = usage_now();
    for (std::size_t i = 0; i < options.n_heaps; i++) {
        state &state = states[i % n_states];
        state.sent.wait();
        std::ranges::fill(state.adc_samples, static_cast<std::int8_t>(i)); // wraps
        state.timestamp = i * heap_size;
        state.heap = make_heap(state.timestamp, state.adc_samples, i == 0 ? SPT_ALL : SPT_VALUES);
        stream.async_send(*state.heap, state.sent);
    }
    for (state &state : states)
        state.sent.wait();
    const usage used = usage_since(start);
    stream.send_end();
    report(options, stream, used);
}
