/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the reading of descriptors: packets inside of heaps. Believes nothing that it reads. */
#include "spead_tutorial/spt_recv.h"
#include "wire.h"

/* Where an item of the packet ends: at the next address, or the next pointer to the same one. */
static uint64_t end_of(const spt_received_packet *packet, size_t index, uint64_t begin)
{
    uint64_t end = packet->payload_length;
    for (size_t i = 0; i < packet->n_pointers; i++) {
        uint64_t word = spti_get(packet->pointers + SPTI_POINTER * i, SPTI_POINTER);
        uint64_t address = word & spti_address_mask(packet->heap_address_bits);
        if (spti_is_immediate(word) || i == index)
            continue;
        if (address == begin && i > index)
            return begin;
        if (address > begin && address < end)
            end = address;
    }
    return end;
}

static spt_bytes value_of(const spt_received_packet *packet, size_t index, uint64_t begin)
{
    uint64_t end = end_of(packet, index, begin);
    return (spt_bytes){packet->payload + begin, (size_t)(end - begin)};
}

/* Where the value of an item of the descriptor goes; NULL for an item that it does not have. */
static spt_bytes *place_of(spt_received_descriptor *d, uint64_t id)
{
    switch (id) {
    case SPT_ID_DESCRIPTOR_NAME:
        return &d->name;
    case SPT_ID_DESCRIPTOR_DESCRIPTION:
        return &d->description;
    case SPT_ID_DESCRIPTOR_SHAPE:
        return &d->shape_;
    case SPT_ID_DESCRIPTOR_FORMAT:
        return &d->format_;
    case SPT_ID_DESCRIPTOR_DTYPE:
        return &d->numpy_header;
    default:
        return NULL;
    }
}

static void read_items(spt_received_descriptor *d, const spt_received_packet *packet)
{
    unsigned bits = packet->heap_address_bits;
    /* The last of those that are repeated counts; looking for it from the end, each of the five is
     * looked for once, however many pointers there are. */
    for (size_t i = packet->n_pointers; i-- > 0;) {
        uint64_t word = spti_get(packet->pointers + SPTI_POINTER * i, SPTI_POINTER);
        uint64_t id = spti_pointer_id(word, bits), value = word & spti_address_mask(bits);
        spt_bytes *place = place_of(d, id);
        if (spti_is_immediate(word)) {
            if (id == SPT_ID_DESCRIPTOR_ID && d->id == 0)
                d->id = value;
        } else if (place != NULL && place->data == NULL) {
            *place = value_of(packet, i, value);
        }
    }
}

bool spt_received_descriptor_parse(spt_received_descriptor *descriptor, const void *bytes,
                                   size_t n_bytes, int bug_compat)
{
    spt_received_packet packet;
    if (spt_received_packet_parse(&packet, bytes, n_bytes) != SPT_FAULT_NONE ||
        packet.payload_offset != 0 || packet.highest_address > packet.payload_length)
        return false;
    uint8_t address_bytes = packet.heap_address_bits / 8;
    bool wide = (bug_compat & SPT_COMPAT_DESCRIPTOR_WIDTHS) != 0;
    spt_received_descriptor d = {
        .format_width_ = wide ? 4 : (uint8_t)(9 - address_bytes),
        .shape_width_ = wide ? 8 : (uint8_t)(1 + address_bytes),
        .variable_ = bug_compat & SPT_COMPAT_SHAPE_BIT_1 ? 2 : 1,
    };
    read_items(&d, &packet);
    d.n_format = d.format_.length / d.format_width_;
    d.n_shape = d.shape_.length / d.shape_width_;
    *descriptor = d;
    return d.id > SPT_ID_STREAM_CTRL && d.name.length > 0;
}

spt_field spt_received_descriptor_field(const spt_received_descriptor *descriptor, size_t i)
{
    const uint8_t *at = descriptor->format_.data + i * descriptor->format_width_;
    size_t n = descriptor->format_width_ - 1U;
    /* At most 7 bytes; what does not fit in 32 bits is no number of bits that there is. */
    uint64_t bits = spti_get(at + 1, n);
    return (spt_field){(char)at[0], bits > UINT32_MAX ? UINT32_MAX : (uint32_t)bits};
}

int64_t spt_received_descriptor_dimension(const spt_received_descriptor *descriptor, size_t i)
{
    const uint8_t *at = descriptor->shape_.data + i * descriptor->shape_width_;
    if (at[0] & descriptor->variable_)
        return -1;
    return (int64_t)spti_get(at + 1, descriptor->shape_width_ - 1U);
}
