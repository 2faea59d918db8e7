/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the putting together of heaps from packets. Knows no sockets, no threads and no clock. Where
 * the payload of a packet belongs it says, and its caller copies it there; of packets that were
 * expected it is copied at once, as they are many and their places follow.
 */
#include "depacketizer.h"

#include "counts.h"
#include "expected.h"
#include "heap_memory.h"
#include "ranges.h"
#include "sequence.h"
#include "status.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST_POINTERS = 64,
    FIRST_PAYLOAD = 4096, /* of heaps that do not say how long they are */
    FEWEST_RECENT = 64,   /* finished heaps that are remembered */
};

typedef struct live {
    spt_received_heap heap; /* what is handed out: first, so that one can be had from the other */
    spti_ranges ranges;
    spt_received_pointer *pointers;
    size_t room_pointers;
    size_t last_pointers;     /* how many of them the last packet brought */
    uint64_t highest_address; /* of an item */
    uint64_t highest_end;     /* of a packet that came after a loss, or found no memory */
    size_t asked;             /* bytes of payload that were asked for */
    uint64_t begun;           /* the how-manieth it is */
    struct live *next;        /* in the list that it is in */
} live;

/* Oldest first. */
typedef struct list {
    live *first, *last;
    size_t n;
} list;

struct spt_depacketizer {
    spt_depacketizer_config config;
    spti_counts counts;
    list *substreams; /* live heaps of each */
    list finished;    /* not handed out yet */
    live *unused;
    live *last;      /* where the last packet went: the next one often goes there, too */
    live *completed; /* by the last packet, and not handed out yet; or NULL */
    spti_expected expected;
    spti_sequence sequence;
    spt_account account;
};

const char *spt_fate_text(spt_fate fate)
{
    switch (fate) {
#define FATE_CASE(name, value, text)                                                               \
    case name:                                                                                     \
        return text;
        SPT_FATE_LIST(FATE_CASE)
#undef FATE_CASE
    case SPT_N_FATES:
    case SPT_NOT_YET:
        break;
    }
    return "unknown fate";
}

/* ---- Making one ------------------------------------------------------------------------------ */

static spt_status check_config(const spt_depacketizer_config *config, spt_error *err)
{
    if (config->max_heaps == 0 || config->substreams == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "max_heaps is %zu and substreams is %zu: both must be at least 1",
                         config->max_heaps, config->substreams);
    if (config->max_heaps > SIZE_MAX / 256 / config->substreams)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "max_heaps is %zu and substreams is %zu: so many heaps fit no memory",
                         config->max_heaps, config->substreams);
    if (config->placing.place != NULL && config->allow_unsized_heaps)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "heaps that are placed have to say how long they are: set "
                         "allow_unsized_heaps to false");
    return spti_heap_memory_check(&config->memory, err);
}

spt_depacketizer *spt_depacketizer_create(const spt_depacketizer_config *config, spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    size_t most = config->max_heaps * config->substreams;
    spt_depacketizer *d = calloc(1, sizeof(*d));
    if (d == NULL)
        goto fail;
    d->config = *config;
    d->config.memory = spti_heap_memory_or_malloc(config->memory);
    d->substreams = calloc(config->substreams, sizeof(*d->substreams));
    size_t recent = 2 * most < FEWEST_RECENT ? FEWEST_RECENT : 2 * most;
    if (!spti_counts_init(&d->counts, most, recent) || d->substreams == NULL)
        goto fail;
    return d;
fail:
    spt_depacketizer_destroy(d);
    spti_fail(err, SPT_ERR_MEMORY, "no memory for a depacketizer of %zu heaps at a time", most);
    return NULL;
}

/* ---- Lists, and the heaps in them ------------------------------------------------------------ */

static void append(list *l, live *it)
{
    it->next = NULL;
    if (l->last == NULL)
        l->first = it;
    else
        l->last->next = it;
    l->last = it;
    l->n++;
}

