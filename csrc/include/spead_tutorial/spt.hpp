/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial from C++20: what the headers of C have, with owners, spans, times and exceptions.
 *
 * What is ``spt_name`` in C is ``spt::name`` here, and does the same: this header adds no thread,
 * no memory and no copy to it. It uses the words of ``spt.h``, *borrowed*, *copied* and *taken*,
 * and its structures, for all that owns nothing: what cuts a heap into packets without any I/O is
 * used as it is in C.
 *
 * 1. errors: thrown, or returned where they are nothing special
 * 2. memory that is lent: one value or several, and never a temporary
 * 3. owners: who frees what
 * 4. variables and items: what is sent
 * 5. heaps: items that travel together
 * 6. threads: those that send and receive
 * 7. completions: how you learn that your memory is yours again
 * 8. streams: heaps on their way out
 * 9. memory in large pages
 *
 * Owners can be moved, and not be copied; one that was moved from may be destroyed, or assigned to,
 * and nothing else. Threads may do with an object what the header of C says of what it owns; moving
 * it is for one thread, while no other uses it.
 *
 * Programs that are built without ``NDEBUG`` end, with a line that says why, where they break a
 * promise about memory that can be looked into: a heap that is destroyed while it is in flight,
 * say.
 */
#ifndef SPEAD_TUTORIAL_SPT_HPP
#define SPEAD_TUTORIAL_SPT_HPP

#include "spead_tutorial/spt.h"

