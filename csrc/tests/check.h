/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns how tests speak: TAP on standard output, a line for each test, named by the sentence that is
 * its function's name. A check that fails says where, and the test goes on; a requirement ends the
 * program. Both may be used on any thread.
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures, check_tests, check_failed_tests;
static const char *check_skipped;
static const char *check_case = ""; /* what tests that are run again differ by */

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : (void)(__atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED),                \
                          printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #condition)))

#define CHECK_EQUAL(got, expected)                                                                 \
    do {                                                                                           \
        int64_t got_ = (int64_t)(got), expected_ = (int64_t)(expected);                            \
        if (got_ != expected_) {                                                                   \
            __atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);                              \
            printf("# %s:%d: %s is %" PRId64 " instead of %" PRId64 "\n", __FILE__, __LINE__,      \
                   #got, got_, expected_);                                                         \
        }                                                                                          \
    } while (0)

#define CHECK_BYTES(got, expected, n) CHECK(memcmp((got), (expected), (n)) == 0)

#define REQUIRE(condition)                                                                         \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (printf("Bail out! %s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))

#define SKIP(reason) ((void)(check_skipped = (reason)))

/* RUN(test_the_sky_is_blue) prints "ok 1 - the sky is blue". */
#define RUN(test) check_run(&#test[strlen("test_")], test)

__attribute__((unused)) static void check_run(const char *name, void (*test)(void))
{
    check_failures = 0;
    check_skipped = NULL;
    test();
    check_failed_tests += check_failures > 0;
    printf("%s %d - ", check_failures > 0 ? "not ok" : "ok", ++check_tests);
    for (; *name != '\0'; name++)
        putchar(*name == '_' ? ' ' : *name);
    printf("%s%s%s\n", check_case, check_skipped ? " # SKIP " : "",
           check_skipped ? check_skipped : "");
    fflush(stdout);
}

__attribute__((unused)) static int check_done(void)
{
    printf("1..%d\n", check_tests);
    return check_failed_tests > 0;
}

#endif