static void take_out(list *l, const live *it)
{
    live *before = NULL, *at = l->first;
    for (; at != it; at = at->next)
        before = at;
    *(before == NULL ? &l->first : &before->next) = it->next;
    if (l->last == it)
        l->last = before;
    l->n--;
}

static bool have_pointers(live *it, size_t n)
{
    if (n <= it->room_pointers)
        return true;
    size_t room = it->room_pointers == 0 ? FIRST_POINTERS : it->room_pointers;
    while (room < n)
        room *= 2;
    spt_received_pointer *pointers = realloc(it->pointers, room * sizeof(*pointers));
    if (pointers == NULL)
        return false;
    it->pointers = pointers;
    it->room_pointers = room;
    return true;
}

/*
 * A heap of which nothing has arrived, with the memory that another one left. It has room for what
 * its first packet says of it: a heap that begins takes that packet, and keeps the length by which
 * it gets its place.
 */
static live *new_heap(spt_depacketizer *d, const spt_received_packet *packet)
{
    if (d->unused == NULL)
        d->unused = calloc(1, sizeof(*d->unused));
    live *it = d->unused;
    if (it == NULL)
        return NULL;
    spti_ranges_clear(&it->ranges);
    if (!have_pointers(it, packet->n_items) || !spti_ranges_reserve(&it->ranges))
        return NULL;
    d->unused = it->next;
    it->heap = (spt_received_heap){
        .cnt = packet->cnt,
        .heap_address_bits = packet->heap_address_bits,
        .has_length = packet->has_heap_length,
        .length = packet->heap_length,
    };
    it->last_pointers = 0;
    it->highest_address = 0;
    it->highest_end = 0;
    it->asked = 0;
    return it;
}

static void put_payload(spt_depacketizer *d, live *it)
{
    if (it->heap.payload != NULL && d->config.placing.place == NULL)
        d->config.memory.put(d->config.memory.user, it->heap.payload, it->asked);
    it->heap.payload = NULL;
}

void spt_depacketizer_recycle(spt_depacketizer *d, spt_received_heap *heap)
{
    live *it = (live *)heap;
    put_payload(d, it);
    it->next = d->unused;
    d->unused = it;
}

static void destroy_heaps(spt_depacketizer *d, live *first)
{
    for (live *it = first, *next; it != NULL; it = next) {
        next = it->next;
        put_payload(d, it);
        spti_ranges_fini(&it->ranges);
        free(it->pointers);
        free(it);
    }
}

void spt_depacketizer_destroy(spt_depacketizer *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; d->substreams != NULL && i < d->config.substreams; i++)
        destroy_heaps(d, d->substreams[i].first);
    destroy_heaps(d, d->finished.first);
    destroy_heaps(d, d->unused);
    free(d->substreams);
    spti_counts_fini(&d->counts);
    free(d);
}

/* ---- The end of a heap ----------------------------------------------------------------------- */

static spt_heap_state state_of(const live *it)
{
    const spt_received_heap *heap = &it->heap;
    if (heap->has_length)
        return heap->received_length == heap->length ? SPT_HEAP_COMPLETE : SPT_HEAP_INCOMPLETE;
    bool whole = heap->received_length == heap->length && it->highest_address <= heap->length &&
                 it->highest_end <= heap->length;
    return whole ? SPT_HEAP_CONTIGUOUS : SPT_HEAP_INCOMPLETE;
}

/* Move a live heap to those that are finished; count it where one counts those that lack a part. */
static void finish(spt_depacketizer *d, live *it, bool evicted, uint64_t *lacking)
{
    spt_received_heap *heap = &it->heap;
    take_out(&d->substreams[heap->cnt % d->config.substreams], it);
    spti_counts_end(&d->counts, heap->cnt, SPTI_FINISHED);
    heap->state = state_of(it);
    heap->evicted = evicted;
    heap->ranges = it->ranges.at;
    heap->n_ranges = it->ranges.n;
    heap->pointers = it->pointers;
    if (heap->state == SPT_HEAP_INCOMPLETE) {
        ++*lacking;
        d->account.incomplete_bytes += heap->received_length;
    } else {
        d->account.heaps_complete++;
    }
    d->account.single_packet_heaps += heap->state == SPT_HEAP_COMPLETE && heap->packets == 1;
    append(&d->finished, it);
    if (d->last == it)
        d->last = NULL;
    if (d->expected.heap == &it->heap)
        d->expected.heap = NULL;
}

