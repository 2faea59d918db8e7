/* SPDX-License-Identifier: BSD-3-Clause */
/* How heaps are received, what is in them, and memory for it. Part of spt_recv.hpp. */
#ifndef SPEAD_TUTORIAL_SPT_RECV_STREAM_HPP
#define SPEAD_TUTORIAL_SPT_RECV_STREAM_HPP

#include "spead_tutorial/spt_recv_stream.h"
#include "spead_tutorial/spt_stream.hpp"

#include <bit>
#include <iterator>

namespace spt
{

/* ---- 1. Received heaps ----------------------------------------------------------------------- */

/** An item of a received heap: see :c:struct:`spt_received_item`. */
using received_item = spt_received_item;

/**
 * A heap that was received, lent by a stream, and given back when this is destroyed or assigned to.
 * It has to be gone before its stream is. What is in it is a :c:struct:`spt_received_heap`.
 */
class received_heap
{
  public:
    /** None. */
    received_heap() noexcept = default;
    /** Hold a heap that was got with a function of C from a stream, and give it back to that; none
     * where ``lent`` is ``nullptr``. */
    received_heap(spt_recv_stream *stream, spt_received_heap *lent) noexcept
        : heap_(lent, give_back{stream})
    {
    }

    /** Whether there is one. */
    explicit operator bool() const noexcept { return heap_ != nullptr; }
    /** What is known of it. */
    const spt_received_heap &operator*() const noexcept { return *heap_; }
    /** What is known of it: ``heap->cnt``. */
    const spt_received_heap *operator->() const noexcept { return heap_.get(); }

    /** Its payload; lent with it. Bytes that have not arrived may be anything. */
    [[nodiscard]] std::span<std::uint8_t> payload() const noexcept
    {
        return {heap_->payload, static_cast<std::size_t>(heap_->length)};
    }

    /** List its items: see :c:func:`spt_received_heap_items`. Returns those that were filled in;
     * throws ``SPT_ERR_ARGUMENT`` for less room than ``heap->n_pointers``. */
    [[nodiscard]] std::span<received_item> items(std::span<received_item> room) const
    {
        if (room.size() < heap_->n_pointers) [[unlikely]]
            detail::fail(detail::refusal("too little room for the items of a heap"));
        return room.first(spt_received_heap_items(heap_.get(), room.data()));
    }

    /** The heap in C; lent. */
    [[nodiscard]] spt_received_heap *get() const noexcept { return heap_.get(); }
    /** Give up the heap: it is the caller's to give back. */
    [[nodiscard]] spt_received_heap *release() noexcept { return heap_.release(); }

  private:
    struct give_back {
        spt_recv_stream *stream;
        void operator()(spt_received_heap *heap) const noexcept
        {
            spt_recv_stream_return(stream, heap);
        }
    };
    std::unique_ptr<spt_received_heap, give_back> heap_;
};

/* ---- 2. Items -------------------------------------------------------------------------------- */

/** An item that was described, and its value: see :c:struct:`spt_group_item`. */
using group_item = spt_group_item;

/**
 * The numbers that are an item's value, where they lie.
 *
 * :return: Lent as long as the value is. Throws ``SPT_ERR_ARGUMENT`` for an item without a value,
 *     or of another type (complex numbers have none), or in another byte order than this
 *     machine's, or that lies askew.
 */
template <element T> [[nodiscard]] std::span<const T> values(const group_item &of)
{
    constexpr bool is_whole = std::integral<T>;
    constexpr bool is_complex = !is_whole && !std::floating_point<T>;
    constexpr char code = is_whole ? (std::is_signed_v<T> ? 'i' : 'u') : 'f';
    constexpr bool little = std::endian::native == std::endian::little;
    const auto address = reinterpret_cast<std::uintptr_t>(of.value.data);
    if (!of.has_value) [[unlikely]]
        detail::fail(detail::refusal("an item has no value in this heap"));
    if (is_complex || of.code != code || of.bits != 8 * sizeof(T)) [[unlikely]]
        detail::fail(detail::refusal("the elements of an item are of another type"));
    if ((sizeof(T) > 1 && of.little_endian != little) || address % alignof(T) != 0) [[unlikely]]
        detail::fail(detail::refusal("an item's elements are in another byte order, or lie askew"));
    return {reinterpret_cast<const T *>(of.value.data), of.value.length / sizeof(T)};
}

/** Remembers descriptors, so that items are found by name. It is used by one thread. */
class item_group : public owner<spt_item_group, detail::call<spt_item_group_destroy>>
{
  public:
    using owner::owner;

