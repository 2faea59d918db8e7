// SPDX-License-Identifier: BSD-3-Clause
// Sends ten heaps, one while the next is made: without_spead2 HOST PORT.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <spead_tutorial/spt.hpp>
#include <string>
#include <vector>

static const std::size_t heap_size = 8000;

// What a heap refers to, to leave alone until it has been sent; and the heap.
struct buffer {
    std::uint64_t timestamp = 0;
    std::vector<std::int8_t> samples = std::vector<std::int8_t>(heap_size);
    spt::heap first_heap = make_heap(SPT_ALL), heap = make_heap(SPT_VALUES);
    spt::completion sent;

    spt::heap make_heap(unsigned parts) const
    {
        return spt::heap(
            {
                spt::immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
                spt::array(0x3300, "samples", "Samples of the converter", samples),
            },
            parts);
    }
};

int main(int argc, char **argv)
try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s HOST PORT\n", argv[0]);
        return 2;
    }
    const spt::endpoint endpoint = {argv[1], std::stoi(argv[2])};
    const spt::thread_pool thread_pool;
    spt::stream_config config;
    config.max_packet_size = 8972;
    spt::udp_stream stream(thread_pool, endpoint, config);

    std::array<buffer, 2> buffers;
    for (std::size_t i = 0; i < 10; i++) {
        buffer &next = buffers[i % 2];
        next.sent.wait();
        std::ranges::fill(next.samples, static_cast<std::int8_t>(i));
        next.timestamp = i * heap_size;
        stream.async_send(i == 0 ? next.first_heap : next.heap, next.sent);
    }
    for (buffer &last : buffers)
        last.sent.wait();
    stream.send_end();
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
