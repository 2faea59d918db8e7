/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns what is remembered of descriptors, so that items of later heaps are found by name. What it
 * remembers is bounded, whatever strangers describe, and so is the time to find it: the two trees
 * are balanced, by the C library, where a hash could be made to collide.
 */
#include "spead_tutorial/spt_recv.h"
#include "status.h"
#include "wire.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 65536, FIRST_ITEMS = 16 };

/* Each by itself, so that it stays where it is. */
typedef struct held {
    spt_group_item item;
    size_t place;      /* in the list */
    size_t bytes;      /* of memory */
    struct held *next; /* that has a value, too */
} held;

/* What it takes besides: allocations, places in the list, and a node in each tree. */
enum { HELD_BYTES = sizeof(held) + 160 };

struct spt_item_group {
    int bug_compat;
    size_t max_memory, memory;
    held **items; /* in the order in which they were described; NULL where one has gone */
    size_t n, room, n_gone;
    void *by_id, *by_name;    /* trees, for tsearch() */
    held *valued;             /* those that have a value */
    spt_received_item *found; /* of the last heap */
    size_t room_found;
    size_t left_out; /* descriptors of the last heap */
    bool unfinished; /* the last heap was not taken in as a whole */
};

spt_item_group *spt_item_group_create(int bug_compat, spt_error *err)
{
    spt_item_group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        (void)spti_fail(err, SPT_ERR_MEMORY, "no memory for a group of items");
        return NULL;
    }
    group->bug_compat = bug_compat;
    group->max_memory = SPT_GROUP_MEMORY;
    return group;
}

void spt_item_group_set_max_memory(spt_item_group *group, size_t bytes)
{
    group->max_memory = bytes;
}

static void destroy_held(held *it)
{
    if (it == NULL)
        return;
    free((char *)it->item.name);
    free((char *)it->item.description);
    free(it);
}

/* ---- Trees ----------------------------------------------------------------------------------- */

static int compare_ids(const void *one, const void *other)
{
    uint64_t a = ((const held *)one)->item.id, b = ((const held *)other)->item.id;
    return (a > b) - (a < b);
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(((const held *)one)->item.name, ((const held *)other)->item.name);
}

static held *find_id(const spt_item_group *group, uint64_t id)
{
    held key = {.item = {.id = id}};
    held *const *node = tfind(&key, &group->by_id, compare_ids);
    return node == NULL ? NULL : *node;
}

static held *find_name(const spt_item_group *group, const char *name)
{
    held key = {.item = {.name = name}};
    held *const *node = tfind(&key, &group->by_name, compare_names);
    return node == NULL ? NULL : *node;
}

static void forget_node(void *item)
{
    (void)item; /* which is freed by the list */
}

/* ---- The list -------------------------------------------------------------------------------- */

/* Close the gaps of those that have gone. */
static void close_gaps(spt_item_group *group)
{
    size_t kept = 0;
    for (size_t i = 0; i < group->n && group->n_gone > 0; i++) {
        held *it = group->items[i];
        if (it == NULL)
            continue;
        it->place = kept;
        group->items[kept++] = it;
    }
    if (group->n_gone > 0)
        group->n = kept;
    group->n_gone = 0;
}

/* Room for one more. As half of it is free after a change, that costs each item little. */
static bool have_room(spt_item_group *group)
{
    if (group->n < group->room)
        return true;
    close_gaps(group);
    if (group->n < group->room / 2)
        return true;
    size_t room = group->room == 0 ? FIRST_ITEMS : 2 * group->room;
    held **items = realloc(group->items, room * sizeof(held *));
    if (items == NULL)
        return false;
    group->items = items;
    group->room = room;
    return true;
}

static void drop(spt_item_group *group, held *it)
{
    if (it == NULL)
        return;
    tdelete(it, &group->by_id, compare_ids);
    tdelete(it, &group->by_name, compare_names);
    group->items[it->place] = NULL;
    group->n_gone++;
    group->memory -= it->bytes;
    destroy_held(it);
}

static bool add(spt_item_group *group, held *it)
{
    if (!have_room(group) || tsearch(it, &group->by_id, compare_ids) == NULL)
        return false;
    if (tsearch(it, &group->by_name, compare_names) == NULL) {
        tdelete(it, &group->by_id, compare_ids);
        return false;
    }
    it->place = group->n;
    it->item.is_new = true;
    group->items[group->n++] = it;
    group->memory += it->bytes;
    return true;
}