    /** Make a group without items. Throws ``SPT_ERR_MEMORY``. */
    explicit item_group(int bug_compat = 0)
        : owner(taken, detail::made(spt_item_group_create, bug_compat))
    {
    }

    /**
     * Take in what a heap says: see :c:func:`spt_item_group_update`. Throws ``SPT_ERR_MEMORY``.
     *
     * :param heap: Borrowed; values lie in it, and are lent as long as it is.
     * :return: How many values in the heap nothing describes, or are too short.
     */
    std::size_t update(const received_heap &heap)
    {
        std::size_t undescribed = 0;
        detail::must(spt_item_group_update, get(), heap.get(), &undescribed);
        return undescribed;
    }
    /* The values would be gone with it. */
    std::size_t update(const received_heap &&heap) = delete;

    /** Say how much memory its items may take: see :c:func:`spt_item_group_set_max_memory`. */
    void set_max_memory(std::size_t bytes) noexcept { spt_item_group_set_max_memory(get(), bytes); }

    /** How many descriptors of the last heap are left out: see :c:func:`spt_item_group_left_out`.
     */
    [[nodiscard]] std::size_t left_out() const noexcept { return spt_item_group_left_out(get()); }

    /** How many items it has. */
    [[nodiscard]] std::size_t size() const noexcept { return spt_item_group_size(get()); }

    /** An item by its place, in the order in which they were described; lent until the next
     * update. */
    [[nodiscard]] const group_item &operator[](std::size_t i) const noexcept
    {
        return *spt_item_group_at(get(), i);
    }

    /** An item by its name, lent until the next update; ``nullptr`` where none was described. */
    [[nodiscard]] const group_item *find(const char *name) const noexcept
    {
        return spt_item_group_find(get(), name);
    }
};

/* ---- 3. Memory for heaps --------------------------------------------------------------------- */

/** Where the payload of heaps is kept: see :c:struct:`spt_heap_memory`. */
using heap_memory = spt_heap_memory;

/** How memory is mapped: :c:struct:`spt_mmap_config`, zeros at first. */
struct mmap_config : spt_mmap_config {
    constexpr mmap_config() noexcept : spt_mmap_config{} {}
};

/**
 * Memory that is mapped for each heap, and unmapped after it. Throws what
 * :c:func:`spt_mmap_memory` answers.
 *
 * :param config: Borrowed for as long as the memory is used.
 * :return: By value, for ``config.heaps.memory``.
 */
[[nodiscard]] inline heap_memory mmap_memory(const mmap_config &config)
{
    heap_memory filled;
    detail::must(spt_mmap_memory, &config, &filled);
    return filled;
}
/* It is borrowed. */
heap_memory mmap_memory(const mmap_config &&config) = delete;

/** What a pool keeps: :c:struct:`spt_memory_pool_config`, zeros at first. */
struct memory_pool_config : spt_memory_pool_config {
    constexpr memory_pool_config() noexcept : spt_memory_pool_config{} {}
};

/**
 * Keeps buffers that heaps have left for those that follow: see :c:struct:`spt_memory_pool`.
 * Destroy it after the streams that get from it.
 */
class memory_pool : public owner<spt_memory_pool, detail::call<spt_memory_pool_destroy>>
{
  public:
    using owner::owner;

