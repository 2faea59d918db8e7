/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of chunks.c: heaps that a stream receives, each at its place in a chunk. */
#define CHECK_AFTER finish
#define CHECK_CASES "", ", without a thread"

#include "failing.h"
#include "filling.h"

#include <sched.h>

enum { EXTRA = 8 };

static spt_recv_stream *stream;
static made_series packets;

/* Heaps from one up to another. */
static void append_heaps(uint64_t first, uint64_t end)
{
    for (uint64_t n = first; n < end; n++)
        append_heap(&packets, n);
}

static void append_stop(void)
{
    make_part(&made, 1 << 20, 0, 0, 0);
    make_add(&made, true, SPT_ID_STREAM_CTRL, 2);
    make_end(&made, NULL, 0);
    series_add(&packets, &made);
}

typedef struct said_place {
    int64_t chunk_id;
    uint64_t heap_index, heap_offset, extra_offset, extra_size;
    uint64_t about; /* this heap */
} said_place;

/* By the timestamp; and whatever a test wants said besides. */
static struct {
    const said_place *nonsense; /* or NULL */
    _Atomic int asked;
} said;

static void place(spt_place_data *data, size_t size, void *user)
{
    CHECK_EQUAL(size, 80, data->chunk_id, -1, data->heap_index, 0, data->heap_offset, 0,
                data->extra_size, 0);
    spt_received_packet first;
    CHECK_EQUAL(spt_received_packet_parse(&first, data->packet, data->packet_size), SPT_FAULT_NONE,
                data->packet_size, first.size);
    CHECK(user == &said);
    said.asked++;
    if (data->items[0] < 0)
        return;
    CHECK_EQUAL(data->items[1], HEAP);
    place_by_timestamp(data, size, user);
    uint64_t n = (uint64_t)data->items[0];
    data->batch_stats[0] += 1;
    data->batch_stats[1] = n > data->batch_stats[1] ? n : data->batch_stats[1];
    data->extra[0] = (uint8_t)(n + 1);
    data->extra_offset = n % HEAPS;
    data->extra_size = 1;
    if (said.nonsense != NULL && n == said.nonsense->about) {
        data->chunk_id = said.nonsense->chunk_id;
        data->heap_index = said.nonsense->heap_index;
        data->heap_offset = said.nonsense->heap_offset;
        data->extra_offset = said.nonsense->extra_offset;
        data->extra_size = said.nonsense->extra_size;
    }
}

typedef struct setup {
    size_t free_chunks, room, max_chunks, packet;
    bool any_order;
} setup;

static const setup plenty = {CHUNKS, CHUNKS, 2, 0, false};

static void finish(void)
{
    END(spt_recv_stream, stream);
    end_filling();
}

static spt_recv_stream *new_stream(setup with, spt_chunk_ring *to)
{
    static const uint64_t items[] = {TIMESTAMP, SPT_ID_HEAP_LENGTH};
    static const bool is_maximum[] = {false, true};
    const spt_recv_config *config = RECV_CONFIG(its.heaps.allow_out_of_order = with.any_order);
    spt_chunk_config how = {
        .place = place,
        .place_user = &said,
        .items = items,
        .n_items = 2,
        .max_chunks = with.max_chunks,
        .max_heap_extra = EXTRA,
        .packet_payload_size = with.packet,
        .n_stats = 2,
        .stat_is_maximum = is_maximum,
        .stream_id = 77,
        .data_ring = to,
        .free_ring = free_ring,
    };
    return NEW(spt_recv_stream_create_chunks(reads, config, &how, NULL));
}

static void begin(setup with)
{
    size_t marks = with.packet > 0 ? HEAPS * HEAP / with.packet : HEAPS;
    finish();
    begin_filling(check_case == 0, with.room, with.free_chunks, marks);
    stream = new_stream(with, data_ring);
    memset(&said, 0, sizeof(said));
    packets.n = 0;
}

static void receive(void)
{
    receive_from(stream, &packets);
}

