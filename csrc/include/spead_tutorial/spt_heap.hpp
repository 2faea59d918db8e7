/* SPDX-License-Identifier: BSD-3-Clause */
/* What is sent, and errors, owners and what is lent. Part of spt.hpp. */
#ifndef SPEAD_TUTORIAL_SPT_HEAP_HPP
#define SPEAD_TUTORIAL_SPT_HEAP_HPP

#include "spead_tutorial/spt_heap.h"

#include <complex>
#include <concepts>
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

    /** The same, of those in braces. */
    explicit heap(std::initializer_list<variable> variables, unsigned parts = SPT_ALL,
                  const spt::flavour &how = default_flavour)
        : heap(list<variable>(variables), parts, how)
    {
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

} // namespace spt

#endif /* SPEAD_TUTORIAL_SPT_HEAP_HPP */
