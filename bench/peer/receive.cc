// SPDX-License-Identifier: BSD-3-Clause
// Receives heaps with spead2's C++ library into a pool of memory, and counts them: to be measured
// beside csrc/bench/receive.c, with which it shares its options and its claims.
#include <cstdint>
#include <memory>
#include <string>

#include <spead2/common_logging.h>
#include <spead2/common_memory_pool.h>
#include <spead2/common_thread_pool.h>
#include <spead2/recv_heap.h>
#include <spead2/recv_ring_stream.h>
#include <spead2/recv_udp.h>

#define _Noreturn [[noreturn]] // what C++ calls it
extern "C" {
#include "receiving.h"
}

namespace
{

constexpr std::size_t live = 4, more = 8192; // bytes of a heap besides its samples
constexpr std::int64_t samples_id = 0x3300;

void check_samples(receiving &r, const spead2::recv::heap &heap)
{
    for (const auto &item : heap.get_items())
        if (item.id == samples_id && item.length == r.common.heap_size)
            return receiving_check(&r, heap.get_cnt(), item.ptr);
    r.wrong++;
}

} // namespace

int main(int argc, char **argv)
{
    receiving r = receiving_begin(
        argc, argv, "Receives heaps with spead2's C++ library into a pool of memory.", "");
    spead2::set_log_function([](spead2::log_level, const std::string &) {});
    spead2::thread_pool pool;
    std::size_t size = r.common.heap_size, n = 2 * (live + r.ring);
    auto memory = std::make_shared<spead2::memory_pool>(size, size + more, n, n);
    spead2::recv::ring_stream<> stream(
        pool, spead2::recv::stream_config().set_max_heaps(live).set_memory_allocator(memory),
        spead2::recv::ring_stream_config().set_heaps(r.ring));
    boost::asio::ip::udp::socket socket(pool.get_io_context(), boost::asio::ip::udp::v4(),
                                        r.common.socket);
    stream.emplace_reader<spead2::recv::udp_reader>(std::move(socket),
                                                    larger(9200, r.common.packet_size));
    receiving_ready(&r);
    for (spead2::recv::heap &&heap : stream) {
        receiving_heaps(&r, 1);
        if (r.check)
            check_samples(r, heap);
    }
    stream.stop(); // counts are those of whole batches
    auto stats = stream.get_stats();
    r.packets = stats.packets;
    r.incomplete = stats.incomplete_heaps_evicted + stats.incomplete_heaps_flushed;
    return receiving_end(&r);
}
