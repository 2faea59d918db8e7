/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what a variable is on the wire. Knows heaps only from outside. */
#include "heap.h"
#include "status.h"

#include <endian.h>
#include <stdio.h>

/* How NumPy writes a type without its byte order, and bytes of an element. */
static const struct {
    char code;
    uint8_t size;
} types[] = {
    [SPT_UINT_IMMEDIATE] = {'u', 8}, [SPT_INT_IMMEDIATE] = {'i', 8}, [SPT_INT8] = {'i', 1},
    [SPT_INT16] = {'i', 2},          [SPT_INT32] = {'i', 4},         [SPT_INT64] = {'i', 8},
    [SPT_UINT8] = {'u', 1},          [SPT_UINT16] = {'u', 2},        [SPT_UINT32] = {'u', 4},
    [SPT_UINT64] = {'u', 8},         [SPT_FLOAT32] = {'f', 4},       [SPT_FLOAT64] = {'f', 8},
    [SPT_COMPLEX64] = {'c', 8},      [SPT_COMPLEX128] = {'c', 16},
};

enum {
    N_TYPES = sizeof(types) / sizeof(types[0]),
    DIGITS = 20, /* of a size */
    HEADER = 64 + SPT_MAX_DIMENSIONS * (DIGITS + 2),
};

static bool is_immediate(const spt_variable *v)
{
    return v->type == SPT_UINT_IMMEDIATE || v->type == SPT_INT_IMMEDIATE;
}

/* Bytes of the value; false where no heap could hold it. */
static bool value_size(const spt_variable *v, size_t *size)
{
    *size = types[v->type].size;
    for (size_t i = 0; i < v->n_shape; i++)
        if (v->shape[i] > INT64_MAX || __builtin_mul_overflow(*size, v->shape[i], size))
            return false;
    return true;
}

static spt_status check_variable(const spt_variable *v, spt_error *err)
{
    if ((unsigned)v->type >= N_TYPES || types[v->type].size == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT, "variable '%.40s': there is no type %d", v->name,
                         (int)v->type);
    if (v->n_shape > (is_immediate(v) ? 0 : SPT_MAX_DIMENSIONS))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "variable '%.40s' has %zu dimensions: %d at most, and an immediate none",
                         v->name, v->n_shape, SPT_MAX_DIMENSIONS);
    size_t size;
    if (!value_size(v, &size))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "variable '%.40s' has more bytes than any heap holds", v->name);
    return SPT_OK;
}

/* The header that NumPy's files have for such an array; room for HEADER characters. */
static void numpy_header(const spt_variable *v, const spt_flavour *flavour, char *to)
{
    bool little = BYTE_ORDER == LITTLE_ENDIAN;
    if (flavour->bug_compat & SPT_COMPAT_SWAP_ENDIAN)
        little = !little;
    char order = types[v->type].size == 1 ? '|' : little ? '<' : '>';
    int at = snprintf(to, HEADER, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (", order,
                      types[v->type].code, types[v->type].size);
    for (size_t i = 0; i < v->n_shape; i++)
        at += snprintf(to + at, (size_t)(HEADER - at), "%s%zu", i > 0 ? ", " : "", v->shape[i]);
    snprintf(to + at, (size_t)(HEADER - at), "%s)}", v->n_shape == 1 ? "," : "");
}

static spt_status add_descriptor(spt_heap *heap, const spt_variable *v, spt_error *err)
{
    char header[HEADER];
    int64_t shape[SPT_MAX_DIMENSIONS];
    spt_field number = {types[v->type].code, heap->flavour.heap_address_bits};
    spt_descriptor descriptor = {
        .id = v->id, .name = v->name, .description = v->description, .shape = shape};
    if (is_immediate(v)) {
        descriptor.format = &number;
        descriptor.n_format = 1;
    } else {
        numpy_header(v, &heap->flavour, header);
        descriptor.numpy_header = header;
        descriptor.n_shape = v->n_shape;
    }
    for (size_t i = 0; i < v->n_shape; i++)
        shape[i] = (int64_t)v->shape[i];
    return spt_heap_add_descriptor(heap, &descriptor, err);
}

static spt_status add_value(spt_heap *heap, const spt_variable *v, spt_error *err)
{
    spt_item item = {.id = v->id, .value = v->value, .allow_immediate = true};
    if (is_immediate(v))
        return spti_heap_add_number(heap, v->id, v->value, err);
    (void)value_size(v, &item.length);
    return spt_heap_add_item(heap, &item, err);
}

static spt_status add(spt_heap *heap, const spt_variable *v, unsigned parts, spt_error *err)
{
    SPTI_TRY(check_variable(v, err));
    if (parts & SPT_DESCRIPTORS)
        SPTI_TRY(add_descriptor(heap, v, err));
    if (parts & SPT_VALUES)
        SPTI_TRY(add_value(heap, v, err));
    return SPT_OK;
}

spt_status spt_heap_add(spt_heap *heap, const spt_variable *variables, size_t n_variables,
                        unsigned parts, spt_error *err)
{
    size_t n_items = heap->n_items, payload = heap->payload_length, n_owned = heap->n_owned;
    SPTI_TRY(spti_heap_check_not_in_flight(heap, err));
    spt_status status = SPT_OK;
    for (size_t i = 0; i < n_variables && status == SPT_OK; i++)
        status = add(heap, &variables[i], parts, err);
    if (status != SPT_OK)
        spti_heap_cut(heap, n_items, payload, n_owned);
    return status;
}
