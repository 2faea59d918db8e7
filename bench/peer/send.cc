// SPDX-License-Identifier: BSD-3-Clause
// Sends heaps with spead2's C++ library as chapters 8, 10, 11 and 14 do, each by its name: to be
// measured beside them. Of chapter 14, each stream has a thread that fills, and the library's.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio.hpp>
#include <spead2/common_defines.h>
#include <spead2/common_flavour.h>
#include <spead2/common_logging.h>
#include <spead2/common_thread_pool.h>
#include <spead2/send_heap.h>
#include <spead2/send_packet.h>
#include <spead2/send_udp.h>

#include "report.h"

namespace
{

namespace send = spead2::send;

std::atomic<std::uint64_t> spead_bytes, errors;

// What a chapter does: how many batches are on their way, of how many heaps, and whether those are
// built for each time that they are sent.
struct way {
    std::size_t n_batches, batch_size;
    bool anew;
};

way way_of(const std::string &program, std::size_t heap_size)
{
    if (program == "tut_8_send_reuse_memory")
        return {2, 1, true};
    if (program == "tut_10_send_reuse_heaps")
        return {std::max<std::size_t>(2, 1024 * 1024 / heap_size), 1, false};
    return {2, std::max<std::size_t>(1, 512 * 1024 / heap_size), false};
}

spead2::descriptor describe(std::int64_t id, const char *name, const char *description)
{
    spead2::descriptor made;
    made.id = id;
    made.name = name;
    made.description = description;
    return made;
}

// Heaps and their memory, to leave alone until they have been sent.
class batch
{
  public:
    batch(std::size_t n, std::size_t heap_size)
        : timestamps(n), samples(n * heap_size, 1), heap_size(heap_size)
    {
        for (std::size_t i = 0; i < n; i++)
            heaps.push_back(make_heap(i));
        described = make_heap(0);
        auto timestamp = describe(0x1600, "timestamp", "Index of the first sample");
        timestamp.format.emplace_back('u', 48);
        described->add_descriptor(timestamp);
        auto adc = describe(0x3300, "adc_samples", "Samples of the converter");
        adc.numpy_header = "{'descr': '|i1', 'fortran_order': False, 'shape': (" +
                           std::to_string(heap_size) + ",)}";
        described->add_descriptor(adc);
    }

    // Fill n heaps, of which the first is number k and each next one step later, and send them.
    void send_heaps(send::udp_stream &stream, std::size_t k, std::size_t step, std::size_t n,
                    bool anew)
    {
        references.clear();
        for (std::size_t i = 0; i < n; i++, k += step) {
            std::fill_n(&samples[i * heap_size], heap_size, static_cast<std::int8_t>(k));
            std::uint64_t timestamp = k * heap_size;
            for (std::size_t at = 6; at-- > 0; timestamp >>= 8)
                timestamps[i][at] = static_cast<std::uint8_t>(timestamp);
            if (anew)
                heaps[i] = make_heap(i);
            references.emplace_back(k == 0 ? *described : *heaps[i]);
        }
        auto done = [this](const boost::system::error_code &error, std::size_t n_bytes) {
            errors += error ? 1 : 0;
            spead_bytes += n_bytes;
            sent.release();
        };
        if (n == 1)
            stream.async_send_heap(references[0].heap, done);
        else
            stream.async_send_heaps(references.begin(), references.end(), done,
                                    send::group_mode::SERIAL);
    }

    // How many packets the library makes of a heap.
    std::uint64_t n_packets(bool with_descriptors, std::size_t packet_size) const
    {
        std::vector<std::uint8_t> scratch(packet_size);
        send::packet_generator packets(with_descriptors ? *described : *heaps[0], 1, packet_size);
        std::vector<boost::asio::const_buffer> parts;
        std::uint64_t n = 0;
        for (; packets.has_next_packet(); n++)
            packets.next_packet(scratch.data(), parts);
        return n;
    }

    std::binary_semaphore sent{1};

  private:
    // It references its values: what they are when it is sent is sent.
    std::unique_ptr<send::heap> make_heap(std::size_t i)
    {
        auto heap = std::make_unique<send::heap>(spead2::flavour());
        heap->add_item(0x1600, timestamps[i].data(), timestamps[i].size(), true);
        heap->add_item(0x3300, &samples[i * heap_size], heap_size, false);
        return heap;
    }

