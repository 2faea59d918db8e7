/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial from C++20: the other end. It reads on where ``spt.hpp`` ends, as ``spt_recv.h``
 * does where ``spt.h`` ends, and follows the same rules.
 *
 * 1. received heaps: lent by a stream, and given back
 * 2. items: what is in a received heap
 * 3. memory for heaps: mapped, or kept in a pool to be used again
 * 4. streams: heaps received by a worker thread, or by who asks for them
 * 5. rings of chunks: memory that many heaps share
 * 6. streams of chunks: every heap to its place
 *
 * What takes packets apart without any I/O owns nothing, and is used as it is in C.
 */
#ifndef SPEAD_TUTORIAL_SPT_RECV_HPP
#define SPEAD_TUTORIAL_SPT_RECV_HPP

#include "spead_tutorial/spt.hpp"
#include "spead_tutorial/spt_recv.h"

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
    /**
     * Hold a heap that was got with a function of C.
     *
     * :param stream: That lent it; borrowed until it is given back.
     * :param lent: Given back to it; may be ``nullptr``.
     */
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

    /**
     * List its items: see :c:func:`spt_received_heap_items`.
     *
     * :param room: Filled; room for ``heap->n_pointers`` of them.
     * :return: Those that were filled in. Throws ``SPT_ERR_ARGUMENT`` where there is too little
     *     room.
     */
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
 *     or of another type, or in another byte order than this machine's, or that lies askew.
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

    /**
     * Make a group without items. Throws ``SPT_ERR_MEMORY``.
     *
     * :param bug_compat: A sum of ``SPT_COMPAT_*``, as the sender has it.
     */
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

    /** How many items it has. */
    [[nodiscard]] std::size_t size() const noexcept { return spt_item_group_size(get()); }

    /**
     * An item by its place, in the order in which they were described.
     *
     * :param i: Which, less than there are.
     * :return: Lent until the next update.
     */
    [[nodiscard]] const group_item &operator[](std::size_t i) const noexcept
    {
        return *spt_item_group_at(get(), i);
    }

    /**
     * An item by its name.
     *
     * :param name: Its name.
     * :return: Lent until the next update; ``nullptr`` where none was described.
     */
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

    /**
     * Make a pool. Throws what :c:func:`spt_memory_pool_create` answers.
     *
     * :param threads: Borrowed until the pool is destroyed, to make buffers; :cpp:var:`no_thread`
     *     without ``low_water``.
     */
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

    /**
     * Receive from a UDP port. Throws what :c:func:`spt_recv_stream_add_udp` answers.
     *
     * :param on: The address to listen on, and the port; copied.
     */
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

    /**
     * Receive from a socket of yours. Throws as :cpp:func:`add_udp`.
     *
     * :param socket: A UDP socket that is bound. It is duplicated: it stays yours.
     * :param config: Only ``max_size`` and ``gro`` are looked at. Copied.
     */
    void add_udp_socket(int socket, const receive_config &config = {})
    {
        detail::must(spt_recv_stream_add_udp_socket, get(), socket, &config);
    }

    /**
     * Receive packets that are in memory, one after the other. The stream ends with them.
     *
     * :param bytes: Borrowed until the stream is stopped or destroyed, or has ended.
     */
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

    /**
     * Wait for the next heap that is finished, through all signals.
     *
     * :return: The heap; none where the stream has ended and there is no more.
     */
    [[nodiscard]] received_heap get_heap() noexcept
    {
        received_heap heap;
        while (wait_for(-1, heap) == SPT_PENDING) {
        }
        return heap;
    }

    /**
     * Wait for the next heap that is finished, or until some time has passed, or a signal comes.
     *
     * :param timeout: At most so long; 0 not at all.
     * :param heap: Filled, for ``SPT_OK``; what was in it is given back, in any case.
     * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_DONE`` where the
     *     stream has ended and there is no more.
     */
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

    /** The UDP port that is received from: see :c:func:`spt_recv_stream_port`. */
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

/* ---- 5. Rings of chunks ---------------------------------------------------------------------- */

/**
 * Memory that many heaps share: an :c:struct:`spt_chunk`. Derive from it what has more to it, such
 * as the memory itself. It stays where it is, and in one ring or stream at a time.
 */
