/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns the cursor: which heap the next packet is of, and when it may go. Fills batches with
 * packets. For the worker.
 */
#include "stream.h"

#include "heap.h"
#include "wire.h"

#include <stdlib.h>

enum {
    BATCH_PACKETS = 252, /* whole messages: 2 of 126, 4 of 63 (1024 bytes each), 36 of 7 (9000) */
    BATCH_PIECES = 1024,
    BATCH_SCRATCH = 32768,
    /* What another core has just written takes a while to come. Heaps of at most SMALL bytes are
     * asked for so many heaps before their packets are made: slots, then what they point to. */
    SLOT_AHEAD = 8,
    VALUES_AHEAD = 3,
    SMALL = 1024,
    /* Of packets up to this size the payload is asked for while they are made: the kernel's copy
     * waits for each anew, and is faster by itself only where they are larger. */
    SMALL_PACKET = 2048,
};

bool spti_stream_make_batches(spt_stream *s, size_t packet_size)
{
    s->batches = calloc(s->n_batches, sizeof(*s->batches));
    bool made = s->batches != NULL;
    for (size_t i = 0; made && i < s->n_batches; i++) {
        spti_batch *batch = &s->batches[i];
        batch->packets = calloc(BATCH_PACKETS, sizeof(*batch->packets));
        batch->pieces = calloc(BATCH_PIECES + SPT_MAX_PIECES(packet_size), sizeof(*batch->pieces));
        batch->scratch = malloc(BATCH_SCRATCH + packet_size);
        made = batch->packets != NULL && batch->pieces != NULL && batch->scratch != NULL;
    }
    return made;
}

void spti_stream_free_batches(spt_stream *s)
{
    for (size_t i = 0; s->batches != NULL && i < s->n_batches; i++) {
        free(s->batches[i].packets);
        free(s->batches[i].pieces);
        free(s->batches[i].scratch);
    }
    free(s->batches);
}

static void fetch(const void *from, size_t size)
{
    for (size_t i = 0; i < size; i += SPTI_CACHE_LINE)
        __builtin_prefetch((const uint8_t *)from + i);
}

static void fetch_values(const spti_slot *slot)
{
    const spt_heap *heap = slot->packetizer.heap;
    if (slot->exhausted || heap->payload_length > SMALL) /* dropped heaps may be gone */
        return;
    for (size_t i = 0; i < heap->n_items; i++) {
        const spti_heap_item *item = &heap->items[i];
        if (item->value != NULL)
            fetch(item->value, item->immediate ? 1 : item->length);
    }
}

/* Ask for the heaps that come soon after the cursor, of n that are queued. */
static void fetch_ahead(const spt_stream *s, size_t n)
{
    if (n > SLOT_AHEAD)
        fetch(spti_slot_at(s, s->cursor + SLOT_AHEAD), sizeof(spti_slot));
    if (n > VALUES_AHEAD)
        fetch_values(spti_slot_at(s, s->cursor + VALUES_AHEAD));
}

/* Count the heaps of the group at the cursor that have packets to make. */
static void count_group(spt_stream *s)
{
    s->group_left = 0;
    for (size_t i = s->cursor; i != s->group_end; i++)
        s->group_left += !spti_slot_at(s, i)->exhausted;
}

/* Move the cursor to the next group that has packets to make; false when there is none. The cursor
 * never stays on a group without: its slots may be freed and filled again at any time. */
static bool find_group(spt_stream *s)
{
    while (s->group_left == 0) {
        s->cursor = s->group_end;
        size_t tail = __atomic_load_n(&s->tail, __ATOMIC_SEQ_CST);
        if (s->cursor == tail)
            return false;
        fetch_ahead(s, tail - s->cursor);
        s->turn = s->cursor;
        s->group_end = s->cursor + spti_slot_at(s, s->cursor)->group_size;
        count_group(s);
    }
    return true;
}

void spti_stream_find_group_again(spt_stream *s)
{
    count_group(s);
    find_group(s);
}

/* The heap that the next packet comes from, or NULL. */
static spti_slot *next_slot(spt_stream *s)
{
    if (s->group_left == 0 && !find_group(s))
        return NULL;
    for (;; s->turn++) {
        if (s->turn == s->group_end)
            s->turn = s->cursor;
        if (!spti_slot_at(s, s->turn)->exhausted)
            return spti_slot_at(s, s->turn);
    }
}

/* Whether it was the last heap of its completion that had packets to make. */
static bool exhaust(spt_stream *s, spti_slot *slot)
{
    slot->exhausted = true;
    if (--s->group_left > 0)
        return false;
    s->cursor = s->group_end;
    return spti_slot_at(s, s->cursor - 1)->last;
}

static bool has_room(const spti_batch *batch)
{
    return batch->n < BATCH_PACKETS && batch->n_pieces < BATCH_PIECES &&
           batch->scratch_used < BATCH_SCRATCH;
}

