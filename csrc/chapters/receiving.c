/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what the chapters' programs that receive share. */
#include "receiving.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

enum { LOOK_NS = 100000000, BUFFER_SIZE = 8388608 };

/* ---- Options ---- */

enum {
    LARGEST_HEAP = (1 << 30) - 8192,
    MOST_BUFFERS = 1000,
    MOST_SOCKETS = 256
}; /* of a stream, with descriptors */

struct receiver_options parse_receiver_options(int argc, char **argv, const char *doc,
                                               struct receiver_options usual)
{
    struct receiver_options o = usual;
    char *where = NULL, accepted[5] = "";
    o.endpoint = (spt_endpoint){"", 8888};
    o.silence_s = 5;
    if (usual.heap_size > 0)
        strcat(accepted, "H");
    if (usual.buffers > 0)
        strcat(accepted, "b");
    if (usual.sockets > 0)
        strcat(accepted, "s");
    if (usual.senders > 0)
        strcat(accepted, "a");
    const struct word words[] = {
        {"[HOST:]PORT", NULL, "address and UDP port to listen on (any, 8888)", WORD_TEXT, &where,
         .optional = true},
        {"-t", "SECONDS", "how long nothing has come when it ends (%)", WORD_REAL, &o.silence_s,
         .range = {0, 1000000}, .must = "a number of seconds up to 1e6"},
        {"-H, --heap-size", "BYTES", "bytes of samples in a heap (%)", WORD_SIZE, &o.heap_size,
         .range = {1, LARGEST_HEAP}, .only = 'H'},
        {"-b, --buffers", "COUNT",
         "heaps that the pool has memory for (%); 0 for none,\nso that each gets new memory",
         WORD_SIZE, &o.buffers, .range = {0, MOST_BUFFERS}, .only = 'b'},
        {"-s, --sockets", "COUNT", "sockets on the port, each with a thread (%)", WORD_SIZE,
         &o.sockets, .range = {1, MOST_SOCKETS}, .only = 's'},
        {"--senders", "COUNT", "senders, each of which has a port, from PORT on (%)", WORD_SIZE,
         &o.senders, .range = {1, MOST_SENDERS}, .only = 'a'},
        {"--interface", "ADDRESS", "address of the card to join a group on (the route's)",
         WORD_TEXT, &o.interface, .only = 'a'},
        {"--lossy", NULL, "go on without senders that are too slow", WORD_ON, .to = &o.lossy,
         .only = 'a'},
        {"--json", NULL, "print a JSON object, not the heaps", WORD_ON, .to = &o.json},
        {"--text", NULL, "with --json: print the heaps, too", WORD_ON, .to = &o.text},
        {NULL},
    };
    read_words(argc, argv, doc, "-t 60 8888", accepted, words);
    o.text |= !o.json;
    if (where != NULL)
        o.endpoint = read_place(where);
    check_last_port(o.endpoint.port, larger(1, o.senders));
    setvbuf(stdout, NULL, _IOLBF, 0);
    return o;
}

void say(const struct receiver_options *options, const char *format, ...)
{
    if (!options->text)
        return;
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

/* ---- Heaps, until the stream ends ---- */

/* Add what is reported of a stream to that of others. */
static void add_stats(spt_recv_stats *all, const spt_recv_stats *one)
{
    for (int i = 0; i < SPT_N_FATES; i++)
        all->account.fates[i] += one->account.fates[i];
    all->account.placed_bytes += one->account.placed_bytes;
    all->account.heaps_complete += one->account.heaps_complete;
    all->account.heaps_evicted += one->account.heaps_evicted;
    all->account.heaps_flushed += one->account.heaps_flushed;
    all->account.heaps_dropped += one->account.heaps_dropped;
    all->account.heaps_never_begun += one->account.heaps_never_begun;
    all->account.counts_skipped += one->account.counts_skipped;
    all->sockets.datagrams += one->sockets.datagrams;
    all->sockets.messages += one->sockets.messages;
    all->sockets.dropped += one->sockets.dropped;
    all->sockets.buffer_size += one->sockets.buffer_size;
    all->after_end += one->after_end;
    all->ring_waits += one->ring_waits;
    if (one->longest_ring_wait_ns > all->longest_ring_wait_ns)
        all->longest_ring_wait_ns = one->longest_ring_wait_ns;
}

/* Add those of some streams to that. */
static void add_streams(spt_recv_stats *all, spt_recv_stream *const *streams, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        spt_recv_stats one;
        spt_recv_stream_stats(streams[i], &one);
        add_stats(all, &one);
    }
}

