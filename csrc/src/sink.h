/* SPDX-License-Identifier: BSD-3-Clause */
/* Where finished heaps go: into a stream's ring, or as part of its chunks. One thread at a time
 * calls these. */
#ifndef SPTI_SINK_H
#define SPTI_SINK_H

#include "spead_tutorial/spt_recv.h"

/* How it goes on after a batch of packets. */
typedef enum spti_pace {
    SPTI_MORE,  /* more is read at once */
    SPTI_LATER, /* nobody knows when */
    SPTI_END,   /* not at all */
} spti_pace;

typedef struct spti_sink spti_sink;

struct spti_sink {
    /* Take a heap that is finished, and recycle it sooner or later. False: there is no room now,
     * bring it again. The last ones, after which only the end comes, have to be taken. */
    bool (*take)(spti_sink *sink, spt_received_heap *heap, bool last);
    /* A batch of packets is over. Returns whether those who wait for heaps are to be told now. */
    bool (*settle)(spti_sink *sink, spti_pace pace);
    bool closed; /* set by the sink: it will never have room again */
};

#endif
