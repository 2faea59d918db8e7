/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what is remembered of descriptors, so that items of later heaps are found by name. What it
 * remembers is bounded, whatever strangers describe.
 */
#include "spead_tutorial/spt_recv.h"
#include "status.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ITEMS = 512, MOST_TEXT = 65536, FIRST_ITEMS = 16 };

struct spt_item_group {
    int bug_compat;
    spt_group_item **items; /* each by itself, so that it stays where it is */
    size_t n, room;
    spt_received_item *found; /* of the last heap */
    size_t room_found;
    bool unfinished; /* the last heap was not taken in as a whole */
};

spt_item_group *spt_item_group_create(int bug_compat, spt_error *err)
{
    spt_item_group *group = calloc(1, sizeof(*group));
    if (group == NULL)
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a group of items");
    else
        group->bug_compat = bug_compat;
    return group;
}

static void destroy_item(spt_group_item *item)
{
    free((char *)item->name);
    free((char *)item->description);
    free(item);
}

void spt_item_group_destroy(spt_item_group *group)
{
    if (group == NULL)
        return;
    for (size_t i = 0; i < group->n; i++)
        destroy_item(group->items[i]);
    free(group->items);
    free(group->found);
    free(group);
}

static char *copy_text(spt_bytes bytes)
{
    char *text = malloc(bytes.length + 1);
    if (text == NULL)
        return NULL;
    if (bytes.length > 0)
        memcpy(text, bytes.data, bytes.length);
    text[bytes.length] = '\0';
    return text;
}

/* ---- NumPy headers: dictionaries of Python, of which three words are looked for -------------- */

/* What follows a key, such as 'shape': NULL where there is none. */
static const char *after_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    return at == NULL ? NULL : at + strlen(key) + strspn(at + strlen(key), ": ");
}

/* Such as '<i2': byte order, kind, bytes. */
static void read_dtype(spt_group_item *item, const char *text)
{
    if (text == NULL || strlen(text) < 4 || text[0] != '\'' || strchr("<>|=", text[1]) == NULL)
        return;
    char *end;
    unsigned long bytes = strtoul(text + 3, &end, 10);
    const char *kind = strchr("uifbS", text[2]);
    if (kind == NULL || *end != '\'' || bytes == 0 || bytes > 16 || (*kind == 'S' && bytes > 1))
        return;
    item->code = *kind == 'S' ? 'c' : *kind;
    item->bits = (uint32_t)(8 * bytes);
    item->little_endian = text[1] == '<' || text[1] == '=';
}

/* Such as (3, 4): sizes of dimensions. */
static void read_shape(spt_group_item *item, const char *text)
{
    if (text == NULL || *text != '(')
        return;
    for (text++; *text != '\0' && *text != ')'; text += strspn(text, ", ")) {
        char *end;
        long long size = strtoll(text, &end, 10);
        if (end == text)
            return;
        if (item->n_shape < SPT_GROUP_DIMENSIONS)
            item->shape[item->n_shape] = size;
        item->n_shape++;
        text = end;
    }
}

static bool read_header(spt_group_item *item, spt_bytes header, int bug_compat)
{
    char *text = copy_text(header);
    if (text == NULL)
        return false;
    read_dtype(item, after_key(text, "'descr'"));
    if (item->code != '\0' && (bug_compat & SPT_COMPAT_SWAP_ENDIAN) != 0)
        item->little_endian = !item->little_endian;
    read_shape(item, after_key(text, "'shape'"));
    item->fortran_order = strstr(text, "'fortran_order': True") != NULL;
    free(text);
    return true;
}

/* ---- What a descriptor says ------------------------------------------------------------------ */

static void read_format(spt_group_item *item, const spt_received_descriptor *d)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < d->n_format && bits <= UINT32_MAX; i++)
        bits += spt_received_descriptor_field(d, i).bits;
    item->bits = bits > UINT32_MAX ? UINT32_MAX : (uint32_t)bits;
    char code = d->n_format == 1 ? spt_received_descriptor_field(d, 0).code : '\0';
    if (code != '\0' && strchr("uifbc", code) != NULL)
        item->code = code;
    item->n_shape = d->n_shape;
    for (size_t i = 0; i < d->n_shape && i < SPT_GROUP_DIMENSIONS; i++)
        item->shape[i] = spt_received_descriptor_dimension(d, i);
}