/* Senders of chapters count every heap, so counts that were skipped are of heaps that are missing.
 */
static spt_recv_stats stats_of(const struct heaps *heaps)
{
    spt_recv_stats stats = {0};
    if (heaps->members != NULL)
        add_streams(&stats, heaps->members, heaps->n_members);
    else if (heaps->sockets == NULL)
        add_streams(&stats, &heaps->stream, 1);
    for (size_t i = 0; i < heaps->n_sockets; i++)
        add_streams(&stats, &heaps->sockets[i].stream, 1);
    stats.account.heaps_never_begun += stats.account.counts_skipped;
    return stats;
}

static volatile sig_atomic_t was_interrupted; /* by which signal */

static void note_interrupt(int number)
{
    was_interrupted = number;
}

/* Take a signal, unless it is ignored, as Ctrl-C is under nohup. */
static void take_interrupt(int number)
{
    struct sigaction before, action = {.sa_handler = note_interrupt, .sa_flags = SA_RESTART};
    sigaction(number, NULL, &before);
    if (before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

/* End the stream after a signal. */
static void heed_interrupt(struct heaps *heaps)
{
    if (!was_interrupted)
        return;
    heaps->interrupted = true;
    spt_recv_stream_stop(heaps->stream);
}

struct heaps heaps_of_one(spt_recv_stream *stream, const struct receiver_options *options,
                          struct together *together)
{
    struct heaps heaps = {.stream = stream, .options = options, .together = together};
    heaps.faults_before = usage_now().page_faults;
    if (together != NULL && together->told)
        return heaps;
    uint64_t granted = stats_of(&heaps).sockets.buffer_size / 2;
    if (granted < BUFFER_SIZE)
        tell("the receive buffer has %" PRIu64 " bytes, not %d: allow more with"
             " 'sysctl -w net.core.rmem_max=%d'",
             granted, BUFFER_SIZE, BUFFER_SIZE);
    take_interrupt(SIGINT);
    take_interrupt(SIGTERM);
    tell("listening on port %d", options->endpoint.port);
    if (together != NULL)
        together->told = true;
    return heaps;
}

struct heaps heaps_of(spt_recv_stream *stream, const struct receiver_options *options)
{
    return heaps_of_one(stream, options, NULL);
}

static struct together *together_of(struct heaps *heaps)
{
    return heaps->together != NULL ? heaps->together : &heaps->alone;
}

static void note_that_something_came(struct heaps *heaps, int64_t now)
{
    if (heaps->first_packets_ns == 0)
        heaps->first_packets_ns = now;
    __atomic_store_n(&together_of(heaps)->since_ns, now, __ATOMIC_SEQ_CST);
}

/* Keep of a group whom its streams wait for: at the end they do not any more. */
static void note_awaited(struct heaps *heaps)
{
    spt_chunk_group_stats stats;
    if (heaps->group == NULL)
        return;
    spt_chunk_group_read_stats(heaps->group, &stats);
    heaps->awaits = stats.waits;
    heaps->awaited = stats.slow_member;
}

/* End the stream if nothing has come for some time: the stop heap may be lost, or has come to
 * another socket. Those that have ended earlier keep theirs: closing one moves flows. */
static void look(struct heaps *heaps)
{
    note_awaited(heaps);
    heed_interrupt(heaps);
    uint64_t came = stats_of(heaps).sockets.datagrams;
    int64_t now = time_ns(CLOCK_MONOTONIC);
    if (came != heaps->came) {
        heaps->came = came;
        note_that_something_came(heaps, now);
        return;
    }
    bool ended = __atomic_load_n(&together_of(heaps)->ended, __ATOMIC_SEQ_CST);
    int64_t since = __atomic_load_n(&together_of(heaps)->since_ns, __ATOMIC_SEQ_CST);
    double patience_ns = ended ? LOOK_NS : heaps->options->silence_s * 1e9;
    if (since == 0)
        return;
    if (now - since > heaps->longest_pause_ns)
        heaps->longest_pause_ns = now - since;
    if ((double)(now - since) >= patience_ns) {
        heaps->silent = !ended;
        spt_recv_stream_stop(heaps->stream);
    }
}

struct heaps heaps_of_all(const struct heaps *sockets, size_t n)
{
    struct heaps all = sockets[0];
    all.sockets = sockets;
    all.n_sockets = n;
    for (size_t i = 1; i < n; i++) {
        const struct heaps *one = &sockets[i];
        if (one->n == 0)
            continue;
        if (all.n == 0 || one->first_ns < all.first_ns) {
            all.first_ns = one->first_ns;
            all.at_first = one->at_first;
        }
        all.last_ns = one->last_ns > all.last_ns ? one->last_ns : all.last_ns;
        all.n += one->n;
        all.bytes_before += one->bytes_before;
        all.not_understood += one->not_understood;
        all.interrupted |= one->interrupted;
    }
    all.silent = !all.together->ended && !all.interrupted;
    return all;
}

static void note_arrival(struct heaps *heaps)
{
    heaps->last_ns = time_ns(CLOCK_MONOTONIC);
    note_that_something_came(heaps, heaps->last_ns);
    if (heaps->first_ns == 0) {
        heaps->first_ns = heaps->last_ns;
        heaps->bytes_before = stats_of(heaps).account.placed_bytes;
        heaps->at_first = usage_now();
    }
}

spt_received_heap *next_heap(struct heaps *heaps)
{
    spt_received_heap *heap;
    spt_status status;
    heed_interrupt(heaps);
    while ((status = spt_recv_stream_get(heaps->stream, LOOK_NS, &heap)) == SPT_PENDING)
        look(heaps);
    if (status != SPT_OK) {
        if (!heaps->silent && !heaps->interrupted)
            __atomic_store_n(&together_of(heaps)->ended, true, __ATOMIC_SEQ_CST);
        return NULL;
    }
    note_arrival(heaps);
    heaps->n++;
    return heap;
}

struct heaps chunks_of(spt_recv_stream *stream, spt_chunk_ring *filled,
                       const struct receiver_options *options)
{
    struct heaps heaps = heaps_of(stream, options);
    heaps.chunks = filled;
    return heaps;
}

struct heaps chunks_of_all(spt_chunk_group *group, spt_recv_stream *const *members, size_t n,
                           spt_chunk_ring *filled, const struct receiver_options *options)
{
    struct heaps heaps = chunks_of(members[0], filled, options);
    heaps.group = group;
    heaps.members = members;
    heaps.n_members = n;
    return heaps;
}

size_t n_present(const spt_chunk *chunk)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk->present_size; i++)
        n += chunk->present[i];
    return n;
}

