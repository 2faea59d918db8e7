// SPDX-License-Identifier: BSD-3-Clause
// Chapter 19: one of an array's receivers, which gathers what all senders send in chunks.
#include "receiving.hpp"
#include <algorithm>
#include <array>
#include <deque>
#include <memory>

constexpr std::size_t CHUNK = 1 << 20; // bytes of each sender's samples in a chunk, or less
constexpr std::size_t WINDOW = 8; // chunks that are filled: so far may a sender be ahead of another
constexpr std::size_t CHUNKS = WINDOW + 3; // with two in the ring, and one with the program

// Says where a heap belongs: in the row of the sender whose port it came to.
struct placer {
    std::int64_t heap_size, n_heaps, sender;

    void operator()(spt::place_data &data) const
    {
        const std::int64_t length = data.items[0], timestamp = data.items[1];
        if (timestamp < 0)
            return; // it is the one with the descriptors
        if (length == heap_size && timestamp % heap_size == 0) {
            const std::int64_t i = timestamp / heap_size;
            data.chunk_id = i / n_heaps;
            data.heap_index = static_cast<std::uint64_t>(sender * n_heaps + i % n_heaps);
            data.heap_offset = data.heap_index * static_cast<std::uint64_t>(heap_size);
        } else
            data.batch_stats[0]++;
    }
};

// A chunk, and its memory: a row of heaps for each sender.
struct chunk : spt::chunk {
    chunk(std::size_t senders, std::size_t n_heaps, std::size_t heap_size)
        : bytes(senders * n_heaps * heap_size), there(senders * n_heaps), n_heaps(n_heaps),
          heap_size(heap_size)
    {
        data = bytes.data();
        data_size = bytes.size();
        present = there.data();
        present_size = there.size();
    }

    // Mean of the squares of the heaps that are there.
    double mean_square() const
    {
        double total = 0;
        for (std::size_t i = 0; i < there.size(); i++)
            if (there[i])
                total += mean_square_int8(&bytes[i * heap_size], heap_size);
        return total / static_cast<double>(n_present(this));
    }

    // How many senders have a heap there.
    std::size_t n_there() const
    {
        std::size_t n = 0;
        for (std::size_t i = 0; i < there.size(); i += n_heaps)
            n += std::ranges::count(std::span(there).subspan(i, n_heaps), 1) > 0;
        return n;
    }

  private:
    std::vector<std::int8_t> bytes;
    std::vector<std::uint8_t> there;
    std::size_t n_heaps, heap_size;
};

// The streams of all senders, which fill the same chunks: a group is used as in C.
class streams
{
  public:
    streams(const receiver_options &options, const std::deque<placer> &places,
            const spt::chunk_ring &filled, const spt::chunk_ring &free_ones)
        : thread_pool(places.size())
    {
        const spt_chunk_group_config config = {
            .max_chunks = WINDOW,
            .lossless = !options.lossy,
            .data_ring = filled.get(),
            .free_ring = free_ones.get(),
        };
        spt_error err{};
        group.reset(spt_chunk_group_create(&config, &err));
        check_made(group.get(), &err);
        for (const placer &place : places)
            add(place);
    }

    // Listen on a port for each sender.
    void add_udp(const receiver_options &options)
    {
        spt::receive_config udp;
        udp.interface_address = options.interface;
        spt_error err{};
        spt_endpoint endpoint = options.endpoint;
        for (spt_recv_stream *const stream : each) {
            check(spt_recv_stream_add_udp(stream, &endpoint, &udp, &err), &err);
            endpoint.port++;
        }
    }

    heaps chunks(const spt::chunk_ring &filled, const receiver_options &options) const
    {
        return chunks_of_all(group.get(), each.data(), each.size(), filled.get(), &options);
    }

  private:
    void add(const placer &place)
    {
        spt::recv_config config;
        config.heaps.max_heaps = 2;
        const std::array<std::uint64_t, 2> items = {SPT_ID_HEAP_LENGTH, 0x1600};
        spt::chunk_config chunk_config;
        chunk_config.max_chunks = 1;
        chunk_config.n_stats = 1;
        chunk_config.set_place(place);
        chunk_config.set_items(items);
        spt_error err{};
        each.push_back(
            spt_chunk_group_add(group.get(), thread_pool.get(), &config, &chunk_config, &err));
        check_made(each.back(), &err);
    }

    struct destroy {
        void operator()(spt_chunk_group *group) const { spt_chunk_group_destroy(group); }
    };
    spt::thread_pool thread_pool;
    std::unique_ptr<spt_chunk_group, destroy> group;
    std::vector<spt_recv_stream *> each; // the group's
};

int main(int argc, char **argv)
{
    const auto options = parse_receiver_options(
        argc, argv,
        "Chapter 19: one of an array's receivers, which gathers what all senders send in chunks.",
        {.heap_size = 1 << 20, .senders = 1});
    const std::size_t heap_size = options.heap_size, senders = options.senders;
    const std::size_t n_heaps = std::max<std::size_t>(1, CHUNK / heap_size); // of each in a chunk
    std::deque<placer> places;
    while (places.size() < senders)
        places.push_back({static_cast<std::int64_t>(heap_size), static_cast<std::int64_t>(n_heaps),
                          static_cast<std::int64_t>(places.size())});
    std::deque<chunk> memory; // which leaves them where they are
    spt::chunk_ring filled(2), free_ones(CHUNKS);
    streams streams(options, places, filled, free_ones);
    while (memory.size() < CHUNKS)
        free_ones.put(memory.emplace_back(senders, n_heaps, heap_size));
    streams.add_udp(options);

    heaps heaps = streams.chunks(filled, options);
    std::size_t received = 0;
    while (auto *const chunk = static_cast<struct chunk *>(next_chunk(&heaps))) {
        const std::size_t n = n_present(chunk);
        if (n > 0) {
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f Senders: %zu of %zu\n",
                chunk->chunk_id * static_cast<std::int64_t>(n_heaps * heap_size),
                chunk->mean_square(), chunk->n_there(), senders);
            received += n;
        }
        free_ones.put(*chunk); // or not: it is stopped after silence
    }
    return report_heaps(&heaps, "Received %zu heaps\n", received);
}