/* Whether a descriptor has so much text that it is not to be believed. */
static bool is_too_long(const spt_received_descriptor *d)
{
    return d->name.length > MOST_TEXT || d->description.length > MOST_TEXT ||
           d->numpy_header.length > MOST_TEXT;
}

/* What a descriptor says; NULL where there is no memory. */
static spt_group_item *new_item(const spt_received_descriptor *d, int bug_compat)
{
    spt_group_item *item = calloc(1, sizeof(*item));
    if (item == NULL)
        return NULL;
    item->id = d->id;
    item->name = copy_text(d->name);
    item->description = copy_text(d->description);
    bool good = item->name != NULL && item->description != NULL;
    if (good && d->numpy_header.length > 0)
        good = read_header(item, d->numpy_header, bug_compat);
    else if (good)
        read_format(item, d);
    if (good)
        return item;
    destroy_item(item);
    return NULL;
}

static bool same(const spt_group_item *a, const spt_group_item *b)
{
    size_t n = a->n_shape < SPT_GROUP_DIMENSIONS ? a->n_shape : SPT_GROUP_DIMENSIONS;
    return a->id == b->id && strcmp(a->name, b->name) == 0 &&
           strcmp(a->description, b->description) == 0 && a->code == b->code &&
           a->bits == b->bits && a->little_endian == b->little_endian &&
           a->fortran_order == b->fortran_order && a->n_shape == b->n_shape &&
           memcmp(a->shape, b->shape, n * sizeof(a->shape[0])) == 0;
}

/* ---- The group ------------------------------------------------------------------------------- */

static bool have_room(spt_item_group *group)
{
    if (group->n < group->room || group->n == MOST_ITEMS)
        return true;
    size_t room = group->room == 0 ? FIRST_ITEMS : 2 * group->room;
    spt_group_item **items = realloc(group->items, room * sizeof(*items));
    if (items == NULL)
        return false;
    group->items = items;
    group->room = room;
    return true;
}

/* Remove those that have the id or the name of an item. */
static void make_way(spt_item_group *group, const spt_group_item *item)
{
    size_t kept = 0;
    for (size_t i = 0; i < group->n; i++) {
        spt_group_item *old = group->items[i];
        if (old->id == item->id || strcmp(old->name, item->name) == 0)
            destroy_item(old);
        else
            group->items[kept++] = old;
    }
    group->n = kept;
}

/* Take an item in, unless there is the same, or no room for one more. */
static void take_in(spt_item_group *group, spt_group_item *item)
{
    bool known = false;
    for (size_t i = 0; i < group->n && !known; i++)
        known = same(group->items[i], item);
    if (!known)
        make_way(group, item);
    if (known || group->n == MOST_ITEMS) {
        destroy_item(item);
        return;
    }
    item->is_new = true;
    group->items[group->n++] = item;
}

static spt_group_item *by_id(const spt_item_group *group, uint64_t id)
{
    for (size_t i = 0; i < group->n; i++)
        if (group->items[i]->id == id)
            return group->items[i];
    return NULL;
}

/* Count an item that is a descriptor, and take it in; false where there is no memory for that. */
static bool take_descriptor(spt_item_group *group, const spt_received_heap *heap,
                            const spt_received_item *found, size_t *descriptors)
{
    spt_received_descriptor d;
    if (found->is_immediate || found->id != SPT_ID_DESCRIPTOR || heap->payload == NULL ||
        !spt_received_descriptor_parse(&d, heap->payload + found->offset, (size_t)found->length,
                                       group->bug_compat))
        return true;
    ++*descriptors;
    if (is_too_long(&d))
        return true;
    spt_group_item *item = have_room(group) ? new_item(&d, group->bug_compat) : NULL;
    if (item != NULL)
        take_in(group, item);
    return item != NULL;
}