spt_chunk *next_chunk(struct heaps *heaps)
{
    spt_chunk *chunk;
    spt_status status;
    heed_interrupt(heaps);
    while ((status = spt_chunk_ring_get(heaps->chunks, LOOK_NS, &chunk)) == SPT_PENDING)
        look(heaps);
    if (status != SPT_OK)
        return NULL;
    note_arrival(heaps);
    heaps->n += n_present(chunk);
    return chunk;
}

/* ---- Items ---- */

/* Write a stranger's text as Python's programs do: what is no letter to a terminal as an escape. */
static void say_text(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\n')
            putchar(' ');
        else if (*text == '\t' || *text == '\r')
            fputs(*text == '\t' ? "\\t" : "\\r", stdout);
        else
            printf(*text >= 32 && *text < 127 ? "%c" : "\\x%02x", (unsigned char)*text);
}

/* Its kind and bits, such as int8; a question mark for what is more than a number. */
static void say_type(const spt_group_item *item)
{
    static const char *const words[] = {"uint", "int", "float", "bool"};
    for (size_t i = 0; i < 4; i++)
        if (item->code == "uifb"[i]) {
            printf(", %s%" PRIu32, words[i], item->bits);
            return;
        }
    fputs(", ?", stdout);
}

void say_described(const struct receiver_options *options, const spt_item_group *group)
{
    for (size_t i = 0; options->text && i < spt_item_group_size(group); i++) {
        const spt_group_item *item = spt_item_group_at(group, i);
        if (!item->is_new)
            continue;
        printf("0x%" PRIx64 " ", item->id);
        say_text(item->name);
        say_type(item);
        for (size_t j = 0; j < smaller(item->n_shape, SPT_GROUP_DIMENSIONS); j++)
            if (item->shape[j] < 0)
                fputs("[any]", stdout);
            else
                printf("[%" PRId64 "]", item->shape[j]);
        fputs(item->n_shape > SPT_GROUP_DIMENSIONS ? "[...]: " : ": ", stdout);
        say_text(item->description);
        putchar('\n');
    }
}

