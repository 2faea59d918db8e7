/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SPTI_STATUS_H
#define SPTI_STATUS_H

#include "spead_tutorial/spt.h"

/* Fill in err, where there is one, and return the status: `return spti_fail(err, ...)`. */
__attribute__((format(printf, 3, 4))) spt_status spti_fail(spt_error *err, spt_status status,
                                                           const char *format, ...);

/* The same for a system call that has just failed: adds what errno says. */
__attribute__((format(printf, 2, 3))) spt_status spti_fail_errno(spt_error *err, const char *format,
                                                                 ...);

#define SPTI_TRY(expression)                                                                       \
    do {                                                                                           \
        spt_status spti_status_ = (expression);                                                    \
        if (spti_status_ != SPT_OK)                                                                \
            return spti_status_;                                                                   \
    } while (0)

#endif
