/* SPDX-License-Identifier: BSD-3-Clause */
/* Heaps that are gathered in chunks. Part of spt_recv.hpp. */
#ifndef SPEAD_TUTORIAL_SPT_CHUNK_HPP
#define SPEAD_TUTORIAL_SPT_CHUNK_HPP

#include "spead_tutorial/spt_chunk.h"
#include "spead_tutorial/spt_recv_stream.hpp"

namespace spt
{

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

    /** Make a ring. Throws what :c:func:`spt_chunk_ring_create` answers. */
    explicit chunk_ring(std::size_t capacity)
        : owner(taken, detail::made(spt_chunk_ring_create, capacity))
    {
    }

    /** Put a chunk in, at once, which is borrowed until it is got. Returns whether it was put in:
     * there is room, and the ring has not been stopped. */
    bool put(chunk &what) noexcept { return spt_chunk_ring_put(get(), &what, 0) == SPT_OK; }

    /** Wait for room, or until some time has passed, or a signal comes: see
     * :c:func:`spt_chunk_ring_put`. */
    [[nodiscard]] spt::status put_for(std::chrono::nanoseconds timeout, chunk &what) noexcept
    {
        return spt_chunk_ring_put(get(), &what, detail::timeout_ns(timeout));
    }

    /** Wait for the chunk that has been in it for longest, through all signals: it is yours again.
     * ``nullptr`` where the ring has been stopped and is empty. */
    [[nodiscard]] chunk *get_chunk() noexcept
    {
        spt_chunk *got = nullptr;
        while (spt_chunk_ring_get(get(), -1, &got) == SPT_PENDING) {
        }
        return static_cast<chunk *>(got);
    }

    /** The same, or until some time has passed, or a signal comes: see
     * :c:func:`spt_chunk_ring_get`. */
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

    /** Choose the items whose values the place function is told: borrowed until a stream is made.
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
     * :param chunks: Its rings are those that follow.
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

#endif /* SPEAD_TUTORIAL_SPT_CHUNK_HPP */
