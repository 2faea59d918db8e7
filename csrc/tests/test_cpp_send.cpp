/* SPDX-License-Identifier: BSD-3-Clause */
#include "support.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <new>
#include <optional>
#include <poll.h>
#include <thread>

#if defined(__SANITIZE_THREAD__)
#define HAS_ITS_OWN_NEW
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_ITS_OWN_NEW
#endif
#endif

using namespace std::chrono_literals;

namespace
{

/* How often a thread has asked for memory the way C++ does: the core asks malloc. Thread
 * sanitizers have functions of their own for that, so that nothing is counted. */
thread_local std::size_t n_news;

/* A coroutine that runs until it waits, and is gone with this. */
struct task {
    struct promise_type {
        task get_return_object()
        {
            return {std::unique_ptr<void, destroy>(
                std::coroutine_handle<promise_type>::from_promise(*this).address())};
        }
        static std::suspend_never initial_suspend() noexcept { return {}; }
        static std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        static void unhandled_exception() { throw; }
    };
    struct destroy {
        void operator()(void *frame) const
        {
            std::coroutine_handle<>::from_address(frame).destroy();
        }
    };
    [[nodiscard]] bool done() const
    {
        return std::coroutine_handle<>::from_address(frame.get()).done();
    }
    std::unique_ptr<void, destroy> frame;
};

/* It sends a packet, and no other for a long time. */
spt::stream_config slow(bool poll = false)
{
    spt::stream_config config;
    config.poll = poll;
    config.rate = 1;
    config.burst_size = 1;
    return config;
}

spt::stream_config polled()
{
    spt::stream_config config;
    config.poll = true;
    return config;
}

} // namespace

#ifndef HAS_ITS_OWN_NEW
[[gnu::noinline]] void *operator new(std::size_t size)
{
    n_news++;
    if (void *memory = std::malloc(size))
        return memory;
    std::abort();
}

[[gnu::noinline]] void operator delete(void *memory) noexcept
{
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void *memory, std::size_t) noexcept
{
    std::free(memory);
}
#endif

/* A heap is sent with the bytes of one that C has made. */
static void check_same(const spt::heap &heap, spt_heap *made)
{
    const spt::heap same(spt::taken, made);
    spt::memory_stream one(spt::no_thread), other(spt::no_thread);
    CHECK_EQUAL(one.send(heap), other.send(same));
    CHECK(sent_to(one) == sent_to(other));
}

TEST(a_heap_has_the_bytes_that_it_has_in_c)
{
    const state s;
    const spt_variable variables[] = {
        spt_immediate(0x1600, "timestamp", "Index of the first sample", &s.timestamp),
        spt_array(0x3300, "adc_samples", "Samples of the converter", SPT_INT8, s.adc_samples.data(),
                  s.adc_samples.size()),
    };
    spt_heap *same = spt_heap_create(nullptr, nullptr);
    CHECK_EQUAL(spt_heap_add(same, variables, 2, SPT_ALL, nullptr), SPT_OK);
    check_same(s.heap, same);
}

TEST(all_ways_to_send_have_the_same_bytes_and_ask_for_no_memory)
{
    state s;
    using way = void (*)(spt::memory_stream &, state &);
    const way ways[] = {
        [](auto &stream, auto &s) { stream.send(s.heap); },
        [](auto &stream, auto &s) { stream.send({{s.heap, 1}}, SPT_GROUP_SERIAL); },
        [](auto &stream, auto &s) {
            auto sent = stream.async_send(s.heap);
            CHECK(sent.wait() > s.adc_samples.size() && sent.done());
        },
        [](auto &stream, auto &s) {
            CHECK(stream.try_async_send(s.heap, s.sent, s.why));
            s.sent.wait();
        },
        [](auto &stream, auto &s) {
            stream.async_send({s.heap}, SPT_GROUP_SERIAL, s.sent);
            s.sent.wait();
        },
    };
    const spt::thread_pool threads;
    std::vector<std::byte> first;
    for (const way &send : ways) {
        spt::memory_stream stream(threads);
        send(stream, s);
        first = first.empty() ? sent_to(stream) : first;
        CHECK(!first.empty() && sent_to(stream) == first);
        const std::size_t before = n_news;
        send(stream, s);
        CHECK_EQUAL(n_news, before);
    }
}

TEST(groups_take_heaps_vectors_and_arrays)
{
    state s, t;
    spt::memory_stream stream(spt::no_thread);
    const std::vector<spt::heap_reference> many{s.heap, {t.heap, 7, 0, 0.0}};
    const std::uint64_t bytes = stream.send(many);
    CHECK_EQUAL(stream.send({s.heap, t.heap}, SPT_GROUP_SERIAL), bytes);
    const std::array<spt::heap_reference, 2> few{s.heap, t.heap};
    stream.async_send(few, SPT_GROUP_SERIAL, s.sent);
    CHECK_EQUAL(s.sent.wait(), bytes);
    CHECK_EQUAL(stream.async_send(std::span(many).first(1)).wait(), bytes / 2);
    CHECK_EQUAL(stream.stats().heaps, 7);
}