#include <array>
#include <chrono>
#include <complex>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace spt
{

/* ---- 1. Errors ------------------------------------------------------------------------------- */

/** What a function of C answers: see :c:enum:`spt_status`. */
using status = spt_status;

/** What went wrong, where nothing is thrown: see :c:struct:`spt_error`. */
using failure = spt_error;

/** What is thrown when a function of C fails. Its text says what was wrong, and the way out. */
class error : public std::runtime_error
{
  public:
    /** Of what a function of C has filled in; copied. */
    explicit error(const failure &details)
        : std::runtime_error(details.message), status_(details.status),
          sys_errno_(details.sys_errno)
    {
    }

    /** What kind of failure. */
    [[nodiscard]] spt::status status() const noexcept { return status_; }

    /** The ``errno`` behind ``SPT_ERR_SYSTEM``, else 0. */
    [[nodiscard]] int sys_errno() const noexcept { return sys_errno_; }

  private:
    spt::status status_;
    int sys_errno_;
};

namespace detail
{

/* Say why, and end the program. */
[[noreturn, gnu::cold, gnu::noinline]] inline void die(const char *why) noexcept
{
    std::fprintf(stderr, "spead_tutorial: %s\n", why);
    std::abort();
}

/* Throw; without exceptions, end the program. */
[[noreturn, gnu::cold, gnu::noinline]] inline void fail(const failure &details)
{
#ifdef __cpp_exceptions
    throw error(details);
#else
    die(details.message);
#endif
}

[[gnu::cold]] inline failure refusal(const char *message) noexcept
{
    failure details = {SPT_ERR_ARGUMENT, 0, {}};
    std::snprintf(details.message, sizeof(details.message), "%s", message);
    return details;
}

/* A promise that is looked into where that is not too late: in builds without NDEBUG. */
template <class Kept>
inline void promised([[maybe_unused]] const Kept &kept,
                     [[maybe_unused]] const char *broken) noexcept
{
#ifndef NDEBUG
    if (!kept())
        die(broken);
#endif
}

/* Call a function of C, or throw; inlined, so that the call is the one that C makes. */
template <class... Arguments, class... Given>
[[gnu::always_inline]] inline spt::status must(spt::status (*function)(Arguments...),
                                               Given &&...given)
{
    failure details; /* written only where something fails */
    const spt::status answer = function(std::forward<Given>(given)..., &details);
    if (answer < 0) [[unlikely]]
        fail(details);
    return answer;
}

/* Have a function of C make an object, or throw. */
template <class T, class... Arguments, class... Given>
[[nodiscard]] T *made(T *(*function)(Arguments...), Given &&...given)
{
    failure details;
    T *object = function(std::forward<Given>(given)..., &details);
    if (object == nullptr) [[unlikely]]
        fail(details);
    return object;
}

} // namespace detail

/* ---- 2. Memory that is lent ------------------------------------------------------------------ */

/** A range of values of a type, or of what is derived from it without anything added. */
template <class Range, class T>
concept range_of = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                   std::derived_from<std::ranges::range_value_t<Range>, T> &&
                   sizeof(std::ranges::range_value_t<Range>) == sizeof(T);

/**
 * One value, or several that lie side by side, for the time of a call: what functions take that
 * copy what they are given.
 */
template <class T> struct list : std::span<const T> {
    /** One. */
    list(const T &one) noexcept : std::span<const T>(&one, 1) {}
    /** Several, in braces. */
    list(std::initializer_list<T> several) noexcept
        : std::span<const T>(std::data(several), several.size())
    {
    }
    /** Those of an array, a vector, a span... */
    template <range_of<T> Range>
    list(const Range &range) noexcept
        : std::span<const T>(static_cast<const T *>(std::ranges::data(range)),
                             std::ranges::size(range))
    {
    }
};

/** A range whose elements stay where they are when it is gone: anything but a temporary owner. */
template <class Range>
concept lendable = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
                   std::ranges::borrowed_range<Range>;

/* ---- 3. Owners ------------------------------------------------------------------------------- */

namespace detail
{
template <auto function> struct call {
    template <class T> void operator()(T *object) const noexcept { function(object); }
};
} // namespace detail

/** Says that an object that was made with a function of C is taken. */
struct taken_t {};
/** The one value of that: ``spt::heap(spt::taken, pointer)``. */
inline constexpr taken_t taken;

/**
 * Owns an object of C, and destroys it. The classes below are owners; what they lack of C can be
 * done with what is owned.
 */
template <class T, class Destroy> class owner
{
  public:
    /** Own an object that was made with a function of C. */
    owner(taken_t, T *object) noexcept : owned_(object) {}
    /** What is owned, for functions of C; lent. */
    [[nodiscard]] T *get() const noexcept { return owned_.get(); }
    /** Give up what is owned: it is the caller's to destroy. */
    [[nodiscard]] T *release() noexcept { return owned_.release(); }

  private:
    std::unique_ptr<T, Destroy> owned_;
};

/* ---- 4. Variables and items ------------------------------------------------------------------ */

/** How item pointers are divided: see :c:struct:`spt_flavour`. */
using flavour = spt_flavour;

/** SPEAD-64-40. */
inline constexpr flavour default_flavour = SPT_FLAVOUR_DEFAULT;

/** An item and its descriptor in one: see :c:struct:`spt_variable`. */
using variable = spt_variable;

/** One value to send, as it goes on the wire: see :c:struct:`spt_item`. */
using item = spt_item;

/** What an item is, for receivers that have not been told: see :c:struct:`spt_descriptor`. */
using descriptor = spt_descriptor;

namespace detail
{
template <class T> consteval int type_number()
{
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
        constexpr int width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
        return (std::is_signed_v<T> ? SPT_INT8 : SPT_UINT8) + width;
    } else if constexpr (std::same_as<T, float>)
        return SPT_FLOAT32;
    else if constexpr (std::same_as<T, double>)
        return SPT_FLOAT64;
    else if constexpr (std::same_as<T, std::complex<float>>)
        return SPT_COMPLEX64;
    else if constexpr (std::same_as<T, std::complex<double>>)
        return SPT_COMPLEX128;
    else
        return 0;
}
} // namespace detail

/** A type that elements of variables can have: one of :c:enum:`spt_type`. */
template <class T>
concept element = detail::type_number<std::remove_cv_t<T>>() != 0;

/** The :c:enum:`spt_type` of such a type. */
template <element T>
inline constexpr spt_type type_of = spt_type(detail::type_number<std::remove_cv_t<T>>());

/** A type that a count can have: any whole number of 64 bits. */
template <class T>
concept count = element<T> && std::integral<T> && sizeof(T) == 8;

/**
 * A variable that is a count, sent inside the item pointer: the low bits of it, as many as there
 * are in the flavour.
 *
 * :param id: As an item's.
 * :param value: Borrowed by every heap that it is added to: it has to stay where it is until the
 *     heap is destroyed, and what it is when a packet is made is what is sent.
 * :return: By value, for :cpp:func:`heap::add`.
 */
