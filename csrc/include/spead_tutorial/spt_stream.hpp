/* SPDX-License-Identifier: BSD-3-Clause */
/* How heaps are sent, and memory for it. Part of spt.hpp. */
#ifndef SPEAD_TUTORIAL_SPT_STREAM_HPP
#define SPEAD_TUTORIAL_SPT_STREAM_HPP

#include "spead_tutorial/spt_completion.hpp"

#include <array>
#include <exception>

namespace spt
{

/* ---- 8. Streams ------------------------------------------------------------------------------ */

/** How a stream sends: :c:struct:`spt_stream_config`, with the defaults. */
struct stream_config : spt_stream_config {
    constexpr stream_config() noexcept : spt_stream_config(SPT_STREAM_CONFIG_DEFAULT) {}
};

/** How a UDP socket is made: :c:struct:`spt_udp_config`, with the defaults. */
struct udp_config : spt_udp_config {
    constexpr udp_config() noexcept : spt_udp_config(SPT_UDP_CONFIG_DEFAULT) {}
};

/** How a TCP connection is made: :c:struct:`spt_tcp_config`, with the defaults. */
struct tcp_config : spt_tcp_config {
    constexpr tcp_config() noexcept : spt_tcp_config(SPT_TCP_CONFIG_DEFAULT) {}
};

/** Where a substream goes, or a receiver listens: see :c:struct:`spt_endpoint`. */
using endpoint = spt_endpoint;

/** One heap of a group: a :c:struct:`spt_heap_reference`. */
struct heap_reference : spt_heap_reference {
    /** Refer to a heap, which is borrowed until its completion is complete. */
    heap_reference(const spt::heap &which, std::int64_t its_cnt = -1, std::size_t substream = 0,
                   double at_rate = -1) noexcept
        : spt_heap_reference{which.get(), its_cnt, substream, at_rate}
    {
    }
    /** A heap that is gone at once cannot be sent. */
    heap_reference(const spt::heap &&which, std::int64_t its_cnt = -1, std::size_t substream = 0,
                   double at_rate = -1) = delete;
};

/** How the packets of a group's heaps follow each other: see :c:enum:`spt_group_mode`. */
using group_mode = spt_group_mode;

/**
 * Ask the route for the largest ``max_packet_size`` that goes to an endpoint in one piece. Throws
 * what :c:func:`spt_route_packet_size` answers.
 */
[[nodiscard]] inline std::size_t route_packet_size(const endpoint &to)
{
    std::size_t size = 0;
    detail::must(spt_route_packet_size, &to, &size);
    return size;
}

/**
 * A queue of heaps and what sends them: see :c:struct:`spt_stream`. All functions but those that
 * move it may be called from any thread.
 *
 * What is sent is borrowed until its completion is complete, with the values that it references,
 * and so is the completion, which is not in use before. A list of references is copied. Where a
 * call throws, nothing is borrowed, and no heap count was used up.
 *
 * Let nothing be in flight when it is destroyed: :cpp:func:`flush`, or :cpp:func:`stop`, before.
 */
class stream : public owner<spt_stream, detail::destroy_stream>
{
  public:
    /**
     * Own a stream that was made with a function of C.
     *
     * :param object: Destroyed with the owner. With ``config.poll``, every completion of it that is
     *     handed out has to be a :cpp:class:`completion`.
     */
    stream(taken_t, spt_stream *object) noexcept
        : owner(taken, object), polled_(spt_stream_fd(object) >= 0)
    {
    }

    /**
     * Send a heap, and wait until that is done. Throws what :c:func:`spt_stream_send_heap` answers,
     * or what went wrong on the way; ``SPT_ERR_ARGUMENT`` on a stream with ``config.poll``.
     *
     * :return: Bytes of SPEAD packets handed over.
     */
    std::uint64_t send(const heap &what)
    {
        refuse_polled();
        return async_send(what).wait();
    }

    /** The same for a group of heaps, or one with a count, an endpoint or a rate of its own. */
    std::uint64_t send(list<heap_reference> group, group_mode mode = SPT_GROUP_ROUND_ROBIN)
    {
        refuse_polled();
        return async_send(group, mode).wait();
    }