    std::vector<std::array<std::uint8_t, 6>> timestamps;
    std::vector<std::int8_t> samples; // a row of heap_size for each heap
    std::size_t heap_size;
    std::vector<std::unique_ptr<send::heap>> heaps;
    std::unique_ptr<send::heap> described; // the first, with descriptors
    std::vector<send::heap_reference> references;
};

// A stream, its library's thread, and the heaps first, first + step, ... that go through it.
class sender
{
  public:
    sender(const options &options, const way &way, std::size_t first, std::size_t step)
        : how(way), first(first), step(step), n_heaps(options.n_heaps),
          stream(pool,
                 {{boost::asio::ip::make_address(options.endpoint.host),
                   static_cast<std::uint16_t>(options.endpoint.port)}},
                 send::stream_config()
                     .set_rate(0.0)
                     .set_max_packet_size(options.packet_size)
                     .set_max_heaps(way.n_batches * way.batch_size))
    {
        stream.set_cnt_sequence(first + 1, step);
        for (std::size_t i = 0; i < way.n_batches; i++)
            batches.push_back(std::make_unique<batch>(way.batch_size, options.heap_size));
    }

    void run()
    {
        for (std::size_t k = first, turn = 0; k < n_heaps; turn++) {
            batch &one = *batches[turn % batches.size()];
            one.sent.acquire();
            std::size_t n = std::min(how.batch_size, (n_heaps - k - 1) / step + 1);
            one.send_heaps(stream, k, step, n, how.anew);
            k += n * step;
        }
        for (auto &one : batches)
            one->sent.acquire();
    }

    std::uint64_t n_packets(bool with_descriptors, std::size_t packet_size) const
    {
        return batches[0]->n_packets(with_descriptors, packet_size);
    }

    void end()
    {
        send::heap heap{spead2::flavour()};
        heap.add_end();
        std::binary_semaphore sent{0};
        stream.async_send_heap(heap, [&](auto, std::size_t n_bytes) {
            spead_bytes += n_bytes;
            sent.release();
        });
        sent.acquire();
    }

  private:
    way how;
    std::size_t first, step, n_heaps;
    spead2::thread_pool pool;
    send::udp_stream stream;
    std::vector<std::unique_ptr<batch>> batches;
};

} // namespace

int main(int argc, char **argv)
{
    const std::string program = program_invocation_short_name;
    bool has_streams = program == "tut_14_send_many_streams";
    struct options defaults{};
    defaults.packet_size = 9000;
    const options options = parse_options(argc, argv, "Sends heaps with spead2's C++ library.",
                                          has_streams ? "nHpsd" : "nHpd", defaults);
    spead2::set_log_function([](spead2::log_level, const std::string &) {});
    std::size_t n_streams = std::min(options.n_streams, options.n_heaps);
    std::vector<std::unique_ptr<sender>> senders;
    for (std::size_t k = 0; k < n_streams; k++)
        senders.push_back(
            std::make_unique<sender>(options, way_of(program, options.heap_size), k, n_streams));
    const usage start = usage_now();
    std::vector<std::thread> threads;
    for (std::size_t k = 1; k < n_streams; k++)
        threads.emplace_back(&sender::run, senders[k].get());
    senders[0]->run();
    for (std::thread &one : threads)
        one.join();
    const usage used = usage_since(start);
    senders[0]->end();
    std::uint64_t n_packets = senders[0]->n_packets(true, options.packet_size) + 1;
    n_packets += (options.n_heaps - 1) * senders[0]->n_packets(false, options.packet_size);
    std::printf("{\"program\": \"%s\", \"language\": \"cpp\", \"streams\": %zu, \"heaps\": %zu, "
                "\"heap_size\": %zu, \"packet_size\": %zu, \"payload_bytes\": %zu, ",
                program.c_str(), n_streams, options.n_heaps, options.heap_size, options.packet_size,
                options.n_heaps * options.heap_size);
    std::printf("\"spead_bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"errors\": %" PRIu64 ", ",
                spead_bytes.load(), n_packets, errors.load());
    print_usage(&used);
    std::puts("}");
}
