/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of sources that packets come from: each is a file. NULL, with the error, for what
 * cannot be opened. */
#ifndef SPTI_SOURCE_H
#define SPTI_SOURCE_H

#include "intake.h"

/* At an endpoint; without one, from a socket that is given. */
spti_source *spti_source_udp(int given, const spt_endpoint *endpoint,
                             const spt_receive_config *config, spt_error *err);
spti_source *spti_source_tcp(int given, const spt_endpoint *endpoint,
                             const spt_receive_config *config, spt_error *err);

spti_source *spti_source_memory(const void *bytes, size_t n_bytes, spt_error *err);
spti_source *spti_source_inproc(spt_inproc_queue *queue, spt_error *err);

/* A capture file; filter: as spti_frame_filter_parse() reads it, or NULL. */
spti_source *spti_source_pcap(const char *path, const char *filter, spt_error *err);

#endif