static void add_packet(spt_stream *s, spti_batch *batch, spti_slot *slot)
{
    spt_packet made;
    spt_status status = spt_packetizer_next(&slot->packetizer, batch->scratch + batch->scratch_used,
                                            batch->pieces + batch->n_pieces, &made);
    s->turn++;
    s->split = slot->completion;
    if (slot->packetizer.done && exhaust(s, slot))
        s->split = NULL;
    if (status != SPT_OK)
        return; /* cannot be: heaps with nothing to send do not exist */
    slot->in_batch++;
    batch->packets[batch->n++] = (spti_packet){
        .first_piece = (uint32_t)batch->n_pieces,
        .n_pieces = (uint16_t)made.n_pieces,
        .size = (uint32_t)made.size,
        .substream = slot->substream,
        .sender = slot,
    };
    batch->n_pieces += made.n_pieces;
    batch->scratch_used += (made.scratch_used + 7) & ~(size_t)7;
    if (s->limited)
        spt_rate_sent(&s->rate, made.size, slot->rate);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Whether what is sent comes from another core, to be copied. */
static bool comes_from_afar(const spt_stream *s)
{
    return s->own_pool == NULL && s->n_batches == 1;
}

/* Add the packets from the midst of a heap that are alike, if the next ones are. */
static bool add_run(const spt_stream *s, spti_batch *batch, spti_slot *slot)
{
    size_t room = least(BATCH_PACKETS - batch->n, (BATCH_PIECES - batch->n_pieces) / 2);
    room = least(room, (BATCH_SCRATCH - batch->scratch_used) / SPTI_PREFIX);
    size_t n = spti_packetizer_run(&slot->packetizer, batch->scratch + batch->scratch_used,
                                   batch->pieces + batch->n_pieces, room);
    const uint32_t size = (uint32_t)slot->packetizer.max_packet_size, substream = slot->substream;
    uint32_t piece = (uint32_t)batch->n_pieces;
    spti_packet *packet = &batch->packets[batch->n];
    for (size_t i = 0; i < n; i++, piece += 2)
        packet[i] = (spti_packet){.first_piece = piece,
                                  .n_pieces = 2,
                                  .size = size,
                                  .substream = substream,
                                  .sender = slot};
    if (n > 0 && size <= SMALL_PACKET && comes_from_afar(s)) {
        const struct iovec *payload = &batch->pieces[batch->n_pieces + 1];
        fetch(payload->iov_base, n * payload->iov_len);
    }
    slot->in_batch = (uint16_t)(slot->in_batch + n);
    batch->n += n;
    batch->n_pieces += 2 * n;
    batch->scratch_used += SPTI_PREFIX * n;
    return n > 0;
}

/* 0, or when the next packet may go. */
static uint64_t rate_limit(spt_stream *s, const spti_slot *slot)
{
    s->limited = s->limited || slot->rate > 0;
    if (!s->limited)
        return 0;
    uint64_t now_ns = spti_now_ns();
    if (s->idle)
        spt_rate_idle(&s->rate, now_ns);
    s->idle = false;
    return spt_rate_next(&s->rate, now_ns);
}

/* A batch to make packets in: the last one again, if that is done with; NULL where all are held. */
static spti_batch *free_batch(spt_stream *s)
{
    const spti_batch *last = spti_batch_at(s, s->new_batch);
    if (last->done < last->n) {
        if (s->new_batch + 1 - s->oldest_batch == s->n_batches)
            return NULL;
        s->new_batch++;
    }
    return spti_batch_at(s, s->new_batch);
}

/* Fill a batch. It ends where a completion does that an earlier batch began: its owner is to fill
 * the next heap while others are sent, not when they have been. Returns 0, or the time to wait for
 * before more can be added. */
static uint64_t fill_batch(spt_stream *s, spti_batch *batch)
{
    batch->n = batch->next = batch->done = 0;
    batch->n_pieces = batch->scratch_used = 0;
    const spt_completion *split = s->split;
    while (has_room(batch) && (split == NULL || split == s->split)) {
        spti_slot *slot = next_slot(s);
        if (slot == NULL) {
            s->idle = true;
            return 0;
        }
        uint64_t at_ns = rate_limit(s, slot);
        if (at_ns > 0)
            return at_ns;
        bool first = slot->packetizer.payload_offset == 0;
        if (first || s->limited || s->group_left > 1 || !add_run(s, batch, slot))
            add_packet(s, batch, slot);
    }
    return 0;
}

spti_batch *spti_stream_next_batch(spt_stream *s, uint64_t *at_ns)
{
    spti_batch *batch = spti_batch_at(s, s->new_batch);
    if (batch->next < batch->n)
        return batch;
    batch = free_batch(s);
    if (batch != NULL)
        *at_ns = fill_batch(s, batch);
    return batch;
}
