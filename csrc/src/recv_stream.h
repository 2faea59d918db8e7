/* SPDX-License-Identifier: BSD-3-Clause */
/* What a group does with its streams besides what the public header offers. */
#ifndef SPTI_RECV_STREAM_H
#define SPTI_RECV_STREAM_H

#include "chunk_window.h"

/* spt_recv_stream_create_chunks() for a stream that fills the chunks of a window. */
spt_recv_stream *spti_recv_stream_create_member(spt_thread_pool *pool,
                                                const spt_recv_config *config,
                                                const spt_chunk_config *chunks, spti_window *window,
                                                spt_error *err);

/* Free a stream that has been stopped. */
void spti_recv_stream_free(spt_recv_stream *stream);

#endif