static spt_account account(void)
{
    return stats_of(stream).account;
}

TEST(heaps_go_to_their_places_and_chunks_leave_in_order)
{
    begin(plenty);
    append_heaps(0, 3 * HEAPS);
    append_stop();
    receive();
    for (int64_t id = 0; id < 3; id++) {
        const spt_chunk *chunk = check_chunk(id, "1111");
        CHECK_EQUAL(chunk->stream_id, 77);
        for (uint8_t i = 0; i < HEAPS; i++)
            CHECK_EQUAL(chunk->extra[i], id * HEAPS + i + 1);
    }
    check_end_of(data_ring);
    uint64_t counted[2];
    spt_chunk_stats now;
    spt_recv_stream_chunk_stats(stream, &now, counted);
    CHECK_EQUAL(now.chunks, 3, counted[0], 3 * HEAPS, counted[1], 3 * HEAPS - 1);
    CHECK_EQUAL(said.asked, 3 * HEAPS); /* once each, and not for the stop */
    CHECK_EQUAL(account().heaps_complete, 3 * HEAPS);
    put_chunk(free_ring, get_chunk_of(free_ring)); /* which goes on */
}

TEST(skipped_chunks_come_out_empty_if_they_are_in_the_window)
{
    begin(plenty);
    append_heap(&packets, 5 * HEAPS);
    append_heap(&packets, 10 * HEAPS + 1);
    append_heap(&packets, 8 * HEAPS); /* too old */
    append_heap(&packets, 9 * HEAPS + 2);
    receive();
    check_chunk(4, "0000");
    check_chunk(5, "1000");
    check_chunk(9, "0010");
    check_chunk(10, "0100");
    check_end_of(data_ring);
    CHECK_EQUAL(chunk_stats_of(stream).too_old_heaps, 1, account().fates[SPT_NO_PLACE], 2);
}

TEST(an_incomplete_heap_is_not_present_and_not_written_to_once_its_chunk_has_left)
{
    begin((setup){CHUNKS, CHUNKS, 1, 0, true});
    append_half(&packets, 0, 0);
    append_heap(&packets, 1);
    append_heap(&packets, HEAPS);
    append_half(&packets, 0, 1);
    receive();
    const uint8_t *data = check_chunk(0, "0100")->data;
    CHECK_EQUAL(data[HALF - 1], byte_of(0, HALF - 1), data[HALF], 0);
    check_chunk(1, "1000");
    check_end_of(data_ring);
    CHECK_EQUAL(account().fates[SPT_LATE], 1, account().heaps_evicted, 1);
}

TEST(packets_are_marked_where_each_has_a_byte)
{
    static const said_place places[] = {
        {0},
        {.heap_index = 2 * HEAPS - 2}, /* the last that there is room for */
        {.heap_index = 2 * HEAPS - 1},
    };
    static const uint8_t marks[][2 * HEAPS] = {{1}, {0, 0, 0, 0, 0, 0, 1, 1}, {0}};
    setup each = plenty;
    each.packet = HALF;
    for (size_t i = 0; i < LENGTH(places); i++) {
        begin(each);
        said.nonsense = &places[i];
        append_half(&packets, 0, 0);
        if (i > 0)
            append_half(&packets, 0, 1);
        receive();
        const spt_chunk *chunk = get_chunk_of(data_ring);
        CHECK_EQUAL(chunk->present_size, 2 * HEAPS);
        CHECK_BYTES(chunk->present, marks[i], sizeof(marks[i]));
        check_end_of(data_ring);
        CHECK_EQUAL(chunk_stats_of(stream).misplaced_heaps, i == 2);
    }
}

TEST(a_heap_that_the_place_function_does_not_want_is_refused)
{
    begin(plenty);
    append_heap(&packets, 0);
    make_part(&made, 1 + 1, HEAP, 0, HALF);
    make_end_of(&made, 1, 0, HALF); /* without a timestamp */
    series_add(&packets, &made);
    append_half(&packets, 1, 1); /* it was asked before */
    append_heap(&packets, 2);
    receive();
    check_chunk(0, "1010");
    check_end_of(data_ring);
    CHECK_EQUAL(chunk_stats_of(stream).rejected_heaps, 1, chunk_stats_of(stream).misplaced_heaps,
                0);
    CHECK_EQUAL(account().fates[SPT_NO_PLACE], 2);
}