/* How many of so many bytes a value takes; more than there can be where its shape does. */
static size_t bytes_of_shape(const spt_group_item *item, size_t length)
{
    if (item->bits == 0 || item->n_shape > SPT_GROUP_DIMENSIONS)
        return length;
    size_t bits = item->bits;
    bool varies = false;
    for (size_t i = 0; i < item->n_shape; i++) {
        if (item->shape[i] < 0)
            varies = true;
        else if (__builtin_mul_overflow(bits, (size_t)item->shape[i], &bits))
            return SIZE_MAX;
    }
    if (varies && bits > 0)
        bits *= 8 * length / bits; /* as many as fit */
    return bits / 8 + (bits % 8 > 0);
}

/* The value of an item; false where it is shorter than its shape. */
static bool take_value(spt_group_item *item, const spt_received_heap *heap,
                       const spt_received_item *found)
{
    size_t length = found->is_immediate ? heap->heap_address_bits / 8U : (size_t)found->length;
    size_t taken = bytes_of_shape(item, length);
    if (taken > length || (!found->is_immediate && heap->payload == NULL && taken > 0))
        return false;
    item->has_value = true;
    item->is_immediate = found->is_immediate;
    item->immediate = found->immediate;
    if (found->is_immediate) { /* its value is at the end, whatever is before */
        spti_put(item->inline_, found->immediate, sizeof(item->inline_));
        item->value = (spt_bytes){item->inline_ + sizeof(item->inline_) - taken, taken};
    } else {
        item->value = (spt_bytes){taken > 0 ? heap->payload + found->offset : NULL, taken};
    }
    return true;
}

static void forget_values(spt_item_group *group)
{
    for (size_t i = 0; i < group->n; i++) {
        group->items[i]->has_value = group->items[i]->is_immediate = false;
        group->items[i]->value = (spt_bytes){NULL, 0}; /* it may be of a heap that is gone */
    }
}

/* Take values: all of those that something describes, or none. Returns how many are left out. */
static size_t take_values(spt_item_group *group, const spt_received_heap *heap, size_t n)
{
    bool whole = heap->state != SPT_HEAP_INCOMPLETE, good = true;
    size_t left_out = 0;
    for (size_t i = 0; i < n; i++) {
        const spt_received_item *found = &group->found[i];
        if (found->id <= SPT_ID_STREAM_CTRL || (!whole && !found->is_immediate))
            continue;
        spt_group_item *item = by_id(group, found->id);
        bool taken = item != NULL && take_value(item, heap, found);
        left_out += !taken;
        good = good && (taken || item == NULL);
    }
    if (!good)
        forget_values(group);
    return left_out;
}

/* Find the items of a heap, and take in what it describes; false where there is no memory. */
static bool take_descriptors(spt_item_group *group, const spt_received_heap *heap, size_t *n)
{
    if (heap->n_pointers > group->room_found) {
        spt_received_item *found = realloc(group->found, heap->n_pointers * sizeof(*found));
        if (found == NULL)
            return false;
        group->found = found;
        group->room_found = heap->n_pointers;
    }
    *n = spt_received_heap_items(heap, group->found);
    bool whole = heap->state != SPT_HEAP_INCOMPLETE;
    size_t descriptors = 0;
    for (size_t i = 0; whole && i < *n && descriptors < MOST_ITEMS; i++)
        if (!take_descriptor(group, heap, &group->found[i], &descriptors))
            return false;
    return true;
}

spt_status spt_item_group_update(spt_item_group *group, const spt_received_heap *heap,
                                 size_t *undescribed, spt_error *err)
{
    *undescribed = 0;
    forget_values(group);
    for (size_t i = 0; i < group->n && !group->unfinished; i++)
        group->items[i]->is_new = false;
    size_t n;
    group->unfinished = !take_descriptors(group, heap, &n);
    if (group->unfinished)
        return spti_fail(err, SPT_ERR_MEMORY,
                         "no memory for what a heap describes; update with it again");
    *undescribed = take_values(group, heap, n);
    return SPT_OK;
}

size_t spt_item_group_size(const spt_item_group *group)
{
    return group->n;
}

const spt_group_item *spt_item_group_at(const spt_item_group *group, size_t i)
{
    return group->items[i];
}

const spt_group_item *spt_item_group_find(const spt_item_group *group, const char *name)
{
    for (size_t i = 0; i < group->n; i++)
        if (strcmp(group->items[i]->name, name) == 0)
            return group->items[i];
    return NULL;
}
