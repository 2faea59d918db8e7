// SPDX-License-Identifier: BSD-3-Clause
// Chapter 15: a recording that the kernel reads in place, instead of copying it.
#include "chapter.hpp"
#include <algorithm>
#include <optional>

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

// Memory in huge pages, or in small ones.
static std::span<std::int8_t> allocate(std::optional<spt::memory> &memory, std::size_t n_bytes,
                                       bool small_pages)
{
    if (small_pages)
        return {static_cast<std::int8_t *>(alloc_small_pages(n_bytes)), n_bytes};
    memory.emplace(n_bytes);
    if (memory->reason() != nullptr)
        tell("the recording is not in huge pages: %s", memory->reason());
    return memory->as<std::int8_t>();
}

// Rows of samples that are there already, and a heap for each.
struct recording {
    recording(std::size_t n_rows, std::size_t heap_size, bool small_pages)
        : timestamps(n_rows), adc_samples(allocate(memory, n_rows * heap_size, small_pages))
    {
        for (std::size_t i = 0; i < n_rows; i++) {
            const auto row = adc_samples.subspan(i * heap_size, heap_size);
            std::ranges::fill(row, static_cast<std::int8_t>(i)); // wraps
            heaps.push_back(make_heap(timestamps[i], row, SPT_VALUES));
        }
        first_heap = make_heap(timestamps[0], adc_samples.first(heap_size), SPT_ALL);
        references.assign(heaps.begin(), heaps.end());
        references[0] = first_heap;
    }

    std::vector<std::uint64_t> timestamps;
    std::optional<spt::memory> memory;
    std::span<std::int8_t> adc_samples; // n_rows rows of heap_size
    std::vector<spt::heap> heaps;
    spt::heap first_heap;
    std::vector<spt::heap_reference> references;
};

int main(int argc, char **argv)
{
    const auto options = parse_options(
        argc, argv,
        "Chapter 15: a recording that the kernel reads in place, instead of copying it.", "nHpzd",
        {.packet_size = 9000});
    const std::size_t heap_size = options.heap_size, n_heaps = options.n_heaps;
    const auto room = std::max<std::size_t>(heap_size, 8192); // the fewer, where they are small
    const std::size_t batch_size = std::min(n_heaps, std::max<std::size_t>(1, (4 << 20) / room));
    const auto n_batches = std::max<std::size_t>(1, (512 << 20) / room / batch_size); // recorded
    const std::size_t n_rows = std::min(n_batches * batch_size, n_heaps);
    spt::stream_config config;
    config.max_heaps = batch_size;
    config.max_packet_size = options.packet_size;
    spt::udp_config udp;
    udp.zero_copy = !options.copy;
    spt::udp_stream stream(spt::no_thread, options.endpoint, config, udp);

    recording r(n_rows, heap_size, options.small_pages);
    const usage start = usage_now();
    for (std::size_t i = 0; i < n_heaps;) {
        const std::size_t first = i % n_rows; // again and again
        std::size_t n = 0;
        for (; n < batch_size && i < n_heaps; n++, i++) {
            if (options.fill)
                std::ranges::fill(r.adc_samples.subspan((first + n) * heap_size, heap_size),
                                  static_cast<std::int8_t>(i));
            r.timestamps[first + n] = i * heap_size;
        }
        stream.send(std::span(r.references).subspan(first, n), SPT_GROUP_SERIAL);
        r.references[0] = r.heaps[0]; // from now on, without descriptors
    }
    const usage used = usage_since(start);
    if (!options.copy)
        tell_of_copies(stream.get());
    stream.send_end();
    report(options, stream, used);
}