size_t n_numbers(const spt_group_item *item)
{
    return item->value.length / (item->bits / 8);
}

int64_t number_at(const spt_group_item *item, size_t i)
{
    size_t n_bytes = item->bits / 8;
    const uint8_t *bytes = item->value.data + i * n_bytes;
    uint64_t number = 0;
    for (size_t j = 0; j < n_bytes; j++)
        number = number << 8 | bytes[item->little_endian ? n_bytes - 1 - j : j];
    size_t unused = 64 - item->bits;
    return item->code == 'i' ? (int64_t)(number << unused) >> unused : (int64_t)number;
}

const spt_group_item *numbers(const spt_item_group *group, const char *name)
{
    const spt_group_item *item = spt_item_group_find(group, name);
    if (item == NULL || !item->has_value || (item->code != 'i' && item->code != 'u') ||
        item->bits == 0 || item->bits > 64 || item->bits % 8 != 0)
        return NULL;
    return n_numbers(item) > 0 ? item : NULL;
}

bool is_int8(const spt_group_item *item)
{
    return item != NULL && item->code == 'i' && item->bits == 8;
}

/* ---- The account ---- */

/* The core's names of what becomes of packets, and of those that came after the end. */
static const char *const fates[] = {
#define FATE_NAME(name, value, text) #name,
    SPT_FATE_LIST(FATE_NAME)
#undef FATE_NAME
        "SPT_AFTER_END"};

enum { N_FATES = SPT_N_FATES + 1 };

static uint64_t became(const spt_recv_stats *stats, size_t i)
{
    return i < SPT_N_FATES ? stats->account.fates[i] : stats->after_end;
}

/* Print the name of a fate in small letters, with something between its words. */
static void print_fate(size_t i, char between)
{
    for (const char *c = fates[i] + strlen("SPT_"); *c != '\0'; c++)
        putchar(*c == '_' ? between : tolower((unsigned char)*c));
}

/* Of a pool, by the names that they have in a JSON object. */
struct pool_counts {
    uint64_t requests, empty, too_large, largest, most_in_use, page_faults;
};

static struct pool_counts pool_counts(const struct heaps *heaps)
{
    spt_memory_pool_stats stats;
    spt_memory_pool_read_stats(heaps->pool, &stats);
    return (struct pool_counts){
        .requests = stats.gets,
        .empty = stats.empty,
        .too_large = stats.passed_by,
        .largest = stats.largest,
        .most_in_use = stats.most_in_use,
        .page_faults = (uint64_t)(usage_now().page_faults - heaps->faults_before),
    };
}

static void print_pool(const struct heaps *heaps)
{
    struct pool_counts counts = pool_counts(heaps);
    printf("pool of %zu: %" PRIu64 " requests, %" PRIu64 " while it was empty, %" PRIu64
           " too large; at most %" PRIu64 " in use\n",
           heaps->options->buffers, counts.requests, counts.empty, counts.too_large,
           counts.most_in_use);
    printf("page faults: %" PRIu64 "\n", counts.page_faults);
}