TEST(elements_have_the_types_that_they_have_in_c)
{
    static_assert(spt::type_of<std::int8_t> == SPT_INT8);
    static_assert(spt::type_of<std::uint64_t> == SPT_UINT64);
    static_assert(spt::type_of<std::int32_t> == SPT_INT32);
    static_assert(spt::type_of<const std::uint16_t> == SPT_UINT16);
    static_assert(spt::type_of<float> == SPT_FLOAT32);
    static_assert(spt::type_of<double> == SPT_FLOAT64);
    static_assert(spt::type_of<std::complex<float>> == SPT_COMPLEX64);
    static_assert(spt::type_of<std::complex<double>> == SPT_COMPLEX128);
    static_assert(!spt::element<bool> && !spt::element<char *>);
    const double gain = 2.0;
    const spt::variable number = spt::scalar(0x1000, "gain", "", gain);
    CHECK(number.type == SPT_FLOAT64 && number.n_shape == 0 && number.value == &gain);
    const std::int64_t offset = -1;
    CHECK(spt::immediate(0x1001, "offset", "", offset).type == SPT_INT_IMMEDIATE);
}

/* Whether it compiles. */
template <class T>
concept can_be_array = requires(T values) { spt::array(1, "", "", std::forward<T>(values)); };
template <class T>
concept can_be_count = requires(T value) { spt::immediate(1, "", "", std::forward<T>(value)); };
template <class T>
concept can_be_queued =
    requires(spt::stream &stream, T heap) { stream.async_send(std::forward<T>(heap)); };
template <class T>
concept can_be_referred_to = requires(T heap) { spt::heap_reference(std::forward<T>(heap)); };

TEST(temporaries_are_refused_when_compiling)
{
    static_assert(can_be_array<std::vector<float> &> && !can_be_array<std::vector<float>>);
    static_assert(can_be_array<const std::array<float, 2> &> &&
                  !can_be_array<std::array<float, 2>>);
    static_assert(can_be_array<std::span<const float>> && can_be_array<float (&)[3]>);
    static_assert(can_be_count<const std::uint64_t &> && !can_be_count<std::uint64_t>);
    static_assert(!can_be_count<std::uint32_t &> && !can_be_count<double &>);
    static_assert(can_be_queued<spt::heap &> && !can_be_queued<spt::heap>);
    static_assert(can_be_referred_to<spt::heap &> && !can_be_referred_to<spt::heap>);
    static_assert(std::is_constructible_v<spt::memory_stream, spt::thread_pool &>);
    static_assert(!std::is_constructible_v<spt::memory_stream, spt::thread_pool>);
}

TEST(an_array_takes_the_shape_that_it_is_given)
{
    const std::vector<float> values(6);
    const spt::variable array = spt::array(0x1000, "array", "", values, {2, 3});
    CHECK(array.n_shape == 2 && array.shape[0] == 2 && array.shape[1] == 3);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "number of elements",
                 spt::array(0x1000, "", "", values, {2, 2}));
    CHECK_THROWS(SPT_ERR_ARGUMENT, "8 dimensions",
                 spt::array(0x1000, "", "", values, {1, 1, 1, 1, 1, 1, 1, 2, 3}));
}

TEST(items_and_descriptors_are_as_in_c)
{
    const std::array<std::uint8_t, 4> bytes{1, 2, 3, 4};
    const spt_field format[] = {{'u', 8}};
    const std::int64_t shape[] = {-1};
    const spt::descriptor descriptor = {0x1234, "bytes", "", nullptr, format, 1, shape, 1};
    const spt::item item = {0x1234, bytes.data(), 4, false};
    spt::heap heap({48, 0});
    heap.add_descriptor(descriptor).add_item(item);

    const spt_flavour flavour = {48, 0};
    spt_heap *same = spt_heap_create(&flavour, nullptr);
    CHECK_EQUAL(spt_heap_add_descriptor(same, &descriptor, nullptr), SPT_OK);
    CHECK_EQUAL(spt_heap_add_item(same, &item, nullptr), SPT_OK);
    check_same(heap, same);
}

