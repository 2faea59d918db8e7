/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of chunks.c: heaps that a stream receives, each at its place in a chunk. */
#include "check.h"
#include "failing.h"
#include "make_packet.h"

#include "spead_tutorial/spt_recv.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HEAP = 100,  /* bytes */
    HEAPS = 4,   /* in a chunk */
    CHUNKS = 12, /* that there are */
    EXTRA = 8,
    TIMESTAMP = 0x1600,
    LONG_NS = 2000000000,
    MAX_BYTES = 1 << 20,
};

static spt_thread_pool *pool;
static spt_recv_stream *stream;
static spt_chunk_ring *data_ring, *free_ring;
static spt_chunk chunks[CHUNKS];
static uint8_t packets[MAX_BYTES]; /* one after the other */
static size_t n_bytes, n_packets;

/* ---- Packets --------------------------------------------------------------------------------- */

static made_packet made;

static uint8_t byte_of(uint64_t heap, uint64_t place)
{
    return (uint8_t)(1 + (heap * 131 + place * 7) % 251);
}

/* Make a part of a heap, whose place follows from its timestamp: heap `n` has n * HEAP. */
static void make_heap_part(uint64_t n, uint64_t begin, uint64_t size, int64_t timestamp)
{
    uint8_t payload[HEAP];
    for (uint64_t i = 0; i < size; i++)
        payload[i] = byte_of(n, begin + i);
    make_part(&made, n + 1, HEAP, begin, size);
    if (timestamp >= 0)
        make_add(&made, true, TIMESTAMP, (uint64_t)timestamp);
    make_end(&made, payload, size);
}

static void append_made(void)
{
    REQUIRE(n_bytes + made.size <= MAX_BYTES);
    memcpy(packets + n_bytes, made.bytes, made.size);
    n_bytes += made.size;
    n_packets++;
}

static void append_part(uint64_t n, uint64_t begin, uint64_t size)
{
    make_heap_part(n, begin, size, (int64_t)n * HEAP);
    append_made();
}

static void append_heap(uint64_t n)
{
    append_part(n, 0, HEAP / 2);
    append_part(n, HEAP / 2, HEAP / 2);
}

static void append_stop(void)
{
    make_part(&made, 1 << 20, 0, 0, 0);
    make_add(&made, true, SPT_ID_STREAM_CTRL, 2);
    make_end(&made, NULL, 0);
    append_made();
}

/* ---- Streams --------------------------------------------------------------------------------- */

/* By the timestamp; and whatever a test wants said besides. */
static struct {
    bool nonsense; /* about this heap: */
    uint64_t about;
    int64_t chunk_id;
    uint64_t heap_index, heap_offset, extra_offset, extra_size;
    int asked; /* atomic */
} said;

static void place(spt_place_data *data, size_t size, void *user)
{
    CHECK_EQUAL(size, 80);
    CHECK(user == &said);
    CHECK_EQUAL(data->chunk_id, -1);
    CHECK(data->packet[0] == 0x53 && data->packet_size > 8);
    __atomic_add_fetch(&said.asked, 1, __ATOMIC_SEQ_CST);
    if (data->items[0] < 0)
        return;
    CHECK_EQUAL(data->items[1], HEAP);
    uint64_t n = (uint64_t)data->items[0] / HEAP;
    data->chunk_id = (int64_t)(n / HEAPS);
    data->heap_index = n % HEAPS;
    data->heap_offset = n % HEAPS * HEAP;
    data->batch_stats[0] += 1;
    data->batch_stats[1] = n > data->batch_stats[1] ? n : data->batch_stats[1];
    data->extra[0] = (uint8_t)(n + 1);
    data->extra_offset = n % HEAPS;
    data->extra_size = 1;
    if (said.nonsense && n == said.about) {
        data->chunk_id = said.chunk_id;
        data->heap_index = said.heap_index;
        data->heap_offset = said.heap_offset;
        data->extra_offset = said.extra_offset;
        data->extra_size = said.extra_size;
    }
}

