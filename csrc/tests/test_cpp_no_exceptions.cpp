/* SPDX-License-Identifier: BSD-3-Clause */
/* Built without exceptions: what fails is returned, or ends the program. */
#include "support.hpp"

TEST(what_is_tried_is_returned)
{
    auto made = spt::try_make<spt::memory_stream>(spt::no_thread);
    REQUIRE(made.has_value());
    const std::vector<float> values(100);
    const spt::heap heap(spt::array(0x1000, "values", "", values));
    const auto sent = made->try_send(heap);
    CHECK(sent.has_value());
    made->stop();
    CHECK_EQUAL(made->try_send(heap).error().status, SPT_ERR_STOPPED);
    const auto refused = spt::try_make<spt::chunk_ring>(0U);
    CHECK(!refused && refused.error().status == SPT_ERR_ARGUMENT);
}

TEST(what_fails_ends_the_program_with_a_line)
{
    const spt::endpoint nowhere = {"127.0.0.1", 0};
    const auto made = spt::try_make<spt::udp_stream>(spt::no_thread, nowhere);
    REQUIRE(!made.has_value());
    CHECK_DIES("spead_tutorial: port 0",
               { const spt::udp_stream stream(spt::no_thread, {{"127.0.0.1", 0}}); });
}
