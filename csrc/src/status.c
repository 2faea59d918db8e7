/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the words of errors. Knows nothing of what failed. */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *spt_status_text(spt_status status)
{
    switch ((int)status) {
        SPT_STATUS_LIST(SPTI_TEXT_CASE)
    }
    return "unknown status";
}

spt_status spti_fail(spt_error *err, spt_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        err->status = status;
        err->sys_errno = 0;
        vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
    }
    return status;
}

spt_status spti_fail_errno(spt_error *err, const char *format, ...)
{
    int sys_errno = errno;
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        err->status = SPT_ERR_SYSTEM;
        err->sys_errno = sys_errno;
        vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof(err->message) - used, ": %s", strerror(sys_errno));
    }
    return SPT_ERR_SYSTEM;
}
