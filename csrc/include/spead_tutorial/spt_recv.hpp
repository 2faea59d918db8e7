/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial from C++20: the other end. It reads on where ``spt.hpp`` ends, as ``spt_recv.h``
 * does where ``spt.h`` ends, and follows the same rules.
 *
 * 1. received heaps: lent by a stream, and given back
 * 2. items: what is in a received heap
 * 3. memory for heaps: mapped, or kept in a pool to be used again
 * 4. streams: heaps received by a worker thread, or by who asks for them
 * 5. rings of chunks: memory that many heaps share
 * 6. streams of chunks: every heap to its place
 *
 * What takes packets apart without any I/O owns nothing, and is used as it is in C.
 */
#ifndef SPEAD_TUTORIAL_SPT_RECV_HPP
#define SPEAD_TUTORIAL_SPT_RECV_HPP

#include "spead_tutorial/spt.hpp"
#include "spead_tutorial/spt_chunk.hpp"
#include "spead_tutorial/spt_recv.h"
#include "spead_tutorial/spt_recv_stream.hpp"

#endif /* SPEAD_TUTORIAL_SPT_RECV_HPP */
