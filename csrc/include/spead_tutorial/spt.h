/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial: a sender of SPEAD heaps over UDP, in C11 for Linux.
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
