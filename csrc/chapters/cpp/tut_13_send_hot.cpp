// SPDX-License-Identifier: BSD-3-Clause
// Chapter 13: fill and send on one thread, while the data is in its cache.
#include "chapter.hpp"
#include <algorithm>

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

// Heaps and their memory.
struct batch {
    batch(std::size_t batch_size, std::size_t heap_size)
        : timestamps(batch_size), adc_samples(batch_size * heap_size, 1)
    {
        const std::span rows = adc_samples;
        for (std::size_t i = 0; i < batch_size; i++)
            heaps.push_back(
                make_heap(timestamps[i], rows.subspan(i * heap_size, heap_size), SPT_VALUES));
        first_heap = make_heap(timestamps[0], rows.first(heap_size), SPT_ALL);
        references.assign(heaps.begin(), heaps.end());
        first_references = references;
        first_references[0] = first_heap;
    }

    std::vector<std::uint64_t> timestamps;
    std::vector<std::int8_t> adc_samples; // batch_size rows of heap_size
    std::vector<spt::heap> heaps;
    spt::heap first_heap;
    std::vector<spt::heap_reference> references, first_references;
};

int main(int argc, char **argv)
{
    const auto options = parse_options(
        argc, argv, "Chapter 13: fill and send on one thread, while the data is in its cache.",
        "nHpd", {.packet_size = 9000});
    const std::size_t heap_size = options.heap_size;
    const std::size_t batch_size =
        std::min(options.n_heaps, std::max<std::size_t>(1, 512UL * 1024 / heap_size));
    spt::stream_config config;
    config.rate = 0;
    config.max_heaps = batch_size;
    config.max_packet_size = options.packet_size;
    spt::udp_stream stream(spt::no_thread, options.endpoint, config);

    batch batch(batch_size, heap_size);
    const usage start = usage_now();
    for (std::size_t first = 0; first < options.n_heaps; first += batch_size) {
        const std::size_t n = std::min(batch_size, options.n_heaps - first); // fewer at the end
        for (std::size_t i = 0; i < n; i++) {
            std::ranges::fill(std::span(batch.adc_samples).subspan(i * heap_size, heap_size),
                              static_cast<std::int8_t>(first + i)); // wraps
            batch.timestamps[i] = (first + i) * heap_size;
        }
        const std::span references = first > 0 ? batch.references : batch.first_references;
        stream.send(references.first(n), SPT_GROUP_SERIAL);
    }
    const usage used = usage_since(start);
    stream.send_end();
    report(options, stream, used);
}
