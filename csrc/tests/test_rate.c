/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of rate.c, in virtual time. */
#include "support.h"

enum { PACKET = 1000, MS = 1000000 };

static const uint64_t start_ns = UINT64_C(5000000000000); /* the clock never starts at 0 */

static spt_rate limiter(double rate, size_t burst_size, double ratio, uint64_t now_ns)
{
    spt_rate r;
    spt_rate_init(&r, rate, burst_size, ratio);
    spt_rate_idle(&r, now_ns); /* as a stream does before its first packet */
    return r;
}

/* Send a packet as soon as it may go, no earlier than now; the time at which it went. */
static uint64_t send_after(spt_rate *r, uint64_t now_ns, size_t bytes)
{
    for (uint64_t at; (at = spt_rate_next(r, now_ns)) != 0; now_ns = at)
        CHECK(at > now_ns);
    spt_rate_sent(r, bytes, -1);
    return now_ns;
}

TEST(bursts_end_with_the_packet_that_fills_them_and_go_when_those_before_are_paid_for)
{
    static const struct {
        size_t burst_size;
        double ratio;
        unsigned packets; /* of 1000 bytes, in each burst: so many ms at 1 MB/s */
    } cases[] = {{4 * PACKET, 1.05, 4}, {2500, 1, 3}, {0, 1, 1}};
    for (size_t c = 0; c < LENGTH(cases); c++) {
        spt_rate r = limiter(1e6, cases[c].burst_size, cases[c].ratio, start_ns);
        uint64_t now = start_ns;
        for (unsigned i = 0, n = cases[c].packets; i < 10 * n; i++) {
            now = send_after(&r, now, PACKET);
            CHECK_EQUAL(now - start_ns, i / n * n * MS);
        }
    }
}

TEST(there_is_no_drift_over_a_million_bursts)
{
    /* 3e9 bytes/s: a burst takes 1000/3 ns, which no integer holds. */
    spt_rate r = limiter(3e9, PACKET, 1.05, start_ns);
    uint64_t now = start_ns;
    for (int i = 0; i <= 1000000; i++)
        now = send_after(&r, now, PACKET);
    /* a million bursts are due after 1e9/3 ns */
    CHECK(now - start_ns >= 333333332 && now - start_ns <= 333333334);
}

TEST(bursts_that_are_a_little_late_do_not_move_those_after_them)
{
    /* The sender oversleeps 20 us, every time: the mean rate holds all the same. */
    spt_rate r = limiter(1e6, PACKET, 1.05, start_ns);
    uint64_t now = start_ns;
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t at = spt_rate_next(&r, now);
        if (at > 0) {
            CHECK_EQUAL(at - start_ns, i * MS);
            now = at + 20000;
            CHECK_EQUAL(spt_rate_next(&r, now), 0);
        }
        spt_rate_sent(&r, PACKET, -1);
    }
}

TEST(a_late_sender_catches_up_at_no_more_than_the_ratio)
{
    /* 1 ms for a burst; at a ratio of 1.25, 0.8 ms. The sender is away for 100 ms with a queue
     * that is never empty. */
    spt_rate r = limiter(1e6, PACKET, 1.25, start_ns);
    uint64_t now = send_after(&r, start_ns, PACKET);
    now = send_after(&r, now, PACKET) + 100000000;
    uint64_t before = send_after(&r, now, PACKET);
    CHECK_EQUAL(before, now);
    unsigned n = 3, fast = 0;
    for (;; n++) {
        uint64_t at = send_after(&r, before, PACKET);
        if (at - before > 999999)
            break;
        CHECK(at - before >= 799999);
        before = at;
        fast++;
    }
    CHECK(fast >= 490 && fast <= 510); /* 100 ms behind, 0.2 ms won back at each */
    CHECK(before - start_ns <= n * (uint64_t)MS + 1);
    CHECK(before - start_ns + MS >= n * (uint64_t)MS - MS);
}

TEST(idle_time_earns_no_credit)
{
    spt_rate r = limiter(1e6, PACKET, 10, start_ns);
    uint64_t now = send_after(&r, start_ns, PACKET);
    now += UINT64_C(3600000000000);
    spt_rate_idle(&r, now);
    uint64_t first = send_after(&r, now, PACKET);
    CHECK_EQUAL(first, now);
    for (unsigned i = 1; i <= 10; i++) {
        now = send_after(&r, now, PACKET);
        CHECK_EQUAL(now - first, i * MS);
    }
}

TEST(being_idle_does_not_shorten_a_wait)
{
    spt_rate r = limiter(1e6, PACKET, 1.05, start_ns);
    uint64_t now = send_after(&r, start_ns, PACKET);
    spt_rate_idle(&r, now + 1000);
    CHECK_EQUAL(spt_rate_next(&r, now + 1000), start_ns + MS);
}

TEST(a_burst_begun_before_an_idle_time_is_finished_after_it)
{
    spt_rate r = limiter(1e6, 2 * PACKET, 1.05, start_ns);
    (void)send_after(&r, start_ns, PACKET);
    uint64_t now = start_ns + 500000000;
    spt_rate_idle(&r, now);
    CHECK_EQUAL(send_after(&r, now, PACKET), now); /* fills it */
    CHECK_EQUAL(spt_rate_next(&r, now), now + MS);
}

TEST(a_heap_may_have_its_own_rate_or_none)
{
    spt_rate r = limiter(1e6, PACKET, 1.05, start_ns);
    spt_rate_sent(&r, PACKET, 5e5); /* half as fast */
    CHECK_EQUAL(spt_rate_next(&r, start_ns), start_ns + 2 * MS);
    uint64_t now = send_after(&r, start_ns, PACKET);
    CHECK_EQUAL(spt_rate_next(&r, now), start_ns + 3 * MS);
    now = start_ns + 3 * MS;
    for (int i = 0; i < 100; i++) {
        CHECK_EQUAL(spt_rate_next(&r, now), 0);
        spt_rate_sent(&r, PACKET, 0);
    }
    CHECK_EQUAL(send_after(&r, now, PACKET), now);
    CHECK_EQUAL(spt_rate_next(&r, now), now + MS);
}

TEST(a_heap_may_be_limited_in_a_stream_that_is_not)
{
    spt_rate r = limiter(0, PACKET, 1.05, start_ns);
    spt_rate_sent(&r, PACKET, 1e6);
    CHECK_EQUAL(spt_rate_next(&r, start_ns), start_ns + MS);
    CHECK_EQUAL(spt_rate_next(&r, start_ns + MS), 0);
    spt_rate_sent(&r, PACKET, -1);
    CHECK_EQUAL(spt_rate_next(&r, start_ns + MS), 0);
}

TEST(a_rate_near_zero_waits_and_does_not_overflow)
{
    static const double rates[] = {1e-3, 1e-9, 1e-12, 1e-300, 5e-324};
    for (size_t i = 0; i < LENGTH(rates); i++) {
        spt_rate r = limiter(rates[i], 1 << 20, 1.05, start_ns);
        for (int j = 0; j < 17; j++) {
            CHECK_EQUAL(spt_rate_next(&r, start_ns), 0);
            spt_rate_sent(&r, 65507, -1);
        }
        CHECK(spt_rate_next(&r, start_ns) > start_ns + UINT64_C(1000000000000000000));
        CHECK(spt_rate_next(&r, start_ns + 1000) > start_ns + UINT64_C(1000000000000000000));
    }
}
