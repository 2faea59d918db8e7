/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns packets that are read from a UDP socket: those that are foreseen straight to where they
 * belong. */
#include "source.h"

#include "datagrams.h"
#include "status.h"
#include "udp_socket.h"
#include "wire.h"

#include <stdlib.h>

enum { MOST_EXPECTED = 8 }; /* messages in a batch, read to where they belong */

typedef struct udp_source {
    spti_source base;
    spti_datagrams *datagrams;
    size_t max_size; /* of a packet */
} udp_source;

/*
 * Read packets that are likely to come to where they then belong, and look at them before anything
 * else happens to their heap.
 */
static spt_status read_expected(udp_source *u, spti_intake *in, const spti_guess *guess,
                                spt_error *err)
{
    spti_packet_run run;
    spt_status status = spti_datagrams_read_guess(u->datagrams, guess, &run, err);
    if (status == SPT_OK)
        spti_datagrams_right(u->datagrams, guess, spti_intake_take_run(in, &run));
    return status;
}

/* Whether it can be foreseen what comes, and where it may be written before one has seen it. */
static bool foresee(const udp_source *u, const spti_intake *in, spti_guess *guess)
{
    guess->prefix = SPTI_PREFIX;
    guess->n = spti_depacketizer_expected(in->depacketizer, &guess->n_bytes, &guess->to);
    if (guess->n == 0 || guess->n_bytes > u->max_size ||
        !spti_datagrams_worth_a_guess(u->datagrams, guess))
        return false;
    size_t payload = guess->n * (guess->n_bytes - SPTI_PREFIX);
    return spti_depacketizer_may_overwrite(in->depacketizer, payload);
}

/* Read what has come; what is likely to come, for as long as it does. */
static spt_status read_more(udp_source *u, spti_intake *in, spt_error *err)
{
    for (int i = 0; i < MOST_EXPECTED; i++) {
        spti_guess guess;
        if (!foresee(u, in, &guess))
            return spti_datagrams_read(u->datagrams, err);
        spt_status status = read_expected(u, in, &guess, err);
        if (status != SPT_OK || !spti_datagrams_all_taken(u->datagrams))
            return status;
    }
    return SPT_OK;
}

/* Take the first one of those that came. */
static void take_datagram(const udp_source *u, spti_intake *in, const spti_packet_run *run)
{
    if (run->n_bytes <= u->max_size) {
        (void)spti_intake_take(in, run->bytes, run->n_bytes, true, run->source);
        return;
    }
    spti_intake_malformed(in, SPT_FAULT_SURPLUS);
}

/* Take what was read; false where something has to wait, or it has ended. */
static bool take_datagrams(udp_source *u, spti_intake *in)
{
    spti_packet_run run;
    while (spti_datagrams_next(u->datagrams, &run)) {
        size_t n = run.n_bytes > u->max_size ? 0 : spti_intake_take_run(in, &run);
        spti_datagrams_take(u->datagrams, &run, n > 0 ? n : 1);
        if (n > 0)
            continue;
        take_datagram(u, in, &run);
        if (!spti_intake_go_on(in))
            return false;
    }
    return true;
}

static spti_wait udp_read(spti_source *source, spti_intake *in)
{
    udp_source *u = (udp_source *)source;
    if (!take_datagrams(u, in))
        return SPTI_WAIT_WORK;
    spt_error err;
    spt_status status = read_more(u, in, &err);
    if (status == SPT_PENDING)
        return SPTI_WAIT_READABLE;
    if (status == SPT_OK)
        return SPTI_WAIT_TURN;
    spti_intake_fail(in, err.sys_errno);
    return SPTI_WAIT_WORK;
}

static size_t udp_leave(spti_source *source)
{
    udp_source *u = (udp_source *)source;
    spti_packet_run run;
    size_t n = 0;
    for (; spti_datagrams_next(u->datagrams, &run); n += run.n)
        spti_datagrams_take(u->datagrams, &run, run.n);
    return n;
}

static void udp_read_stats(const spti_source *source, spt_receive_stats *stats)
{
    spti_datagrams_stats(((const udp_source *)source)->datagrams, stats);
}

static void udp_close(spti_source *source)
{
    spti_datagrams_close(((udp_source *)source)->datagrams);
    free(source);
}

static const spti_source_ops udp_ops = {udp_read, udp_leave, udp_read_stats, udp_close};

/* ---- Beginning ------------------------------------------------------------------------------- */

spti_source *spti_source_udp(int given, const spt_endpoint *endpoint,
                             const spt_receive_config *config, spt_error *err)
{
    static const spt_receive_config defaults = SPT_RECEIVE_CONFIG_DEFAULT;
    config = config == NULL ? &defaults : config;
    spti_datagrams *datagrams = spti_datagrams_open(given, endpoint, config, err);
    if (datagrams == NULL)
        return NULL;
    udp_source *u = malloc(sizeof(*u));
    if (u == NULL) {
        spti_datagrams_close(datagrams);
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a reader");
    }
    *u = (udp_source){
        .base = {&udp_ops, spti_datagrams_fd(datagrams),
                 spti_udp_port(spti_datagrams_fd(datagrams))},
        .datagrams = datagrams,
        .max_size = config->max_size,
    };
    return &u->base;
}
