/* SPDX-License-Identifier: BSD-3-Clause */
/* How a function answers that it has failed, and in which words. */
#ifndef SPTI_STATUS_H
#define SPTI_STATUS_H

#include "spead_tutorial/spt.h"

/* Fill in err, where there is one, and return the status: `return spti_fail(err, ...)`. */
__attribute__((format(printf, 3, 4))) spt_status spti_fail(spt_error *err, spt_status status,
                                                           const char *format, ...);

/* The same for a system call that has just failed: adds what errno says. */
__attribute__((format(printf, 2, 3))) spt_status spti_fail_errno(spt_error *err, const char *format,
                                                                 ...);

/* The same where a pointer is returned: NULL. */
#define SPTI_NULL(...) ((void)spti_fail(__VA_ARGS__), NULL)

/* Where details are wanted, also by who has not asked for them: until the block ends. */
#define SPTI_SOME(err) ((err) != NULL ? (err) : &(spt_error){0})

/* The meaning of a member of a list such as SPT_STATUS_LIST, in a switch over an int. */
#define SPTI_TEXT_CASE(name, value, text)                                                          \
    case name:                                                                                     \
        return text;

#define SPTI_TRY(expression)                                                                       \
    do {                                                                                           \
        spt_status spti_status_ = (expression);                                                    \
        if (spti_status_ != SPT_OK)                                                                \
            return spti_status_;                                                                   \
    } while (0)

#endif
