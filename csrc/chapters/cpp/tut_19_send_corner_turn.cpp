// SPDX-License-Identifier: BSD-3-Clause
// Chapter 19: one of an array's senders, each of which sends to every receiver.
#include "chapter.hpp"
#include <algorithm>

// A stream with a substream for each receiver, at one rate for all of them together.
struct sender {
    explicit sender(const options &options)
        : index(options.sender), senders(options.senders), stream(make_stream(options))
    {
    }

    static spt::udp_stream make_stream(const options &options)
    {
        const std::span destinations(options.destinations, options.n_destinations);
        std::vector<spt::endpoint> endpoints(destinations.begin(), destinations.end());
        for (spt::endpoint &endpoint : endpoints)
            endpoint.port += static_cast<int>(options.sender);
        spt::stream_config config;
        config.rate = options.rate * 1e6;
        config.max_heaps = endpoints.size();
        config.max_packet_size = options.packet_size;
        spt::udp_config udp;
        udp.interface_address = options.interface;
        udp.ttl = options.ttl;
        return {spt::no_thread, endpoints, config, udp};
    }

    // Send the k-th heap to each receiver, a packet to each in turn. No other sender has the same
    // heap counts.
    void send(std::span<const spt::heap> heaps, std::size_t k)
    {
        const auto cnt = static_cast<std::int64_t>(k * senders + index + 1);
        references.clear();
        for (const spt::heap &heap : heaps)
            references.emplace_back(heap, cnt, references.size());
        stream.send(references, SPT_GROUP_ROUND_ROBIN);
    }

    std::size_t index, senders;
    spt::udp_stream stream;
    std::vector<spt::heap_reference> references;
};

// What a receiver gets; its heaps send the values as they are then.
static spt::heap make_heap(const std::uint64_t &timestamp, const std::uint64_t &sender,
                           std::span<const std::int8_t> samples, unsigned parts)
{
    return spt::heap(
        {
            spt::immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
            spt::immediate(0x4101, "antenna", "Index of the sender", sender),
            spt::array(0x3300, "adc_samples", "Samples of the converter", samples),
        },
        parts);
}

int main(int argc, char **argv)
{
    const auto options = parse_options(
        argc, argv, "Chapter 19: one of an array's senders, each of which sends to every receiver.",
        "nHpa", {.packet_size = 9000});
    const std::size_t heap_size = options.heap_size, n_receivers = options.n_destinations;
    std::uint64_t timestamp = 0;
    const std::uint64_t index = options.sender;
    std::vector<std::int8_t> adc_samples(n_receivers * heap_size, 1); // a row for each
    std::vector<spt::heap> descriptors, heaps, ends;
    spt_error err{};
    for (std::size_t j = 0; j < n_receivers; j++) {
        const auto row = std::span(adc_samples).subspan(j * heap_size, heap_size);
        descriptors.push_back(make_heap(timestamp, index, row, SPT_DESCRIPTORS));
        heaps.push_back(make_heap(timestamp, index, row, SPT_VALUES));
        check(spt_heap_add_end(ends.emplace_back().get(), &err), &err);
    }

    sender sender(options);
    const usage start = usage_now();
    sender.send(descriptors, 0);
    for (std::size_t i = 0; i < options.n_heaps; i++) {
        for (std::size_t j = 0; j < n_receivers; j++) // the samples say who sent them, and to whom
            std::ranges::fill(std::span(adc_samples).subspan(j * heap_size, heap_size),
                              static_cast<std::int8_t>(i + index + j)); // wraps
        timestamp = i * heap_size;
        sender.send(heaps, i + 1);
    }
    const usage used = usage_since(start);
    sender.send(ends, options.n_heaps + 1);
    report(options, sender.stream, used);
}
