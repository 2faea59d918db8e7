/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of status.c: the words of errors. */
#include "../src/status.h"

#include "support.h"

#include <errno.h>

TEST(every_status_has_words_of_its_own)
{
    for (int one = SPT_ERR_GROUP - 1; one <= SPT_PENDING + 1; one++) {
        const char *text = spt_status_text((spt_status)one);
        bool unknown = one < SPT_ERR_GROUP || one > SPT_PENDING;
        CHECK_EQUAL(strcmp(text, "unknown status") == 0, unknown);
        for (int other = SPT_ERR_GROUP; other < one && !unknown; other++)
            CHECK(strcmp(text, spt_status_text((spt_status)other)) != 0);
    }
    CHECK(strcmp(spt_status_text(SPT_ERR_MEMORY), "out of memory") == 0);
}

TEST(a_long_message_is_cut_and_still_ends_and_an_errno_of_before_is_not_kept)
{
    spt_error err;
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    errno = EINVAL;
    CHECK_EQUAL(spti_fail_errno(&err, "%s", text), SPT_ERR_SYSTEM, err.sys_errno, EINVAL);
    CHECK_EQUAL(strlen(err.message), sizeof(err.message) - 1);
    CHECK_EQUAL(spti_fail(&err, SPT_ERR_BUSY, "%s", text), SPT_ERR_BUSY, err.sys_errno, 0);
    CHECK_EQUAL(strlen(err.message), sizeof(err.message) - 1, err.status, SPT_ERR_BUSY);
    CHECK_EQUAL(spti_fail_errno(NULL, "%s", text), SPT_ERR_SYSTEM); /* nobody reads it */
}
