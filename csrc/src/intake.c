/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what happens between a source of packets and a sink of heaps: what is read at once, what is
 * foreseen, what has to wait, and the end. Knows no threads and no locks, and nothing of what is in
 * packets.
 */
#include "intake.h"

#include "wire.h"

enum {
    MEMORY_BATCH = 64, /* packets from memory, before others have their turn */
    MOST_EXPECTED = 8, /* messages in a batch, read to where they belong */
};

bool spti_intake_has_ended(const spti_intake *in)
{
    return __atomic_load_n(&in->ended, __ATOMIC_SEQ_CST);
}

/* ---- To the sink ----------------------------------------------------------------------------- */

static spt_received_heap *next_heap(spti_intake *in)
{
    spt_received_heap *heap = in->waiting_heap;
    in->waiting_heap = NULL;
    return heap != NULL ? heap : spt_depacketizer_next(in->depacketizer);
}

/* Hand over what is finished; false where there is no room for all. */
static bool hand_over(spti_intake *in)
{
    for (spt_received_heap *heap; (heap = next_heap(in)) != NULL;)
        if (!in->sink->take(in->sink, heap, false)) {
            in->waiting_heap = heap;
            return false;
        }
    return true;
}

void spti_intake_end(spti_intake *in)
{
    if (spti_intake_has_ended(in))
        return;
    spt_depacketizer_flush(in->depacketizer);
    in->stats.after_end += in->holds && in->held_datagram;
    in->holds = false;
    for (spt_received_heap *heap; (heap = next_heap(in)) != NULL;)
        (void)in->sink->take(in->sink, heap, true);
    (void)in->sink->settle(in->sink, SPTI_END);
    spti_waits_note(&in->waits, false);
    __atomic_store_n(&in->ended, true, __ATOMIC_SEQ_CST);
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Take a packet to its place, or hold it until it has one. */
static void place_packet(spti_intake *in, const spt_received_packet *packet)
{
    uint8_t *to;
    spt_fate fate = spt_depacketizer_take(in->depacketizer, packet, &to);
    in->holds = fate == SPTI_NOT_YET;
    if (in->holds)
        in->held = *packet;
    if (to != NULL)
        memcpy(to, packet->payload, packet->payload_length);
    if (fate == SPT_PLACED && packet->is_stop && in->stop_on_stop_item) {
        spt_depacketizer_stop(in->depacketizer);
        spti_intake_end(in);
    }
}

/* Hand over what is finished, and take the packet that is held; false while something has to wait,
 * or where it has ended with that. */
static bool go_on(spti_intake *in)
{
    bool room = hand_over(in);
    if (room && in->holds) {
        place_packet(in, &in->held);
        room = hand_over(in);
    }
    if (in->sink->closed)
        spti_intake_end(in);
    bool waits = (!room || in->holds) && !spti_intake_has_ended(in);
    spti_waits_note(&in->waits, waits);
    return !waits && !spti_intake_has_ended(in);
}

/* Take a packet apart, and to its place. Returns the bytes it had; 0 where it is malformed. */
static size_t take_packet(spti_intake *in, const uint8_t *bytes, size_t n_bytes, bool alone)
{
    spt_received_packet packet;
    in->batch++;
    spt_fault fault = spt_received_packet_parse(&packet, bytes, n_bytes);
    if (fault == SPT_FAULT_NONE && alone && packet.size != n_bytes)
        fault = SPT_FAULT_SURPLUS;
    if (fault != SPT_FAULT_NONE) {
        spt_depacketizer_malformed(in->depacketizer, fault);
        return 0;
    }
    place_packet(in, &packet);
    in->held_datagram = alone;
    return packet.size;
}

/* Take packets that go on where the one before ended. Returns how many do. */
static size_t take_run(spti_intake *in, const spti_packet_run *run)
{
    size_t n = spti_depacketizer_take_run(in->depacketizer, run);
    in->batch += n;
    return n;
}

static spti_wait read_memory(spti_intake *in, spti_source *source)
{
    for (int i = 0; i < MEMORY_BATCH && source->n_bytes > 0; i++) {
        size_t used = take_packet(in, source->bytes, source->n_bytes, false);
        source->bytes += used;
        source->n_bytes = used > 0 ? source->n_bytes - used : 0;
        if (spti_intake_has_ended(in) || !go_on(in))
            return SPTI_WAIT_WORK;
    }
    if (source->n_bytes > 0)
        return SPTI_WAIT_TURN;
    spti_intake_end(in);
    return SPTI_WAIT_WORK;
}

/* ---- Datagrams ------------------------------------------------------------------------------- */

/*
 * Read packets that are likely to come to where they then belong, and look at them before anything
 * else happens to their heap.
 */
static spt_status read_expected(spti_intake *in, spti_source *source, const spti_guess *guess,
                                spt_error *err)
{
    spti_packet_run run;
    spt_status status = spti_datagrams_read_guess(source->datagrams, guess, &run, err);
    if (status == SPT_OK)
        spti_datagrams_right(source->datagrams, guess, take_run(in, &run));
    return status;
}

/* Whether it can be foreseen what comes, and where it may be written before one has seen it. */
static bool foresee(const spti_intake *in, const spti_source *source, spti_guess *guess)
{
    guess->prefix = SPTI_PREFIX;
    guess->n = spti_depacketizer_expected(in->depacketizer, &guess->n_bytes, &guess->to);
    if (guess->n == 0 || guess->n_bytes > source->max_size ||
        !spti_datagrams_worth_a_guess(source->datagrams, guess))
        return false;
    size_t payload = guess->n * (guess->n_bytes - SPTI_PREFIX);
    return spti_depacketizer_may_overwrite(in->depacketizer, payload);
}

/* Read what has come; what is likely to come, for as long as it does. */
static spt_status read_more(spti_intake *in, spti_source *source, spt_error *err)
{
    for (int i = 0; i < MOST_EXPECTED; i++) {
        spti_guess guess;
        if (!foresee(in, source, &guess))
            return spti_datagrams_read(source->datagrams, err);
        spt_status status = read_expected(in, source, &guess, err);
        if (status != SPT_OK || !spti_datagrams_all_taken(source->datagrams))
            return status;
    }
    return SPT_OK;
}

void spti_intake_leave(spti_intake *in, spti_source *source)
{
    spti_packet_run run;
    while (source->datagrams != NULL && spti_datagrams_next(source->datagrams, &run)) {
        in->stats.after_end += run.n;
        spti_datagrams_take(source->datagrams, &run, run.n);
    }
}

/* Take the first one of those that came. */
static void take_datagram(spti_intake *in, const spti_source *source, const spti_packet_run *run)
{
    if (run->n_bytes <= source->max_size) {
        take_packet(in, run->bytes, run->n_bytes, true);
        return;
    }
    in->batch++;
    spt_depacketizer_malformed(in->depacketizer, SPT_FAULT_SURPLUS);
}

/* Take what was read; false where something has to wait, or it has ended. */
static bool take_datagrams(spti_intake *in, spti_source *source)
{
    spti_packet_run run;
    while (spti_datagrams_next(source->datagrams, &run)) {
        size_t n = run.n_bytes > source->max_size ? 0 : take_run(in, &run);
        spti_datagrams_take(source->datagrams, &run, n > 0 ? n : 1);
        if (n > 0)
            continue;
        take_datagram(in, source, &run);
        if (spti_intake_has_ended(in) || !go_on(in))
            return false;
    }
    return true;
}

static spti_wait read_datagrams(spti_intake *in, spti_source *source)
{
    if (!take_datagrams(in, source))
        return SPTI_WAIT_WORK;
    spt_error err;
    spt_status status = read_more(in, source, &err);
    if (status == SPT_PENDING)
        return SPTI_WAIT_READABLE;
    if (status == SPT_OK)
        return SPTI_WAIT_TURN;
    in->stats.sys_errno = err.sys_errno;
    spti_intake_end(in);
    return SPTI_WAIT_WORK;
}

/* ---- A batch --------------------------------------------------------------------------------- */

spti_wait spti_intake_read(spti_intake *in, spti_source *source)
{
    spti_wait wait = SPTI_WAIT_WORK;
    in->batch = 0;
    if (!spti_intake_has_ended(in) && go_on(in))
        wait = source->datagrams != NULL ? read_datagrams(in, source) : read_memory(in, source);
    in->stats.batches += in->batch > 0;
    if (in->batch > in->stats.max_batch)
        in->stats.max_batch = in->batch;
    if (spti_intake_has_ended(in))
        spti_intake_leave(in, source);
    return wait;
}
