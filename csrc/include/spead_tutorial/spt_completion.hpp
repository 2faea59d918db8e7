/* SPDX-License-Identifier: BSD-3-Clause */
/* Who does the work of streams, and how you learn that it is done. Part of spt.hpp. */
#ifndef SPEAD_TUTORIAL_SPT_COMPLETION_HPP
#define SPEAD_TUTORIAL_SPT_COMPLETION_HPP

#include "spead_tutorial/spt_heap.hpp"
#include "spead_tutorial/spt_stream.h"

#include <chrono>
#include <coroutine>

namespace spt
{

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
     * Wait until it is complete. Throws what went wrong, if anything, once: the text says which
     * heap, and why.
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

} // namespace spt

#endif /* SPEAD_TUTORIAL_SPT_COMPLETION_HPP */