template <count T>
[[nodiscard]] constexpr variable immediate(std::uint64_t id, const char *name,
                                           const char *description, T &value) noexcept
{
    constexpr spt_type type = std::is_signed_v<T> ? SPT_INT_IMMEDIATE : SPT_UINT_IMMEDIATE;
    return {id, name, description, type, &value, 0, {}};
}

/** A variable that is a single number; all parameters are as those of :cpp:func:`immediate`. */
template <element T>
[[nodiscard]] constexpr variable scalar(std::uint64_t id, const char *name, const char *description,
                                        T &value) noexcept
{
    return {id, name, description, type_of<T>, &value, 0, {}};
}

/**
 * A variable that is an array; its id, name and description are as those of :cpp:func:`immediate`.
 *
 * :param values: The elements, in C order; borrowed by every heap that the variable is added to, as
 *     the value of :cpp:func:`immediate`.
 * :param shape: How many along each dimension; without, there is one.
 * :return: By value, for :cpp:func:`heap::add`; throws ``SPT_ERR_ARGUMENT`` for a shape that has
 *     another number of elements, or too many dimensions.
 */
template <lendable Range>
[[nodiscard]] variable array(std::uint64_t id, const char *name, const char *description,
                             Range &&values, std::initializer_list<std::size_t> shape = {})
{
    const std::size_t n = std::ranges::size(values);
    variable made = {id,
                     name,
                     description,
                     type_of<std::ranges::range_value_t<Range>>,
                     std::ranges::data(values),
                     1,
                     {n}};
    if (shape.size() == 0)
        return made;
    if (shape.size() > SPT_MAX_DIMENSIONS) [[unlikely]]
        detail::fail(detail::refusal("an array has 8 dimensions at most"));
    std::size_t product = 1;
    made.n_shape = 0;
    for (const std::size_t length : shape) {
        made.shape[made.n_shape++] = length;
        product *= length;
    }
    if (product != n) [[unlikely]]
        detail::fail(
            detail::refusal("the shape of an array has other than its number of elements"));
    return made;
}

/* ---- 5. Heaps -------------------------------------------------------------------------------- */

namespace detail
{
struct destroy_heap {
    void operator()(spt_heap *heap) const noexcept
    {
        promised([&] { return spt_heap_in_flight(heap) == 0; },
                 "a heap was destroyed while it was in flight: wait "
                 "for its completion, or cancel that, before");
        spt_heap_destroy(heap);
    }
};
} // namespace detail

/**
 * Items that travel together. It copies what it is given of variables, items and descriptors, but
 * references their values: those have to stay where they are until it is destroyed, and may be
 * changed whenever it is not in flight.
 *
 * Nothing can be added to it while it is in flight (``SPT_ERR_BUSY``), and it must not be destroyed
 * then.
 */
class heap : public owner<spt_heap, detail::destroy_heap>
{
  public:
    using owner::owner;

    /** Make an empty heap. Throws what :c:func:`spt_heap_create` answers. */
    explicit heap(const spt::flavour &how = default_flavour)
        : owner(taken, detail::made(spt_heap_create, &how))
    {
    }

    /** Make a heap of variables: an empty one, to which they are added by :cpp:func:`add`. */
    explicit heap(list<variable> variables, unsigned parts = SPT_ALL,
                  const spt::flavour &how = default_flavour)
        : heap(how)
    {
        add(variables, parts);
    }

    /**
     * Add variables: of each its descriptor, its value, or first one and then the other. Throws
     * what :c:func:`spt_heap_add` answers; the heap is as before then.
     *
     * :param parts: ``SPT_DESCRIPTORS``, ``SPT_VALUES`` or ``SPT_ALL``.
     */
    heap &add(list<variable> variables, unsigned parts = SPT_ALL)
    {
        detail::must(spt_heap_add, get(), variables.data(), variables.size(), parts);
        return *this;
    }

    /** Add a value. Throws what :c:func:`spt_heap_add_item` answers. */
    heap &add_item(const item &value)
    {
        detail::must(spt_heap_add_item, get(), &value);
        return *this;
    }

