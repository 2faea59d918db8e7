/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of counts.c: against a list that is searched from its end. */
#include "../src/counts.h"
#include "check.h"

enum { LIVE = 9, RECENT = 20, DIFFERENT = 300, STEPS = 20000 };

/* What was done last to each of the counts that the test uses, and when. */
typedef struct model {
    spti_known known[DIFFERENT];
    uint64_t ended[DIFFERENT], n_ended;
    size_t n_live;
} model;

/* What is known of a count, unless it ended before the last ones, or those that are asked for. */
static spti_known expected(const model *m, size_t i, uint64_t within)
{
    uint64_t most = within < RECENT ? within : RECENT;
    bool forgotten = m->known[i] > SPTI_LIVE && m->n_ended - m->ended[i] > most;
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
            if (m.known[i] != SPTI_LIVE && m.n_live < LIVE) {
                spti_counts_begin(&c, (spti_key){i * stride, i % 3}, &m.known[i]);
                m.known[i] = SPTI_LIVE;
                m.n_live++;
            } else {
                bool live = m.known[i] == SPTI_LIVE;
                m.known[i] = live ? SPTI_FINISHED : SPTI_REFUSED;
                m.ended[i] = m.n_ended++;
                m.n_live -= live;
                spti_counts_end(&c, (spti_key){i * stride, i % 3}, m.known[i]);
            }
            for (int look = 0; look < 3; look++) {
                uint64_t within = (uint64_t)rand() % (2 * RECENT);
                i = (size_t)rand() % DIFFERENT;
                const spti_seen *found =
                    spti_counts_find(&c, (spti_key){i * stride, i % 3}, within);
                spti_known known = found == NULL ? SPTI_UNKNOWN : found->known;
                CHECK_EQUAL(known, expected(&m, i, within));
                CHECK(known != SPTI_LIVE || found->heap == &m.known[i]);
            }
        }
        spti_counts_fini(&c);
    }
}
