/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns packets that are read from a file of captured frames. */
#include "source.h"

#include "capture.h"
#include "frame_filter.h"
#include "sender.h"
#include "status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64 }; /* frames or packets, before others have their turn */

typedef struct pcap_source {
    spti_source base;
    spti_capture *capture;
    spti_frame_filter filter;
    const uint8_t *bytes; /* what is left of a datagram */
    size_t n_bytes;
    uint64_t sender; /* of the datagram */
} pcap_source;

/*
 * Take the next packet of a datagram. There is more than one where it was captured before it was
 * segmented, as on the machine that sent it.
 */
static void take_packet(pcap_source *p, spti_intake *in)
{
    size_t used = spti_intake_take(in, p->bytes, p->n_bytes, false, p->sender);
    p->bytes += used;
    p->n_bytes = used > 0 ? p->n_bytes - used : 0;
}

/* A capture may hold what one sender has sent to several places: each is a stream. */
static uint64_t sender_of(const spti_frame *frame)
{
    uint64_t from = spti_sender_of(frame->addresses[0], frame->address_size, frame->ports[0]);
    uint64_t to = spti_sender_of(frame->addresses[1], frame->address_size, frame->ports[1]);
    return spti_mix(from, to);
}

static void look_at(pcap_source *p, spti_intake *in, const spti_captured *captured)
{
    spti_frame frame;
    spti_frame_kind kind =
        spti_frame_parse(&frame, captured->link, captured->bytes, captured->n_bytes);
    if (kind != SPTI_FRAME_OTHER && !spti_frame_filter_takes(&p->filter, &frame))
        kind = SPTI_FRAME_OTHER;
    spt_capture_stats *stats = &in->stats.captures;
    stats->frames++;
    stats->others += kind == SPTI_FRAME_OTHER;
    stats->fragments += kind == SPTI_FRAME_FRAGMENT;
    stats->cut += kind == SPTI_FRAME_CUT;
    if (kind != SPTI_FRAME_UDP)
        return;
    p->bytes = frame.payload;
    p->n_bytes = frame.n_bytes;
    p->sender = sender_of(&frame);
    if (frame.n_bytes == 0)
        spti_intake_malformed(in, SPT_FAULT_HEADER);
}

/* The file cannot be read on: what came before stays. */
static void fail(spti_intake *in, const spt_error *err)
{
    (void)snprintf(in->stats.failure, sizeof(in->stats.failure), "%s", err->message);
    int error = err->status == SPT_ERR_MEMORY ? ENOMEM : err->sys_errno;
    spti_intake_fail(in, error != 0 ? error : EBADMSG);
}

static spti_wait pcap_read(spti_source *source, spti_intake *in)
{
    pcap_source *p = (pcap_source *)source;
    for (int i = 0; i < BATCH; i++) {
        if (p->n_bytes == 0) {
            spti_captured captured;
            spt_error err;
            spt_status status = spti_capture_next(p->capture, &captured, &err);
            if (status == SPT_OK)
                look_at(p, in, &captured);
            else if (status == SPT_DONE)
                spti_intake_end(in);
            else if (status != SPT_PENDING)
                fail(in, &err);
        }
        if (p->n_bytes > 0)
            take_packet(p, in);
        if (!spti_intake_go_on(in))
            return SPTI_WAIT_WORK;
    }
    return SPTI_WAIT_TURN;
}

static void pcap_close(spti_source *source)
{
    spti_capture_close(((pcap_source *)source)->capture);
    free(source);
}

static const spti_source_ops pcap_ops = {pcap_read, NULL, NULL, pcap_close};

spti_source *spti_source_pcap(const char *path, const char *filter, spt_error *err)
{
    pcap_source *p = malloc(sizeof(*p));
    if (p == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a reader");
    *p = (pcap_source){.base = {.ops = &pcap_ops, .fd = -1}};
    if (spti_frame_filter_parse(&p->filter, filter == NULL ? "" : filter, err) == SPT_OK)
        p->capture = spti_capture_open(path, err);
    if (p->capture != NULL)
        return &p->base;
    free(p);
    return NULL;
}
