/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns how tests speak: TAP on standard output, a line for each test, named by the sentence that is
 * its name. A check that fails says where, and the test goes on; a requirement ends the program.
 * Both may be used on any thread. The program is whoever includes this, with main().
 */
#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What tests are run for, one after the other, in words for the end of their names. */
#ifndef CHECK_CASES
#define CHECK_CASES ""
#endif

/* What is called after each test. */
#ifdef CHECK_AFTER
static void CHECK_AFTER(void);
#else
#define CHECK_AFTER() (void)0
#endif

typedef struct check_test {
    const char *name;
    void (*run)(void);
    bool once; /* for the first case only */
} check_test;

static check_test check_tests[64];
static size_t check_n_tests;
static size_t check_case;
static const char *check_argument; /* of the program, or NULL */
static const char *check_skipped;
static int check_failures;

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0                                                                         \
                 : (void)(__atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED),                \
                          printf("# %s:%d: not so: %s\n", __FILE__, __LINE__, #condition)))

/* CHECK_EQUAL(got, expected, got, expected, ...), up to six times. */
#define CHECK_EQUAL(...)                                                                           \
    do {                                                                                           \
        CHECK_NTH(__VA_ARGS__, CHECK_6, 0, CHECK_5, 0, CHECK_4, 0, CHECK_3, 0, CHECK_2, 0,         \
                  CHECK_1, 0)                                                                      \
        (__VA_ARGS__)                                                                              \
    } while (0)
#define CHECK_NTH(a, b, c, d, e, f, g, h, i, j, k, l, name, ...) name
#define CHECK_6(got, expected, ...) CHECK_1(got, expected) CHECK_5(__VA_ARGS__)
#define CHECK_5(got, expected, ...) CHECK_1(got, expected) CHECK_4(__VA_ARGS__)
#define CHECK_4(got, expected, ...) CHECK_1(got, expected) CHECK_3(__VA_ARGS__)
#define CHECK_3(got, expected, ...) CHECK_1(got, expected) CHECK_2(__VA_ARGS__)
#define CHECK_2(got, expected, ...) CHECK_1(got, expected) CHECK_1(__VA_ARGS__)
#define CHECK_1(got, expected)                                                                     \
    {                                                                                              \
        int64_t got_ = (int64_t)(got), expected_ = (int64_t)(expected);                            \
        check_equal(__FILE__, __LINE__, #got, got_, expected_);                                    \
    }

#define CHECK_BYTES(got, expected, n) check_bytes(__FILE__, __LINE__, (got), (expected), (n))
#define CHECK_WORDS(text, words) CHECK(strstr((text), (words)) != NULL)

#define REQUIRE(condition)                                                                         \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (printf("Bail out! %s:%d: not so: %s\n", __FILE__, __LINE__, #condition), exit(1)))

/* What has been made, which is required not to be NULL. */
#define NEW(made)                                                                                  \
    ({                                                                                             \
        __auto_type made_ = (made);                                                                \
        REQUIRE(made_ != NULL);                                                                    \
        made_;                                                                                     \
    })

#define SKIP(reason) ((void)(check_skipped = (reason)))

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* TEST(the_sky_is_blue) { ... } is run in its turn, and prints "ok 1 - the sky is blue". */
#define TEST(name) CHECK_TEST(name, false)
#define TEST_ONCE(name) CHECK_TEST(name, true)
#define CHECK_TEST(name, once)                                                                     \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        check_add(#name, test_##name, once);                                                       \
    }                                                                                              \
    static void test_##name(void)

static inline void check_add(const char *name, void (*run)(void), bool once)
{
    REQUIRE(check_n_tests < LENGTH(check_tests));
    check_test *test = &check_tests[check_n_tests++];
    test->name = name;
    test->run = run;
    test->once = once;
}

static inline void check_equal(const char *file, int line, const char *what, int64_t got,
                               int64_t expected)
{
    if (got == expected)
        return;
    __atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);
    printf("# %s:%d: %s is %" PRId64 " instead of %" PRId64 "\n", file, line, what, got, expected);
}

/* Where bytes differ first. */
static inline void check_bytes(const char *file, int line, const void *got, const void *expected,
                               size_t n)
{
    size_t i = 0;
    while (i < n && ((const char *)got)[i] == ((const char *)expected)[i])
        i++;
    if (i < n)
        printf("# byte %zu:\n", i);
    if (i < n)
        check_equal(file, line, "it", ((const char *)got)[i], ((const char *)expected)[i]);
}

static inline bool check_run(const check_test *test, int number, const char *words)
{
    check_failures = 0;
    check_skipped = NULL;
    test->run();
    CHECK_AFTER();
    printf("%s %d - ", check_failures > 0 ? "not ok" : "ok", number);
    for (const char *name = test->name; *name != '\0'; name++)
        putchar(*name == '_' ? ' ' : *name);
    printf("%s%s%s\n", words, check_skipped ? " # SKIP " : "", check_skipped ? check_skipped : "");
    fflush(stdout);
    return check_failures == 0;
}

int main(int argc, char **argv)
{
    static const char *const cases[] = {CHECK_CASES};
    int n = 0, good = 0;
    check_argument = argc > 1 ? argv[1] : NULL;
    for (check_case = 0; check_case < LENGTH(cases); check_case++)
        for (size_t i = 0; i < check_n_tests; i++)
            if (check_case == 0 || !check_tests[i].once)
                good += check_run(&check_tests[i], ++n, cases[check_case]);
    printf("1..%d\n", n);
    return good < n;
}

#endif
