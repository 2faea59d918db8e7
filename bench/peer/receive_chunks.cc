// SPDX-License-Identifier: BSD-3-Clause
// Receives small heaps into chunks with spead2's C++ library, and counts them: to be measured
// beside csrc/bench/receive_chunks.c, with whose options, claims and places for heaps.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <spead2/common_logging.h>
#include <spead2/common_ringbuffer.h>
#include <spead2/common_thread_pool.h>
#include <spead2/recv_chunk_stream.h>
#include <spead2/recv_udp.h>

#define _Noreturn [[noreturn]] // what C++ calls it
extern "C" {
#include "place.h"
#include "receiving.h"
}

namespace
{

constexpr std::size_t chunk_bytes = 1 << 20, n_chunks = 8, window = 2, live = 4;
constexpr std::size_t heap_cnt_id = 1;

using ring = spead2::ringbuffer<std::unique_ptr<spead2::recv::chunk>>;

// An array that is there already.
spead2::memory_allocator::pointer zeros(std::size_t n)
{
    auto memory = std::make_shared<spead2::memory_allocator>()->allocate(n, nullptr);
    std::memset(memory.get(), 0, n);
    return memory;
}

} // namespace

int main(int argc, char **argv)
{
    receiving r = receiving_begin(
        argc, argv, "Receives small heaps into chunks with spead2's C++ library.", "");
    spead2::set_log_function([](spead2::log_level, const std::string &) {});
    std::size_t size = r.common.heap_size, heaps = larger(1, chunk_bytes / size);
    chunk_shape shape{static_cast<std::int64_t>(heaps), static_cast<std::int64_t>(size)};
    spead2::thread_pool pool;
    auto filled = std::make_shared<ring>(n_chunks), free_ones = std::make_shared<ring>(n_chunks);
    spead2::recv::chunk_ring_stream<ring, ring> stream(
        pool, spead2::recv::stream_config().set_max_heaps(live),
        spead2::recv::chunk_stream_config()
            .set_items({heap_cnt_id})
            .set_max_chunks(window)
            .set_place([&shape](auto *data, std::size_t n) {
                place(reinterpret_cast<spt_place_data *>(data), n, &shape);
            }),
        filled, free_ones);
    for (std::size_t i = 0; i < n_chunks; i++) {
        auto chunk = std::make_unique<spead2::recv::chunk>();
        chunk->data = zeros(heaps * size);
        chunk->present = zeros(heaps);
        chunk->present_size = heaps;
        stream.add_free_chunk(std::move(chunk));
    }
    boost::asio::ip::udp::socket socket(pool.get_io_context(), boost::asio::ip::udp::v4(),
                                        r.common.socket);
    stream.emplace_reader<spead2::recv::udp_reader>(std::move(socket),
                                                    larger(9200, r.common.packet_size));
    receiving_ready(&r);
    try {
        for (;;) {
            auto chunk = filled->pop();
            std::size_t n = 0;
            for (std::size_t i = 0; i < heaps; i++)
                if (chunk->present[i]) {
                    n++;
                    if (r.check)
                        receiving_check(&r, static_cast<std::uint64_t>(chunk->chunk_id) * heaps + i,
                                        chunk->data.get() + i * size);
                }
            receiving_heaps(&r, n);
            stream.add_free_chunk(std::move(chunk));
        }
    } catch (spead2::ringbuffer_stopped &) { // the stream has ended
    }
    stream.stop(); // counts are those of whole batches
    auto stats = stream.get_stats();
    r.packets = stats.packets;
    r.incomplete = stats.incomplete_heaps_evicted + stats.incomplete_heaps_flushed;
    return receiving_end(&r);
}
