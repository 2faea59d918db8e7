/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial: a sender of SPEAD heaps over UDP, in C11 for Linux.
 *
 * A program that sends one heap, in the thread that calls::
 *
 *     #include <spead_tutorial/spt.h>
 *
 *     int main(void)
 *     {
 *         const int8_t samples[1000] = {1, 2, 3};
 *         const spt_variable item = spt_array(0x3300, "x", "Samples", SPT_INT8, samples, 1000);
 *         const spt_endpoint to = {"127.0.0.1", 8888};
 *         const spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
 *         spt_completion sent = {0};
 *         spt_error err = {0};
 *         spt_stream *stream = spt_stream_create_udp(NULL, &to, 1, &config, NULL, &err);
 *         spt_heap *heap = spt_heap_create(NULL, &err);
 *         bool is_sent = stream != NULL && heap != NULL &&
 *                        spt_heap_add(heap, &item, 1, SPT_ALL, &err) == SPT_OK &&
 *                        spt_stream_send_heap(stream, heap, &sent, &err) == SPT_OK &&
 *                        spt_stream_wait(stream, &sent, -1, &err) == SPT_OK;
 *         spt_stream_destroy(stream);
 *         spt_heap_destroy(heap);
 *         return is_sent ? 0 : 1;
 *     }
 *
 * It includes two others, ``spt_heap.h`` with parts 1 to 6, ``spt_stream.h`` with the rest. Read
 * them from top to bottom; each part needs only those above it:
 *
 * 1. status and errors: how every function answers
 * 2. flavour: how the 64 bits of an item pointer are shared
 * 3. items and descriptors: what is sent
 * 4. heaps: items that travel together
 * 5. packets: a heap cut up, without any I/O
 * 6. rate: when the next burst may go, with time as an argument
 * 7. thread pool: the threads that do the sending
 * 8. streams: heaps queued by you, sent by a worker thread, or by yours
 * 9. completions: how you learn that your memory is yours again
 * 10. what a stream can tell about itself
 * 11. memory in large pages, for streams that send without copying
 *
 * Words used throughout. *Borrowed until <event>*: you own the memory, and must keep it alive and
 * at the same address until then. *Copied*: you may free it when the call returns. *Taken*: it is
 * ours to free. *init* and *fini* work on storage of yours; *create* and *destroy* on storage of
 * ours. Nothing here prints, exits, or reads the environment, and there are no global variables.
 *
 * What is not said of a parameter is the same for all:
 *
 * - What it points to is borrowed until the call returns; ``stats`` and the like are filled.
 * - ``err`` may be ``NULL``, and is filled in where the call fails.
 * - ``n``, and what begins with it, is how many there are.
 * - ``timeout_ns`` is how long to wait at most: 0 not at all, negative for ever.
 * - A heap that is changed is not in flight.
 * - The pool of a stream is borrowed until that is destroyed; ``NULL`` is for one without a thread.
 *
 * What *create* returns is the caller's, or ``NULL`` where it fails. *destroy* takes it, and may be
 * given ``NULL``.
 *
 * The wire format is that of the SPEAD protocol specification (SSA4700-0000-001), version 4.
 */
#ifndef SPEAD_TUTORIAL_SPT_H
#define SPEAD_TUTORIAL_SPT_H

#include "spead_tutorial/spt_heap.h"
#include "spead_tutorial/spt_stream.h"

#endif /* SPEAD_TUTORIAL_SPT_H */
