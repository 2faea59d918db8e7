/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what tests in C++ send, and how they see what fails: by what is thrown, or by a program that
 * ends, in a process of its own, with a line that says why. Builds with NDEBUG do not promise that,
 * and test nothing.
 */
#ifndef SUPPORT_HPP
#define SUPPORT_HPP

#include "check.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <spead_tutorial/spt_recv.hpp>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

/* Run a function in a process of its own; what it has said, if it was aborted, else "". */
template <class Function> std::string last_words(const Function &function)
{
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        std::signal(SIGABRT, SIG_DFL);
        function();
        _exit(0);
    }
    close(ends[1]);
    std::string words;
    char some[256];
    for (ssize_t n; (n = read(ends[0], some, sizeof(some))) > 0;)
        words.append(some, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? words : std::string();
}

#ifdef __cpp_exceptions
/* What a function that fails has to say; nothing if it does not fail. */
template <class Function> spt::failure thrown(const Function &function)
{
    try {
        function();
    } catch (const spt::error &error) {
        spt::failure failure = {error.status(), error.sys_errno(), {}};
        std::snprintf(failure.message, sizeof(failure.message), "%s", error.what());
        return failure;
    }
    return {};
}

/* It throws an error of a status that says such words: CHECK_THROWS(status, words, expression). */
#define CHECK_THROWS(expected, words, ...)                                                         \
    do {                                                                                           \
        const spt::failure thrown_ = thrown([&] { (void)(__VA_ARGS__); });                         \
        CHECK_EQUAL(thrown_.status, expected);                                                     \
        CHECK_WORDS(thrown_.message, words);                                                       \
    } while (0)
#endif

inline constexpr std::size_t n_samples = 5000;

/* A heap of two items, and what it references. */
struct state {
    std::uint64_t timestamp = 0x123456789a;
    std::vector<std::int8_t> adc_samples = std::vector<std::int8_t>(n_samples);
    const std::array<spt::variable, 2> items = {
        spt::immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
        spt::array(0x3300, "adc_samples", "Samples of the converter", adc_samples),
    };
    spt::heap heap{items};
    spt::completion sent;
    spt::failure why;

    state()
    {
        for (std::size_t i = 0; i < n_samples; i++)
            adc_samples[i] = static_cast<std::int8_t>(i * i);
    }
};

/* The bytes of what has been sent into memory. */
inline std::vector<std::byte> sent_to(const spt::memory_stream &stream)
{
    std::vector<std::byte> bytes(stream.size());
    CHECK_EQUAL(stream.copy(bytes), bytes.size());
    return bytes;
}

#ifdef NDEBUG
#define CHECK_DIES(words, ...) SKIP("built with NDEBUG")
#else
#define CHECK_DIES(words, ...) CHECK(last_words([] __VA_ARGS__).find(words) != std::string::npos)
#endif

#endif