/* The oldest of all live heaps; NULL where there is none. */
static live *oldest(const spt_depacketizer *d)
{
    live *found = NULL;
    for (size_t i = 0; i < d->config.substreams; i++) {
        live *first = d->substreams[i].first;
        if (first != NULL && (found == NULL || first->begun < found->begun))
            found = first;
    }
    return found;
}

void spt_depacketizer_give_up(spt_depacketizer *d, const void *user)
{
    for (size_t i = 0; i < d->config.substreams; i++)
        for (live *it = d->substreams[i].first, *next; it != NULL; it = next) {
            next = it->next;
            if (it->heap.user == user)
                finish(d, it, true, &d->account.heaps_evicted);
        }
}

void spt_depacketizer_flush(spt_depacketizer *d)
{
    for (live *it = oldest(d); it != NULL; it = oldest(d))
        finish(d, it, true, &d->account.heaps_flushed);
}

void spt_depacketizer_stop(spt_depacketizer *d)
{
    live *it = d->completed;
    if (it != NULL) {
        d->completed = NULL;
        take_out(&d->finished, it);
        d->account.heaps_complete--;
        d->account.heaps_dropped++;
        spt_depacketizer_recycle(d, &it->heap);
    }
    spt_depacketizer_flush(d);
}

spt_received_heap *spt_depacketizer_next(spt_depacketizer *d)
{
    live *it = d->finished.first;
    if (it == NULL)
        return NULL;
    take_out(&d->finished, it);
    if (d->completed == it)
        d->completed = NULL;
    return &it->heap;
}

/* ---- The beginning of a heap ----------------------------------------------------------------- */

/* Whether a packet's heap is too large, or it does not say how large. */
static spt_fate check_size(const spt_depacketizer *d, const spt_received_packet *packet)
{
    if (packet->n_items > d->config.max_pointers)
        return SPT_TOO_LARGE;
    if (!packet->has_heap_length && !d->config.allow_unsized_heaps)
        return SPT_UNSIZED;
    uint64_t end = packet->payload_offset + packet->payload_length;
    uint64_t size = packet->has_heap_length ? packet->heap_length : end;
    return size > d->config.max_heap_size || size > PTRDIFF_MAX ? SPT_TOO_LARGE : SPT_PLACED;
}

/* See to it that a heap has so many bytes for its payload. */
static bool have_room(spt_depacketizer *d, live *it, size_t size, const spt_received_packet *first)
{
    spt_received_heap *heap = &it->heap;
    if (size <= heap->room)
        return true;
    uint8_t *payload = d->config.memory.get(d->config.memory.user, size, first);
    if (payload == NULL)
        return false;
    for (size_t i = 0; i < it->ranges.n; i++) {
        spt_range range = it->ranges.at[i];
        memcpy(payload + range.begin, heap->payload + range.begin,
               (size_t)(range.end - range.begin));
    }
    put_payload(d, it);
    heap->payload = payload;
    heap->room = it->asked = size;
    return true;
}

/* Bytes that a heap needs once it has a packet: all, or more than now where nobody knows. */
static size_t room_for(const live *it, const spt_received_packet *packet, uint64_t max_heap_size)
{
    if (packet->has_heap_length)
        return (size_t)packet->heap_length;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (it->heap.has_length || end <= it->heap.room)
        return (size_t)(it->heap.has_length ? it->heap.length : it->heap.room);
    uint64_t size = it->heap.room == 0 ? FIRST_PAYLOAD : 2 * it->heap.room;
    size = size < end ? end : size;
    return (size_t)(size < max_heap_size ? size : max_heap_size);
}