    /** Make a pool; with ``low_water``, threads make buffers. Throws what
     * :c:func:`spt_memory_pool_create` answers. */
    explicit memory_pool(const memory_pool_config &config, worker threads = no_thread)
        : owner(taken, detail::made(spt_memory_pool_create, threads.get(), &config))
    {
    }

    /** The memory that it gives, for ``config.heaps.memory``; it is to outlive those who get it. */
    [[nodiscard]] heap_memory memory() const noexcept { return spt_memory_pool_memory(get()); }

    /** What was asked of it, and what it has, at one moment; by value. */
    [[nodiscard]] spt_memory_pool_stats stats() const noexcept
    {
        spt_memory_pool_stats filled;
        spt_memory_pool_read_stats(get(), &filled);
        return filled;
    }
};

/* ---- 4. Streams ------------------------------------------------------------------------------ */

/** How a UDP socket is read: :c:struct:`spt_receive_config`, with the defaults. */
struct receive_config : spt_receive_config {
    constexpr receive_config() noexcept : spt_receive_config(SPT_RECEIVE_CONFIG_DEFAULT) {}
};

/** The same for a TCP connection, of which ``max_size`` and ``buffer_size`` are looked at. */
struct receive_tcp_config : spt_receive_config {
    constexpr receive_tcp_config() noexcept : spt_receive_config(SPT_RECEIVE_TCP_CONFIG_DEFAULT) {}
};

/** How a stream receives: :c:struct:`spt_recv_config`, with the defaults. */
struct recv_config : spt_recv_config {
    constexpr recv_config() noexcept : spt_recv_config(SPT_RECV_CONFIG_DEFAULT) {}
};

/**
 * Receives heaps: see :c:struct:`spt_recv_stream`. All functions but those that move it may be
 * called from any thread. Heaps that it has lent are given back before it is destroyed.
 *
 * ``for (spt::received_heap &heap : stream)`` has every heap until the stream ends.
 */
class recv_stream : public owner<spt_recv_stream, detail::call<spt_recv_stream_destroy>>
{
  public:
    using owner::owner;

    /**
     * Make a stream. Without a reader it receives nothing. Throws what
     * :c:func:`spt_recv_stream_create` answers.
     *
     * :param who: A pool, borrowed until the stream is destroyed, or :cpp:var:`no_thread`: who asks
     *     for a heap reads then.
     * :param config: Copied; its memory is borrowed until the last heap is given back.
     */
    explicit recv_stream(worker who, const recv_config &config = {})
        : owner(taken, detail::made(spt_recv_stream_create, who.get(), &config))
    {
    }

    /** Receive from a UDP port. Throws what :c:func:`spt_recv_stream_add_udp` answers. */
    void add_udp(const endpoint &on, const receive_config &config = {})
    {
        detail::must(spt_recv_stream_add_udp, get(), &on, &config);
    }

    /** The same, without throwing: a port that is in use is nothing special. */
    [[nodiscard]] bool try_add_udp(const endpoint &on, failure &why,
                                   const receive_config &config = {}) noexcept
    {
        return spt_recv_stream_add_udp(get(), &on, &config, &why) >= 0;
    }

    /** Receive from a UDP socket of yours, which is duplicated. Throws as :cpp:func:`add_udp`. */
    void add_udp_socket(int socket, const receive_config &config = {})
    {
        detail::must(spt_recv_stream_add_udp_socket, get(), socket, &config);
    }

    /** Receive packets that are in memory, one after the other: it is borrowed until the stream
     * has ended, which it does with them. */
    template <lendable Range> void add_memory(Range &&bytes)
    {
        const auto all = std::as_bytes(std::span(bytes));
        detail::must(spt_recv_stream_add_memory, get(), all.data(), all.size());
    }

    /** Receive from the first TCP connection that a port is asked for. Throws what
     * :c:func:`spt_recv_stream_add_tcp` answers. */
    void add_tcp(const endpoint &on, const receive_tcp_config &config = {})
    {
        detail::must(spt_recv_stream_add_tcp, get(), &on, &config);
    }