typedef struct setup {
    size_t free_chunks, room, max_chunks, packet;
    bool any_order;
} setup;

/* Memory of exactly the size of a chunk, so that a byte too far is seen by a sanitizer. */
static void make_chunks(size_t marks)
{
    for (int i = 0; i < CHUNKS; i++) {
        chunks[i] = (spt_chunk){
            .data = malloc(HEAPS * HEAP),
            .data_size = HEAPS * HEAP,
            .present = malloc(marks),
            .present_size = marks,
            .extra = calloc(HEAPS, 1),
            .extra_size = HEAPS,
            .chunk_id = -1,
        };
        memset(chunks[i].data, 0, HEAPS * HEAP);
        memset(chunks[i].present, 9, marks); /* the worker cleans it */
    }
}

static void begin(const setup *with)
{
    static const uint64_t items[] = {TIMESTAMP, SPT_ID_HEAP_LENGTH};
    static const bool is_maximum[] = {false, true};
    pool = spt_thread_pool_create(1, NULL, 0, NULL);
    data_ring = spt_chunk_ring_create(with->room, NULL);
    free_ring = spt_chunk_ring_create(CHUNKS, NULL);
    REQUIRE(pool != NULL && data_ring != NULL && free_ring != NULL);
    make_chunks(with->packet > 0 ? HEAPS * HEAP / with->packet : HEAPS);
    for (size_t i = 0; i < with->free_chunks; i++)
        REQUIRE(spt_chunk_ring_put(free_ring, &chunks[i], 0) == SPT_OK);
    spt_recv_config config = spt_recv_config_default();
    config.heaps.allow_out_of_order = with->any_order;
    spt_chunk_config how = {
        .place = place,
        .place_user = &said,
        .items = items,
        .n_items = 2,
        .max_chunks = with->max_chunks,
        .max_heap_extra = EXTRA,
        .packet_payload_size = with->packet,
        .n_stats = 2,
        .stat_is_maximum = is_maximum,
        .stream_id = 77,
        .data_ring = data_ring,
        .free_ring = free_ring,
    };
    stream = spt_recv_stream_create_chunks(pool, &config, &how, NULL);
    REQUIRE(stream != NULL);
    said.nonsense = false;
    said.asked = 0;
    n_bytes = n_packets = 0;
}

static void receive(void)
{
    REQUIRE(spt_recv_stream_add_memory(stream, packets, n_bytes, NULL) == SPT_OK);
}

static spt_chunk_stats stats(uint64_t *place_stats)
{
    spt_chunk_stats now;
    spt_recv_stream_chunk_stats(stream, &now, place_stats);
    return now;
}

/* Every packet is in the account once. */
static spt_account account(void)
{
    spt_recv_stats now;
    uint64_t fates = 0;
    spt_recv_stream_stats(stream, &now);
    for (int i = 0; i < SPT_N_FATES; i++)
        fates += now.account.fates[i];
    CHECK_EQUAL(fates, now.account.packets);
    return now.account;
}

static void finish(void)
{
    spt_recv_stream_destroy(stream);
    spt_thread_pool_destroy(pool);
    spt_chunk_ring_destroy(data_ring);
    spt_chunk_ring_destroy(free_ring);
    for (int i = 0; i < CHUNKS; i++) {
        free(chunks[i].data);
        free(chunks[i].present);
        free(chunks[i].extra);
    }
}

static bool has_heap(const spt_chunk *chunk, uint64_t n)
{
    const uint8_t *heap = (uint8_t *)chunk->data + n % HEAPS * HEAP;
    for (uint64_t i = 0; i < HEAP; i++)
        if (heap[i] != byte_of(n, i))
            return false;
    return true;
}

/* The next chunk is this one, and so it says of its heaps; those that are there have their bytes.
 */