/* What becomes of packets whose heap is refused. */
static spt_fate refused(const spt_depacketizer *d)
{
    return d->config.placing.place != NULL ? SPT_NO_PLACE : SPT_NO_MEMORY;
}

/* Where it is decided where heaps go: ask. A heap without payload goes nowhere. */
static spt_fate find_place(spt_depacketizer *d, live *it, const spt_received_packet *packet)
{
    const spt_heap_placing *placing = &d->config.placing;
    if (placing->place == NULL || packet->heap_length == 0)
        return SPT_PLACED;
    spt_status status = placing->place(placing->user, &it->heap, packet);
    it->heap.room = (size_t)packet->heap_length;
    return status == SPT_OK ? SPT_PLACED : status == SPT_PENDING ? SPT_NOT_YET : SPT_NO_PLACE;
}

/* Begin the heap of a packet. The oldest one has to go first where there are too many. */
static spt_fate begin(spt_depacketizer *d, const spt_received_packet *packet, live **begun)
{
    list *substream = &d->substreams[packet->cnt % d->config.substreams];
    live *it = new_heap(d, packet);
    if (it == NULL)
        return SPT_NO_MEMORY;
    spt_fate fate = find_place(d, it, packet);
    if (fate == SPT_PLACED) {
        if (substream->n == d->config.max_heaps)
            finish(d, substream->first, true, &d->account.heaps_evicted);
        if (!have_room(d, it, room_for(it, packet, d->config.max_heap_size), packet))
            fate = SPT_NO_MEMORY;
    }
    if (fate != SPT_PLACED) {
        spt_depacketizer_recycle(d, &it->heap);
        if (fate != SPT_NOT_YET)
            spti_counts_end(&d->counts, packet->cnt, SPTI_REFUSED);
        if (fate == SPT_NO_PLACE) /* nothing of it is missing */
            spti_sequence_note(&d->sequence, packet->cnt, packet->heap_address_bits);
        return fate;
    }
    it->begun = d->account.heaps_begun++;
    append(substream, it);
    spti_counts_begin(&d->counts, packet->cnt, it);
    spti_sequence_note(&d->sequence, packet->cnt, packet->heap_address_bits);
    *begun = it;
    return SPT_PLACED;
}

/* Find the heap of a packet, or begin it. */
static spt_fate find(spt_depacketizer *d, const spt_received_packet *packet, live **found)
{
    if (d->last != NULL && d->last->heap.cnt == packet->cnt) {
        *found = d->last;
        return SPT_PLACED;
    }
    d->account.searches++;
    /* Where counts soon start again, one that ended long ago says nothing. */
    uint64_t within = UINT64_C(1) << (packet->heap_address_bits - 2);
    const spti_seen *known = spti_counts_find(&d->counts, packet->cnt, within);
    if (known != NULL && known->known == SPTI_LIVE) {
        *found = known->heap;
        return SPT_PLACED;
    }
    bool in_order = !d->config.allow_out_of_order;
    bool anew = in_order && packet->payload_offset == 0; /* a heap may be sent twice */
    if (known != NULL && !anew)
        return known->known == SPTI_REFUSED ? refused(d) : SPT_LATE;
    if (in_order && !anew)
        return SPT_AFTER_LOSS;
    spt_fate fate = check_size(d, packet);
    return fate == SPT_PLACED ? begin(d, packet, found) : fate;
}

/* ---- A packet -------------------------------------------------------------------------------- */

/* Whether a packet of a heap that has begun says the same of it as those before. */
static spt_fate agree(const spt_depacketizer *d, const live *it, const spt_received_packet *packet)
{
    const spt_received_heap *heap = &it->heap;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (packet->heap_address_bits != heap->heap_address_bits)
        return SPT_INCONSISTENT;
    if (packet->has_heap_length && heap->has_length && packet->heap_length != heap->length)
        return SPT_INCONSISTENT;
    if (packet->has_heap_length &&
        (packet->heap_length < heap->length || packet->heap_length < it->highest_address))
        return SPT_INCONSISTENT;
    if (heap->has_length && (end > heap->length || packet->highest_address > heap->length))
        return SPT_INCONSISTENT;
    return check_size(d, packet);
}