    /** Add a descriptor. Throws what :c:func:`spt_heap_add_descriptor` answers. */
    heap &add_descriptor(const descriptor &what)
    {
        detail::must(spt_heap_add_descriptor, get(), &what);
        return *this;
    }

    /** How many transmissions of it are queued or under way, in all streams. */
    [[nodiscard]] std::size_t in_flight() const noexcept { return spt_heap_in_flight(get()); }

    /** The size with which all of its packets are equal: see :c:func:`spt_equal_packet_size`. */
    [[nodiscard]] std::size_t equal_packet_size(std::size_t max_packet_size) const noexcept
    {
        return spt_equal_packet_size(get(), max_packet_size);
    }
};

/* ---- 6. Threads ------------------------------------------------------------------------------ */

/** Threads that send and receive for any number of streams; it has to outlive those. */
class thread_pool : public owner<spt_thread_pool, detail::call<spt_thread_pool_destroy>>
{
  public:
    using owner::owner;

    /** Start the threads, on cores in turn, if there are any given. Throws what
     * :c:func:`spt_thread_pool_create` answers. */
    explicit thread_pool(std::size_t n_threads = 1, std::span<const int> affinity = {})
        : owner(taken,
                detail::made(spt_thread_pool_create, n_threads, affinity.data(), affinity.size()))
    {
    }

    /** End the threads. Heaps that are still queued complete with ``SPT_ERR_STOPPED``. */
    void stop() noexcept { spt_thread_pool_stop(get()); }

    /** Run the calling thread on one core only. Throws what :c:func:`spt_set_affinity` answers. */
    static void set_affinity(int core) { detail::must(spt_set_affinity, core); }
};

/** Says that a stream has no thread of its own: those that call it do the work. */
struct no_thread_t {};
/** The one value of that. */
inline constexpr no_thread_t no_thread;

/** Who does a stream's work: a pool, which is borrowed until the stream is destroyed, or none. */
class worker
{
  public:
    /** The threads of a pool. */
    worker(const thread_pool &pool) noexcept : pool_(pool.get()) {}
    /** A pool that is gone at once would leave the stream alone. */
    worker(const thread_pool &&pool) = delete;
    /** Threads that call. */
    worker(no_thread_t) noexcept {}
    /** The pool in C, or ``nullptr``. */
    [[nodiscard]] spt_thread_pool *get() const noexcept { return pool_; }

  private:
    spt_thread_pool *pool_ = nullptr;
};

/* ---- 7. Completions -------------------------------------------------------------------------- */

namespace detail
{
/* What C takes: negative for ever, which no time is taken for. */
inline std::int64_t timeout_ns(std::chrono::nanoseconds timeout) noexcept
{
    return timeout.count() < 0 ? 0 : timeout.count();
}

struct destroy_stream {
    void operator()(spt_stream *stream) const noexcept;
};
} // namespace detail

class stream;

/**
 * Tells that a heap, or a group of heaps, has been sent, or why not. The stream writes into it, so
 * that it can neither be copied nor moved; it is where :cpp:func:`stream::async_send` is told to
 * put it, and can be used again when it is complete.
 *
 * Until then the heaps that it was sent with, and their values, are borrowed. If it is destroyed
 * before, it waits: declare it after what it stands for.
 *
 * In a coroutine, ``co_await`` it, or the call that sends. That takes a stream with
 * ``config.poll``, and goes on in :cpp:func:`stream::poll`, on the thread that calls that; the
 * coroutine also has to run on this thread; if it is destroyed while it waits, it is not resumed.
 * Nothing is allocated. On such a stream, a completion must not be destroyed before it was handed
 * out, or the stream was destroyed; a program that does ends.
 */
class completion
{
  public:
    /** One that has not been used: it is complete. */
    completion() noexcept = default;
    completion(const completion &) = delete;
    completion &operator=(const completion &) = delete;

    ~completion()
    {
        if (stream_ != nullptr) [[unlikely]]
            abandon();
    }

    /** Whether it is complete, without waiting. */
    [[nodiscard]] bool done() const noexcept
    {
        return stream_ == nullptr || spt_completion_done(&completion_);
    }