static spt_chunk *check_chunk(int64_t id, const char *present)
{
    spt_chunk *chunk;
    REQUIRE(spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK);
    CHECK_EQUAL(chunk->chunk_id, id);
    CHECK_EQUAL(chunk->stream_id, 77);
    for (size_t i = 0; i < HEAPS; i++) {
        CHECK_EQUAL(chunk->present[i], present[i] - '0');
        if (present[i] == '1')
            CHECK(has_heap(chunk, (uint64_t)id * HEAPS + i));
    }
    return chunk;
}

static void check_end(void)
{
    spt_chunk *none;
    CHECK_EQUAL(spt_chunk_ring_get(data_ring, LONG_NS, &none), SPT_DONE);
}

/* So many chunks are left to come, at most. */
static void check_end_of(size_t most)
{
    spt_chunk *chunk;
    while (spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK)
        REQUIRE(most-- > 0);
}

static const setup plenty = {CHUNKS, CHUNKS, 2, 0, false};

static void test_heaps_go_to_their_places_and_chunks_leave_in_order(void)
{
    begin(&plenty);
    for (uint64_t n = 0; n < 3 * HEAPS; n++)
        append_heap(n);
    append_stop();
    receive();
    for (int64_t id = 0; id < 3; id++) {
        const spt_chunk *chunk = check_chunk(id, "1111");
        for (uint8_t i = 0; i < HEAPS; i++)
            CHECK_EQUAL(chunk->extra[i], id * HEAPS + i + 1);
    }
    check_end();
    uint64_t counted[2];
    CHECK_EQUAL(stats(counted).chunks, 3);
    CHECK_EQUAL(counted[0], 3 * HEAPS);
    CHECK_EQUAL(counted[1], 3 * HEAPS - 1);
    CHECK_EQUAL(said.asked, 3 * HEAPS); /* once each, and not for the stop */
    CHECK_EQUAL(account().heaps_complete, 3 * HEAPS);
    spt_chunk *more; /* the ring of free chunks goes on */
    CHECK_EQUAL(spt_chunk_ring_get(free_ring, 0, &more), SPT_OK);
    CHECK_EQUAL(spt_chunk_ring_put(free_ring, more, 0), SPT_OK);
    finish();
}

static void test_heaps_of_two_chunks_may_come_mixed_and_parts_in_any_order(void)
{
    setup any = plenty;
    any.any_order = true;
    begin(&any);
    static const uint64_t order[] = {4, 0, 5, 1, 6, 2, 7, 3};
    for (int i = 0; i < 8; i += 2) {
        append_part(order[i], HEAP / 2, HEAP / 2);
        append_part(order[i + 1], 0, HEAP / 2);
        append_part(order[i], 0, HEAP / 2);
        append_part(order[i + 1], HEAP / 2, HEAP / 2);
    }
    receive();
    check_chunk(0, "1111");
    check_chunk(1, "1111");
    check_end();
    finish();
}

static void test_skipped_chunks_come_out_empty_if_they_are_in_the_window(void)
{
    begin(&plenty);
    append_heap(5 * HEAPS);
    append_heap(10 * HEAPS + 1);
    append_heap(8 * HEAPS); /* too old */
    append_heap(9 * HEAPS + 2);
    receive();
    check_chunk(4, "0000");
    check_chunk(5, "1000");
    check_chunk(9, "0010");
    check_chunk(10, "0100");
    check_end();
    CHECK_EQUAL(stats(NULL).too_old_heaps, 1);
    CHECK_EQUAL(account().fates[SPT_NO_PLACE], 2);
    finish();
}

static void test_an_incomplete_heap_is_written_and_not_present(void)
{
    begin(&plenty);
    append_part(0, 0, HEAP / 2);
    append_heap(1);
    receive();
    const spt_chunk *chunk = check_chunk(0, "0100");
    CHECK_EQUAL(((uint8_t *)chunk->data)[HEAP / 2 - 1], byte_of(0, HEAP / 2 - 1));
    CHECK_EQUAL(((uint8_t *)chunk->data)[HEAP / 2], 0);
    CHECK_EQUAL(account().heaps_flushed, 1);
    finish();
}

