/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial: the other end, where packets become heaps again.
 *
 * It reads on where ``spt.h`` ends, and uses its words: *borrowed*, *copied*, *taken*; what that
 * says of parameters holds here.
 *
 * 1. packets: one taken apart, without any I/O
 * 2. received heaps: what has arrived of one, and what has not
 * 3. items and descriptors: what is in a received heap
 * 4. depacketizer: where a packet's payload belongs, and what it completes
 * 5. accounts: where every packet went
 * 6. sockets: how packets come in
 * 7. streams: heaps received by a worker thread, and handed over to you
 * 8. memory for heaps: mapped, or kept in a pool to be used again
 * 9. rings of chunks: memory that many heaps share, on its way to a stream and back
 * 10. streams of chunks: every heap to its place in a chunk
 * 11. groups of streams that fill the same chunks
 *
 * Packets come from strangers. With any content, nothing here reads or writes beyond what it was
 * given, and the memory that is used is bounded by the configuration.
 */
#ifndef SPEAD_TUTORIAL_SPT_RECV_H
#define SPEAD_TUTORIAL_SPT_RECV_H

#include "spead_tutorial/spt.h"
#include "spead_tutorial/spt_chunk.h"
#include "spead_tutorial/spt_received.h"
#include "spead_tutorial/spt_recv_stream.h"

#endif /* SPEAD_TUTORIAL_SPT_RECV_H */
