/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what happens between a source of packets and a sink of heaps: what is read at once, what is
 * foreseen, what has to wait, and the end. Knows no threads and no locks, and nothing of what is in
 * packets.
 */
#include "intake.h"

#include <string.h>

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

bool spti_intake_go_on(spti_intake *in)
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

void spti_intake_malformed(spti_intake *in, spt_fault fault)
{
    in->batch++;
    spt_depacketizer_malformed(in->depacketizer, fault);
}

size_t spti_intake_take(spti_intake *in, const uint8_t *bytes, size_t n_bytes, bool alone,
                        uint64_t source)
{
    spt_received_packet packet;
    spt_fault fault = spt_received_packet_parse(&packet, bytes, n_bytes);
    if (fault == SPT_FAULT_NONE && alone && packet.size != n_bytes)
        fault = SPT_FAULT_SURPLUS;
    if (fault != SPT_FAULT_NONE) {
        spti_intake_malformed(in, fault);
        return 0;
    }
    in->batch++;
    packet.source = source;
    place_packet(in, &packet);
    in->held_datagram = alone;
    return packet.size;
}

size_t spti_intake_take_run(spti_intake *in, const spti_packet_run *run)
{
    size_t n = spti_depacketizer_take_run(in->depacketizer, run);
    in->batch += n;
    return n;
}

void spti_intake_fail(spti_intake *in, int error)
{
    in->stats.sys_errno = error;
    spti_intake_end(in);
}

void spti_intake_leave(spti_intake *in, spti_source *source)
{
    if (source->ops->leave != NULL)
        in->stats.after_end += source->ops->leave(source);
}

/* ---- A batch --------------------------------------------------------------------------------- */

spti_wait spti_intake_read(spti_intake *in, spti_source *source)
{
    spti_wait wait = SPTI_WAIT_WORK;
    in->batch = 0;
    if (!spti_intake_has_ended(in) && spti_intake_go_on(in))
        wait = source->ops->read(source, in);
    in->stats.batches += in->batch > 0;
    if (in->batch > in->stats.max_batch)
        in->stats.max_batch = in->batch;
    if (spti_intake_has_ended(in))
        spti_intake_leave(in, source);
    return wait;
}
