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
#include "live_heap.h"
#include "sequence.h"
#include "status.h"
#include "wire.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    FEWEST_RECENT = 64, /* finished heaps that are remembered */
    SHORTEST_JUMP = 16, /* heaps that a sender has sent at least before it starts again */
};

/* Oldest first. */
typedef struct list {
    spti_live_heap *first, *last;
    size_t n;
} list;

struct spt_depacketizer {
    spt_depacketizer_config config;
    spti_placing placing; /* zeros where heaps own memory */
    spti_counts counts;
    list *substreams; /* live heaps of each */
    list finished;    /* not handed out yet */
    spti_live_heap *unused;
    spti_live_heap *last;      /* where the last packet went: the next one often goes there, too */
    spti_live_heap *completed; /* by the last packet, and not handed out yet; or NULL */
    spti_expected expected;
    spti_sequence sequence;
    spt_account account;
};

const char *spt_fate_text(spt_fate fate)
{
    switch ((int)fate) {
        SPT_FATE_LIST(SPTI_TEXT_CASE)
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
    if (config->max_pointers < 2 || config->max_heap_size == 0)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "max_pointers is %zu and max_heap_size is %" PRIu64
                         ": the heap that ends a stream has 2 pointers and a byte",
                         config->max_pointers, config->max_heap_size);
    return spti_heap_memory_check(&config->memory, err);
}

/* What is placed is not put back. */
static void leave_in_place(void *user, void *payload, size_t size)
{
    (void)user;
    (void)payload;
    (void)size;
}

spt_depacketizer *spti_depacketizer_create(const spt_depacketizer_config *config,
                                           const spti_placing *placing, spt_error *err)
{
    if (check_config(config, err) != SPT_OK)
        return NULL;
    size_t most = config->max_heaps * config->substreams;
    spt_depacketizer *d = calloc(1, sizeof(*d));
    if (d == NULL)
        goto fail;
    d->config = *config;
    d->config.memory = spti_heap_memory_or_malloc(config->memory);
    if (placing != NULL) {
        d->placing = *placing;
        d->config.memory.put = leave_in_place;
        d->config.allow_unsized_heaps = false;
    }
    d->substreams = calloc(config->substreams, sizeof(*d->substreams));
    size_t recent = 4 * most < FEWEST_RECENT ? FEWEST_RECENT : 4 * most;
    if (!spti_counts_init(&d->counts, most, recent) || d->substreams == NULL)
        goto fail;
    return d;
fail:
    spt_depacketizer_destroy(d);
    spti_fail(err, SPT_ERR_MEMORY, "no memory for a depacketizer of %zu heaps at a time", most);
    return NULL;
}

spt_depacketizer *spt_depacketizer_create(const spt_depacketizer_config *config, spt_error *err)
{
    return spti_depacketizer_create(config, NULL, err);
}

/* ---- Lists, and the heaps in them ------------------------------------------------------------ */

static void append(list *l, spti_live_heap *it)
{
    it->next = NULL;
    if (l->last == NULL)
        l->first = it;
    else
        l->last->next = it;
    l->last = it;
    l->n++;
}

static void take_out(list *l, const spti_live_heap *it)
{
    spti_live_heap *before = NULL, *at = l->first;
    for (; at != it; at = at->next)
        before = at;
    *(before == NULL ? &l->first : &before->next) = it->next;
    if (l->last == it)
        l->last = before;
    l->n--;
}

/* A heap that a packet begins, with the memory that another one left. */
static spti_live_heap *new_heap(spt_depacketizer *d, const spt_received_packet *first)
{
    if (d->unused == NULL)
        d->unused = calloc(1, sizeof(*d->unused));
    spti_live_heap *it = d->unused;
    if (it == NULL || !spti_live_heap_begin(it, first))
        return NULL;
    d->unused = it->next;
    return it;
}

void spt_depacketizer_recycle(spt_depacketizer *d, spt_received_heap *heap)
{
    spti_live_heap *it = (spti_live_heap *)heap;
    spti_live_heap_put_payload(it, &d->config);
    it->next = d->unused;
    d->unused = it;
}

