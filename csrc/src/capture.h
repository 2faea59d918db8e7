/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of captured frames: pcap and pcapng, of either byte order. */
#ifndef SPTI_CAPTURE_H
#define SPTI_CAPTURE_H

#include "spead_tutorial/spt.h"

typedef struct spti_capture spti_capture;

/* NULL, with the error, for what is no such file. */
spti_capture *spti_capture_open(const char *path, spt_error *err);
void spti_capture_close(spti_capture *c);

typedef struct spti_captured {
    unsigned link; /* what kind of a frame it is */
    const uint8_t *bytes;
    size_t n_bytes;
} spti_captured;

/* The next frame, which stays until the next call. SPT_PENDING: there was something else, not
 * large; SPT_DONE at the end. An error says where in the file it is. */
spt_status spti_capture_next(spti_capture *c, spti_captured *frame, spt_error *err);

#endif