static void test_nothing_is_written_to_a_chunk_that_has_left(void)
{
    setup any = plenty;
    any.max_chunks = 1;
    any.any_order = true;
    begin(&any);
    append_part(0, 0, HEAP / 2);
    append_heap(HEAPS);
    append_part(0, HEAP / 2, HEAP / 2);
    receive();
    const spt_chunk *chunk = check_chunk(0, "0000");
    CHECK_EQUAL(((uint8_t *)chunk->data)[HEAP / 2], 0);
    check_chunk(1, "1000");
    check_end();
    spt_account a = account();
    CHECK_EQUAL(a.fates[SPT_LATE], 1);
    CHECK_EQUAL(a.heaps_evicted, 1);
    finish();
}

static void test_packets_are_marked_where_each_has_a_byte(void)
{
    setup each = plenty;
    each.packet = HEAP / 2;
    begin(&each);
    said.nonsense = true; /* heap 0 and 1, at the indices 0 and 2 */
    append_part(0, 0, HEAP / 2);
    receive();
    spt_chunk *chunk;
    REQUIRE(spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK);
    CHECK_EQUAL(chunk->present_size, 2 * HEAPS);
    static const uint8_t only_first[2 * HEAPS] = {1};
    CHECK_BYTES(chunk->present, only_first, sizeof(only_first));
    finish();

    begin(&each);
    said.nonsense = true;
    said.heap_index = 2 * HEAPS - 2; /* the last that there is room for */
    said.heap_offset = (HEAPS - 1) * HEAP;
    append_heap(0);
    receive();
    REQUIRE(spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK);
    CHECK(chunk->present[2 * HEAPS - 2] == 1 && chunk->present[2 * HEAPS - 1] == 1);
    finish();

    begin(&each);
    said.nonsense = true;
    said.heap_index = 2 * HEAPS - 1;
    append_heap(0);
    receive();
    check_chunk(0, "0000");
    check_end();
    CHECK_EQUAL(stats(NULL).misplaced_heaps, 1);
    finish();
    said.heap_index = said.heap_offset = 0;
}

static void test_a_heap_that_the_place_function_does_not_want_is_refused(void)
{
    begin(&plenty);
    append_heap(0);
    make_heap_part(1, 0, HEAP / 2, -1);
    append_made();
    make_heap_part(1, HEAP / 2, HEAP / 2, HEAP); /* it was asked before */
    append_made();
    append_heap(2);
    receive();
    check_chunk(0, "1010");
    check_end();
    spt_chunk_stats now = stats(NULL);
    CHECK_EQUAL(now.rejected_heaps, 1);
    CHECK_EQUAL(now.misplaced_heaps, 0);
    CHECK_EQUAL(account().fates[SPT_NO_PLACE], 2);
    finish();
}

static const struct {
    int64_t chunk_id;
    uint64_t heap_index, heap_offset, extra_offset, extra_size;
    const char *what;
} wrong[] = {
    {0, 0, HEAPS * HEAP - HEAP + 1, 0, 0, "heap_offset"},
    {0, 0, 1000000000, 0, 0, "heap_offset"},
    {0, 0, UINT64_MAX, 0, 0, "heap_offset"},
    {0, HEAPS, 0, 0, 0, "heap_index"},
    {0, UINT64_MAX, 0, 0, 0, "heap_index"},
    {INT64_C(1) << 62, 0, 0, 0, 0, "chunk_id"},
    {INT64_MAX, 0, 0, 0, 0, "chunk_id"},
    {SPT_MAX_CHUNK_STEP + 2, 0, 0, 0, 0, "chunk_id"},
    {0, 0, 0, HEAPS, 1, "extra_offset"},
    {0, 0, 0, UINT64_MAX, 1, "extra_offset"},
    {0, 0, 0, 0, EXTRA + 1, "extra_size"},
    {0, 0, 0, 0, UINT64_MAX, "extra_size"},
};