/* What a stream of a group says of its sender. */
struct sender_counts {
    uint64_t heaps, packets, incomplete, missing, too_old, dropped;
};

static struct sender_counts counts_of_sender(const struct heaps *heaps, size_t i)
{
    spt_recv_stats stats;
    spt_chunk_stats chunks;
    spt_recv_stream_stats(heaps->members[i], &stats);
    spt_recv_stream_chunk_stats(heaps->members[i], &chunks, NULL);
    return (struct sender_counts){
        .heaps = stats.account.heaps_complete,
        .packets = stats.sockets.datagrams,
        .incomplete = stats.account.heaps_evicted + stats.account.heaps_flushed,
        .missing = stats.account.heaps_never_begun + stats.account.counts_skipped,
        .too_old = chunks.too_old_heaps,
        .dropped = stats.sockets.dropped,
    };
}

static void print_senders(const struct heaps *heaps)
{
    spt_chunk_group_stats stats;
    for (size_t i = 0; i < heaps->n_members; i++) {
        struct sender_counts one = counts_of_sender(heaps, i);
        printf("sender %zu: %" PRIu64 " heaps, %" PRIu64 " incomplete, %" PRIu64
               " missing, %" PRIu64 " too old; %" PRIu64 " dropped\n",
               i, one.heaps, one.incomplete, one.missing, one.too_old, one.dropped);
    }
    if (heaps->group != NULL) {
        spt_chunk_group_read_stats(heaps->group, &stats);
        printf("waits for a sender: %" PRIu64 "\n", stats.member_waits);
    }
}

static void print_account(const struct heaps *heaps, const spt_recv_stats *stats)
{
    const spt_account *account = &stats->account;
    uint64_t arriving = heaps->interrupted ? account->heaps_flushed : 0;
    uint64_t incomplete = account->heaps_evicted + account->heaps_flushed - arriving;
    if (heaps->interrupted)
        puts("It was interrupted before the stream had ended.");
    else if (heaps->silent)
        printf("Nothing has come for %g s: the stop heap may be lost.\n",
               heaps->options->silence_s);
    else
        puts("The stream has ended.");
    printf("packets: %" PRIu64 " received =", stats->sockets.datagrams);
    const char *plus = " ";
    for (size_t i = 0; i < N_FATES; i++)
        if (became(stats, i) > 0) {
            printf("%s%" PRIu64 " ", plus, became(stats, i));
            print_fate(i, ' ');
            plus = " + ";
        }
    printf("%s\nheaps: %" PRIu64 " complete, %" PRIu64 " incomplete, %" PRIu64 " never begun",
           plus[1] == '\0' ? " none" : "", account->heaps_complete, incomplete,
           account->heaps_never_begun);
    if (arriving > 0)
        printf(", %" PRIu64 " still arriving", arriving);
    printf("\nsocket: %" PRIu64 " dropped\n", stats->sockets.dropped);
    for (size_t i = 0; i < heaps->n_sockets; i++)
        printf("socket %zu: %zu heaps, %" PRIu64 " dropped\n", i + 1, heaps->sockets[i].n,
               stats_of(&heaps->sockets[i]).sockets.dropped);
    print_senders(heaps);
    if (heaps->not_understood > 0)
        printf(
            "heaps not understood: %zu (their descriptors did not arrive, or say something else)\n",
            heaps->not_understood);
    /* All may have come before one was taken: what came later has to be a heap's worth. */
    double timed = (double)(account->placed_bytes - heaps->bytes_before);
    if (heaps->last_ns > heaps->first_ns &&
        timed * (double)account->heaps_complete >= (double)account->placed_bytes)
        printf("%.2f MB/s from the first %s to the last\n",
               timed / (double)(heaps->last_ns - heaps->first_ns) * 1e3,
               heaps->chunks != NULL ? "chunk" : "heap");
    if (heaps->pool != NULL)
        print_pool(heaps);
}

/* ---- The account of chunks ---- */