    /** Queue a heap, and wait for nothing. Throws what :c:func:`spt_stream_send_heap` answers. */
    void async_send(const heap &what, completion &sent)
    {
        failure details;
        if (!try_async_send(what, sent, details)) [[unlikely]]
            detail::fail(details);
    }

    /** The same, with a completion of its own: ``auto sent = stream.async_send(heap);``. It is
     * returned in place: it is not moved. */
    [[nodiscard]] completion async_send(const heap &what)
    {
        return completion([&](completion &sent) { async_send(what, sent); });
    }

    /** A heap that is gone at once cannot be sent without waiting. */
    void async_send(const heap &&what, completion &sent) = delete;
    void async_send(const heap &&what) = delete;

    /** Queue a group of heaps; all of them or none. Throws what :c:func:`spt_stream_send_heaps`
     * answers. */
    void async_send(list<heap_reference> group, group_mode mode, completion &sent)
    {
        failure details;
        if (!try_async_send(group, mode, sent, details)) [[unlikely]]
            detail::fail(details);
    }

    /** The same, with a completion of its own. */
    [[nodiscard]] completion async_send(list<heap_reference> group,
                                        group_mode mode = SPT_GROUP_ROUND_ROBIN)
    {
        return completion([&](completion &sent) { async_send(group, mode, sent); });
    }

    /** Queue a heap, without throwing: a queue that is full is nothing special. */
    [[nodiscard]] bool try_async_send(const heap &what, completion &sent, failure &why) noexcept
    {
        begin(sent);
        return begun(sent, spt_stream_send_heap(get(), what.get(), &sent.completion_, &why));
    }
    bool try_async_send(const heap &&what, completion &sent, failure &why) = delete;

    /** Queue a group of heaps, without throwing. */
    [[nodiscard]] bool try_async_send(list<heap_reference> group, group_mode mode, completion &sent,
                                      failure &why) noexcept
    {
        begin(sent);
        return begun(sent, spt_stream_send_heaps(get(), group.data(), group.size(), mode,
                                                 &sent.completion_, &why));
    }

    /** Say to every endpoint that the stream ends, in the flavour of the heaps before, and wait
     * until that is sent. Throws what :c:func:`spt_stream_send_end` answers. */
    void send_end(const flavour &how = default_flavour)
    {
        detail::must(spt_stream_send_end, get(), &how);
    }

    /** Wait until all that is queued now is complete. How it went is in the completions. */
    void flush() noexcept
    {
        while (spt_stream_flush(get(), -1) == SPT_PENDING) {
        }
    }

    /** The same, or until some time has passed: whether all is complete. */
    [[nodiscard]] bool flush_for(std::chrono::nanoseconds timeout) noexcept
    {
        return spt_stream_flush(get(), detail::timeout_ns(timeout)) == SPT_OK;
    }

    /** Stop: what is still queued completes with ``SPT_ERR_STOPPED``. */
    void stop() noexcept { spt_stream_stop(get()); }

    /**
     * Take what is complete from a stream with ``config.poll``, in order of completion, and resume
     * the coroutines that wait for it, here and now: 64 at most, then it is the event loop's turn,
     * though the descriptor stays readable. Without a thread, it also sends. Throws what the first
     * of them throws out of it, when all have been resumed.
     *
     * :return: How many completions there were.
     */
    std::size_t poll()
    {
        constexpr std::size_t most = 64;
        std::size_t n = 0;
        std::exception_ptr thrown;
        for (spt_completion *next = nullptr; n < most && spt_stream_poll(get(), &next, 1) == 1; n++)
            if (const auto waiter = take_back(*next)) /* the completion may be gone after that */
                resume(waiter, thrown);
        if (thrown)
            std::rethrow_exception(thrown);
        return n;
    }

    /** The file descriptor that says when to poll: see :c:func:`spt_stream_fd`; else -1. */
    [[nodiscard]] int fd() const noexcept { return spt_stream_fd(get()); }

    /** Choose the heap counts that are given out: see :c:func:`spt_stream_set_cnt_sequence`. */
    void set_cnt_sequence(std::uint64_t next, std::uint64_t step)
    {
        detail::must(spt_stream_set_cnt_sequence, get(), next, step);
    }

    /** Counts since it was made, by value. */
    [[nodiscard]] spt_stats stats() const noexcept
    {
        spt_stats filled;
        spt_stream_stats(get(), &filled);
        return filled;
    }