struct chunk : spt_chunk {
    /** One without memory: set its members. */
    chunk() noexcept : spt_chunk{} {}

    /**
     * A chunk of memory of yours, all of which is borrowed for as long as the chunk is used.
     *
     * :param samples: Where payload goes.
     * :param there: A byte for each heap, or packet: 1 where it has arrived, else 0.
     * :param more: What the place function tells of heaps.
     */
    template <lendable Range>
    chunk(Range &&samples, std::span<std::uint8_t> there,
          std::span<std::uint8_t> more = {}) noexcept
        : spt_chunk{}
    {
        data = std::ranges::data(samples);
        data_size = std::as_writable_bytes(std::span(samples)).size();
        present = there.data();
        present_size = there.size();
        extra = more.data();
        extra_size = more.size();
    }
    chunk(const chunk &) = delete;
    chunk &operator=(const chunk &) = delete;
    ~chunk() = default;

    /** The payload of heaps, as elements of a type; lent as long as the memory is. */
    template <class T> [[nodiscard]] std::span<T> as() const noexcept
    {
        static_assert(std::is_trivially_copyable_v<T>);
        return {static_cast<T *>(data), data_size / sizeof(T)};
    }

    /** A byte for each heap, or packet: 1 where it has arrived; lent as long as the memory is. */
    [[nodiscard]] std::span<std::uint8_t> presence() const noexcept
    {
        return {present, present_size};
    }
};

/**
 * A queue of chunks that has an end, in both senses. It owns no chunk: those that are in it when it
 * is destroyed are yours. All functions but those that move it may be called from any thread.
 */
class chunk_ring : public owner<spt_chunk_ring, detail::call<spt_chunk_ring_destroy>>
{
  public:
    using owner::owner;

    /**
     * Make a ring. Throws what :c:func:`spt_chunk_ring_create` answers.
     *
     * :param capacity: Chunks in it at most, at least 1; streams that end may put in more.
     */
    explicit chunk_ring(std::size_t capacity)
        : owner(taken, detail::made(spt_chunk_ring_create, capacity))
    {
    }

    /**
     * Put a chunk in, at once.
     *
     * :param what: Borrowed until it is got.
     * :return: Whether it was put in: there is room, and the ring has not been stopped.
     */
    bool put(chunk &what) noexcept { return spt_chunk_ring_put(get(), &what, 0) == SPT_OK; }

    /**
     * Wait for room, or until some time has passed, or a signal comes.
     *
     * :param timeout: At most so long; 0 not at all.
     * :param what: Borrowed until it is got.
     * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_ERR_STOPPED``.
     */
    [[nodiscard]] spt::status put_for(std::chrono::nanoseconds timeout, chunk &what) noexcept
    {
        return spt_chunk_ring_put(get(), &what, detail::timeout_ns(timeout));
    }

    /**
     * Wait for a chunk, through all signals.
     *
     * :return: The one that has been in it for longest, yours again; ``nullptr`` where the ring has
     *     been stopped and is empty.
     */
    [[nodiscard]] chunk *get_chunk() noexcept
    {
        spt_chunk *got = nullptr;
        while (spt_chunk_ring_get(get(), -1, &got) == SPT_PENDING) {
        }
        return static_cast<chunk *>(got);
    }

    /**
     * Wait for a chunk, or until some time has passed, or a signal comes.
     *
     * :param timeout: At most so long; 0 not at all.
     * :param got: Filled, for ``SPT_OK``; else ``nullptr``.
     * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_DONE`` where the ring
     *     has been stopped and is empty.
     */
    [[nodiscard]] spt::status get_chunk_for(std::chrono::nanoseconds timeout, chunk *&got) noexcept
    {
        spt_chunk *one = nullptr;
        const spt::status answer = spt_chunk_ring_get(get(), detail::timeout_ns(timeout), &one);
        got = static_cast<chunk *>(one);
        return answer;
    }