TEST(a_place_that_there_is_not_is_refused_and_said_and_others_are_not_touched)
{
    static const uint8_t nothing[HEAP];
    static const struct {
        said_place place;
        const char *what;
    } wrong[] = {
        {{0, 0, HEAPS * HEAP - HEAP + 1, 0, 0, 1}, "heap_offset"},
        {{0, 0, 1000000000, 0, 0, 1}, "heap_offset"},
        {{0, 0, UINT64_MAX, 0, 0, 1}, "heap_offset"},
        {{0, HEAPS, 0, 0, 0, 1}, "heap_index"},
        {{0, UINT64_MAX, 0, 0, 0, 1}, "heap_index"},
        {{INT64_C(1) << 62, 0, 0, 0, 0, 1}, "chunk_id"},
        {{INT64_MAX, 0, 0, 0, 0, 1}, "chunk_id"},
        {{SPT_MAX_CHUNK_STEP + 2, 0, 0, 0, 0, 1}, "chunk_id"},
        {{SPT_MAX_CHUNK_ID + 1, 0, 0, 0, 0, 0}, "chunk_id"}, /* for the first */
        {{0, 0, 0, HEAPS, 1, 1}, "extra_offset"},
        {{0, 0, 0, UINT64_MAX, 1, 1}, "extra_offset"},
        {{0, 0, 0, 0, EXTRA + 1, 1}, "extra_size"},
        {{0, 0, 0, 0, UINT64_MAX, 1}, "extra_size"},
    };
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        uint64_t about = wrong[i].place.about;
        begin(plenty);
        said.nonsense = &wrong[i].place;
        append_heaps(0, 3);
        receive();
        const spt_chunk *chunk = check_chunk(0, about == 0 ? "0110" : "1010");
        CHECK_BYTES((uint8_t *)chunk->data + about * HEAP, nothing, HEAP);
        check_end_of(data_ring);
        CHECK_EQUAL(chunk_stats_of(stream).rejected_heaps, 1,
                    chunk_stats_of(stream).misplaced_heaps, 1);
        CHECK_WORDS(chunk_stats_of(stream).misplaced, wrong[i].what);
        (void)account();
    }
}

/* Whichever allocation fails: to say that a heap is longer is no way out of its place. */
TEST(a_heap_keeps_the_length_that_its_place_was_checked_for)
{
    static const uint8_t payload[HEAP];
    long failed = 1;
    for (long n = 1; failed > 0; n++) {
        spt_chunk *chunk;
        size_t got = 0;
        begin((setup){1, 1, 1, HALF, true});
        append_half(&packets, 3, 0);
        make_part(&made, 3 + 1, 100 * HEAP, 90 * HEAP, HEAP);
        make_end(&made, payload, HEAP); /* without a timestamp it gets no place of its own */
        series_add(&packets, &made);
        fail_once(n);
        while (spt_recv_stream_add_memory(stream, packets.bytes, packets.at[packets.n], NULL) ==
               SPT_ERR_MEMORY)
            continue;
        while (spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK)
            REQUIRE(got++ == 0);
        failed = stop_failing();
        CHECK(account().placed_bytes <= HALF && account().packets == 2);
        REQUIRE(n < 100);
    }
}