TEST(an_error_has_status_errno_and_text_of_c)
{
    CHECK_THROWS(SPT_ERR_ARGUMENT, "port 0", spt::udp_stream(spt::no_thread, {{"127.0.0.1", 0}}));
    CHECK_THROWS(SPT_ERR_ARGUMENT, "", spt::heap({41, 0}));

    /* Nobody may send to all there are without asking to. */
    spt::udp_stream stream(spt::no_thread, {{"127.255.255.255", 9}});
    const std::vector<std::int8_t> values(100);
    const spt::heap heap({spt::array(0x1000, "values", "", values)});
    const spt::failure refused = thrown([&] { stream.send(heap); });
    CHECK_EQUAL(refused.status, SPT_ERR_SYSTEM, refused.sys_errno, EACCES);
    CHECK_WORDS(refused.message, "heap 1");
    spt::completion sent;
    stream.async_send(heap, sent);
    CHECK_EQUAL(thrown([&] { sent.wait(); }).sys_errno, EACCES);
}

TEST(a_queue_that_is_full_throws_nothing_where_it_was_tried)
{
    state s;
    spt::stream_config config = slow();
    config.max_heaps = 1;
    spt::memory_stream full(spt::no_thread, config);
    REQUIRE(full.try_async_send(s.heap, s.sent, s.why));
    spt::completion other;
    CHECK(!full.try_async_send({s.heap}, SPT_GROUP_SERIAL, other, s.why));
    CHECK_EQUAL(s.why.status, SPT_ERR_QUEUE_FULL);
    CHECK(other.done());
    s.sent.cancel();
}

TEST(owners_are_moved_and_not_copied)
{
    static_assert(!std::is_copy_constructible_v<spt::heap> && std::is_move_assignable_v<spt::heap>);
    static_assert(!std::is_copy_constructible_v<spt::udp_stream>);
    static_assert(std::is_nothrow_move_constructible_v<spt::udp_stream>);
    static_assert(!std::is_move_constructible_v<spt::completion>);
    static_assert(sizeof(spt::heap) == sizeof(void *) &&
                  sizeof(spt::thread_pool) == sizeof(void *));
    state s;
    spt::thread_pool threads;
    spt::memory_stream stream(threads);
    stream.async_send(s.heap, s.sent);
    spt::heap moved = std::move(s.heap); /* what is in flight stays where it is */
    spt::memory_stream elsewhere = std::move(stream);
    s.sent.wait();
    CHECK(elsewhere.size() > 0);
    s.heap = std::move(moved);
    CHECK_EQUAL(elsewhere.send(s.heap), elsewhere.size() / 2);
    elsewhere = spt::memory_stream(threads);
    CHECK_EQUAL(elsewhere.size(), 0);
    spt::memory memory(10000), other = std::move(memory);
    CHECK(other.as<float>().size() >= 2500 && memory.as<float>().empty());
    memory = std::move(other);
    CHECK(memory.as<std::byte>().size() >= 10000 && memory.page_size() >= 4096);
    CHECK_EQUAL(memory.as<float>()[2499], 0);
}

TEST(a_completion_that_is_destroyed_waits)
{
    state s;
    spt::memory_stream stream(spt::no_thread);
    {
        const auto sent = stream.async_send(s.heap);
    }
    CHECK_EQUAL(s.heap.in_flight(), 0);
    CHECK(stream.size() > 0);
}

TEST(a_completion_is_waited_for_for_some_time_or_given_up)
{
    state s;
    spt::memory_stream stream(spt::no_thread, slow());
    stream.async_send(s.heap, s.sent);
    CHECK(!s.sent.wait_for(1ms));
    CHECK(!stream.flush_for(0s));
    s.sent.cancel();
    CHECK(s.sent.done());
    CHECK_THROWS(SPT_ERR_CANCELLED, "", s.sent.wait());
    CHECK(s.sent.wait_for(0s));
    CHECK(stream.flush_for(0s));
}

static task send_twice(spt::stream &stream, state &s, std::vector<std::uint64_t> &bytes,
                       std::thread::id &thread)
{
    bytes.push_back(co_await stream.async_send(s.heap));
    thread = std::this_thread::get_id();
    stream.async_send(s.heap, s.sent);
    bytes.push_back(co_await s.sent);
}

TEST(a_coroutine_goes_on_where_the_stream_is_polled)
{
    const spt::thread_pool threads;
    for (const bool has_thread : {true, false}) {
        state s, t;
        spt::memory_stream stream(has_thread ? spt::worker(threads) : spt::no_thread, polled());
        std::vector<std::uint64_t> bytes;
        bytes.reserve(4);
        std::thread::id thread;
        const task one = send_twice(stream, s, bytes, thread);
        const task other = send_twice(stream, t, bytes, thread);
        CHECK(bytes.empty());
        std::size_t n = 0;
        const std::size_t before = n_news;
        while (!one.done() || !other.done())
            n += stream.poll();
        CHECK_EQUAL(n_news, before); /* no memory but that of their frames */
        CHECK_EQUAL(n, 4);
        CHECK(thread == std::this_thread::get_id());
        CHECK(bytes.size() == 4 && bytes[0] == bytes[3]);
        CHECK_EQUAL(stream.size(), 4 * bytes[0]);
    }
}