static void test_a_place_that_there_is_not_is_refused_and_said_and_others_are_not_touched(void)
{
    static const uint8_t nothing[HEAP];
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        begin(&plenty);
        said.nonsense = true;
        said.about = 1;
        said.chunk_id = wrong[i].chunk_id;
        said.heap_index = wrong[i].heap_index;
        said.heap_offset = wrong[i].heap_offset;
        said.extra_offset = wrong[i].extra_offset;
        said.extra_size = wrong[i].extra_size;
        for (uint64_t n = 0; n < 3; n++)
            append_heap(n);
        receive();
        const spt_chunk *chunk = check_chunk(0, "1010");
        CHECK_BYTES((uint8_t *)chunk->data + HEAP, nothing, HEAP);
        check_end();
        spt_chunk_stats now = stats(NULL);
        CHECK_EQUAL(now.rejected_heaps, 1);
        CHECK_EQUAL(now.misplaced_heaps, 1);
        CHECK(strstr(now.misplaced, wrong[i].what) != NULL);
        account();
        finish();
    }
}

/* Whichever allocation fails: to say that a heap is longer is no way out of its place. */
static void test_a_heap_keeps_the_length_that_its_place_was_checked_for(void)
{
    setup marked = {1, 1, 1, HEAP / 2, true};
    long failed;
    for (long n = 1;; n++) {
        begin(&marked);
        append_part(3, 0, HEAP / 2);
        static const uint8_t payload[HEAP];
        make_part(&made, 3 + 1, 100 * HEAP, 90 * HEAP, HEAP);
        make_end(&made, payload, HEAP); /* without a timestamp it gets no place of its own */
        append_made();
        fail_once(n);
        while (spt_recv_stream_add_memory(stream, packets, n_bytes, NULL) == SPT_ERR_MEMORY)
            ;
        check_end_of(1);
        failed = stop_failing();
        CHECK(account().placed_bytes <= HEAP / 2);
        CHECK_EQUAL(account().packets, 2);
        finish();
        if (failed == 0)
            break;
        REQUIRE(n < 100);
    }
}

static void test_a_first_chunk_that_no_item_could_name_is_refused(void)
{
    begin(&plenty);
    said.nonsense = true;
    said.about = 0;
    said.chunk_id = SPT_MAX_CHUNK_ID + 1;
    said.heap_index = said.heap_offset = said.extra_size = 0;
    append_heap(0);
    append_heap(1);
    receive();
    check_chunk(0, "0100");
    check_end();
    finish();
}

static void test_the_worker_waits_for_a_free_chunk_and_loses_nothing(void)
{
    setup few = plenty;
    few.free_chunks = 1;
    few.max_chunks = 1;
    begin(&few);
    for (uint64_t n = 0; n < 6 * HEAPS; n++)
        append_heap(n);
    append_stop();
    receive();
    for (int64_t id = 0; id < 6; id++) {
        spt_chunk *chunk = check_chunk(id, "1111");
        while (stats(NULL).chunk_waits == (uint64_t)id && id < 5)
            continue; /* until it misses this one */
        REQUIRE(spt_chunk_ring_put(free_ring, chunk, 0) == SPT_OK);
    }
    check_end();
    spt_chunk_stats now = stats(NULL);
    CHECK_EQUAL(now.chunk_waits, 5);
    CHECK(now.longest_chunk_wait_ns > 0);
    CHECK_EQUAL(now.room_waits, 0);
    CHECK_EQUAL(said.asked, 6 * HEAPS); /* what waited was not asked for twice */
    CHECK_EQUAL(account().packets, n_packets);
    CHECK_EQUAL(account().heaps_complete, 6 * HEAPS);
    finish();
}

