// SPDX-License-Identifier: BSD-3-Clause
// Prints timestamp and sum of the heaps that come: receive_with_spead2 ADDRESS PORT.
#include <boost/asio.hpp>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <spead2/common_thread_pool.h>
#include <spead2/recv_heap.h>
#include <spead2/recv_ring_stream.h>
#include <spead2/recv_udp.h>
#include <string>

int main(int argc, char **argv)
try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
        return 2;
    }
    const boost::asio::ip::udp::endpoint endpoint(boost::asio::ip::make_address(argv[1]),
                                                  static_cast<std::uint16_t>(std::stoi(argv[2])));
    spead2::thread_pool thread_pool;
    spead2::recv::ring_stream<> stream(thread_pool, spead2::recv::stream_config(),
                                       spead2::recv::ring_stream_config().set_heaps(16));
    stream.emplace_reader<spead2::recv::udp_reader>(endpoint, 8972, 1 << 20);
    std::puts("ready");
    std::fflush(stdout);

    for (spead2::recv::heap &&heap : stream) {
        std::uint64_t timestamp = 0;
        std::int64_t sum = 0;
        for (const spead2::recv::item &item : heap.get_items()) {
            if (item.id == 0x1600)
                timestamp = item.immediate_value;
            if (item.id == 0x3300) {
                const auto *samples = reinterpret_cast<const std::int8_t *>(item.ptr);
                sum = std::accumulate(samples, samples + item.length, sum);
            }
        }
        std::printf("%" PRIu64 " %" PRId64 "\n", timestamp, sum);
    }
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
