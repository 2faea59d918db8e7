/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the schedule of a limited stream. Knows no clock: time is an argument.
 *
 * Two schedules run side by side. `due` advances by bytes / rate and is never pulled forward while
 * there is something to send, so that a burst that goes out late does not move those after it:
 * there is no drift. `earliest` advances by bytes / (rate * burst_ratio) from when a burst really
 * went out, so that a late sender catches up gently. A burst waits for the later of the two.
 */
#include "spead_tutorial/spt.h"

static const double FOREVER_NS = 4e18; /* 126 years, which integers can still be added to */

static void advance(uint64_t *ns, double *fraction, double by)
{
    double sum = *fraction + by;
    if (!(sum < FOREVER_NS - (double)*ns)) {
        *ns = (uint64_t)FOREVER_NS;
        return;
    }
    uint64_t whole = (uint64_t)sum;
    *ns += whole;
    *fraction = sum - (double)whole; /* what integers would lose, burst after burst */
}

void spt_rate_init(spt_rate *r, double rate, size_t burst_size, double burst_ratio)
{
    *r = (spt_rate){
        .ns_per_byte = rate > 0 ? 1e9 / rate : 0,
        .burst_ratio = burst_ratio,
        .burst_size = burst_size,
    };
}

uint64_t spt_rate_next(spt_rate *r, uint64_t now_ns)
{
    if (r->burst_bytes > 0) {
        if (r->burst_bytes < r->burst_size)
            return 0;
        uint64_t at = r->due_ns > r->earliest_ns ? r->due_ns : r->earliest_ns;
        if (at > now_ns)
            return at;
        r->burst_bytes = 0;
    }
    if (r->earliest_ns < now_ns) {
        r->earliest_ns = now_ns;
        r->earliest_fraction = 0;
    }
    return 0;
}

void spt_rate_sent(spt_rate *r, size_t bytes, double rate)
{
    double ns_per_byte = rate < 0 ? r->ns_per_byte : rate > 0 ? 1e9 / rate : 0;
    if (ns_per_byte == 0)
        return;
    double ns = ns_per_byte * (double)bytes;
    advance(&r->due_ns, &r->due_fraction, ns);
    advance(&r->earliest_ns, &r->earliest_fraction, ns / r->burst_ratio);
    r->burst_bytes += bytes;
}

void spt_rate_idle(spt_rate *r, uint64_t now_ns)
{
    if (r->due_ns < now_ns) {
        r->due_ns = now_ns;
        r->due_fraction = 0;
    }
}
