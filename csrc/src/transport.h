/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport takes batches of packets. It knows packets and endpoints, but neither heaps nor
 * queues, and it never waits.
 */
#ifndef SPTI_TRANSPORT_H
#define SPTI_TRANSPORT_H

#include "spead_tutorial/spt.h"

/* A packet on its way: a run of pieces. */
typedef struct spti_packet {
    uint32_t first_piece;
    uint16_t n_pieces;
    bool held; /* set by the transport: its memory may be read after it has been handed over */
    uint32_t size;
    uint32_t substream;
    int error;        /* set by the transport: 0, or the errno with which it failed */
    uint32_t message; /* of a packet that is held: of which message it is a part */
    void *sender;     /* of the stream's own */
} spti_packet;

/* Packets in the order in which they go, and the memory that they are made in. */
typedef struct spti_batch {
    spti_packet *packets;
    struct iovec *pieces;
    uint8_t *scratch;
    size_t n;    /* packets */
    size_t next; /* the first that has not been handed over; moved on by the transport */
    size_t done; /* the first that has not been dealt with by the stream */
    size_t n_pieces, scratch_used;
} spti_batch;

typedef struct spti_transport spti_transport;

typedef struct spti_transport_ops {
    /* Hand over packets from batch->next on: SPT_OK when none is left, SPT_PENDING when the
     * transport's fd must become writable first or, with t->full, have news of what was sent. */
    spt_status (*send)(spti_transport *t, spti_batch *batch);
    /* Take the news of packets that are held; NULL where none ever is. */
    void (*release)(spti_transport *t);
    void (*destroy)(spti_transport *t);
    /* The batch's next packet is about to be dropped; NULL where none is ever begun and not
     * finished. */
    void (*keep)(spti_transport *t, const spti_batch *batch);
} spti_transport_ops;

struct spti_transport {
    const spti_transport_ops *ops;
    size_t n_substreams;
    size_t max_packet_size; /* what one packet can be at most */
    const char *limit;      /* why, in words */
    size_t fits;            /* what would have gone when one was too large, or 0 */
    int fd;                 /* to wait for, or -1 */
    bool full;              /* no more packets can be held */
    uint32_t released;      /* messages before this one are not read any more */
    uint32_t handed;        /* messages before this one have been handed over */
    spt_stats stats;        /* members written by one thread, read by others: relaxed atomics */
};

spti_transport *spti_transport_udp(const spt_endpoint *endpoints, size_t n_endpoints,
                                   const spt_udp_config *config, spt_error *err);
spti_transport *spti_transport_udp_socket(int socket, const spt_endpoint *endpoints,
                                          size_t n_endpoints, const spt_udp_config *config,
                                          spt_error *err);
spti_transport *spti_transport_memory(spt_error *err);
/* Through a socket that is given, or connected to the endpoint where that is NULL. */
spti_transport *spti_transport_tcp(const int *given, const spt_endpoint *endpoint,
                                   const spt_tcp_config *config, spt_error *err);
spti_transport *spti_transport_inproc(spt_inproc_queue *const *queues, size_t n_queues,
                                      spt_error *err);
size_t spti_transport_memory_copy(spti_transport *t, void *to, size_t size);

/* Counters have one writer, so that an addition need not be atomic as a whole. */
static inline void spti_count(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

/* Whether the memory of a packet that was handed over may still be read. */
static inline bool spti_transport_holds(const spti_transport *t, const spti_packet *packet)
{
    return packet->held && (int32_t)(packet->message - t->released) >= 0;
}

/* Copy a packet's pieces one after the other; returns where they end. */
uint8_t *spti_packet_copy(const spti_batch *batch, const spti_packet *packet, uint8_t *to);

/* Count packets [first, first + n) of a batch as taken, in one message. */
void spti_transport_taken(spti_transport *t, const spti_batch *batch, size_t first, size_t n);

/* Mark packets [first, first + n) of a batch as failed, and count them. */
void spti_transport_failed(spti_transport *t, spti_batch *batch, size_t first, size_t n, int error);

#endif
