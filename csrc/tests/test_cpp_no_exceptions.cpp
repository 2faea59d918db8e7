/* SPDX-License-Identifier: BSD-3-Clause */
/* Built without exceptions: what fails is returned, or ends the program. */
#include "support.hpp"

TEST(what_is_tried_is_returned)
{
    spt::failure why;
    auto made = spt::try_make<spt::memory_stream>(why, spt::no_thread);
    REQUIRE(made.has_value());
    const std::vector<float> values(100);
    const spt::heap heap(spt::array(0x1000, "values", "", values));
    CHECK(made->try_send(heap, why).has_value());
    made->stop();
    CHECK(!made->try_send(heap, why).has_value());
    CHECK_EQUAL(why.status, SPT_ERR_STOPPED);
    CHECK(!spt::try_make<spt::chunk_ring>(why, 0U) && why.status == SPT_ERR_ARGUMENT);
}

TEST(what_fails_ends_the_program_with_a_line)
{
    const spt::endpoint nowhere = {"127.0.0.1", 0};
    spt::failure why;
    REQUIRE(!spt::try_make<spt::udp_stream>(why, spt::no_thread, nowhere).has_value());
    CHECK_DIES("spead_tutorial: port 0",
               { const spt::udp_stream stream(spt::no_thread, {{"127.0.0.1", 0}}); });
}
