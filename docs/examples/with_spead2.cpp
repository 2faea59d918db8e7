// SPDX-License-Identifier: BSD-3-Clause
// Sends ten heaps, one while the next is made: with_spead2 HOST PORT.
#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <cstdint>
#include <cstdio>
#include <future>
#include <memory>
#include <spead2/common_thread_pool.h>
#include <spead2/send_heap.h>
#include <spead2/send_stream_config.h>
#include <spead2/send_udp.h>
#include <string>
#include <vector>

static const std::size_t heap_size = 8000;

// What a heap refers to, to leave alone until it has been sent.
struct buffer {
    std::vector<std::int8_t> samples = std::vector<std::int8_t>(heap_size);
    std::unique_ptr<spead2::send::heap> heap;
    std::future<spead2::item_pointer_t> sent;
};

int main(int argc, char **argv)
try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s HOST PORT\n", argv[0]);
        return 2;
    }
    const boost::asio::ip::udp::endpoint endpoint(boost::asio::ip::make_address(argv[1]),
                                                  static_cast<std::uint16_t>(std::stoi(argv[2])));
    spead2::thread_pool thread_pool;
    spead2::send::stream_config config;
    config.set_max_packet_size(8972);
    spead2::send::udp_stream stream(thread_pool, {endpoint}, config);

    spead2::descriptor timestamp, samples;
    timestamp.id = 0x1600;
    timestamp.name = "timestamp";
    timestamp.description = "Index of the first sample";
    timestamp.format = {{'u', 40}};
    samples.id = 0x3300;
    samples.name = "samples";
    samples.description = "Samples of the converter";
    samples.numpy_header =
        "{'shape': (" + std::to_string(heap_size) + ",), 'fortran_order': False, 'descr': '|i1'}";

    std::array<buffer, 2> buffers;
    for (std::size_t i = 0; i < 10; i++) {
        buffer &next = buffers[i % 2];
        if (next.sent.valid())
            next.sent.get();
        std::fill(next.samples.begin(), next.samples.end(), static_cast<std::int8_t>(i));
        next.heap = std::make_unique<spead2::send::heap>();
        if (i == 0) {
            next.heap->add_descriptor(timestamp);
            next.heap->add_descriptor(samples);
        }
        next.heap->add_item(timestamp.id, i * heap_size);
        next.heap->add_item(samples.id, next.samples.data(), heap_size, false);
        next.sent = stream.async_send_heap(*next.heap, boost::asio::use_future);
    }
    for (buffer &last : buffers)
        last.sent.get();
    spead2::send::heap end;
    end.add_end();
    stream.async_send_heap(end, boost::asio::use_future).get();
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