TEST(the_worker_waits_for_a_free_chunk_and_loses_nothing)
{
    begin((setup){1, CHUNKS, 1, 0, false});
    append_heaps(0, 6 * HEAPS);
    append_stop();
    receive();
    for (int64_t id = 0; id < 6; id++) {
        spt_chunk *chunk = check_chunk(id, "1111");
        while (chunk_stats_of(stream).chunk_waits == (uint64_t)id && id < 5)
            read_on(stream); /* until it misses this one */
        put_chunk(free_ring, chunk);
    }
    check_end_of(data_ring);
    spt_chunk_stats now = chunk_stats_of(stream);
    CHECK_EQUAL(now.chunk_waits, 5, now.longest_chunk_wait_ns > 0, true, now.room_waits, 0);
    CHECK_EQUAL(said.asked, 6 * HEAPS); /* what waited was not asked for twice */
    CHECK_EQUAL(account().packets, packets.n, account().heaps_complete, 6 * HEAPS);
}

TEST(the_worker_waits_for_room_for_a_filled_chunk_and_loses_nothing)
{
    begin((setup){CHUNKS, 1, 2, 0, false});
    append_heaps(0, 6 * HEAPS);
    append_stop();
    receive();
    while (chunk_stats_of(stream).room_waits == 0)
        read_on(stream);
    check_chunks(0, 6, "1111");
    check_end_of(data_ring);
    CHECK(chunk_stats_of(stream).longest_room_wait_ns > 0);
    CHECK(stats_of(stream).ring_waits > 0 && stats_of(stream).longest_ring_wait_ns > 0);
    CHECK_EQUAL(account().heaps_complete, 6 * HEAPS);
}

TEST(a_stop_in_the_middle_hands_over_what_was_begun_and_stops_both_rings)
{
    begin((setup){2, CHUNKS, 2, 0, false});
    append_heap(&packets, 0);
    append_half(&packets, HEAPS, 0);
    append_heap(&packets, 2 * HEAPS); /* waits: there is no chunk for it */
    receive();
    while (chunk_stats_of(stream).chunk_waits == 0)
        read_on(stream);
    spt_recv_stream_stop(stream);
    check_chunk(0, "1000");
    check_chunk(1, "0000");
    check_end_of(data_ring);
    CHECK_EQUAL(spt_chunk_ring_put(free_ring, &chunks[5], 0), SPT_ERR_STOPPED);
    CHECK_EQUAL(account().packets, 3);
    spt_recv_stream_stop(stream);
}

TEST(a_ring_that_is_stopped_ends_the_stream_and_all_chunks_are_in_the_rings)
{
    for (int which = 0; which < 2; which++) {
        begin((setup){3, CHUNKS, 2, 0, false});
        spt_chunk_ring_stop(which == 0 ? data_ring : free_ring);
        append_heaps(0, 8 * HEAPS);
        receive();
        CHECK_EQUAL(get_none_of(stream, LONG_NS), SPT_DONE);
        CHECK_EQUAL(spt_chunk_ring_size(data_ring), which == 0 ? 0 : 3);
        CHECK_EQUAL(spt_chunk_ring_size(free_ring), which == 0 ? 3 : 0);
        (void)account();
    }
}

TEST(streams_of_chunks_are_stopped_at_any_moment)
{
    for (uint64_t round = 0; round < 30; round++) {
        begin((setup){3, 1, 2, 0, false});
        add_socket(stream, 0, 2);
        uint64_t present = 0;
        pthread_t consumer = start_thread(consume, &present);
        for (uint64_t n = 0; n < 20 * (1 + round); n++)
            send_heap(0, n);
        if (round % 3 == 0)
            spt_thread_pool_stop(pool);
        if (round % 3 == 1)
            spt_chunk_ring_stop(data_ring);
        spt_recv_stream_stop(stream);
        pthread_join(consumer, NULL);
        CHECK(present <= account().heaps_complete);
    }
}

TEST(two_readers_that_both_wait_go_on)
{
    begin((setup){0, CHUNKS, 6, 0, true});
    add_socket(stream, 0, 1);
    add_socket(stream, 1, 1);
    for (uint64_t n = 0; n < 6 * HEAPS; n++)
        send_heap(n % 2, n);
    for (int i = 0; i < 6; i++) {
        while (chunk_stats_of(stream).chunk_waits == (uint64_t)i &&
               account().packets < 2 * 6 * HEAPS)
            read_on(stream);
        put_chunk(free_ring, &chunks[i]);
    }
    wait_for_packets(stream, 2 * 6 * HEAPS); /* of both */
    spt_recv_stream_stop(stream);
    check_chunks(0, 6, "1111");
}