static void destroy_heaps(spt_depacketizer *d, spti_live_heap *first)
{
    for (spti_live_heap *it = first, *next; it != NULL; it = next) {
        next = it->next;
        spti_live_heap_put_payload(it, &d->config);
        spti_live_heap_destroy(it);
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

/* Move a live heap to those that are finished; count it where one counts those that lack a part. */
static void finish(spt_depacketizer *d, spti_live_heap *it, bool evicted, uint64_t *lacking)
{
    spt_received_heap *heap = &it->heap;
    take_out(&d->substreams[heap->cnt % d->config.substreams], it);
    spti_counts_end(&d->counts, (spti_key){heap->cnt, heap->source}, SPTI_FINISHED);
    spti_live_heap_end(it, evicted);
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
static spti_live_heap *oldest(const spt_depacketizer *d)
{
    spti_live_heap *found = NULL;
    for (size_t i = 0; i < d->config.substreams; i++) {
        spti_live_heap *first = d->substreams[i].first;
        if (first != NULL && (found == NULL || first->begun < found->begun))
            found = first;
    }
    return found;
}

void spti_depacketizer_give_up(spt_depacketizer *d, const void *user)
{
    for (size_t i = 0; i < d->config.substreams; i++)
        for (spti_live_heap *it = d->substreams[i].first, *next; it != NULL; it = next) {
            next = it->next;
            if (it->heap.user == user)
                finish(d, it, true, &d->account.heaps_evicted);
        }
}

void spt_depacketizer_flush(spt_depacketizer *d)
{
    for (spti_live_heap *it = oldest(d); it != NULL; it = oldest(d))
        finish(d, it, true, &d->account.heaps_flushed);
}

void spt_depacketizer_stop(spt_depacketizer *d)
{
    spti_live_heap *it = d->completed;
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
    spti_live_heap *it = d->finished.first;
    if (it == NULL)
        return NULL;
    take_out(&d->finished, it);
    if (d->completed == it)
        d->completed = NULL;
    return &it->heap;
}

/* ---- The beginning of a heap ----------------------------------------------------------------- */

static spti_key key_of(const spt_received_packet *packet)
{
    return (spti_key){packet->cnt, packet->source};
}

/* What becomes of packets whose heap is refused. */
static spt_fate refused(const spt_depacketizer *d)
{
    return d->placing.place != NULL ? SPT_NO_PLACE : SPT_NO_MEMORY;
}

/* Where it is decided where heaps go: ask. A heap without payload goes nowhere. */
static spt_fate find_place(spt_depacketizer *d, spti_live_heap *it,
                           const spt_received_packet *packet)
{
    const spti_placing *placing = &d->placing;
    if (placing->place == NULL || packet->heap_length == 0)
        return SPT_PLACED;
    spt_status status = placing->place(placing->user, &it->heap, packet);
    it->heap.room = (size_t)packet->heap_length;
    return status == SPT_OK ? SPT_PLACED : status == SPT_PENDING ? SPTI_NOT_YET : SPT_NO_PLACE;
}

static void note_count(spt_depacketizer *d, const spt_received_packet *packet)
{
    spti_sequence_note(&d->sequence, key_of(packet), packet->heap_address_bits, packet->is_stop);
}

/* Begin the heap of a packet. The oldest one has to go first where there are too many. */
static spt_fate begin(spt_depacketizer *d, const spt_received_packet *packet,
                      spti_live_heap **begun)
{
    list *substream = &d->substreams[packet->cnt % d->config.substreams];
    spti_live_heap *it = new_heap(d, packet);
    if (it == NULL)
        return SPT_NO_MEMORY;
    spt_fate fate = find_place(d, it, packet);
    if (fate == SPT_PLACED) {
        if (substream->n == d->config.max_heaps)
            finish(d, substream->first, true, &d->account.heaps_evicted);
        if (!spti_live_heap_make_room(it, packet, packet, &d->config))
            fate = SPT_NO_MEMORY;
    }
    if (fate != SPT_PLACED) {
        spt_depacketizer_recycle(d, &it->heap);
        if (fate != SPTI_NOT_YET)
            spti_counts_end(&d->counts, key_of(packet), SPTI_REFUSED);
        if (fate == SPT_NO_PLACE) /* nothing of it is missing */
            note_count(d, packet);
        return fate;
    }
    it->begun = d->account.heaps_begun++;
    append(substream, it);
    spti_counts_begin(&d->counts, key_of(packet), it);
    note_count(d, packet);
    *begun = it;
    return SPT_PLACED;
}

/* A heap may be sent twice, or a sender start again. Where packets come in any order, one that
 * ended a moment ago is rather the one that a late packet belongs to. */
static bool has_jumped_back(const spt_depacketizer *d, const spti_seen *known)
{
    uint64_t most = 2 * d->config.max_heaps * d->config.substreams;
    uint64_t moment = most < SHORTEST_JUMP ? SHORTEST_JUMP : most;
    return known != NULL && known->known == SPTI_FINISHED &&
           d->counts.ended - known->ended > moment;
}

/* Whether a packet of a heap that is not known could be a part of another sender's: of the one that
 * the last packet was of. */
static bool is_of_others(const spt_depacketizer *d, const spt_received_packet *packet)
{
    return packet->payload_offset > 0 && d->last != NULL && d->last->heap.cnt == packet->cnt;
}

/* Find the heap of a packet, or begin it. */
static spt_fate find(spt_depacketizer *d, const spt_received_packet *packet, spti_live_heap **found)
{
    if (d->last != NULL && d->last->heap.cnt == packet->cnt &&
        d->last->heap.source == packet->source) {
        *found = d->last;
        return SPT_PLACED;
    }
    d->account.searches++;
    /* Where counts soon start again, one that ended long ago says nothing. */
    uint64_t within = UINT64_C(1) << (packet->heap_address_bits - 2);
    const spti_seen *known = spti_counts_find(&d->counts, key_of(packet), within);
    if (known != NULL && known->known == SPTI_LIVE) {
        *found = known->heap;
        return SPT_PLACED;
    }
    bool in_order = !d->config.allow_out_of_order;
    bool anew = packet->payload_offset == 0 && (in_order || has_jumped_back(d, known));
    d->account.sender_mismatches += known == NULL && is_of_others(d, packet);
    if (known != NULL && !anew)
        return known->known == SPTI_REFUSED ? refused(d) : SPT_LATE;
    if (in_order && !anew)
        return SPT_AFTER_LOSS;
    spt_fate fate = spti_live_heap_check_size(packet, &d->config);
    return fate == SPT_PLACED ? begin(d, packet, found) : fate;
}

/* ---- A packet -------------------------------------------------------------------------------- */

/* Tell who places heaps what has come to its place. */
static void tell_placed(const spt_depacketizer *d, const spti_live_heap *it, uint64_t offset,
                        size_t length, size_t n)
{
    if (d->placing.placed != NULL)
        d->placing.placed(d->placing.user, &it->heap, offset, length, n);
}

static spt_fate take(spt_depacketizer *d, const spt_received_packet *packet, uint8_t **to)
{
    spti_live_heap *it = NULL;
    spt_fate fate = find(d, packet, &it);
    if (fate != SPT_PLACED)
        return fate;
    d->last = it;
    fate = spti_live_heap_take(it, packet, &d->config);
    if (fate != SPT_PLACED)
        return fate;
    tell_placed(d, it, packet->payload_offset, packet->payload_length, 1);
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
    const spti_live_heap *it = d->last;
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

bool spti_depacketizer_may_overwrite(const spt_depacketizer *d, size_t n_bytes)
{
    const spti_placing *placing = &d->placing;
    return placing->is_unmarked == NULL ||
           placing->is_unmarked(placing->user, d->expected.heap, d->expected.begin, n_bytes);
}

size_t spti_depacketizer_take_run(spt_depacketizer *d, const spti_packet_run *run)
{
    uint64_t offset = d->expected.begin;
    bool is_its = d->expected.heap != NULL && d->expected.heap->source == run->source;
    size_t n = is_its || !d->config.by_sender ? spti_expected_take(&d->expected, run) : 0;
    if (n == 0)
        return 0;
    spti_live_heap *it = d->last; /* which is the one that they are expected of */
    uint64_t bytes = d->expected.begin - offset;
    it->ranges.at[0].end = d->expected.begin;
    it->heap.received_length += bytes;
    it->heap.packets += n;
    d->completed = NULL;
    d->account.packets += n;
    d->account.fates[SPT_PLACED] += n;
    d->account.placed_bytes += bytes;
    tell_placed(d, it, offset, run->n_bytes - SPTI_PREFIX, n);
    return n;
}

spt_fate spt_depacketizer_take(spt_depacketizer *d, const spt_received_packet *packet, uint8_t **to)
{
    spt_received_packet nobodys;
    if (packet->source != 0 && !d->config.by_sender) {
        nobodys = *packet;
        nobodys.source = 0;
        packet = &nobodys;
    }
    *to = NULL;
    d->completed = NULL;
    d->expected.heap = NULL;
    spt_fate fate = take(d, packet, to);
    if (fate == SPTI_NOT_YET) {
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
    spti_sequence_missing(&d->sequence, &account->heaps_never_begun, &account->counts_skipped);
}