void spt_item_group_destroy(spt_item_group *group)
{
    if (group == NULL)
        return;
    tdestroy(group->by_id, forget_node);
    tdestroy(group->by_name, forget_node);
    for (size_t i = 0; i < group->n; i++)
        destroy_held(group->items[i]);
    free(group->items);
    free(group->found);
    free(group);
}

/* ---- NumPy headers: dictionaries of Python, of which three words are looked for -------------- */

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
static held *new_held(const spt_received_descriptor *d, int bug_compat)
{
    held *it = calloc(1, sizeof(*it));
    if (it == NULL)
        return NULL;
    it->bytes = HELD_BYTES + d->name.length + d->description.length;
    it->item.id = d->id;
    it->item.name = copy_text(d->name);
    it->item.description = copy_text(d->description);
    bool good = it->item.name != NULL && it->item.description != NULL;
    if (good && d->numpy_header.length > 0)
        good = read_header(&it->item, d->numpy_header, bug_compat);
    else if (good)
        read_format(&it->item, d);
    if (good)
        return it;
    destroy_held(it);
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

/* Take an item in, unless there is the same; false where there is no memory. One that there is no
 * room for has still put an end to what had its id or name. */
static bool take_in(spt_item_group *group, held *it)
{
    held *old = find_id(group, it->item.id);
    if (old != NULL && same(&old->item, &it->item)) {
        destroy_held(it);
        return true;
    }
    drop(group, old);
    drop(group, find_name(group, it->item.name));
    bool fits = group->memory < group->max_memory && it->bytes <= group->max_memory - group->memory;
    if (fits && add(group, it))
        return true;
    group->left_out += !fits;
    destroy_held(it);
    return !fits;
}

/* Take an item in that is a descriptor; false where there is no memory for that. */
static bool take_descriptor(spt_item_group *group, const spt_received_heap *heap,
                            const spt_received_item *found)
{
    spt_received_descriptor d;
    if (found->is_immediate || found->id != SPT_ID_DESCRIPTOR || heap->payload == NULL)
        return true;
    if (!spt_received_descriptor_parse(&d, heap->payload + found->offset, (size_t)found->length,
                                       group->bug_compat) ||
        is_too_long(&d)) {
        group->left_out++;
        return true;
    }
    held *it = new_held(&d, group->bug_compat);
    return it != NULL && take_in(group, it);
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
    for (held *it = group->valued; it != NULL; it = it->next) {
        it->item.has_value = it->item.is_immediate = false;
        it->item.value = (spt_bytes){NULL, 0}; /* it may be of a heap that is gone */
    }
    group->valued = NULL;
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
        held *it = find_id(group, found->id);
        bool had_value = it != NULL && it->item.has_value;
        bool taken = it != NULL && take_value(&it->item, heap, found);
        if (taken && !had_value) {
            it->next = group->valued;
            group->valued = it;
        }
        left_out += !taken;
        good = good && (taken || it == NULL);
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
    for (size_t i = 0; whole && i < *n; i++)
        if (!take_descriptor(group, heap, &group->found[i]))
            return false;
    return true;
}

spt_status spt_item_group_update(spt_item_group *group, const spt_received_heap *heap,
                                 size_t *undescribed, spt_error *err)
{
    *undescribed = group->left_out = 0;
    forget_values(group);
    /* Those that are new are the last. */
    for (size_t i = group->n; i-- > 0 && group->items[i]->item.is_new && !group->unfinished;)
        group->items[i]->item.is_new = false;
    size_t n;
    group->unfinished = !take_descriptors(group, heap, &n);
    close_gaps(group);
    if (group->unfinished)
        return spti_fail(err, SPT_ERR_MEMORY,
                         "no memory for what a heap describes; update with it again");
    *undescribed = take_values(group, heap, n);
    return SPT_OK;
}

size_t spt_item_group_left_out(const spt_item_group *group)
{
    return group->left_out;
}

size_t spt_item_group_size(const spt_item_group *group)
{
    return group->n;
}

const spt_group_item *spt_item_group_at(const spt_item_group *group, size_t i)
{
    return &group->items[i]->item;
}

const spt_group_item *spt_item_group_find(const spt_item_group *group, const char *name)
{
    const held *it = find_name(group, name);
    return it == NULL ? NULL : &it->item;
}
