/* SPDX-License-Identifier: BSD-3-Clause */
/* What the chapters' programs in C++ that receive share: it is in receiving.h. */
#ifndef RECEIVING_HPP
#define RECEIVING_HPP

#include "chapter.hpp"
#include "receiving.h"
#include <spead_tutorial/spt_recv.hpp>

/* The heaps of a stream that has its reader already, one after the other: see receiving.h. */
class received_heaps : public heaps
{
  public:
    received_heaps(const spt::recv_stream &stream, const receiver_options &options)
        : heaps(heaps_of(stream.get(), &options))
    {
    }

    /* The next one, or none where the stream has ended. It is given back when it is destroyed. */
    spt::received_heap next() { return {stream, next_heap(this)}; }
};

#endif
