/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.hpp"

#include <array>
#include <deque>

using namespace std::chrono_literals;

namespace
{

/* Send heaps, numbered, of which the first one is described or none; and then the end. */
void send_all(spt::stream &stream, std::size_t n, bool described)
{
    state s;
    const spt::heap values(s.items, SPT_VALUES);
    for (std::size_t i = 0; i < n; i++) {
        s.timestamp = i * n_samples;
        s.adc_samples.assign(n_samples, static_cast<std::int8_t>(i));
        stream.send(i == 0 && described ? s.heap : values);
    }
    stream.send_end();
}

std::vector<std::byte> packets(std::size_t n, bool described = true)
{
    spt::memory_stream stream(spt::no_thread);
    send_all(stream, n, described);
    return sent_to(stream);
}

/* Whether heaps are those that were sent. */
std::size_t check_heaps(spt::recv_stream &stream)
{
    spt::item_group group;
    std::size_t n = 0;
    for (const spt::received_heap &heap : stream) {
        CHECK_EQUAL(group.update(heap), 0);
        const spt::group_item *timestamp = group.find("timestamp");
        const spt::group_item *adc_samples = group.find("adc_samples");
        REQUIRE(timestamp != nullptr && adc_samples != nullptr);
        CHECK_EQUAL(heap->cnt, n + 1, timestamp->immediate, n * n_samples);
        const std::span<const std::int8_t> samples = spt::values<std::int8_t>(*adc_samples);
        CHECK_EQUAL(samples.size(), n_samples, samples.back(), n);
        n++;
    }
    CHECK_EQUAL(group.size(), 2, group[0].id, 0x1600);
    CHECK(group.find("nothing") == nullptr);
    return n;
}

/* A chunk that has its memory with it. */
struct own_chunk : spt::chunk {
    std::vector<std::int8_t> memory = std::vector<std::int8_t>(4 * n_samples);
    std::array<std::uint8_t, 4> there = {};
    own_chunk()
    {
        data = memory.data();
        data_size = memory.size();
        present = there.data();
        present_size = there.size();
    }
};

void place(spt::place_data &data)
{
    const std::int64_t index = data.items[0] / std::int64_t(n_samples);
    data.chunk_id = index / 4;
    data.heap_index = std::uint64_t(index % 4);
    data.heap_offset = data.heap_index * n_samples;
}

constexpr std::array<std::uint64_t, 1> timestamps = {0x1600};

} // namespace

TEST(heaps_come_back_through_a_socket_which_no_other_may_have)
{
    const spt::thread_pool threads;
    spt::recv_config config;
    config.ring_heaps = 16;
    spt::recv_stream receiver(threads, config), other(threads);
    CHECK_EQUAL(receiver.port(), 0);
    receiver.add_udp({"127.0.0.1", 0});
    const spt::endpoint same = {"127.0.0.1", receiver.port()};
    spt::udp_stream sender(threads, {same});
    send_all(sender, 3, true);
    CHECK_EQUAL(check_heaps(receiver), 3);
    CHECK(!receiver.get_heap());
    CHECK_EQUAL(receiver.stats().sockets.dropped, 0, receiver.stats().account.heaps_complete, 3);

    receiver = spt::recv_stream(threads);
    receiver.add_udp(same);
    const spt::failure failure = thrown([&] { other.add_udp(same); });
    CHECK_EQUAL(failure.status, SPT_ERR_SYSTEM, failure.sys_errno, EADDRINUSE);
    CHECK_WORDS(failure.message, "in use");
    spt::failure why;
    CHECK(!other.try_add_udp(same, why) && why.sys_errno == EADDRINUSE);
    CHECK(other.try_add_udp({"127.0.0.1", 0}, why));
}

TEST(heaps_are_waited_for_for_some_time)
{
    spt::recv_config config;
    config.explicit_start = true;
    spt::recv_stream stream(spt::no_thread, config);
    const std::vector<std::byte> bytes = packets(1);
    stream.add_memory(bytes);
    spt::received_heap heap;
    CHECK(stream.get_heap_for(0s, heap) == SPT_PENDING && !heap);
    CHECK(stream.get_heap_for(-1s, heap) == SPT_PENDING);
    stream.start();
    heap = stream.get_heap();
    CHECK(heap && heap.payload().size() == heap->length);
    CHECK_THROWS(SPT_ERR_SYSTEM, "No such file", stream.add_udp_pcap("/no/such.pcap"));
    CHECK(stream.get_heap_for(10s, heap) == SPT_DONE && !heap);
    stream.stop();
    CHECK_THROWS(SPT_ERR_STOPPED, "", stream.add_udp({"127.0.0.1", 0}));
}