    /** How many chunks are in it. */
    [[nodiscard]] std::size_t size() const noexcept { return spt_chunk_ring_size(get()); }
    /** How many chunks it has room for. */
    [[nodiscard]] std::size_t capacity() const noexcept { return spt_chunk_ring_capacity(get()); }
    /** Stop: nothing can be put in any more; what is in it can still be got. */
    void stop() noexcept { spt_chunk_ring_stop(get()); }
    /** Say that one more puts chunks in. Streams do so by themselves. */
    void add_producer() noexcept { spt_chunk_ring_add_producer(get()); }
    /** Say that one of them puts no chunks in any more; whether it was the last. */
    bool remove_producer() noexcept { return spt_chunk_ring_remove_producer(get()); }
    /** A file descriptor that is readable while there is something to get, or it is stopped. */
    [[nodiscard]] int data_fd() const noexcept { return spt_chunk_ring_data_fd(get()); }
    /** The same for room. */
    [[nodiscard]] int space_fd() const noexcept { return spt_chunk_ring_space_fd(get()); }
};

/* ---- 6. Streams of chunks -------------------------------------------------------------------- */

/** What a place function is told of a heap, and says of it: see :c:struct:`spt_place_data`. */
using place_data = spt_place_data;

/** How a stream fills chunks: :c:struct:`spt_chunk_config`, for two chunks at a time at first. */
struct chunk_config : spt_chunk_config {
    constexpr chunk_config() noexcept : spt_chunk_config{} { max_chunks = 2; }

    /**
     * Choose what says where heaps belong.
     *
     * :param function: Called by the worker for each heap once, with a :cpp:type:`place_data`; what
     *     it throws ends the program. Borrowed until the stream is destroyed.
     */
    template <std::invocable<place_data &> Function> void set_place(Function &function) noexcept
    {
        if constexpr (std::is_function_v<Function>)
            place_user = reinterpret_cast<void *>(&function);
        else
            place_user = const_cast<std::remove_const_t<Function> *>(std::addressof(function));
        place = [](spt_place_data *data, std::size_t, void *user) noexcept {
            if constexpr (std::is_function_v<Function>)
                reinterpret_cast<Function *>(user)(*data);
            else
                (*static_cast<Function *>(user))(*data);
        };
    }
    /** A function object that is gone at once cannot be called. */
    template <class Function> void set_place(const Function &&function) = delete;

    /**
     * Choose the items whose values the place function is told.
     *
     * :param ids: Borrowed until a stream is made.
     */
    template <lendable Range> void set_items(Range &&ids) noexcept
    {
        items = std::ranges::data(ids);
        n_items = std::ranges::size(ids);
    }
};

/** A stream that fills chunks: see :c:func:`spt_recv_stream_create_chunks`. */
class chunk_stream : public recv_stream
{
  public:
    using recv_stream::recv_stream;

    /**
     * Make one. Throws what :c:func:`spt_recv_stream_create_chunks` answers.
     *
     * :param who: A pool, borrowed until the stream is destroyed, or :cpp:var:`no_thread`: who asks
     *     for a chunk reads then.
     * :param config: Copied. Memory and the ring of heaps are not used.
     * :param chunks: Copied; its rings are those that follow.
     * :param data_ring: Where chunks go that are filled. Borrowed until the stream is destroyed.
     * :param free_ring: Where chunks come from. Borrowed until the stream is destroyed.
     */
    chunk_stream(worker who, const recv_config &config, const chunk_config &chunks,
                 const chunk_ring &data_ring, const chunk_ring &free_ring)
        : recv_stream(taken, create(who, config, chunks, data_ring, free_ring))
    {
    }

    /**
     * What became of heaps and chunks, at one moment; by value.
     *
     * :param place_stats: Filled with what the place function has counted: room for ``n_stats``.
     */
    [[nodiscard]] spt_chunk_stats
    chunk_stats(std::span<std::uint64_t> place_stats = {}) const noexcept
    {
        spt_chunk_stats filled;
        spt_recv_stream_chunk_stats(get(), &filled, place_stats.data());
        return filled;
    }

  private:
    static spt_recv_stream *create(worker who, const recv_config &config, spt_chunk_config chunks,
                                   const chunk_ring &data_ring, const chunk_ring &free_ring)
    {
        chunks.data_ring = data_ring.get();
        chunks.free_ring = free_ring.get();
        return detail::made(spt_recv_stream_create_chunks, who.get(), &config, &chunks);
    }
};

} // namespace spt

#endif /* SPEAD_TUTORIAL_SPT_RECV_HPP */