    /** The same, with a socket of yours that listens; it is duplicated. */
    void add_tcp_socket(int acceptor, const receive_tcp_config &config = {})
    {
        detail::must(spt_recv_stream_add_tcp_socket, get(), acceptor, &config);
    }

    /** Receive packets from a queue of this process, which is held until the stream is stopped. */
    void add_inproc(const inproc_queue &queue)
    {
        detail::must(spt_recv_stream_add_inproc, get(), queue.get());
    }

    /** Receive what is in a capture: see :c:func:`spt_recv_stream_add_udp_pcap`, whose errors it
     * throws. */
    void add_udp_pcap(const char *path, const char *filter = "")
    {
        detail::must(spt_recv_stream_add_udp_pcap, get(), path, filter);
    }

    /** Begin to read, for a stream with ``config.explicit_start``. */
    void start() { detail::must(spt_recv_stream_start, get()); }

    /** Wait for the next heap that is finished, through all signals; none where the stream has
     * ended and there is no more. */
    [[nodiscard]] received_heap get_heap() noexcept
    {
        received_heap heap;
        while (wait_for(-1, heap) == SPT_PENDING) {
        }
        return heap;
    }

    /** The same, or until some time has passed, or a signal comes: see
     * :c:func:`spt_recv_stream_get`. What was in ``heap`` is given back, in any case. */
    [[nodiscard]] spt::status get_heap_for(std::chrono::nanoseconds timeout,
                                           received_heap &heap) noexcept
    {
        return wait_for(detail::timeout_ns(timeout), heap);
    }

    /** Goes over the heaps of a stream, each of which is given back before the next is got. */
    class iterator
    {
      public:
        using value_type = received_heap;
        using difference_type = std::ptrdiff_t;

        /** At the next heap. */
        explicit iterator(recv_stream &stream) noexcept : stream_(&stream) { ++*this; }
        /** The heap. */
        received_heap &operator*() noexcept { return heap_; }
        /** Wait for the next one. */
        iterator &operator++() noexcept
        {
            heap_ = {};
            heap_ = stream_->get_heap();
            return *this;
        }
        /** Whether the stream has ended. */
        bool operator==(std::default_sentinel_t) const noexcept { return !heap_; }

      private:
        recv_stream *stream_;
        received_heap heap_;
    };

    /** From the next heap... */
    [[nodiscard]] iterator begin() noexcept { return iterator(*this); }
    /** ... until the stream ends. */
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /** How many heaps are in the ring. */
    [[nodiscard]] std::size_t ready() const noexcept { return spt_recv_stream_ready(get()); }

    /** A file descriptor to be polled: see :c:func:`spt_recv_stream_fd`. */
    [[nodiscard]] int fd() const noexcept { return spt_recv_stream_fd(get()); }

    /** The port that is received from: see :c:func:`spt_recv_stream_port`. */
    [[nodiscard]] int port() const noexcept { return spt_recv_stream_port(get()); }

    /** Stop: see :c:func:`spt_recv_stream_stop`. What is finished can still be got. */
    void stop() noexcept { spt_recv_stream_stop(get()); }

    /** Where everything went that came, at one moment; by value. */
    [[nodiscard]] spt_recv_stats stats() const noexcept
    {
        spt_recv_stats filled;
        spt_recv_stream_stats(get(), &filled);
        return filled;
    }

  private:
    spt::status wait_for(std::int64_t timeout_ns, received_heap &heap) noexcept
    {
        heap = {};
        spt_received_heap *lent = nullptr;
        const spt::status answer = spt_recv_stream_get(get(), timeout_ns, &lent);
        if (answer == SPT_OK)
            heap = received_heap(get(), lent);
        return answer;
    }
};

} // namespace spt

#endif /* SPEAD_TUTORIAL_SPT_RECV_STREAM_HPP */
