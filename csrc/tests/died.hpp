/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns how tests see a program end: in a process of its own, by abort, with a line that says why.
 * Builds with NDEBUG keep no such promise, and test nothing.
 */
#ifndef DIED_HPP
#define DIED_HPP

#include "check.h"

#include <csignal>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

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

#ifdef NDEBUG
#define CHECK_DIES(words, ...) SKIP("built with NDEBUG")
#else
#define CHECK_DIES(words, ...) CHECK(last_words([] __VA_ARGS__).find(words) != std::string::npos)
#endif

#endif