static void test_the_worker_waits_for_room_for_a_filled_chunk_and_loses_nothing(void)
{
    setup narrow = plenty;
    narrow.room = 1;
    begin(&narrow);
    for (uint64_t n = 0; n < 6 * HEAPS; n++)
        append_heap(n);
    append_stop();
    receive();
    while (stats(NULL).room_waits == 0)
        continue;
    for (int64_t id = 0; id < 6; id++)
        check_chunk(id, "1111");
    check_end();
    CHECK(stats(NULL).longest_room_wait_ns > 0);
    spt_recv_stats all;
    spt_recv_stream_stats(stream, &all);
    CHECK(all.ring_waits > 0 && all.longest_ring_wait_ns > 0);
    CHECK_EQUAL(account().heaps_complete, 6 * HEAPS);
    finish();
}

static void test_the_end_does_not_wait_for_room(void)
{
    setup narrow = plenty;
    narrow.room = 1;
    begin(&narrow);
    for (uint64_t n = 0; n < 3 * HEAPS; n++)
        append_heap(n);
    append_stop();
    receive();
    while (account().heaps_dropped == 0 && account().packets < n_packets)
        continue; /* nobody gets a chunk meanwhile */
    for (int64_t id = 0; id < 3; id++)
        check_chunk(id, "1111");
    check_end();
    finish();
}

static void test_a_stop_in_the_middle_hands_over_what_was_begun_and_stops_both_rings(void)
{
    setup few = plenty;
    few.free_chunks = 2;
    begin(&few);
    append_heap(0);
    append_part(HEAPS, 0, HEAP / 2);
    append_heap(2 * HEAPS); /* waits: there is no chunk for it */
    receive();
    while (stats(NULL).chunk_waits == 0)
        continue;
    spt_recv_stream_stop(stream);
    check_chunk(0, "1000");
    check_chunk(1, "0000");
    check_end();
    CHECK_EQUAL(spt_chunk_ring_put(free_ring, &chunks[5], 0), SPT_ERR_STOPPED);
    CHECK_EQUAL(account().packets, 3);
    spt_recv_stream_stop(stream);
    finish();
}

static void test_a_ring_that_is_stopped_ends_the_stream_and_all_chunks_are_in_the_rings(void)
{
    for (int which = 0; which < 2; which++) {
        setup few = plenty;
        few.free_chunks = 3;
        begin(&few);
        spt_chunk_ring_stop(which == 0 ? data_ring : free_ring);
        for (uint64_t n = 0; n < 8 * HEAPS; n++)
            append_heap(n);
        receive();
        spt_received_heap *none;
        CHECK_EQUAL(spt_recv_stream_get(stream, LONG_NS, &none), SPT_DONE);
        CHECK_EQUAL(spt_chunk_ring_size(data_ring), which == 0 ? 0 : 3);
        CHECK_EQUAL(spt_chunk_ring_size(free_ring), which == 0 ? 3 : 0);
        account();
        finish();
    }
}

/* ---- Sockets --------------------------------------------------------------------------------- */

/* A socket that listens on loopback, and one that sends there. */
static int listen_somewhere(int *out)
{
    int in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    REQUIRE(in >= 0 && *out >= 0);
    REQUIRE(bind(in, (struct sockaddr *)&address, length) == 0);
    REQUIRE(getsockname(in, (struct sockaddr *)&address, &length) == 0);
    REQUIRE(connect(*out, (struct sockaddr *)&address, length) == 0);
    return in;
}

static void send_heap(int out, uint64_t n)
{
    for (uint64_t begin = 0; begin < HEAP; begin += HEAP / 2) {
        make_heap_part(n, begin, HEAP / 2, (int64_t)n * HEAP);
        REQUIRE(send(out, made.bytes, made.size, 0) == (ssize_t)made.size);
    }
}

/* Gets chunks, looks at them, and gives them back. */
static void *consume(void *count)
{
    spt_chunk *chunk;
    while (spt_chunk_ring_get(data_ring, LONG_NS, &chunk) == SPT_OK) {
        for (uint64_t i = 0; i < HEAPS; i++) {
            CHECK(chunk->present[i] == 0 || has_heap(chunk, (uint64_t)chunk->chunk_id * HEAPS + i));
            *(uint64_t *)count += chunk->present[i];
        }
        if (spt_chunk_ring_put(free_ring, chunk, 0) != SPT_OK)
            break; /* it was stopped */
    }
    return NULL;
}

