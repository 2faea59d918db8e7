/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the taking apart of packets. Knows no heaps, and believes nothing that it reads. */
#include "received_packet.h"

#include "status.h"
#include "wire.h"

/* What a packet has to say of itself. */
enum { NEEDED = 1 << SPT_ID_HEAP_CNT | 1 << SPT_ID_PAYLOAD_OFFSET | 1 << SPT_ID_PAYLOAD_LENGTH };

const char *spt_fault_text(spt_fault fault)
{
    switch ((int)fault) {
        SPT_FAULT_LIST(SPTI_TEXT_CASE)
    }
    return "unknown fault";
}

static spt_fault read_header(spt_received_packet *p, const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < SPTI_POINTER || bytes[0] != SPTI_MAGIC || bytes[1] != SPTI_VERSION)
        return SPT_FAULT_HEADER;
    if (bytes[2] == 0 || bytes[3] == 0 || bytes[2] + bytes[3] != SPTI_POINTER)
        return SPT_FAULT_FLAVOUR;
    *p = (spt_received_packet){
        .heap_address_bits = (uint8_t)(8 * bytes[3]),
        .pointers = bytes + SPTI_POINTER,
        .n_pointers = (size_t)spti_get(bytes + 6, 2),
    };
    return p->n_pointers > n_bytes / SPTI_POINTER - 1 ? SPT_FAULT_POINTERS : SPT_FAULT_NONE;
}

/* What the item pointers say, besides what is the packet's. */
typedef struct said {
    unsigned found;          /* which of the protocol's own items are there, a bit for each id */
    uint64_t payload_length; /* not checked yet */
} said;

static said read_items(spt_received_packet *p)
{
    said all = {0};
    unsigned bits = p->heap_address_bits;
    for (size_t i = 0; i < p->n_pointers; i++) {
        uint64_t word = spti_get(p->pointers + SPTI_POINTER * i, SPTI_POINTER);
        uint64_t id = spti_pointer_id(word, bits), value = word & spti_address_mask(bits);
        if (!spti_is_immediate(word)) {
            if (value > p->highest_address)
                p->highest_address = value;
            p->n_items++;
            continue;
        }
        if (!spti_is_own(word, bits))
            p->n_items++;
        if (id > SPT_ID_STREAM_CTRL)
            continue;
        all.found |= 1U << id;
        if (id == SPT_ID_HEAP_CNT)
            p->cnt = value;
        else if (id == SPT_ID_HEAP_LENGTH)
            p->heap_length = value;
        else if (id == SPT_ID_PAYLOAD_OFFSET)
            p->payload_offset = value;
        else if (id == SPT_ID_PAYLOAD_LENGTH)
            all.payload_length = value;
        else if (id == SPT_ID_STREAM_CTRL)
            p->is_stop = p->is_stop || value == SPTI_CTRL_STOP;
    }
    return all;
}

spt_fault spt_received_packet_parse(spt_received_packet *packet, const void *bytes, size_t n_bytes)
{
    spt_received_packet p;
    spt_fault fault = read_header(&p, bytes, n_bytes);
    if (fault != SPT_FAULT_NONE)
        return fault;
    said all = read_items(&p);
    if ((all.found & NEEDED) != NEEDED)
        return SPT_FAULT_MISSING;
    size_t header = SPTI_POINTER * (1 + p.n_pointers);
    if (all.payload_length > n_bytes - header)
        return SPT_FAULT_PAYLOAD;
    p.payload = p.pointers + SPTI_POINTER * p.n_pointers;
    p.payload_length = (size_t)all.payload_length;
    p.size = header + p.payload_length;
    p.has_heap_length = (all.found & 1U << SPT_ID_HEAP_LENGTH) != 0;
    /* Both have 56 bits at most: their sum does not overflow. */
    if (p.has_heap_length && (p.payload_offset + all.payload_length > p.heap_length ||
                              p.highest_address > p.heap_length))
        return SPT_FAULT_BEYOND;
    *packet = p;
    return SPT_FAULT_NONE;
}

spt_fault spti_received_packet_size(const uint8_t *bytes, size_t n_bytes, uint64_t *size)
{
    spt_received_packet p;
    *size = SPTI_POINTER;
    if (n_bytes < SPTI_POINTER)
        return SPT_FAULT_POINTERS;
    spt_fault fault = read_header(&p, bytes, n_bytes);
    if (fault != SPT_FAULT_NONE && fault != SPT_FAULT_POINTERS)
        return fault;
    *size = SPTI_POINTER * (1 + p.n_pointers);
    if (fault != SPT_FAULT_NONE)
        return fault;
    said all = read_items(&p);
    *size += all.payload_length;
    return (all.found & 1U << SPT_ID_PAYLOAD_LENGTH) != 0 ? SPT_FAULT_NONE : SPT_FAULT_MISSING;
}