/* What the stream counts of chunks, and its place function of heaps of another size. */
struct chunk_counts {
    spt_chunk_stats stats;
    uint64_t unfit, twice; /* those that came whole, and were written over by others */
};

static void add_chunk_stats(spt_chunk_stats *all, const spt_chunk_stats *one)
{
    all->too_old_heaps += one->too_old_heaps;
    all->rejected_heaps += one->rejected_heaps;
    all->misplaced_heaps += one->misplaced_heaps;
    all->chunks += one->chunks;
    all->chunk_waits += one->chunk_waits;
    all->room_waits += one->room_waits;
    if (one->longest_chunk_wait_ns > all->longest_chunk_wait_ns)
        all->longest_chunk_wait_ns = one->longest_chunk_wait_ns;
    if (one->longest_room_wait_ns > all->longest_room_wait_ns)
        all->longest_room_wait_ns = one->longest_room_wait_ns;
}

static struct chunk_counts chunk_counts_of(const struct heaps *heaps, const spt_account *account)
{
    struct chunk_counts counts = {0};
    for (size_t i = 0; i < larger(heaps->chunks != NULL, heaps->n_members); i++) {
        spt_chunk_stats one;
        uint64_t unfit;
        spt_recv_stream_chunk_stats(heaps->members != NULL ? heaps->members[i] : heaps->stream,
                                    &one, &unfit);
        add_chunk_stats(&counts.stats, &one);
        counts.unfit += unfit;
    }
    if (heaps->chunks != NULL)
        counts.twice = account->heaps_complete - heaps->n;
    return counts;
}

static void print_chunks(const struct chunk_counts *counts)
{
    const spt_chunk_stats *stats = &counts->stats;
    printf("chunks: %" PRIu64 " filled, waits: %" PRIu64 " for a free one, %" PRIu64 " for room\n",
           stats->chunks, stats->chunk_waits, stats->room_waits);
    const struct {
        uint64_t count;
        const char *words;
    } in_none[] = {
        {counts->unfit, "of another size"},
        {stats->too_old_heaps, "too old for their chunk"},
        {stats->misplaced_heaps, "beyond any chunk"},
        {stats->rejected_heaps - counts->unfit - stats->misplaced_heaps, "without a timestamp"},
        {counts->twice, "in the place of others"},
    };
    const char *before = "heaps that are in no chunk: ";
    for (size_t i = 0; i < sizeof(in_none) / sizeof(in_none[0]); i++)
        if (in_none[i].count > 0) {
            printf("%s%" PRIu64 " %s", before, in_none[i].count, in_none[i].words);
            before = ", ";
        }
    if (before[0] == ',')
        putchar('\n');
}

static void print_chunk_record(const struct chunk_counts *counts)
{
    const spt_chunk_stats *stats = &counts->stats;
    printf(", \"unfit_heaps\": %" PRIu64 ", \"too_old_heaps\": %" PRIu64
           ", \"misplaced_heaps\": %" PRIu64 ", \"rejected_heaps\": %" PRIu64,
           counts->unfit, stats->too_old_heaps, stats->misplaced_heaps, stats->rejected_heaps);
    printf(", \"chunks\": %" PRIu64 ", \"chunk_waits\": %" PRIu64
           ", \"longest_chunk_wait_ns\": %" PRIu64 ", \"room_waits\": %" PRIu64
           ", \"longest_room_wait_ns\": %" PRIu64,
           stats->chunks, stats->chunk_waits, stats->longest_chunk_wait_ns, stats->room_waits,
           stats->longest_room_wait_ns);
}

/* What is to be said where heaps are in no chunk that belong into one. */
static const char *trouble_of_chunks(const struct heaps *heaps, const struct chunk_counts *counts)
{
    static char text[200];
    if (heaps->awaits) {
        snprintf(text, sizeof(text),
                 "all waited for sender %zu, of which nothing comes: have it send,"
                 " or go on without it with --lossy",
                 heaps->awaited);
        return text;
    }
    if (counts->stats.too_old_heaps > 0 && heaps->options->lossy)
        return "heaps came too late: their senders are too far behind the others, which"
               " --lossy does not wait for";
    snprintf(text, sizeof(text),
             "heaps are not of %zu bytes, or their timestamps are no multiples of that:"
             " say with -H what the sender sends; descriptors need a heap of their own",
             heaps->options->heap_size);
    if (counts->unfit > 0)
        return text;
    if (counts->stats.too_old_heaps + counts->stats.misplaced_heaps + counts->twice > 0)
        return "timestamps jump, or come twice: let one sender send, in order,"
               " to a receiver that was started for it";
    return NULL;
}

