// SPDX-License-Identifier: BSD-3-Clause
// Sends what comes on standard input: my_sender HOST PORT [HEAP_SIZE].
#include <cstdio>
#include <cstdlib>
#include <spead_tutorial/spt.hpp>
#include <vector>

// A heap, with the memory that it refers to. It stays where it is: the heap knows its address.
struct block {
    std::uint64_t timestamp = 0;
    std::vector<std::int8_t> samples;
    spt::heap first_heap, heap;
    spt::completion sent;

    explicit block(std::size_t heap_size) : samples(heap_size)
    {
        const spt::variable items[] = {
            spt::immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
            spt::array(0x3300, "samples", "What came on standard input", samples),
        };
        first_heap.add(items, SPT_ALL);
        heap.add(items, SPT_VALUES);
    }
    block(const block &) = delete;
    block &operator=(const block &) = delete;
    ~block() = default;
};

int main(int argc, char **argv)
try {
    if (argc < 3 || argc > 4) {
        std::fprintf(stderr, "usage: %s HOST PORT [HEAP_SIZE]\n", argv[0]);
        return 2;
    }
    const spt::thread_pool thread_pool;
    spt::stream_config config;
    config.max_packet_size = 8972;
    spt::udp_stream stream(thread_pool, {{argv[1], std::atoi(argv[2])}}, config);

    const std::size_t heap_size = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1 << 20;
    block blocks[] = {block(heap_size), block(heap_size)}; // one is filled while the other is sent
    for (std::uint64_t i = 0;; i++) {
        block &block = blocks[i % 2];
        block.sent.wait();
        if (std::fread(block.samples.data(), block.samples.size(), 1, stdin) == 0)
            break;
        block.timestamp = i * block.samples.size();
        stream.async_send(i % 100 == 0 ? block.first_heap : block.heap, block.sent);
    }
    for (block &block : blocks)
        block.sent.wait();
    stream.send_end();
} catch (const spt::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