static task send_on(spt::stream &stream, state &s, const bool &stop)
{
    while (!stop)
        co_await stream.async_send(s.heap);
}

TEST(who_sends_on_and_on_leaves_the_event_loop_its_turn)
{
    bool stop = false;
    state s;
    spt::memory_stream stream(spt::no_thread, polled());
    const task sends = send_on(stream, s, stop);
    for (int i = 0; i < 10; i++) {
        CHECK(stream.poll() <= 64);
        pollfd readable = {stream.fd(), POLLIN, 0};
        CHECK_EQUAL(poll(&readable, 1, 0), 1);
    }
    for (stop = true; !sends.done();)
        stream.poll();
}

static task expect_stop(spt::stream &stream, state &s, bool &stopped)
{
    try {
        co_await stream.async_send(s.heap);
    } catch (const spt::error &error) {
        stopped = error.status() == SPT_ERR_STOPPED;
    }
}

TEST(a_coroutine_is_thrown_what_went_wrong)
{
    state s;
    bool stopped = false;
    spt::memory_stream stream(spt::no_thread, slow(true));
    const task waits = expect_stop(stream, s, stopped);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "async_send", stream.send(s.heap)); /* nobody would poll */
    stream.stop();
    CHECK(!stopped);
    CHECK_EQUAL(stream.poll(), 1);
    CHECK(stopped && waits.done());
}

TEST(what_a_coroutine_throws_comes_out_of_poll_when_all_have_been_resumed)
{
    state s;
    bool stopped = false;
    const bool never = false;
    spt::memory_stream stream(spt::no_thread, slow(true));
    const task throws = send_on(stream, s, never), waits = expect_stop(stream, s, stopped);
    stream.stop();
    CHECK_THROWS(SPT_ERR_STOPPED, "", stream.poll());
    CHECK(throws.done() && stopped && waits.done());
}

TEST(a_coroutine_may_be_destroyed_after_its_stream)
{
    state s;
    bool stopped = false;
    const spt::thread_pool threads;
    auto stream = std::make_unique<spt::memory_stream>(threads, polled());
    const task waits = expect_stop(*stream, s, stopped);
    stream->flush();
    stream.reset();
    CHECK(!waits.done());
    CHECK_EQUAL(s.heap.in_flight(), 0);
}

static task wait_for_it(state &s, bool &resumed)
{
    co_await s.sent;
    resumed = true;
}

TEST(a_coroutine_that_is_destroyed_while_it_waits_is_not_resumed)
{
    const spt::thread_pool threads;
    for (const bool has_thread : {true, false}) {
        state s;
        bool resumed = false;
        spt::memory_stream stream(has_thread ? spt::worker(threads) : spt::no_thread, polled());
        for (const bool stays : {false, true}) {
            stream.async_send(s.heap, s.sent);
            std::optional waits = wait_for_it(s, resumed);
            if (!stays)
                waits.reset();
            while (stream.poll() == 0) {
            }
            CHECK(s.sent.done() && resumed == stays);
        }
    }
}

TEST(a_stream_knows_its_counts_and_times)
{
    spt::stream_config config;
    config.timeline = 2;
    spt::memory_stream stream(spt::no_thread, config);
    stream.set_cnt_sequence(10, 5);
    state s;
    for (int i = 0; i < 3; i++)
        stream.send(s.heap);
    std::array<spt_times, 4> room;
    const std::span<spt_times> times = stream.timeline(room);
    CHECK(times.size() == 2 && times[0].cnt == 15 && times[1].cnt == 20);
    CHECK_THROWS(SPT_ERR_ARGUMENT, "", stream.set_cnt_sequence(1, 0));
    CHECK(spt::route_packet_size({"127.0.0.1", 9}) > 1472);
}

TEST(what_is_used_wrongly_is_told_of)
{
    CHECK_DIES("a heap was destroyed while it was in flight", {
        spt::memory_stream stream(spt::no_thread);
        spt::completion sent;
        const spt::heap heap;
        stream.async_send(heap, sent);
    });
    CHECK_DIES("a stream was destroyed while heaps were in flight", {
        state s;
        spt::memory_stream stream(spt::no_thread, slow());
        stream.async_send(s.heap, s.sent);
    });
    CHECK_DIES("a completion was destroyed before poll() handed it out", {
        state s;
        bool stopped = false;
        spt::memory_stream stream(spt::no_thread, polled());
        const task waits = expect_stop(stream, s, stopped);
    });
    CHECK_DIES("a completion was used again", {
        state s;
        spt::memory_stream stream(spt::no_thread, slow());
        stream.async_send(s.heap, s.sent);
        stream.async_send(s.heap, s.sent);
    });
}
