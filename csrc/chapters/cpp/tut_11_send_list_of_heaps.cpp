// SPDX-License-Identifier: BSD-3-Clause
// Chapter 11, first step: one call for a batch of heaps, listed anew each time.
#include "chapter.hpp"
#include <algorithm>
#include <array>

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

// Heaps and their memory, to leave alone until they have been sent.
struct batch {
    batch(std::size_t batch_size, std::size_t heap_size)
        : timestamps(batch_size), adc_samples(batch_size * heap_size, 1)
    {
        const std::span rows = adc_samples;
        for (std::size_t i = 0; i < batch_size; i++)
            heaps.push_back(
                make_heap(timestamps[i], rows.subspan(i * heap_size, heap_size), SPT_VALUES));
        first_heap = make_heap(timestamps[0], rows.first(heap_size), SPT_ALL);
    }

    std::vector<std::uint64_t> timestamps;
    std::vector<std::int8_t> adc_samples; // batch_size rows of heap_size
    std::vector<spt::heap> heaps;
    spt::heap first_heap;
    spt::completion sent;
};

int main(int argc, char **argv)
{
    const auto options = parse_options(
        argc, argv, "Chapter 11, first step: one call for a batch of heaps, listed anew each time.",
        "nHpd", {.packet_size = 9000});
    const std::size_t heap_size = options.heap_size;
    const std::size_t batch_size =
        std::min(options.n_heaps, std::max<std::size_t>(1, 512UL * 1024 / heap_size));
    const spt::thread_pool thread_pool;
    spt::stream_config config;
    config.rate = 0;
    config.max_heaps = 2 * batch_size;
    config.max_packet_size = options.packet_size;
    spt::udp_stream stream(thread_pool, options.endpoint, config);

    std::array batches = {batch(batch_size, heap_size), batch(batch_size, heap_size)};
    std::vector<spt::heap_reference> references; // the call copies them: one list for both batches
    references.reserve(batch_size);
    const usage start = usage_now();
    for (std::size_t first = 0; first < options.n_heaps; first += batch_size) {
        batch &batch = batches[first / batch_size % 2];
        batch.sent.wait();
        references.clear();
        const std::size_t n = std::min(batch_size, options.n_heaps - first); // fewer at the end
        for (std::size_t i = 0; i < n; i++) {
            std::ranges::fill(std::span(batch.adc_samples).subspan(i * heap_size, heap_size),
                              static_cast<std::int8_t>(first + i)); // wraps
            batch.timestamps[i] = (first + i) * heap_size;
            references.emplace_back(first + i > 0 ? batch.heaps[i] : batch.first_heap);
        }
        stream.async_send(references, SPT_GROUP_SERIAL, batch.sent);
    }
    for (batch &batch : batches)
        batch.sent.wait();
    const usage used = usage_since(start);
    stream.send_end();
    report(options, stream, used);
}
