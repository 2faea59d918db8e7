/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of status.c: the words of errors. */
#include "../src/status.h"

#include "support.h"

#include <errno.h>

TEST(every_status_has_words_of_its_own)
{
    static const struct {
        spt_status status;
        int value;
        const char *text;
    } expected[] = {
        {SPT_OK, 0, "success"},
        {SPT_DONE, 1, "there are no more packets"},
        {SPT_PENDING, 2, "not finished yet"},
        {SPT_ERR_ARGUMENT, -1, "an argument is out of range"},
        {SPT_ERR_MEMORY, -2, "out of memory"},
        {SPT_ERR_SYSTEM, -3, "a system call failed"},
        {SPT_ERR_QUEUE_FULL, -4, "the queue of heaps is full"},
        {SPT_ERR_STOPPED, -5, "the stream or its thread pool has been stopped"},
        {SPT_ERR_BUSY, -6, "the heap is being sent"},
        {SPT_ERR_CANCELLED, -7, "the heap was cancelled"},
        {SPT_ERR_GROUP, -8, "a group of heaps is empty, or refers to what there is not"},
        {(spt_status)3, 3, "unknown status"},
        {(spt_status)-9, -9, "unknown status"},
    };
    for (size_t i = 0; i < LENGTH(expected); i++) {
        CHECK_EQUAL((int)expected[i].status, expected[i].value);
        CHECK(strcmp(spt_status_text(expected[i].status), expected[i].text) == 0);
    }
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