TEST(heaps_stay_in_the_process)
{
    const spt::thread_pool threads;
    spt::inproc_queue queue(10, 1 << 20), other;
    spt::recv_stream stream(threads);
    stream.add_inproc(queue);
    spt::inproc_stream sender(threads, queue);
    send_all(sender, 3, true);
    CHECK_EQUAL(check_heaps(stream), 3);
    other.stop();
    CHECK_THROWS(SPT_ERR_STOPPED, "", other.add_packet({}));
    const std::array both = {queue.get(), other.get()};
    const spt::inproc_stream two(spt::no_thread, both);
    CHECK_EQUAL(spt_stream_num_substreams(two.get()), 2);
}

TEST(heaps_come_through_a_connection)
{
    const spt::thread_pool threads;
    spt::recv_stream stream(threads);
    stream.add_tcp({"127.0.0.1", 0});
    spt::tcp_stream sender(threads, {"127.0.0.1", stream.port()});
    send_all(sender, 3, true);
    CHECK_EQUAL(check_heaps(stream), 3);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "closed", stream.add_tcp_socket(-1));
    CHECK_THROWS(SPT_ERR_ARGUMENT, "closed", spt::tcp_stream(threads, -1));
}

TEST(a_heap_is_moved_and_given_back_once)
{
    static_assert(!std::is_copy_constructible_v<spt::received_heap>);
    const std::vector<std::byte> bytes = packets(3);
    spt::recv_stream stream(spt::no_thread);
    stream.add_memory(bytes);
    spt::received_heap one = stream.get_heap(), other = std::move(one);
    CHECK(!one && other && other->cnt == 1);
    other = stream.get_heap();
    CHECK_EQUAL((*other).cnt, 2);
    spt::recv_stream elsewhere = std::move(stream);
    CHECK_EQUAL(elsewhere.get_heap()->cnt, 3);
    other = {};
    CHECK(!other);
}

TEST(items_are_listed_where_there_is_room)
{
    const std::vector<std::byte> bytes = packets(1, false);
    spt::recv_stream stream(spt::no_thread);
    stream.add_memory(bytes);
    const spt::received_heap heap = stream.get_heap();
    std::vector<spt::received_item> room(heap->n_pointers);
    const std::span<spt::received_item> items = heap.items(room);
    CHECK(items.size() == 2 && items[0].id == 0x3300 && items[1].id == 0x1600);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "", heap.items({}));
}

TEST(values_of_another_type_are_refused)
{
    const std::vector<float> gains(3, 2.5F);
    const std::vector<std::int32_t> offsets(3, -2);
    spt::memory_stream sender(spt::no_thread);
    const spt::variable items[] = {spt::array(0x1000, "gains", "", gains),
                                   spt::array(0x1001, "offsets", "", offsets)};
    sender.send(spt::heap(items));
    const std::vector<std::byte> bytes = sent_to(sender);
    spt::recv_stream stream(spt::no_thread);
    stream.add_memory(bytes);
    const spt::received_heap heap = stream.get_heap();
    spt::item_group group;
    group.update(heap);
    const spt::group_item &received = *group.find("offsets");
    CHECK_EQUAL(group.left_out(), 0);
    spt::item_group little;
    little.set_max_memory(600);
    CHECK_EQUAL(little.update(heap), 1, little.left_out(), 1, little.size(), 1);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "another type", spt::values<float>(received));
    CHECK_THROWS(SPT_ERR_ARGUMENT, "another type", spt::values<std::uint32_t>(received));
    CHECK_THROWS(SPT_ERR_ARGUMENT, "another type", spt::values<std::int16_t>(received));
    CHECK_THROWS(SPT_ERR_ARGUMENT, "no value", spt::values<float>(spt::group_item{}));
    spt::group_item swapped = received;
    swapped.little_endian = !swapped.little_endian;
    CHECK_THROWS(SPT_ERR_ARGUMENT, "byte order", spt::values<std::int32_t>(swapped));
    swapped = received;
    swapped.value.data++;
    CHECK_THROWS(SPT_ERR_ARGUMENT, "askew", spt::values<std::int32_t>(swapped));
}

