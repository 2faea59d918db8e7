/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the chapters' programs in C++ share: options, report and failing are those of the programs
 * in C, in report.h.
 */
#ifndef CHAPTER_HPP
#define CHAPTER_HPP

#include "report.h"
#include <exception>
#include <new>
#include <span>
#include <spead_tutorial/spt.hpp>
#include <stdexcept>
#include <string>
#include <vector>

/* Print the last line, of all that a stream has sent: see report.h. */
inline void report(const options &options, const spt::stream &stream, const usage *used = nullptr)
{
    spt_stream *const one = stream.get();
    report(&options, &one, 1, used);
}

inline void report(const options &options, const spt::stream &stream, const usage &used)
{
    report(options, stream, &used);
}

/* The same of what several streams have sent together. */
inline void report(const options &options, std::span<const spt::udp_stream> streams,
                   const usage &used)
{
    std::vector<spt_stream *> all;
    for (const spt::stream &stream : streams)
        all.push_back(stream.get());
    report(&options, all.data(), all.size(), &used);
}

/* End the program with one line where nobody catches what went wrong. */
[[noreturn]] inline void end_with_one_line()
{
    std::string why = "it ended without a reason";
    try {
        if (const std::exception_ptr error = std::current_exception())
            std::rethrow_exception(error);
    } catch (const std::bad_alloc &) {
        why = "no memory for so many bytes: lower -H";
    } catch (const std::length_error &) { // they are more than there can be
        why = "no memory for so many bytes: lower -H";
    } catch (const std::exception &error) {
        why = error.what();
    }
    fail("%s", why.c_str());
}

inline const std::terminate_handler handler_before = std::set_terminate(end_with_one_line);

#endif