    /** Fill in the times of the last heaps, oldest first; the newest are left out where
     * there is no room. */
    [[nodiscard]] std::span<spt_times> timeline(std::span<spt_times> times) const noexcept
    {
        return times.first(spt_stream_timeline(get(), times.data(), times.size()));
    }

  private:
    friend struct detail::destroy_stream;

    void refuse_polled() const
    {
        if (polled_) [[unlikely]]
            detail::fail(detail::refusal("with config.poll, nothing waits: use async_send"));
    }

    /* What is known of a completion is so before the stream has it: another thread may poll. */
    void begin(completion &sent) const noexcept
    {
        detail::promised([&] { return sent.stream_ == nullptr || (!sent.polled_ && sent.done()); },
                         "a completion was used again before it was complete");
        sent.completion_ = {};
        sent.completion_.user = &sent;
        sent.stream_ = get();
        sent.polled_ = polled_;
    }

    static bool begun(completion &sent, spt::status answer) noexcept
    {
        if (answer < 0) [[unlikely]]
            sent.stream_ = nullptr;
        return answer >= 0;
    }

    /* It is the program's again; returns the coroutine that waits for it, if there is one. */
    static std::coroutine_handle<> take_back(const spt_completion &of) noexcept
    {
        auto *one = static_cast<completion *>(of.user);
        one->stream_ = nullptr;
        auto *awaiter = std::exchange(one->awaiter_, nullptr);
        return awaiter != nullptr ? std::exchange(awaiter->waits, nullptr) : nullptr;
    }

    /* What it throws is kept, if it is the first to throw. */
#ifdef __cpp_exceptions
    static void resume(std::coroutine_handle<> waiter, std::exception_ptr &thrown) noexcept
    {
        try {
            waiter.resume();
        } catch (...) {
            thrown = thrown ? thrown : std::current_exception();
        }
    }
#else
    static void resume(std::coroutine_handle<> waiter, std::exception_ptr &) { waiter.resume(); }
#endif

    bool polled_;
};

inline void detail::destroy_stream::operator()(spt_stream *stream) const noexcept
{
    promised([&] { return spt_stream_flush(stream, 0) != SPT_PENDING; },
             "a stream was destroyed while heaps were in flight: flush() or stop() it before");
    if (spt_stream_fd(stream) >= 0) { /* no poll hands them out any more */
        spt_stream_stop(stream);
        for (spt_completion *next = nullptr; spt_stream_poll(stream, &next, 1) == 1;)
            spt::stream::take_back(*next);
    }
    spt_stream_destroy(stream);
}

/** A stream that sends over UDP. */
class udp_stream : public stream
{
  public:
    using stream::stream;

    /**
     * Make one, with a socket of its own. Throws what :c:func:`spt_stream_create_udp` answers.
     *
     * :param who: A pool, borrowed until the stream is destroyed, or :cpp:var:`no_thread`.
     * :param endpoints: One for each substream, of one address family. Copied.
     */
    udp_stream(worker who, list<endpoint> endpoints, const stream_config &config = {},
               const udp_config &udp = {})
        : stream(taken, detail::made(spt_stream_create_udp, who.get(), endpoints.data(),
                                     endpoints.size(), &config, &udp))
    {
    }

    /**
     * The same, with a socket of yours. Throws what :c:func:`spt_stream_create_udp_socket` answers.
     *
     * :param socket: A UDP socket. It is duplicated: it stays yours, and may be closed.
     * :param udp: Only ``gso`` is looked at. Copied.
     */
    udp_stream(worker who, int socket, list<endpoint> endpoints, const stream_config &config = {},
               const udp_config &udp = {})
        : stream(taken, detail::made(spt_stream_create_udp_socket, who.get(), socket,
                                     endpoints.data(), endpoints.size(), &config, &udp))
    {
    }
};

/** A stream that sends over a TCP connection. */
class tcp_stream : public stream
{
  public:
    using stream::stream;

    /** Connect, and make one. Throws what :c:func:`spt_stream_create_tcp` answers. */
    tcp_stream(worker who, const endpoint &to, const stream_config &config = {},
               const tcp_config &tcp = {})
        : stream(taken, detail::made(spt_stream_create_tcp, who.get(), &to, &config, &tcp))
    {
    }