TEST(heaps_are_kept_in_a_pool_and_in_mapped_memory)
{
    const std::vector<std::byte> bytes = packets(10);
    spt::memory_pool_config sizes;
    sizes.upper = 2 * n_samples;
    sizes.max_free = sizes.initial = 16;
    const spt::memory_pool pool(sizes);
    spt::recv_config config;
    config.heaps.memory = pool.memory();
    {
        spt::recv_stream stream(spt::no_thread, config);
        stream.add_memory(bytes);
        CHECK_EQUAL(check_heaps(stream), 10);
    }
    CHECK(pool.stats().gets >= 10 && pool.stats().in_use == 0);
    const spt::mmap_config mapping;
    config.heaps.memory = spt::mmap_memory(mapping);
    spt::recv_stream stream(spt::no_thread, config);
    stream.add_memory(bytes);
    CHECK_EQUAL(check_heaps(stream), 10);
    spt::memory_pool_config wrong;
    wrong.low_water = 1;
    CHECK_THROWS(SPT_ERR_ARGUMENT, "", spt::memory_pool(wrong));
}

template <class Place> static void check_chunks(spt::worker who, Place &where)
{
    const std::vector<std::byte> bytes = packets(8, false);
    spt::chunk_config chunks;
    chunks.set_place(where);
    chunks.set_items(timestamps);
    spt::chunk_ring filled(2), free_ones(3);
    std::deque<own_chunk> all(3);
    spt::recv_config config;
    spt::chunk_stream stream(who, config, chunks, filled, free_ones);
    for (own_chunk &chunk : all)
        CHECK(free_ones.put(chunk));
    stream.add_memory(bytes);
    std::int64_t n = 0;
    while (spt::chunk *chunk = filled.get_chunk()) {
        const auto &own = static_cast<own_chunk &>(*chunk);
        CHECK_EQUAL(own.chunk_id, n);
        for (std::size_t i = 0; i < 4; i++) {
            CHECK_EQUAL(own.there[i], 1, own.memory[i * n_samples], n * 4 + std::int64_t(i));
        }
        CHECK_EQUAL(chunk->as<std::int16_t>().size(), 2 * n_samples, chunk->presence().size(), 4);
        n++;
        free_ones.put(*chunk);
    }
    CHECK_EQUAL(n, 2, stream.chunk_stats().chunks, 2);
}

TEST(functions_and_function_objects_say_where_heaps_belong)
{
    std::size_t n = 0;
    auto counting = [&](spt::place_data &data) {
        n++;
        place(data);
    };
    const spt::thread_pool threads;
    check_chunks(threads, counting);
    CHECK_EQUAL(n, 8);
    check_chunks(spt::no_thread, place);
}

/* Whether it compiles. */
template <class T>
concept can_place =
    requires(spt::chunk_config config, T place) { config.set_place(std::forward<T>(place)); };
template <class T>
concept can_be_read =
    requires(spt::recv_stream &stream, T bytes) { stream.add_memory(std::forward<T>(bytes)); };
template <class T>
concept can_be_taken_in =
    requires(spt::item_group &group, T heap) { group.update(std::forward<T>(heap)); };

TEST(temporaries_are_refused_when_compiling)
{
    static_assert(can_place<void (&)(spt::place_data &)>);
    static_assert(can_be_read<std::vector<char> &> && !can_be_read<std::vector<char>>);
    static_assert(can_be_read<std::span<const char>>);
    static_assert(can_be_taken_in<spt::received_heap &>);
    static_assert(!can_be_taken_in<spt::received_heap>);
    static_assert(!std::is_constructible_v<spt::recv_stream, spt::thread_pool>);
    static_assert(std::is_constructible_v<spt::recv_stream, spt::no_thread_t>);
    auto lambda = [](spt::place_data &) {};
    static_assert(can_place<decltype(lambda) &> && !can_place<decltype(lambda)>);
    (void)lambda;
}

TEST(a_ring_of_chunks_is_as_in_c)
{
    spt::chunk_ring ring(1);
    std::array<std::int16_t, 4> samples{};
    std::array<std::uint8_t, 2> there{};
    spt::chunk one(samples, there), other;
    CHECK_EQUAL(one.data_size, 8);
    CHECK(ring.put(one) && !ring.put(other));
    CHECK(ring.put_for(1ms, other) == SPT_PENDING);
    CHECK(ring.size() == 1 && ring.capacity() == 1);
    CHECK(ring.data_fd() >= 0 && ring.space_fd() >= 0);
    spt::chunk *got = nullptr;
    CHECK(ring.get_chunk_for(0s, got) == SPT_OK && got == &one);
    CHECK(ring.get_chunk_for(0s, got) == SPT_PENDING && got == nullptr);
    ring.add_producer();
    CHECK(ring.remove_producer());
    CHECK(ring.put_for(0s, one) == SPT_ERR_STOPPED && !ring.put(one));
    CHECK(ring.get_chunk() == nullptr);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "", spt::chunk_ring(0));
}
