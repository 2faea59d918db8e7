/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns flavours, ids and the encoding of descriptors. Knows nothing of heaps. */
#include "item.h"

#include "status.h"
#include "wire.h"

#include <inttypes.h>
#include <stdlib.h>

spt_status spt_flavour_init(spt_flavour *flavour, int heap_address_bits, int bug_compat,
                            spt_error *err)
{
    if (heap_address_bits < 8 || heap_address_bits > 56 || heap_address_bits % 8 != 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "heap_address_bits is %d: must be a multiple of 8 from 8 to 56",
                         heap_address_bits);
    if (bug_compat < 0 || bug_compat > 7)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "bug_compat is %d: must be a sum of the SPT_COMPAT_ bits, 0 to 7",
                         bug_compat);
    flavour->heap_address_bits = (uint8_t)heap_address_bits;
    flavour->bug_compat = (uint8_t)bug_compat;
    return SPT_OK;
}

spt_status spti_check_id(const spt_flavour *flavour, uint64_t id, spt_error *err)
{
    unsigned bits = 63U - flavour->heap_address_bits;
    if (id >> bits != 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "item id 0x%" PRIx64 " is out of range: with %d address bits, ids have %u "
                         "bits (0x%" PRIx64 " at most)",
                         id, flavour->heap_address_bits, bits, (UINT64_C(1) << bits) - 1);
    return SPT_OK;
}

spt_status spti_check_own_id(const spt_flavour *flavour, uint64_t id, spt_error *err)
{
    if (id <= SPT_ID_STREAM_CTRL)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "item id 0x%" PRIx64
                         " is reserved: 0x0 to 0x6 are the protocol's own, and "
                         "receivers take them for that; choose 0x7 or more, by convention 0x1000",
                         id);
    return spti_check_id(flavour, id, err);
}

/* Bytes of one field of the format and of one dimension of the shape; each starts with a byte of
 * its own (the type; whether the size varies), the rest is a number. */
static size_t format_width(const spt_flavour *flavour)
{
    return flavour->bug_compat & SPT_COMPAT_DESCRIPTOR_WIDTHS
               ? 4U
               : 9U - flavour->heap_address_bits / 8U;
}

static size_t shape_width(const spt_flavour *flavour)
{
    return flavour->bug_compat & SPT_COMPAT_DESCRIPTOR_WIDTHS
               ? 8U
               : 1U + flavour->heap_address_bits / 8U;
}

static bool fits(uint64_t value, size_t bytes)
{
    return bytes >= 8 || value >> (8 * bytes) == 0;
}

static spt_status check_descriptor(const spt_flavour *flavour, const spt_descriptor *d,
                                   spt_error *err)
{
    SPTI_TRY(spti_check_own_id(flavour, d->id, err));
    if (d->id > spti_address_mask(flavour->heap_address_bits))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "descriptor of item id 0x%" PRIx64 ": the id does not fit in the %d bits "
                         "of an immediate; choose a flavour with more address bits",
                         d->id, flavour->heap_address_bits);
    for (size_t i = 0; i < d->n_format; i++)
        if (!fits(d->format[i].bits, format_width(flavour) - 1))
            return spti_fail(err, SPT_ERR_ARGUMENT,
                             "descriptor of '%s': a field of %" PRIu32 " bits does not fit the "
                             "flavour's format field of %zu bytes",
                             d->name, d->format[i].bits, format_width(flavour) - 1);
    for (size_t i = 0; i < d->n_shape; i++)
        if (d->shape[i] < -1 ||
            (d->shape[i] >= 0 && !fits((uint64_t)d->shape[i], shape_width(flavour) - 1)))
            return spti_fail(err, SPT_ERR_ARGUMENT,
                             "descriptor of '%s': dimension %" PRId64 " does not fit the flavour's "
                             "shape field of %zu bytes",
                             d->name, d->shape[i], shape_width(flavour) - 1);
    return SPT_OK;
}

static uint8_t *put_string(uint8_t *to, const char *text, size_t length)
{
    if (length > 0)
        memcpy(to, text, length);
    return to + length;
}

spt_status spti_descriptor_encode(const spt_flavour *flavour, const spt_descriptor *d, uint8_t **to,
                                  size_t *length, spt_error *err)
{
    SPTI_TRY(check_descriptor(flavour, d, err));
    unsigned bits = flavour->heap_address_bits;
    bool numpy = d->numpy_header != NULL && d->numpy_header[0] != '\0';
    size_t name = strlen(d->name);
    size_t description = strlen(d->description);
    size_t format = format_width(flavour) * d->n_format;
    size_t shape = shape_width(flavour) * d->n_shape;
    size_t dtype = numpy ? strlen(d->numpy_header) : 0;
    size_t payload = name + description + format + shape + dtype;
    if (payload > spti_address_mask(bits))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "descriptor of '%.40s' has %zu bytes, more than %u address bits reach; "
                         "choose a flavour with more address bits",
                         d->name, payload, bits);

    size_t n_pointers = numpy ? 6 : 5;
    size_t size = SPTI_PREFIX + SPTI_POINTER * n_pointers + payload;
    uint8_t *packet = malloc(size);
    if (packet == NULL)
        return spti_fail(err, SPT_ERR_MEMORY, "no memory for a descriptor of %zu bytes", size);

    size_t at = 0;
    uint8_t *p = spti_put_prefix(packet, bits, n_pointers, 1, payload, 0, payload);
    p = spti_put_immediate(p, bits, SPT_ID_DESCRIPTOR_ID, d->id);
    p = spti_put_address(p, bits, SPT_ID_DESCRIPTOR_NAME, at);
    p = spti_put_address(p, bits, SPT_ID_DESCRIPTOR_DESCRIPTION, at += name);
    p = spti_put_address(p, bits, SPT_ID_DESCRIPTOR_FORMAT, at += description);
    p = spti_put_address(p, bits, SPT_ID_DESCRIPTOR_SHAPE, at += format);
    if (numpy)
        p = spti_put_address(p, bits, SPT_ID_DESCRIPTOR_DTYPE, at + shape);

    p = put_string(p, d->name, name);
    p = put_string(p, d->description, description);
    for (size_t i = 0; i < d->n_format; i++) {
        *p++ = (uint8_t)d->format[i].code;
        p = spti_put(p, d->format[i].bits, format_width(flavour) - 1);
    }
    unsigned variable = flavour->bug_compat & SPT_COMPAT_SHAPE_BIT_1 ? 2 : 1;
    for (size_t i = 0; i < d->n_shape; i++) {
        bool varies = d->shape[i] < 0;
        *p++ = (uint8_t)(varies ? variable : 0);
        p = spti_put(p, varies ? 0 : (uint64_t)d->shape[i], shape_width(flavour) - 1);
    }
    put_string(p, d->numpy_header, dtype);
    *to = packet;
    *length = size;
    return SPT_OK;
}