/* ---- The whole of it ---- */

static void print_sockets(const struct heaps *heaps)
{
    const char *before = ", \"sockets\": [";
    for (size_t i = 0; i < heaps->n_sockets; i++, before = ", ") {
        spt_receive_stats socket = stats_of(&heaps->sockets[i]).sockets;
        printf("%s{\"heaps\": %zu, \"datagrams\": %" PRIu64 ", \"dropped\": %" PRIu64 "}", before,
               heaps->sockets[i].n, socket.datagrams, socket.dropped);
    }
    putchar(']');
}

static void print_sender_records(const struct heaps *heaps)
{
    spt_chunk_group_stats stats;
    spt_chunk_group_read_stats(heaps->group, &stats);
    printf(", \"member_waits\": %" PRIu64 ", \"longest_member_wait_ns\": %" PRIu64,
           stats.member_waits, stats.longest_member_wait_ns);
    printf(", \"first_packets_ns\": %" PRId64 ", \"longest_pause_ns\": %" PRId64,
           heaps->first_packets_ns, heaps->longest_pause_ns);
    const char *before = ", \"senders\": [";
    for (size_t i = 0; i < heaps->n_members; i++, before = ", ") {
        struct sender_counts one = counts_of_sender(heaps, i);
        printf("%s{\"port\": %zu, \"heaps\": %" PRIu64 ", \"packets\": %" PRIu64
               ", \"incomplete\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"too_old\": %" PRIu64
               ", \"dropped\": %" PRIu64 "}",
               before, (size_t)heaps->options->endpoint.port + i, one.heaps, one.packets,
               one.incomplete, one.missing, one.too_old, one.dropped);
    }
    putchar(']');
}

/* What the program used since the first heap. */
static void print_used(const struct heaps *heaps)
{
    struct usage used = {0};
    if (heaps->n > 0)
        used = usage_since(heaps->at_first);
    printf(", \"cpu_user_ns\": %" PRId64 ", \"cpu_system_ns\": %" PRId64
           ", \"context_switches\": %" PRId64,
           used.cpu_user_ns, used.cpu_system_ns, used.context_switches);
}

static void print_counts(const spt_recv_stats *stats)
{
    const spt_account *account = &stats->account;
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"heaps_complete", account->heaps_complete},
        {"heaps_never_begun", account->heaps_never_begun},
        {"incomplete_heaps_evicted", account->heaps_evicted},
        {"incomplete_heaps_flushed", account->heaps_flushed},
        {"worker_blocked", stats->ring_waits},
        {"longest_ring_wait_ns", stats->longest_ring_wait_ns},
        {"socket_datagrams", stats->sockets.datagrams},
        {"socket_messages", stats->sockets.messages},
        {"socket_dropped", stats->sockets.dropped},
        {"socket_buffer", stats->sockets.buffer_size},
        {"payload_bytes", account->placed_bytes},
    };
    for (size_t i = 0; i < N_FATES; i++) {
        printf(", \"packets_");
        print_fate(i, '_');
        printf("\": %" PRIu64, became(stats, i));
    }
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        printf(", \"%s\": %" PRIu64, counts[i].name, counts[i].count);
}

