// SPDX-License-Identifier: BSD-3-Clause
// Chapter 12: small heaps, gathered in chunks of about 1 MiB.
#include "receiving.hpp"
#include <algorithm>
#include <array>
#include <deque>

constexpr std::size_t CHUNK = 1 << 20; // bytes of samples in a chunk, or somewhat less
constexpr std::size_t CHUNKS = 4;      // one that is filled, two in the ring, one with the program

// Says where a heap belongs: called by the stream's thread.
struct placer {
    std::int64_t heap_size, chunk_size;

    void operator()(spt::place_data &data) const
    {
        const std::int64_t length = data.items[0], timestamp = data.items[1];
        if (timestamp < 0)
            return; // there are no samples in it: it has the descriptors
        if (length == heap_size && timestamp % heap_size == 0) {
            data.chunk_id = timestamp / chunk_size;
            data.heap_offset = static_cast<std::uint64_t>(timestamp % chunk_size);
            data.heap_index = data.heap_offset / static_cast<std::uint64_t>(heap_size);
        } else
            data.batch_stats[0]++;
    }
};

// A chunk, and its memory.
struct chunk : spt::chunk {
    chunk(std::size_t n_bytes, std::size_t n_heaps) : bytes(n_bytes), there(n_heaps)
    {
        data = bytes.data();
        data_size = bytes.size();
        present = there.data();
        present_size = there.size();
    }

    // Mean of the squares of the heaps that are there.
    double mean_square(std::size_t heap_size) const
    {
        double total = 0;
        for (std::size_t i = 0; i < there.size(); i++)
            if (there[i])
                total += mean_square_int8(&bytes[i * heap_size], heap_size);
        return total / static_cast<double>(n_present(this));
    }

  private:
    std::vector<std::int8_t> bytes;
    std::vector<std::uint8_t> there;
};

int main(int argc, char **argv)
{
    const auto options = parse_receiver_options(
        argc, argv, "Chapter 12: small heaps, gathered in chunks of about 1 MiB.",
        {.heap_size = 1 << 20});
    const std::size_t n_heaps = std::max<std::size_t>(1, CHUNK / options.heap_size); // in a chunk
    const std::size_t chunk_size = n_heaps * options.heap_size;
    const std::size_t n_cores = n_usable_cores(); // the last two: the stream's, and this thread's
    const int core = usable_core(n_cores - std::min<std::size_t>(n_cores, 2));
    const spt::thread_pool thread_pool(1, std::span(&core, n_cores > 1));
    spt::thread_pool::set_affinity(usable_core(n_cores - 1));

    spt::recv_config config;
    config.heaps.max_heaps = 2;
    const placer place = {static_cast<std::int64_t>(options.heap_size),
                          static_cast<std::int64_t>(chunk_size)};
    const std::array<std::uint64_t, 2> items = {SPT_ID_HEAP_LENGTH, 0x1600};
    spt::chunk_config chunk_config;
    chunk_config.max_chunks = 1;
    chunk_config.n_stats = 1;
    chunk_config.set_place(place);
    chunk_config.set_items(items);
    std::deque<chunk> chunks; // which leaves them where they are
    spt::chunk_ring filled(2), free_ones(CHUNKS);
    spt::chunk_stream stream(thread_pool, config, chunk_config, filled, free_ones);
    while (chunks.size() < CHUNKS)
        free_ones.put(chunks.emplace_back(chunk_size, n_heaps));
    stream.add_udp(options.endpoint);

    heaps heaps = chunks_of(stream.get(), filled.get(), &options);
    std::size_t received = 0;
    while (auto *const chunk = static_cast<struct chunk *>(next_chunk(&heaps))) {
        const std::size_t n = n_present(chunk);
        if (n > 0) {
            say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n",
                chunk->chunk_id * place.chunk_size, chunk->mean_square(options.heap_size));
            received += n;
        }
        free_ones.put(*chunk); // or not: it is stopped after silence
    }
    return report_heaps(&heaps, "Received %zu heaps\n", received);
}