/* One that ends by a ring of its own has chunks that another one waits for. */
TEST_ONCE(a_stream_that_gives_its_chunks_back_wakes_another_that_waits_for_them)
{
    setup two = {2, CHUNKS, 2, 0, false};
    begin(two); /* the first one: it takes both chunks */
    append_heap(&packets, 0);
    append_heap(&packets, HEAPS);
    add_socket(stream, 0, 1);
    send_heap(0, 0);
    send_heap(0, HEAPS);
    wait_for_packets(stream, 4);

    OWN(spt_chunk_ring) other_ring = NEW(spt_chunk_ring_create(CHUNKS, NULL));
    OWN(spt_recv_stream) other = new_stream(two, other_ring);
    receive_from(other, &packets);
    while (chunk_stats_of(other).chunk_waits == 0)
        continue;

    spt_chunk_ring_stop(data_ring);
    send_heap(0, 3 * HEAPS); /* for which one would have to go there */
    for (int64_t id = 0; id < 2; id++) {
        const spt_chunk *chunk = get_chunk_of(other_ring);
        CHECK_EQUAL(chunk->chunk_id, id, chunk->present[0], 1);
        check_bytes_of(chunk);
    }
}

TEST(what_is_held_when_a_stream_ends_is_counted)
{
    begin((setup){0, CHUNKS, 2, 0, false});
    add_socket(stream, 0, 1);
    for (uint64_t n = 0; n < 4; n++)
        send_heap(0, n);
    while (chunk_stats_of(stream).chunk_waits == 0)
        read_on(stream);
    spt_recv_stream_stop(stream);
    spt_recv_stats now = stats_of(stream);
    CHECK(now.after_end > 0);
    CHECK_EQUAL(now.account.packets, 0, now.after_end, now.sockets.datagrams);
}

/* ---- Without a thread ------------------------------------------------------------------------ */

static _Atomic int waits; /* that have begun and end by a time */

int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask);

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
    if (t != NULL)
        waits++;
    return __real_ppoll(fds, n, t, mask);
}

static void await_waits(int n)
{
    while (waits < n)
        sched_yield();
}

static void *get_one(void *id)
{
    *(int64_t *)id = get_chunk_of(data_ring)->chunk_id;
    return NULL;
}

/* Have no stream yet, but all that one needs. */
static void begin_without_stream(void)
{
    begin(plenty);
    END(spt_recv_stream, stream);
    END(spt_chunk_ring, data_ring); /* which that stream has stopped */
    END(spt_chunk_ring, free_ring);
    begin_rings(CHUNKS, CHUNKS);
}

/* And what has woken it, to look for packets itself, keeps no event loop busy. */
TEST(who_waits_for_a_chunk_before_there_is_a_stream_gets_it)
{
    enum { MANY = 100 };
    begin_without_stream();
    int data = spt_chunk_ring_data_fd(data_ring), before = waits, calls = 0;
    int64_t id = -1;
    pthread_t getter = start_thread(get_one, &id);
    await_waits(before + 1);
    stream = new_stream(plenty, data_ring);
    await_waits(before + 1 + (int)check_case);
    spt_chunk *none;
    for (; calls < MANY && is_readable(data, 0); calls++)
        CHECK_EQUAL(spt_chunk_ring_get(data_ring, 0, &none), SPT_PENDING);
    CHECK(calls < MANY);
    add_socket(stream, 0, 1);
    for (uint64_t n = 0; n <= 2 * HEAPS; n++)
        send_heap(0, n);
    pthread_join(getter, NULL);
    CHECK_EQUAL(id, 0);
}