static void print_record(const struct heaps *heaps, const spt_recv_stats *stats,
                         const struct chunk_counts *chunks)
{
    print_about();
    printf("\"ended\": \"%s\"", heaps->interrupted ? "interrupt"
                                : heaps->silent    ? "silence"
                                                   : "stop");
    printf(", \"heaps\": %zu, \"heaps_not_understood\": %zu, ", heaps->n, heaps->not_understood);
    printf("\"elapsed_ns\": %" PRId64 ", \"timed_bytes\": %" PRIu64,
           heaps->last_ns - heaps->first_ns, stats->account.placed_bytes - heaps->bytes_before);
    print_used(heaps);
    print_counts(stats);
    if (heaps->pool != NULL) {
        struct pool_counts pool = pool_counts(heaps);
        printf(", \"pool_requests\": %" PRIu64 ", \"pool_empty\": %" PRIu64
               ", \"pool_too_large\": %" PRIu64 ", \"pool_most_in_use\": %" PRIu64
               ", \"page_faults\": %" PRIu64,
               pool.requests, pool.empty, pool.too_large, pool.most_in_use, pool.page_faults);
    }
    if (heaps->chunks != NULL)
        print_chunk_record(chunks);
    if (heaps->sockets != NULL)
        print_sockets(heaps);
    if (heaps->group != NULL)
        print_sender_records(heaps);
    puts("}");
}

/* Say where packets waited because the program did: the ring was full before the socket was. */
static void say_slow(const spt_recv_stats *stats, char *text, size_t size)
{
    if (stats->ring_waits > 0)
        snprintf(text, size,
                 "the program took heaps too slowly (the ring was full %" PRIu64
                 " times, for up to %.1f ms), and ",
                 stats->ring_waits, (double)stats->longest_ring_wait_ns / 1e6);
}

/* What is to be said where not all is well, and in slow what it followed from. */
static const char *trouble(const struct heaps *heaps, const spt_recv_stats *stats, char *slow,
                           size_t size)
{
    const spt_account *account = &stats->account;
    uint64_t sum = 0;
    for (size_t i = 0; i < N_FATES; i++)
        sum += became(stats, i);
    if (stats->sockets.datagrams != sum)
        return "the account does not add up: that is a fault of this receiver";
    if (stats->sockets.dropped > 0) {
        say_slow(stats, slow, size);
        return "the socket had no room for all packets: send more slowly, or allow a larger"
               " buffer with 'sysctl -w net.core.rmem_max=67108864'";
    }
    if (account->fates[SPT_MALFORMED] > 0)
        return "packets are malformed: they are longer than 9200 bytes, or something else sends to"
               " this port";
    uint64_t missing = account->heaps_evicted + account->heaps_never_begun;
    missing += heaps->interrupted ? 0 : account->heaps_flushed; /* they still were arriving */
    for (spt_fate fate = SPT_AFTER_LOSS; fate < SPT_NO_PLACE; fate++)
        missing += account->fates[fate];
    if (missing > 0)
        return "packets are missing, or not in order: compare with what was sent, and look for"
               " drops on the way";
    if (account->fates[SPT_DUPLICATE] + account->fates[SPT_LATE] > 0)
        return "packets came twice, or late: let each sender count heaps on, and look for what"
               " repeats packets on the way";
    return NULL;
}

int report_heaps(const struct heaps *heaps, const char *format, ...)
{
    spt_recv_stats stats = stats_of(heaps);
    struct chunk_counts chunks = chunk_counts_of(heaps, &stats.account);
    if (heaps->options->text)
        print_account(heaps, &stats);
    if (heaps->options->text && heaps->chunks != NULL)
        print_chunks(&chunks);
    if (heaps->options->text && format != NULL) {
        va_list arguments;
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
    }
    if (heaps->options->json)
        print_record(heaps, &stats, &chunks);
    if (heaps->pool != NULL && pool_counts(heaps).too_large > 0)
        tell("heaps of %" PRIu64 " bytes do not fit into buffers of the pool, and each got"
             " new memory: say how large they are with -H",
             pool_counts(heaps).largest);
    char slow[128] = "";
    const char *what = trouble_of_chunks(heaps, &chunks);
    if (what == NULL)
        what = trouble(heaps, &stats, slow, sizeof(slow));
    if (what != NULL)
        tell("%s%s", slow, what);
    return heaps->interrupted ? 128 + was_interrupted : what != NULL; /* as a shell has it */
}
