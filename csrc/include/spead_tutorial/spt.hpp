/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial from C++20: what the headers of C have, with owners, spans, times and exceptions.
 *
 * What is ``spt_name`` in C is ``spt::name`` here, and does the same: this header adds no thread,
 * no memory and no copy to it. It uses the words of ``spt.h``, *borrowed*, *copied* and *taken*,
 * and its structures, for all that owns nothing: what cuts a heap into packets without any I/O is
 * used as it is in C. What is not said of a parameter here is said there; but a
 * negative time is 0, and does not wait for ever.
 *
 * 1. errors: thrown, or returned where they are nothing special
 * 2. memory that is lent: one value or several, and never a temporary
 * 3. owners: who frees what
 * 4. variables and items: what is sent
 * 5. heaps: items that travel together
 * 6. threads: those that send and receive
 * 7. completions: how you learn that your memory is yours again
 * 8. streams: heaps on their way out
 * 9. memory in large pages
 *
 * Owners can be moved, and not be copied; one that was moved from may be destroyed, or assigned to,
 * and nothing else. Threads may do with an object what the header of C says of what it owns; moving
 * it is for one thread, while no other uses it.
 *
 * Programs that are built without ``NDEBUG`` end, with a line that says why, where they break a
 * promise about memory that can be looked into: a heap that is destroyed while it is in flight,
 * say.
 */
#ifndef SPEAD_TUTORIAL_SPT_HPP
#define SPEAD_TUTORIAL_SPT_HPP

#include "spead_tutorial/spt.h"
#include "spead_tutorial/spt_completion.hpp"
#include "spead_tutorial/spt_heap.hpp"
#include "spead_tutorial/spt_stream.hpp"

#endif /* SPEAD_TUTORIAL_SPT_HPP */
