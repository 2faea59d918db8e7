/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of counts.c: by hand, and against a list that is searched from its end. */
#include "../src/counts.h"
#include "check.h"

enum { ALWAYS = 1 << 30 };

static spti_known what(const spti_counts *c, uint64_t cnt)
{
    const spti_count *found = spti_counts_find(c, cnt, ALWAYS);
    return found == NULL ? SPTI_UNKNOWN : found->known;
}

TEST(a_count_is_live_then_finished_then_forgotten)
{
    spti_counts c;
    int heap;
    REQUIRE(spti_counts_init(&c, 2, 3));
    CHECK_EQUAL(what(&c, 7), SPTI_UNKNOWN);
    spti_counts_begin(&c, 7, &heap);
    CHECK_EQUAL(what(&c, 7), SPTI_LIVE);
    CHECK(spti_counts_find(&c, 7, 0)->heap == &heap);
    spti_counts_end(&c, 7, SPTI_FINISHED);
    for (uint64_t other = 100; other < 102; other++) {
        spti_counts_end(&c, other, SPTI_REFUSED);
        CHECK_EQUAL(what(&c, 7), SPTI_FINISHED);
        CHECK_EQUAL(what(&c, other), SPTI_REFUSED);
    }
    spti_counts_end(&c, 102, SPTI_FINISHED);
    CHECK_EQUAL(what(&c, 7), SPTI_UNKNOWN);
    CHECK_EQUAL(what(&c, 100), SPTI_REFUSED);
    spti_counts_fini(&c);
}

TEST(one_that_ended_longer_ago_than_asked_for_is_not_found)
{
    spti_counts c;
    REQUIRE(spti_counts_init(&c, 2, 8));
    for (uint64_t cnt = 0; cnt < 5; cnt++)
        spti_counts_end(&c, cnt, SPTI_FINISHED);
    CHECK(spti_counts_find(&c, 0, 4) == NULL);
    CHECK(spti_counts_find(&c, 0, 5) != NULL);
    CHECK(spti_counts_find(&c, 4, 1) != NULL);
    spti_counts_fini(&c);
}

TEST(a_count_that_comes_again_is_not_forgotten_with_its_first_time)
{
    spti_counts c;
    int heap;
    REQUIRE(spti_counts_init(&c, 1, 3));
    spti_counts_end(&c, 7, SPTI_FINISHED);
    spti_counts_begin(&c, 7, &heap);
    for (uint64_t other = 0; other < 5; other++)
        spti_counts_end(&c, 100 + other, SPTI_FINISHED);
    CHECK_EQUAL(what(&c, 7), SPTI_LIVE);
    spti_counts_end(&c, 7, SPTI_FINISHED);
    spti_counts_end(&c, 200, SPTI_FINISHED);
    spti_counts_end(&c, 201, SPTI_FINISHED);
    CHECK_EQUAL(what(&c, 7), SPTI_FINISHED);
    spti_counts_fini(&c);
}

enum { LIVE = 9, RECENT = 20, DIFFERENT = 300, STEPS = 20000 };

/* What was done last to each of the counts that the test uses, and when. */
typedef struct model {
    spti_known known[DIFFERENT];
    uint64_t ended[DIFFERENT], n_ended;
    size_t n_live;
} model;

static spti_known expected(const model *m, size_t i)
{
    bool forgotten = m->known[i] > SPTI_LIVE && m->n_ended - m->ended[i] > RECENT;
    return forgotten ? SPTI_UNKNOWN : m->known[i];
}

TEST(the_table_is_what_a_list_says)
{
    srand(15);
    for (unsigned stride = 1; stride < 1000; stride *= 8) {
        spti_counts c;
        model m = {0};
        REQUIRE(spti_counts_init(&c, LIVE, RECENT));
        for (int step = 0; step < STEPS; step++) {
            size_t i = (size_t)rand() % DIFFERENT;
            if (m.known[i] == SPTI_LIVE) {
                spti_counts_end(&c, i * stride, SPTI_FINISHED);
                m.known[i] = SPTI_FINISHED;
                m.ended[i] = m.n_ended++;
                m.n_live--;
            } else if (m.n_live < LIVE) {
                spti_counts_begin(&c, i * stride, &m);
                m.known[i] = SPTI_LIVE;
                m.n_live++;
            } else {
                spti_counts_end(&c, i * stride, SPTI_REFUSED);
                m.known[i] = SPTI_REFUSED;
                m.ended[i] = m.n_ended++;
            }
            for (int look = 0; look < 3; look++) {
                i = (size_t)rand() % DIFFERENT;
                CHECK_EQUAL(what(&c, i * stride), expected(&m, i));
            }
        }
        spti_counts_fini(&c);
    }
}