static void test_streams_of_chunks_are_stopped_at_any_moment(void)
{
    for (uint64_t round = 0; round < 30; round++) {
        setup few = {3, 1, 2, 0, false};
        begin(&few);
        int out, in = listen_somewhere(&out);
        for (int i = 0; i < 2; i++) /* two readers of one socket */
            REQUIRE(spt_recv_stream_add_udp_socket(stream, in, NULL, NULL) == SPT_OK);
        uint64_t present = 0;
        pthread_t consumer;
        REQUIRE(pthread_create(&consumer, NULL, consume, &present) == 0);
        for (uint64_t n = 0; n < 20 * (1 + round); n++)
            send_heap(out, n);
        if (round % 3 == 0)
            spt_thread_pool_stop(pool);
        if (round % 3 == 1)
            spt_chunk_ring_stop(data_ring);
        spt_recv_stream_stop(stream);
        pthread_join(consumer, NULL);
        CHECK(present <= account().heaps_complete);
        close(in);
        close(out);
        finish();
    }
}

static void test_two_readers_that_both_wait_go_on(void)
{
    setup none = plenty;
    none.free_chunks = 0;
    none.max_chunks = 6;
    none.any_order = true;
    begin(&none);
    int out[2], in[2];
    for (int i = 0; i < 2; i++) {
        in[i] = listen_somewhere(&out[i]);
        REQUIRE(spt_recv_stream_add_udp_socket(stream, in[i], NULL, NULL) == SPT_OK);
    }
    for (uint64_t n = 0; n < 6 * HEAPS; n++)
        send_heap(out[n % 2], n);
    for (int i = 0; i < 6; i++) {
        while (stats(NULL).chunk_waits == (uint64_t)i && account().packets < 2 * 6 * HEAPS)
            continue;
        REQUIRE(spt_chunk_ring_put(free_ring, &chunks[i], 0) == SPT_OK);
    }
    while (account().packets < 2 * 6 * HEAPS)
        continue; /* until all have come, of both */
    spt_recv_stream_stop(stream);
    for (int64_t id = 0; id < 6; id++)
        check_chunk(id, "1111");
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
    finish();
}

/* One that ends by a ring of its own has chunks that another one waits for. */
static void test_a_stream_that_gives_its_chunks_back_wakes_another_that_waits_for_them(void)
{
    setup two = plenty;
    two.free_chunks = 2;
    begin(&two); /* the first one: it takes both chunks */
    append_heap(0);
    append_heap(HEAPS);
    int out, in = listen_somewhere(&out);
    REQUIRE(spt_recv_stream_add_udp_socket(stream, in, NULL, NULL) == SPT_OK);
    send_heap(out, 0);
    send_heap(out, HEAPS);
    while (account().packets < 4)
        continue;

    spt_chunk_ring *other_ring = spt_chunk_ring_create(CHUNKS, NULL);
    static const uint64_t items[] = {TIMESTAMP, SPT_ID_HEAP_LENGTH};
    spt_recv_config config = spt_recv_config_default();
    spt_chunk_config how = {
        .place = place,
        .place_user = &said,
        .items = items,
        .n_items = 2,
        .max_chunks = 2,
        .max_heap_extra = EXTRA,
        .n_stats = 2,
        .data_ring = other_ring,
        .free_ring = free_ring,
    };
    spt_recv_stream *other = spt_recv_stream_create_chunks(pool, &config, &how, NULL);
    REQUIRE(other_ring != NULL && other != NULL);
    REQUIRE(spt_recv_stream_add_memory(other, packets, n_bytes, NULL) == SPT_OK);
    spt_chunk_stats now = {0};
    while (now.chunk_waits == 0)
        spt_recv_stream_chunk_stats(other, &now, NULL);

    spt_chunk_ring_stop(data_ring);
    send_heap(out, 3 * HEAPS); /* for which one would have to go there */
    spt_chunk *chunk;
    for (int64_t id = 0; id < 2; id++) {
        REQUIRE(spt_chunk_ring_get(other_ring, LONG_NS, &chunk) == SPT_OK);
        CHECK_EQUAL(chunk->chunk_id, id);
        CHECK(has_heap(chunk, (uint64_t)id * HEAPS));
    }
    spt_recv_stream_destroy(other);
    spt_chunk_ring_destroy(other_ring);
    close(in);
    close(out);
    finish();
}