/*
 * Write down the items of a packet, behind those that the heap has. There are no new ones where the
 * last packet with items had the same.
 */
static spt_fate add_pointers(live *it, const spt_received_packet *packet, size_t most,
                             size_t *n_new)
{
    *n_new = packet->n_items;
    if (packet->n_items == 0)
        return SPT_PLACED; /* there may be no memory for any yet */
    if (!have_pointers(it, it->heap.n_pointers + packet->n_items))
        return SPT_NO_MEMORY;
    spt_received_pointer *to = it->pointers + it->heap.n_pointers;
    bool same = packet->n_items == it->last_pointers;
    for (size_t i = 0; i < packet->n_pointers; i++) {
        uint64_t word = spti_get(packet->pointers + SPTI_POINTER * i, SPTI_POINTER);
        if (spti_is_own(word, packet->heap_address_bits))
            continue;
        same = same && (to - packet->n_items)->word == word;
        *to++ = (spt_received_pointer){word, packet->payload_offset};
    }
    if (same)
        *n_new = 0;
    return it->heap.n_pointers + *n_new <= most ? SPT_PLACED : SPT_TOO_LARGE;
}

/* Note which bytes a packet brings. */
static spt_fate add_range(const spt_depacketizer *d, live *it, const spt_received_packet *packet,
                          size_t new_pointers)
{
    uint64_t begin = packet->payload_offset, end = begin + packet->payload_length;
    if (!d->config.allow_out_of_order && begin > it->heap.received_length)
        return SPT_AFTER_LOSS;
    if (packet->payload_length == 0) /* it brings pointers, or nothing */
        return new_pointers > 0 || it->heap.packets == 0 ? SPT_PLACED : SPT_DUPLICATE;
    switch (spti_ranges_add(&it->ranges, begin, end, d->config.max_gaps)) {
    case SPTI_NEW:
        return SPT_PLACED;
    case SPTI_KNOWN:
        return SPT_DUPLICATE;
    case SPTI_OVERLAPS:
        return SPT_INCONSISTENT;
    case SPTI_NO_MEMORY:
        return SPT_NO_MEMORY;
    case SPTI_NO_ROOM:
        break;
    }
    return SPT_TOO_LARGE;
}

/* A packet is lost: a heap that nobody says the length of is known to go on up to its end. */
static void note_lost(live *it, const spt_received_packet *packet)
{
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (end > it->highest_end)
        it->highest_end = end;
}

/* The last packet's items were sent with this one, too. */
static void came_last(live *it, uint64_t packet_offset)
{
    spt_received_pointer *pointers = it->pointers + it->heap.n_pointers - it->last_pointers;
    for (size_t i = 0; i < it->last_pointers && pointers[i].packet_offset < packet_offset; i++)
        pointers[i].packet_offset = packet_offset;
}

static void add(live *it, const spt_received_packet *packet, size_t new_pointers)
{
    spt_received_heap *heap = &it->heap;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (packet->has_heap_length) {
        heap->has_length = true;
        heap->length = packet->heap_length;
    } else if (!heap->has_length && end > heap->length) {
        heap->length = end;
    }
    if (packet->highest_address > it->highest_address)
        it->highest_address = packet->highest_address;
    if (new_pointers > 0)
        it->last_pointers = new_pointers;
    heap->n_pointers += new_pointers;
    if (packet->n_items > 0)
        came_last(it, packet->payload_offset);
    heap->received_length += packet->payload_length;
    heap->packets++;
}