    /**
     * Wait until it is complete. Throws what went wrong, if anything: the text says which heap, and
     * why.
     *
     * :return: Bytes of SPEAD packets handed over.
     */
    std::uint64_t wait()
    {
        (void)wait_ns(-1);
        return completion_.bytes;
    }

    /**
     * Wait until it is complete, or some time has passed. Throws as :cpp:func:`wait`.
     *
     * :return: Whether it is complete.
     */
    [[nodiscard]] bool wait_for(std::chrono::nanoseconds timeout)
    {
        return wait_ns(detail::timeout_ns(timeout));
    }

    /** Give up on it: see :c:func:`spt_stream_cancel`. It is complete then. */
    void cancel() noexcept
    {
        if (stream_ != nullptr)
            spt_stream_cancel(stream_, &completion_);
    }

    /** What is known of it, when it is complete; lent. */
    [[nodiscard]] const spt_completion &details() const noexcept { return completion_; }

    /* What co_await asks; it is in the coroutine's frame, and gone with that. */
    struct awaiter {
        explicit awaiter(completion &what) noexcept : of(what) {}
        awaiter(const awaiter &) = delete;
        awaiter &operator=(const awaiter &) = delete;
        ~awaiter()
        {
            if (waits) /* in vain */
                of.awaiter_ = nullptr;
        }
        [[nodiscard]] bool await_ready() const noexcept { return of.stream_ == nullptr; }
        void await_suspend(std::coroutine_handle<> waiter)
        {
            if (!of.polled_) [[unlikely]]
                detail::fail(detail::refusal("co_await takes a stream with config.poll, whose "
                                             "poll() is called when its fd() is readable"));
            waits = waiter;
            of.awaiter_ = this;
        }
        std::uint64_t await_resume()
        {
            detail::must(spt_completion_explain, &of.completion_);
            return of.completion_.bytes;
        }

        completion &of;
        std::coroutine_handle<> waits;
    };
    [[nodiscard]] awaiter operator co_await() noexcept { return awaiter(*this); }

  private:
    friend class stream;

    /* One that is sent where it is made. */
    template <class Send> explicit completion(const Send &send) { send(*this); }

    /* Whether it is complete then, and the caller's again, unless it is still to be handed out. */
    bool wait_ns(std::int64_t timeout)
    {
        if (stream_ == nullptr)
            return true;
        failure details;
        const spt::status answer = spt_stream_wait(stream_, &completion_, timeout, &details);
        if (answer == SPT_PENDING)
            return false;
        if (!polled_)
            stream_ = nullptr;
        if (answer < 0) [[unlikely]]
            detail::fail(details);
        return true;
    }

    [[gnu::cold, gnu::noinline]] void abandon() noexcept
    {
        if (polled_)
            detail::die("a completion was destroyed before poll() handed it out");
        if (spt_stream_wait(stream_, &completion_, -1, nullptr) < 0)
            return; /* none asks any more */
    }

    spt_completion completion_ = {};
    spt_stream *stream_ = nullptr; /* that has it */
    awaiter *awaiter_ = nullptr;
    bool polled_ = false;
};

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
    heap_reference(const spt::heap &which, std::int64_t cnt = -1, std::size_t substream_index = 0,
                   double rate = -1) noexcept
        : spt_heap_reference{which.get(), cnt, substream_index, rate}
    {
    }
    /** A heap that is gone at once cannot be sent. */
    heap_reference(const spt::heap &&which, std::int64_t cnt = -1, std::size_t substream_index = 0,
                   double rate = -1) = delete;
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
 * What is sent is borrowed until its completion is complete, with the values that it references, and
 * so is the completion, which is not in use before. A list of references is copied. Where a call
 * throws, nothing is borrowed, and no heap count was used up.
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
     * the coroutines that wait for it, here and now. Without a thread, it also sends.
     *
     * :return: How many completions there were.
     */
    std::size_t poll()
    {
        std::size_t n = 0;
        for (spt_completion *next = nullptr; spt_stream_poll(get(), &next, 1) == 1; n++) {
            /* It may be gone after that. */
            if (const auto waiter = take_back(*next))
                waiter.resume();
        }
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

    /** Fill in the times of the last heaps, oldest first; what there is no room for is left out. */
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

#endif /* SPEAD_TUTORIAL_SPT_HPP */
