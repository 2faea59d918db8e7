// SPDX-License-Identifier: BSD-3-Clause
// Chapter 14: a stream for each core; together they send one sequence of heaps.
#include "chapter.hpp"
#include <algorithm>
#include <thread>

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

// The heaps that a thread fills and sends with its stream: first, first + step, ...
struct sender {
    sender(std::size_t batch_size, std::size_t heap_size)
        : timestamps(batch_size), adc_samples(batch_size * heap_size, 1)
    {
        for (std::size_t i = 0; i < batch_size; i++)
            heaps.push_back(make_heap(timestamps[i], row(i, heap_size), SPT_VALUES));
        references.assign(heaps.begin(), heaps.end());
    }

    std::span<std::int8_t> row(std::size_t i, std::size_t heap_size)
    {
        return std::span(adc_samples).subspan(i * heap_size, heap_size);
    }

    void send_heaps(spt::stream &stream, std::size_t first, std::size_t step, std::size_t n_heaps,
                    std::size_t heap_size, int core)
    {
        if (core >= 0)
            spt::thread_pool::set_affinity(core);
        for (std::size_t i = first; i < n_heaps;) {
            std::size_t n = 0;
            for (; n < heaps.size() && i < n_heaps; n++, i += step) {
                std::ranges::fill(row(n, heap_size), static_cast<std::int8_t>(i)); // wraps
                timestamps[n] = i * heap_size;
            }
            stream.send(std::span(references).first(n), SPT_GROUP_SERIAL);
        }
    }

    std::vector<std::uint64_t> timestamps;
    std::vector<std::int8_t> adc_samples; // a row of heap_size for each heap of a batch
    std::vector<spt::heap> heaps;
    std::vector<spt::heap_reference> references;
};

int main(int argc, char **argv)
{
    const auto options = parse_options(
        argc, argv, "Chapter 14: a stream for each core; together they send one sequence of heaps.",
        "nHpsd", {.packet_size = 9000, .n_streams = n_usable_cores()});
    const std::size_t n_heaps = options.n_heaps, heap_size = options.heap_size;
    const std::size_t n_streams = std::min(options.n_streams, n_heaps);
    const std::size_t batch_size =
        std::min((n_heaps - 1) / n_streams + 1, std::max<std::size_t>(1, 512UL * 1024 / heap_size));
    spt::stream_config config;
    config.max_heaps = batch_size;
    config.max_packet_size = options.packet_size;
    std::vector<sender> senders;
    std::vector<spt::udp_stream> streams;
    for (std::size_t k = 0; k < n_streams; k++) {
        senders.emplace_back(batch_size, heap_size);
        streams.emplace_back(spt::no_thread, options.endpoint, config);
        streams[k].set_cnt_sequence(k + 1, n_streams);
    }
    const auto samples = senders[0].row(0, heap_size);
    const spt::heap first_heap = make_heap(senders[0].timestamps[0], samples, SPT_ALL);
    const usage start = usage_now();
    std::ranges::fill(samples, std::int8_t{0}); // with the descriptors: before all others
    streams[0].send(first_heap);
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < n_streams; k++)
        threads.emplace_back([&, k] {
            const std::size_t first = k > 0 ? k : n_streams;
            const int core = n_streams <= n_usable_cores() ? usable_core(k) : -1;
            senders[k].send_heaps(streams[k], first, n_streams, n_heaps, heap_size, core);
        });
    threads.clear(); // and waits for them
    const usage used = usage_since(start);
    streams[0].set_cnt_sequence(n_heaps + 1, 1); // the stop heap follows the last one
    streams[0].send_end();
    report(options, streams, used);
}
