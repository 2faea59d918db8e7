// SPDX-License-Identifier: BSD-3-Clause
// Prints timestamp and sum of the heaps that come: receive_without_spead2 ADDRESS PORT.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <spead_tutorial/spt_recv.hpp>
#include <string>

int main(int argc, char **argv)
try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
        return 2;
    }
    const spt::thread_pool thread_pool;
    spt::recv_config config;
    config.contiguous_only = true;
    config.ring_heaps = 16;
    spt::recv_stream stream(thread_pool, config);
    spt::receive_config udp;
    udp.max_size = 8972;
    udp.buffer_size = 1 << 20;
    stream.add_udp({argv[1], std::stoi(argv[2])}, udp);
    std::puts("ready");
    std::fflush(stdout);

    spt::item_group items;
    for (const spt::received_heap &heap : stream) {
        items.update(heap);
        const spt::group_item *timestamp = items.find("timestamp"), *found = items.find("samples");
        if (timestamp == nullptr || found == nullptr)
            continue; // the descriptors were lost
        const auto samples = spt::values<std::int8_t>(*found);
        const std::int64_t sum = std::accumulate(samples.begin(), samples.end(), std::int64_t(0));
        std::printf("%" PRIu64 " %" PRId64 "\n", timestamp->immediate, sum);
    }
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