TEST(the_descriptor_tells_when_to_ask_from_before_there_is_a_stream)
{
    begin_without_stream();
    int data = spt_chunk_ring_data_fd(data_ring);
    CHECK(!is_readable(data, 0));
    stream = new_stream(plenty, data_ring);
    add_socket(stream, 0, 2);
    spt_chunk *chunk;
    int got = 0;
    for (uint64_t n = 0; n < 3 * HEAPS; n++)
        send_heap(0, n);
    while (account().packets < 2 * 3 * HEAPS || is_readable(data, 0))
        if (is_readable(data, 0))
            got += spt_chunk_ring_get(data_ring, 0, &chunk) == SPT_OK;
    CHECK_EQUAL(got, 1);
    spt_recv_stream_stop(stream);
    CHECK(is_readable(data, 0));
}

TEST(streams_that_fill_chunks_for_the_same_ring_are_all_read)
{
    begin(plenty);
    OWN(spt_recv_stream) other = new_stream(plenty, data_ring);
    append_heaps(0, 3 * HEAPS);
    receive();
    receive_from(other, &packets);
    int64_t sum = 0;
    for (int i = 0; i < 2 * 3; i++)
        sum += get_chunk_of(data_ring)->chunk_id;
    CHECK_EQUAL(sum, 2 * (0 + 1 + 2));
    check_end_of(data_ring);
}

/* Whichever allocation fails: what was said of a heap that waits is not believed of the next one,
 * whose packet lies where that of the first did. */
TEST(a_heap_that_waits_and_finds_no_memory_then_leaves_no_place_to_the_next)
{
    long failed = 1;
    for (long n = 1; failed > 0; n++) {
        begin((setup){1, CHUNKS, 1, 0, false});
        add_socket(stream, 0, 1);
        send_half(0, 0, 0);
        wait_for_packets(stream, 1);
        make_part(&made, HEAPS + 1, HEAP, 0, HALF);
        make_add(&made, true, TIMESTAMP, HEAPS);
        for (uint64_t i = 0; i < 100; i++) /* more than the heap before had memory for */
            make_add(&made, true, 1 << 10, i);
        make_end_of(&made, HEAPS, 0, HALF);
        fail_once(n);
        send_made(0);
        while (chunk_stats_of(stream).chunk_waits < 1 && account().packets < 2)
            read_on(stream);
        put_chunk(free_ring, &chunks[1]);
        wait_for_packets(stream, 2);
        failed = stop_failing();
        send_heap(0, HEAPS + 1);
        wait_for_packets(stream, 4);
        spt_recv_stream_stop(stream);
        check_chunk(0, "0000");
        check_chunk(1, "0100");
        REQUIRE(n < 100);
    }
}

TEST_ONCE(a_stream_that_runs_allocates_nothing_per_heap_or_packet)
{
    enum { N = 2000, WARM = 20 }; /* heaps, and chunks until it has had all that it needs */
    begin((setup){2, 1, 1, 0, true});
    for (uint64_t n = 0; n < N; n++) { /* in any order, and of some heaps a half is lost */
        append_half(&packets, n, 1);
        if (n % HEAPS > 0)
            append_half(&packets, n, 0);
    }
    receive();
    long before = 0;
    for (int64_t id = 0; id < N / HEAPS; id++) {
        spt_chunk *chunk = check_chunk(id, "0111");
        if (id == WARM)
            before = allocations;
        put_chunk(free_ring, chunk);
    }
    check_end_of(data_ring);
    CHECK_EQUAL(allocations, before);
}

TEST_ONCE(what_cannot_be_is_refused_in_words)
{
    begin(plenty);
    for (int i = 0; i < 5; i++) {
        spt_chunk_config how = {0};
        how.place = i == 0 ? NULL : place;
        how.max_chunks = i == 1 ? 0 : i == 2 ? SIZE_MAX : 1;
        how.data_ring = i == 3 ? NULL : data_ring;
        how.free_ring = i == 4 ? NULL : free_ring;
        CHECK_REFUSED(SPT_ERR_ARGUMENT, "",
                      spt_recv_stream_create_chunks(NULL, RECV_CONFIG(), &how, &err));
    }
}
