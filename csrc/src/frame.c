/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what is before a UDP datagram in a frame. Frames come from elsewhere: nothing of them is
 * believed. */
#include "frame.h"

#include "wire.h"

enum { IPV4 = 0x0800, IPV6 = 0x86dd, UDP = 17 };

static unsigned get16(const uint8_t *from)
{
    return (unsigned)spti_get(from, 2);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* What is from a UDP header on: so many bytes of those that IP says. */
static spti_frame_kind parse_udp(spti_frame *frame, const uint8_t *bytes, size_t n, size_t of)
{
    if (n < 8)
        return of < 8 ? SPTI_FRAME_OTHER : SPTI_FRAME_CUT;
    size_t length = get16(bytes + 4);
    if (length < 8 || length > of)
        return SPTI_FRAME_OTHER;
    frame->has_ports = true;
    frame->ports[0] = (uint16_t)get16(bytes);
    frame->ports[1] = (uint16_t)get16(bytes + 2);
    frame->payload = bytes + 8;
    frame->n_bytes = length - 8;
    return n < length ? SPTI_FRAME_CUT : SPTI_FRAME_UDP;
}

static void set_addresses(spti_frame *frame, const uint8_t *from, size_t size)
{
    frame->addresses[0] = from;
    frame->addresses[1] = from + size;
    frame->address_size = size;
}

static spti_frame_kind parse_ipv4(spti_frame *frame, const uint8_t *bytes, size_t n)
{
    if (n < 20)
        return SPTI_FRAME_CUT;
    size_t header = 4U * (bytes[0] & 15), length = get16(bytes + 2);
    if (bytes[0] >> 4 != 4 || header < 20 || length < header || bytes[9] != UDP)
        return SPTI_FRAME_OTHER;
    set_addresses(frame, bytes + 12, 4);
    if ((get16(bytes + 6) & 0x3fff) != 0)
        return SPTI_FRAME_FRAGMENT;
    n = n < length ? n : length; /* short frames are filled up */
    return n < header ? SPTI_FRAME_CUT
                      : parse_udp(frame, bytes + header, n - header, length - header);
}

/* Bytes of an extension header; 0 where it is none. */
static size_t extension_size(unsigned protocol, const uint8_t *bytes)
{
    switch (protocol) {
    case 0:   /* hop by hop */
    case 43:  /* routing */
    case 60:  /* for the destination */
    case 135: /* mobility */
    case 139: /* host identity */
    case 140: /* shim6 */
        return 8 + 8U * bytes[1];
    case 44: /* fragment */
        return 8;
    case 51: /* authentication */
        return 8 + 4U * bytes[1];
    default:
        return 0;
    }
}

static spti_frame_kind parse_ipv6(spti_frame *frame, const uint8_t *bytes, size_t n)
{
    if (n < 40)
        return SPTI_FRAME_CUT;
    if (bytes[0] >> 4 != 6)
        return SPTI_FRAME_OTHER;
    size_t at = 40, end = at + get16(bytes + 4);
    unsigned protocol = bytes[6];
    set_addresses(frame, bytes + 8, 16);
    n = n < end ? n : end;
    while (protocol != UDP) {
        static const uint8_t shortest[8];
        size_t size = extension_size(protocol, n < at + 8 ? shortest : bytes + at);
        if (size == 0 || at + size > end)
            return SPTI_FRAME_OTHER;
        if (n < at + size)
            return SPTI_FRAME_CUT;
        if (protocol == 44 && (get16(bytes + at + 2) & 0xfff9) != 0)
            return SPTI_FRAME_FRAGMENT;
        protocol = bytes[at];
        at += size;
    }
    return parse_udp(frame, bytes + at, n - at, end - at);
}

/* Bytes before IP, and where among them its kind is; false for frames that are not known. */
static bool link_header(unsigned link, size_t *size, size_t *type_at)
{
    *size = *type_at = 0;
    switch (link) {
    case SPTI_LINK_ETHERNET:
        *size = 14, *type_at = 12;
        return true;
    case SPTI_LINK_COOKED:
        *size = 16, *type_at = 14;
        return true;
    case SPTI_LINK_COOKED_2:
        *size = 20;
        return true;
    case SPTI_LINK_RAW:
    case SPTI_LINK_IPV4:
    case SPTI_LINK_IPV6:
        return true;
    default:
        return false;
    }
}

bool spti_link_is_known(unsigned link)
{
    size_t size, type_at;
    return link_header(link, &size, &type_at);
}

static bool is_vlan(unsigned type)
{
    return type == 0x8100 || type == 0x88a8 || type == 0x9100;
}

spti_frame_kind spti_frame_parse(spti_frame *frame, unsigned link, const uint8_t *bytes,
                                 size_t n_bytes)
{
    size_t at, type_at;
    *frame = (spti_frame){0};
    if (!link_header(link, &at, &type_at))
        return SPTI_FRAME_OTHER;
    if (n_bytes < at + 1)
        return SPTI_FRAME_CUT;
    unsigned type = bytes[0] >> 4 == 6 ? IPV6 : IPV4;
    if (at > 0)
        type = get16(bytes + type_at);
    for (; is_vlan(type); at += 4) {
        if (n_bytes < at + 4)
            return SPTI_FRAME_CUT;
        type = get16(bytes + at + 2);
    }
    return type == IPV4   ? parse_ipv4(frame, bytes + at, n_bytes - at)
           : type == IPV6 ? parse_ipv6(frame, bytes + at, n_bytes - at)
                          : SPTI_FRAME_OTHER;
}