    /** The same, with a socket of yours. Throws what :c:func:`spt_stream_create_tcp_socket`
     * answers. */
    tcp_stream(worker who, int socket, const stream_config &config = {})
        : stream(taken, detail::made(spt_stream_create_tcp_socket, who.get(), socket, &config))
    {
    }
};

/** A queue of packets within the process; streams also hold it. */
class inproc_queue : public owner<spt_inproc_queue, detail::call<spt_inproc_queue_destroy>>
{
  public:
    using owner::owner;

    /** Make one, for that many packets and bytes; 0 for no limit. Throws what
     * :c:func:`spt_inproc_queue_create` answers. */
    explicit inproc_queue(std::size_t max_packets = 0, std::size_t max_bytes = 0)
        : owner(taken, detail::made(spt_inproc_queue_create, max_packets, max_bytes))
    {
    }

    /** Put a packet in, which is copied. Throws what :c:func:`spt_inproc_queue_add_packet` answers.
     */
    void add_packet(std::span<const std::byte> packet)
    {
        detail::must(spt_inproc_queue_add_packet, get(), packet.data(), packet.size());
    }

    /** Take no more packets: streams that receive end when it is empty. */
    void stop() noexcept { spt_inproc_queue_stop(get()); }
};

/** A stream that sends to queues of this process. */
class inproc_stream : public stream
{
  public:
    using stream::stream;

    /** Make one to a queue, which it holds. Throws what :c:func:`spt_stream_create_inproc` answers.
     */
    inproc_stream(worker who, const inproc_queue &to, const stream_config &config = {})
        : inproc_stream(who, std::array{to.get()}, config)
    {
    }

    /** The same, with a queue for each substream. */
    inproc_stream(worker who, std::span<spt_inproc_queue *const> to,
                  const stream_config &config = {})
        : stream(taken,
                 detail::made(spt_stream_create_inproc, who.get(), to.data(), to.size(), &config))
    {
    }
};

/** A stream that collects its packets in memory, one after the other. */
class memory_stream : public stream
{
  public:
    using stream::stream;

    /** Make one. Throws what :c:func:`spt_stream_create_memory` answers. */
    explicit memory_stream(worker who, const stream_config &config = {})
        : stream(taken, detail::made(spt_stream_create_memory, who.get(), &config))
    {
    }

    /** Bytes collected so far. */
    [[nodiscard]] std::size_t size() const noexcept { return spt_stream_memory(get(), nullptr, 0); }

    /** Copy out the first bytes, as many as there is room for; returns how many there are. */
    std::size_t copy(std::span<std::byte> to) const noexcept
    {
        return spt_stream_memory(get(), to.data(), to.size());
    }
};

/* ---- 9. Memory in large pages ---------------------------------------------------------------- */

/** Owns memory in huge pages, where the system has any: see :c:func:`spt_alloc`. */
class memory
{
  public:
    /** Allocate a number of bytes. Throws what :c:func:`spt_alloc` answers. */
    explicit memory(std::size_t size) { detail::must(spt_alloc, size, &memory_); }
    memory(memory &&other) noexcept : memory_(std::exchange(other.memory_, {})) {}
    memory &operator=(memory &&other) noexcept
    {
        std::swap(memory_, other.memory_);
        return *this;
    }
    memory(const memory &) = delete;
    memory &operator=(const memory &) = delete;
    ~memory() { spt_free(&memory_); }

    /** All of it, as elements of a type; lent until it is destroyed. */
    template <class T> [[nodiscard]] std::span<T> as() const noexcept
    {
        static_assert(std::is_trivially_copyable_v<T>);
        return {static_cast<T *>(memory_.data), memory_.size / sizeof(T)};
    }
    /** Bytes in a page of it: 2 MiB, or those of an ordinary page. */
    [[nodiscard]] std::size_t page_size() const noexcept { return memory_.page_size; }
    /** Why it is not in huge pages, and what to do about it; ``nullptr`` where it is. */
    [[nodiscard]] const char *reason() const noexcept { return memory_.reason; }

  private:
    spt_memory memory_ = {};
};

} // namespace spt

#endif /* SPEAD_TUTORIAL_SPT_STREAM_HPP */