static void test_what_is_held_when_a_stream_ends_is_counted(void)
{
    setup few = plenty;
    few.free_chunks = 0;
    begin(&few);
    int out, in = listen_somewhere(&out);
    REQUIRE(spt_recv_stream_add_udp_socket(stream, in, NULL, NULL) == SPT_OK);
    for (uint64_t n = 0; n < 4; n++)
        send_heap(out, n);
    while (stats(NULL).chunk_waits == 0)
        continue;
    spt_recv_stream_stop(stream);
    spt_recv_stats now;
    spt_recv_stream_stats(stream, &now);
    CHECK(now.after_end > 0);
    CHECK_EQUAL(now.account.packets, 0);
    CHECK_EQUAL(now.after_end, now.sockets.datagrams);
    close(in);
    close(out);
    finish();
}

static void test_what_cannot_be_is_refused_in_words(void)
{
    begin(&plenty);
    spt_recv_config config = spt_recv_config_default();
    for (int i = 0; i < 5; i++) {
        spt_chunk_config how = {.place = i == 0 ? NULL : place,
                                .max_chunks = i == 1   ? 0
                                              : i == 2 ? SIZE_MAX
                                                       : 1,
                                .data_ring = i == 3 ? NULL : data_ring,
                                .free_ring = i == 4 ? NULL : free_ring};
        spt_error err = {0};
        CHECK(spt_recv_stream_create_chunks(pool, &config, &how, &err) == NULL);
        CHECK_EQUAL(err.status, SPT_ERR_ARGUMENT);
        CHECK(err.message[0] != '\0');
    }
    finish();
}

int main(void)
{
    RUN(test_heaps_go_to_their_places_and_chunks_leave_in_order);
    RUN(test_heaps_of_two_chunks_may_come_mixed_and_parts_in_any_order);
    RUN(test_skipped_chunks_come_out_empty_if_they_are_in_the_window);
    RUN(test_an_incomplete_heap_is_written_and_not_present);
    RUN(test_nothing_is_written_to_a_chunk_that_has_left);
    RUN(test_packets_are_marked_where_each_has_a_byte);
    RUN(test_a_heap_that_the_place_function_does_not_want_is_refused);
    RUN(test_a_place_that_there_is_not_is_refused_and_said_and_others_are_not_touched);
    RUN(test_a_heap_keeps_the_length_that_its_place_was_checked_for);
    RUN(test_a_first_chunk_that_no_item_could_name_is_refused);
    RUN(test_the_worker_waits_for_a_free_chunk_and_loses_nothing);
    RUN(test_the_worker_waits_for_room_for_a_filled_chunk_and_loses_nothing);
    RUN(test_the_end_does_not_wait_for_room);
    RUN(test_a_stop_in_the_middle_hands_over_what_was_begun_and_stops_both_rings);
    RUN(test_a_ring_that_is_stopped_ends_the_stream_and_all_chunks_are_in_the_rings);
    RUN(test_streams_of_chunks_are_stopped_at_any_moment);
    RUN(test_two_readers_that_both_wait_go_on);
    RUN(test_a_stream_that_gives_its_chunks_back_wakes_another_that_waits_for_them);
    RUN(test_what_is_held_when_a_stream_ends_is_counted);
    RUN(test_what_cannot_be_is_refused_in_words);
    return check_done();
}
