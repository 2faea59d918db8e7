/* SPDX-License-Identifier: BSD-3-Clause */
/* Built without exceptions: what fails is returned, or ends the program. */
#include "support.hpp"

TEST(what_is_tried_is_returned)
{
    state s;
    spt::memory_stream stream(spt::no_thread);
    stream.stop();
    CHECK(!stream.try_async_send(s.heap, s.sent, s.why));
    CHECK_EQUAL(s.why.status, SPT_ERR_STOPPED);
    const spt::chunk_ring ring(spt::taken, spt_chunk_ring_create(1, &s.why));
    CHECK_EQUAL(ring.capacity(), 1);
}

TEST(what_fails_ends_the_program_with_a_line)
{
    CHECK_DIES("spead_tutorial: port 0",
               { const spt::udp_stream stream(spt::no_thread, {{"127.0.0.1", 0}}); });
}