static spt_fate take(spt_depacketizer *d, const spt_received_packet *packet, uint8_t **to)
{
    live *it = NULL;
    spt_fate fate = find(d, packet, &it);
    if (fate != SPT_PLACED)
        return fate;
    d->last = it;
    size_t new_pointers = 0;
    fate = agree(d, it, packet);
    if (fate == SPT_PLACED &&
        !have_room(d, it, room_for(it, packet, d->config.max_heap_size), NULL))
        fate = SPT_NO_MEMORY;
    if (fate == SPT_PLACED)
        fate = add_pointers(it, packet, d->config.max_pointers, &new_pointers);
    if (fate == SPT_PLACED)
        fate = add_range(d, it, packet, new_pointers);
    if (fate == SPT_AFTER_LOSS || fate == SPT_NO_MEMORY)
        note_lost(it, packet);
    if (fate != SPT_PLACED) {
        it->heap.packets_not_taken++;
        return fate;
    }
    add(it, packet, new_pointers);
    *to = it->heap.payload == NULL ? NULL : it->heap.payload + packet->payload_offset;
    if (it->heap.has_length && it->heap.received_length == it->heap.length) {
        finish(d, it, false, &d->account.heaps_flushed);
        d->completed = it;
    }
    return SPT_PLACED;
}

/* Expect more packets like the one that has just been placed, if all before it has arrived. */
static void expect(spt_depacketizer *d, const spt_received_packet *packet)
{
    const live *it = d->last;
    uint64_t end = packet->payload_offset + packet->payload_length;
    if (it != NULL && it->heap.payload != NULL && it->heap.has_length && it->ranges.n == 1 &&
        it->ranges.at[0].end == end)
        spti_expect(&d->expected, &it->heap, packet);
}

size_t spti_depacketizer_expected(const spt_depacketizer *d, size_t *n_bytes, uint8_t **to)
{
    const spti_expected *e = &d->expected;
    size_t n = spti_expected_count(e);
    if (n > 0) {
        *n_bytes = e->size;
        *to = e->heap->payload + e->begin;
    }
    return n;
}

size_t spti_depacketizer_take_run(spt_depacketizer *d, const spti_packet_run *run, uint64_t *offset)
{
    *offset = d->expected.begin;
    size_t n = spti_expected_take(&d->expected, run);
    if (n == 0)
        return 0;
    live *it = d->last; /* which is the one that they are expected of */
    uint64_t bytes = d->expected.begin - *offset;
    it->ranges.at[0].end = d->expected.begin;
    it->heap.received_length += bytes;
    it->heap.packets += n;
    d->completed = NULL;
    d->account.packets += n;
    d->account.fates[SPT_PLACED] += n;
    d->account.placed_bytes += bytes;
    return n;
}

spt_fate spt_depacketizer_take(spt_depacketizer *d, const spt_received_packet *packet, uint8_t **to)
{
    *to = NULL;
    d->completed = NULL;
    d->expected.heap = NULL;
    spt_fate fate = take(d, packet, to);
    if (fate == SPT_NOT_YET) {
        d->account.searches--; /* it is going to be looked for again */
        return fate;
    }
    d->account.packets++;
    d->account.fates[fate]++;
    if (fate == SPT_PLACED) {
        d->account.placed_bytes += packet->payload_length;
        expect(d, packet);
    }
    return fate;
}

const spt_received_heap *spt_depacketizer_last(const spt_depacketizer *d)
{
    const live *it = d->completed != NULL ? d->completed : d->last;
    return &it->heap;
}

void spt_depacketizer_malformed(spt_depacketizer *d, spt_fault fault)
{
    d->account.packets++;
    d->account.fates[SPT_MALFORMED]++;
    d->account.faults[fault]++;
}

void spt_depacketizer_account(const spt_depacketizer *d, spt_account *account)
{
    *account = d->account;
    account->heaps_live = 0;
    for (size_t i = 0; i < d->config.substreams; i++)
        account->heaps_live += d->substreams[i].n;
    account->heaps_never_begun = spti_sequence_missing(&d->sequence);
}
