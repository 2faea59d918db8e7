/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender for those who measure receivers: it sends real packets, and is faster than what they do
 * with them. The headers of a heap's packets are made once, and get its count as they go out;
 * messages are runs of equal packets (UDP_SEGMENT), all written into the same few pages, which the
 * caches keep.
 *
 * Nothing is lost where it has the receiving socket, too: then it sends no more than that one has
 * room for, whatever reads it, and at whatever pace (a window). The time is that from the first
 * packet after the warm-up until nothing is left in the socket: the same clock for all receivers.
 *
 * A receiver that is faster than any sender sleeps, and to wake it for each message slows the
 * sender down: then the rate is neither's. So the two may take turns: while the socket is filled,
 * the receiver is stopped, and what is timed is how long it takes to empty it.
 *
 * A receiver of several sockets on one port gets several flows, each of which goes to one of them:
 * heaps take turns at these. It may need all cores for its turn: then this one naps.
 *
 * A receiver that knows no ids has to be told what they are: then descriptors go first, in a heap
 * of their own, and every heap has the timestamp that it would have.
 */
#include "../chapters/report.h"
#include "../src/wire.h"
#include "common.h"
#include "udp_socket.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum {
    MESSAGE = 65507,   /* UDP over IPv4 */
    MAX_SEGMENTS = 64, /* of a message, before Linux 6.9 */
    HEADER = 64,
    MAX_FLOWS = 16,
    NAP_NS = 20000,
    SMALL_PACKET = 4096, /* all that the end of the stream needs */
    SAMPLES_ID = 0x3300,
    TIMESTAMP_ID = 0x1600,
};

/* The receiver is to read something within this time. */
static const int64_t PATIENCE_NS = 5000000000;

struct settings {
    struct common common;
    size_t heaps, substreams, lose, swap, window;
    double rate;
    int queue;
    char *also;
    bool naps;
    pid_t receiver; /* which is to be stopped meanwhile; or 0 */
    bool describe, fill;
};

/* A packet of every heap. */
struct cut {
    uint8_t header[HEADER];
    size_t header_size, payload_size, offset, cnt_at;
    size_t timestamp_at; /* or 0, in a packet that has none */
};

/* A socket to send through, and the one that it goes to, or -1. */
struct flow {
    int socket, queue;
    uint64_t dropped; /* what the queue had no room for, before the start */
};

struct blast {
    struct settings settings;
    struct flow flows[MAX_FLOWS];
    size_t n_flows, flow; /* flow: whose turn it is */
    struct cut *cuts;
    size_t n_cuts;
    /* The message that is being made. */
    uint8_t *message;
    size_t length, segment, n_segments;
    bool full;
    /* A packet that the one after it overtakes. */
    const struct cut *held;
    uint64_t held_cnt;
    spt_rate rate;
    int64_t turns_ns;          /* that the receiver had */
    int64_t start_ns, sent_ns; /* of the heaps that count: the first packet, and the last */
    struct counts {
        uint64_t made, packets, messages, bytes, waits;
    } counts, warm_up;
};

/* ---- The receiver's socket ---- */

/* What it holds, with what the kernel needs besides, or what it can hold; or what it dropped. */
static uint32_t of_queue(const struct blast *b, int which)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t length = sizeof(info);
    if (getsockopt(b->flows[b->flow].queue, SOL_SOCKET, SO_MEMINFO, info, &length) != 0)
        fail("could not look at the receiver's socket (--queue): %m");
    return info[which];
}

/* Wait until no more than so much is in it. */
static void wait_for_queue(struct blast *b, size_t most)
{
    uint32_t last = of_queue(b, SK_MEMINFO_RMEM_ALLOC);
    if (last <= most)
        return;
    b->counts.waits++;
    int64_t since = time_ns(CLOCK_MONOTONIC);
    for (uint32_t now; (now = of_queue(b, SK_MEMINFO_RMEM_ALLOC)) > most; last = now) {
        if (now < last)
            since = time_ns(CLOCK_MONOTONIC);
        else if (time_ns(CLOCK_MONOTONIC) - since > PATIENCE_NS)
            fail("the receiver has read nothing for 5 s: has it ended?");
        if (b->settings.naps)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        else
            sched_yield();
    }
}

static void wait_for_all(struct blast *b)
{
    for (b->flow = 0; b->flow < b->n_flows; b->flow++)
        wait_for_queue(b, 0);
    b->flow = 0;
}

/* ---- Turns ---- */

/* Whether a thread of the receiver is stopped: field 3 of its stat, see proc_pid_stat(5). */
static bool is_stopped(pid_t process, const char *thread)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", (int)process, thread);
    FILE *stat = fopen(path, "r");
    if (stat == NULL)
        return true; /* it has ended meanwhile */
    size_t n = fread(line, 1, sizeof(line) - 1, stat);
    fclose(stat);
    line[n] = '\0';
    const char *state = strrchr(line, ')');
    return state != NULL && state[1] != '\0' && state[2] == 'T';
}

static bool all_stopped(pid_t process)
{
    char path[32];
    bool all = true;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    DIR *threads = opendir(path);
    if (threads == NULL)
        fail("could not look at the receiver (--turns): %m");
    for (struct dirent *it; all && (it = readdir(threads)) != NULL;)
        all = it->d_name[0] == '.' || is_stopped(process, it->d_name);
    closedir(threads);
    return all;
}

static void stop_receiver(const struct blast *b)
{
    if (kill(b->settings.receiver, SIGSTOP) != 0)
        fail("could not stop the receiver (--turns): %m");
    while (!all_stopped(b->settings.receiver))
        sched_yield();
}

/* Have the receiver empty the socket. */
static void give_turn(struct blast *b)
{
    size_t flow = b->flow;
    int64_t start = time_ns(CLOCK_MONOTONIC);
    if (kill(b->settings.receiver, SIGCONT) != 0)
        fail("could not let the receiver go on (--turns): %m");
    wait_for_all(b);
    b->flow = flow;
    b->turns_ns += time_ns(CLOCK_MONOTONIC) - start;
}

/* Leave room for a message in the socket. */
static void make_room(struct blast *b)
{
    if (b->settings.receiver == 0) {
        wait_for_queue(b, b->settings.window);
    } else if (of_queue(b, SK_MEMINFO_RMEM_ALLOC) > b->settings.window) {
        give_turn(b);
        stop_receiver(b);
    }
}

/* ---- Messages ---- */

static void send_message(struct blast *b)
{
    struct iovec piece = {b->message, b->length};
    spti_control room = {0};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (b->n_segments == 0)
        return;
    if (b->n_segments > 1)
        spti_udp_set_segment(&message, &room, (uint16_t)b->segment);
    if (b->settings.window > 0)
        make_room(b);
    while (b->settings.rate > 0 && spt_rate_next(&b->rate, (uint64_t)time_ns(CLOCK_MONOTONIC)) != 0)
        ; /* a core is there for nothing else */
    while (sendmsg(b->flows[b->flow].socket, &message, 0) < 0)
        if (errno != EINTR)
            fail("could not send: %m");
    spt_rate_sent(&b->rate, b->length, -1);
    b->counts.messages++;
    b->counts.packets += b->n_segments;
    b->counts.bytes += b->length;
    b->length = b->n_segments = 0;
}

/* Begin to keep the rate: what was not sent before is not to be caught up with. */
static void begin_rate(struct blast *b)
{
    spt_rate_init(&b->rate, b->settings.rate, MESSAGE, 1.05);
    spt_rate_idle(&b->rate, (uint64_t)time_ns(CLOCK_MONOTONIC));
}

/* An item pointer that is a value, as it is sent: its last 40 bits. */
static uint64_t immediate(uint64_t id, uint64_t value)
{
    uint64_t word;
    spti_put_immediate((uint8_t *)&word, 40, id, value & spti_address_mask(40));
    return word;
}

/* Make a byte of a heap's samples: its place and its heap can be told from it, mostly. */
static uint8_t sample(uint64_t cnt, size_t at)
{
    return (uint8_t)(cnt + at + (at >> 8));
}

static void put(struct blast *b, const struct cut *cut, uint64_t cnt)
{
    size_t size = cut->header_size + cut->payload_size;
    if (b->n_segments > 0 && (b->full || size > b->segment || b->length + size > MESSAGE ||
                              b->n_segments == MAX_SEGMENTS))
        send_message(b);
    if (b->n_segments == 0)
        b->segment = size;
    uint8_t *to = b->message + b->length;
    memcpy(to, cut->header, HEADER < size ? HEADER : cut->header_size);
    uint64_t word = immediate(SPT_ID_HEAP_CNT, cnt);
    memcpy(to + cut->cnt_at, &word, sizeof(word));
    if (b->settings.describe && cut->timestamp_at > 0) {
        word = immediate(TIMESTAMP_ID, (cnt - 1) * b->settings.common.heap_size);
        memcpy(to + cut->timestamp_at, &word, sizeof(word));
    }
    for (size_t i = 0; b->settings.fill && i < cut->payload_size; i++)
        to[cut->header_size + i] = sample(cnt, cut->offset + i);
    b->length += size;
    b->n_segments++;
    b->full = size < b->segment;
}

static void put_held(struct blast *b)
{
    if (b->held != NULL)
        put(b, b->held, b->held_cnt);
    b->held = NULL;
}

/* Put a packet, unless it is to be lost, or to come after the next one. */
static void put_or_spoil(struct blast *b, const struct cut *cut, uint64_t cnt)
{
    const struct settings *s = &b->settings;
    uint64_t n = ++b->counts.made;
    if (s->lose > 0 && n % s->lose == 0)
        return;
    if (s->swap > 0 && n % s->swap == 0 && b->held == NULL) {
        b->held = cut;
        b->held_cnt = cnt;
        return;
    }
    put(b, cut, cnt);
    put_held(b);
}

/* Send n heaps from a count on; those of several substreams take turns, packet by packet. */
static void send_heaps(struct blast *b, uint64_t first, size_t n)
{
    if (b->settings.receiver != 0)
        stop_receiver(b);
    for (size_t i = 0; i < n; i += b->settings.substreams) {
        if (b->n_flows > 1) {
            send_message(b);
            b->flow = i / b->settings.substreams % b->n_flows;
        }
        size_t at_once = smaller(b->settings.substreams, n - i);
        for (size_t k = 0; k < b->n_cuts; k++)
            for (size_t j = 0; j < at_once; j++)
                put_or_spoil(b, &b->cuts[k], first + i + j);
    }
    put_held(b);
    send_message(b);
    b->sent_ns = time_ns(CLOCK_MONOTONIC);
    if (b->settings.receiver != 0)
        give_turn(b);
    else if (b->settings.queue >= 0)
        wait_for_all(b);
    b->flow = 0; /* the end of the stream is for its receiver */
}

/* ---- Packets ---- */

/* Where in a header an item pointer is; 0 where it is not: that is the place of the magic. */
static size_t place_of(const uint8_t *header, size_t size, uint64_t pointer)
{
    for (size_t at = 8; at + 8 <= size; at += 8)
        if (memcmp(header + at, &pointer, sizeof(pointer)) == 0)
            return at;
    return 0;
}

static struct cut cut_of(const uint8_t *header, size_t size, size_t payload_size, size_t offset)
{
    struct cut cut = {.header_size = size, .payload_size = payload_size, .offset = offset};
    if (size > HEADER)
        fail("a header is longer than it has room for");
    memcpy(cut.header, header, size);
    cut.cnt_at = place_of(header, size, immediate(SPT_ID_HEAP_CNT, 0));
    cut.timestamp_at = place_of(header, size, immediate(TIMESTAMP_ID, 0));
    if (cut.cnt_at == 0)
        fail("a packet has no heap count");
    return cut;
}

/* Make the packets of a heap with the count 0. */
static void make_packets(struct blast *b)
{
    const struct settings *s = &b->settings;
    spt_error err = {0};
    spt_packetizer packetizer;
    spt_packet packet;
    spt_heap *heap = check_made(spt_heap_create(NULL, &err), &err);
    uint8_t *samples = alloc_zeros(s->common.heap_size),
            *scratch = alloc_bytes(s->common.packet_size);
    spt_item timestamp = {TIMESTAMP_ID, "\0\0\0\0", 5, true};
    spt_item item = {SAMPLES_ID, samples, s->common.heap_size, false};
    check(spt_heap_add_item(heap, &timestamp, &err), &err);
    check(spt_heap_add_item(heap, &item, &err), &err);
    check(spt_packetizer_init(&packetizer, heap, 0, s->common.packet_size, &err), &err);
    struct iovec *pieces = alloc_bytes(SPT_MAX_PIECES(s->common.packet_size) * sizeof(*pieces));
    size_t room = s->common.heap_size / (s->common.packet_size - SPT_MIN_PACKET_SIZE + 8) + 2;
    size_t offset = 0;
    b->cuts = alloc_bytes(room * sizeof(*b->cuts));
    while (spt_packetizer_next(&packetizer, scratch, pieces, &packet) == SPT_OK) {
        size_t header = SPTI_POINTER * (1 + spti_get(scratch + 6, 2));
        b->cuts[b->n_cuts++] = cut_of(scratch, header, packet.size - header, offset);
        offset += packet.size - header;
    }
    free(pieces);
    free(scratch);
    free(samples);
    spt_heap_destroy(heap);
}

/* Send a heap that is so small that it is one packet. */
static void send_small(struct blast *b, spt_heap *heap, uint64_t cnt)
{
    spt_error err = {0};
    spt_packetizer packetizer;
    spt_packet packet;
    struct iovec pieces[SPT_MAX_PIECES(SMALL_PACKET)];
    uint8_t scratch[SMALL_PACKET];
    check(spt_packetizer_init(&packetizer, heap, cnt, SMALL_PACKET, &err), &err);
    if (spt_packetizer_next(&packetizer, scratch, pieces, &packet) != SPT_OK)
        fail("a heap has no packet");
    for (size_t i = 0; i < packet.n_pieces; i++) {
        memcpy(b->message + b->length, pieces[i].iov_base, pieces[i].iov_len);
        b->length += pieces[i].iov_len;
    }
    b->n_segments = 1;
    send_message(b);
    spt_heap_destroy(heap);
}

/* Tell receivers what the items are, as the chapters do. */
static void send_descriptors(struct blast *b, uint64_t cnt)
{
    spt_error err = {0};
    const spt_variable items[] = {
        spt_immediate(TIMESTAMP_ID, "timestamp", "Index of the first sample", NULL),
        spt_array(SAMPLES_ID, "adc_samples", "Samples of the converter", SPT_INT8, NULL,
                  b->settings.common.heap_size),
    };
    spt_heap *heap = check_made(spt_heap_create(NULL, &err), &err);
    check(spt_heap_add(heap, items, 2, SPT_DESCRIPTORS, &err), &err);
    send_small(b, heap, cnt);
}

/* Tell receivers that this is all. */
static void send_end(struct blast *b, uint64_t cnt)
{
    spt_error err = {0};
    spt_heap *heap = check_made(spt_heap_create(NULL, &err), &err);
    check(spt_heap_add_end(heap, &err), &err);
    send_small(b, heap, cnt);
}

/* ---- The command line ---- */

static struct settings parse(int argc, char **argv)
{
    struct settings s = {.common = COMMON_DEFAULTS, .heaps = 10000, .substreams = 1, .queue = -1};
    const struct word words[] = {
        {"-n", "HEAPS", "heaps to send (%)", WORD_SIZE, &s.heaps, .range = {1, WORD_MOST}},
        {"-s", "COUNT", "substreams: so many heaps take turns, packet by packet (%)", WORD_SIZE,
         &s.substreams, .range = {1, 65536}},
        {"-r", "BYTES_PER_S", "bytes of packets in a second (no limit)", WORD_REAL, .to = &s.rate},
        {"--queue", "FD", "the receiver's socket: what it holds and drops can be seen in it",
         WORD_INT, &s.queue, .range = {0, 65535}},
        {"--window", "BYTES",
         "what may be in that socket, at most, so that it loses nothing\n"
         "(half of what it has room for, 7/8 with --turns, none with -r)",
         WORD_SIZE, &s.window, .range = {1, WORD_MOST}},
        {"--turns", "PID",
         "the receiver, which is stopped while the socket is filled: the time\n"
         "is what it takes to empty it",
         WORD_INT, &s.receiver, .range = {1, INT32_MAX}},
        {"--also", "FD,FD,...",
         "more sockets to send through, each with the one that it goes to: heaps take turns",
         WORD_TEXT, .to = &s.also},
        {"--naps", NULL, "sleep while the receiver reads: it needs all cores", WORD_ON,
         .to = &s.naps},
        {"--lose", "N", "every N-th packet is not sent", WORD_SIZE, &s.lose,
         .range = {2, WORD_MOST}},
        {"--swap", "N", "every N-th packet comes after the next one", WORD_SIZE, &s.swap,
         .range = {2, WORD_MOST}},
        {"--describe", NULL, "descriptors first, in a heap of their own, and timestamps that count",
         WORD_ON, .to = &s.describe},
        {"--fill", NULL, "samples that the receivers' --check knows, not any", WORD_ON,
         .to = &s.fill},
        COMMON_WORDS(s.common),
        {NULL},
    };
    read_words(argc, argv, "Sends heaps as fast as it can, to see how fast a receiver is.",
               "-r 1e9 -H 65536 127.0.0.1 8888", "", words);
    if ((s.window > 0 || s.receiver > 0) && s.queue < 0)
        usage_error("--window and --turns need --queue, the socket to look at");
    if (s.also != NULL && s.queue < 0)
        usage_error("--also needs --queue, the socket that the first one goes to");
    if (s.receiver > 0 && s.rate > 0)
        usage_error("--turns and -r exclude each other");
    s.common.socket = common_socket(&s.common, connected_to);
    return s;
}

/* All flows, the first of which is --socket and --queue. */
static void find_flows(struct blast *b)
{
    const struct settings *s = &b->settings;
    b->flows[b->n_flows++] = (struct flow){s->common.socket, s->queue, 0};
    for (char *at = s->also; at != NULL && *at != '\0';) {
        struct flow flow = {0};
        int length = 0;
        if (b->n_flows == MAX_FLOWS ||
            sscanf(at, "%d,%d%n", &flow.socket, &flow.queue, &length) != 2)
            usage_error("--also takes up to %d pairs of sockets, not '%s'", MAX_FLOWS - 1, s->also);
        b->flows[b->n_flows++] = flow;
        at += length;
        at += *at == ',';
    }
}

/* What the queues have dropped since the start. */
static uint64_t dropped(struct blast *b)
{
    uint64_t n = 0;
    for (b->flow = 0; b->flow < b->n_flows; b->flow++)
        n += of_queue(b, SK_MEMINFO_DROPS) - b->flows[b->flow].dropped;
    b->flow = 0;
    return n;
}

static void print(struct blast *b, const struct usage *used)
{
    const struct settings *s = &b->settings;
    size_t payload_bytes = s->heaps * s->common.heap_size;
    if (!s->common.json) {
        printf("%.2f MB/s\n", (double)payload_bytes / (double)used->elapsed_ns * 1e3);
        return;
    }
    printf("{\"program\": \"blast\", \"language\": \"c\", \"heaps\": %zu, \"heap_size\": %zu, "
           "\"packet_size\": %zu, \"payload_bytes\": %zu, \"errors\": 0, ",
           s->heaps, s->common.heap_size, s->common.packet_size, payload_bytes);
    printf("\"spead_bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"messages\": %" PRIu64
           ", \"waits\": %" PRIu64 ", ",
           b->counts.bytes, b->counts.packets, b->counts.messages, b->counts.waits);
    printf("\"sending_ns\": %" PRId64 ", \"warm_up_bytes\": %" PRIu64
           ", \"warm_up_packets\": %" PRIu64 ", ",
           b->sent_ns - b->start_ns, b->warm_up.bytes, b->warm_up.packets);
    if (s->queue >= 0)
        printf("\"dropped\": %" PRIu64 ", ", dropped(b));
    print_usage(used);
    puts("}");
}

int main(int argc, char **argv)
{
    struct blast b = {.settings = parse(argc, argv)};
    struct settings *s = &b.settings;
    bool windowed = s->window > 0 || (s->queue >= 0 && s->rate == 0);
    find_flows(&b);
    prctl(PR_SET_TIMERSLACK, 1UL); /* or naps are longer */
    if (s->queue >= 0) {
        for (; b.flow < b.n_flows; b.flow++)
            b.flows[b.flow].dropped = of_queue(&b, SK_MEMINFO_DROPS);
        b.flow = 0;
        /* A turn has as many bytes, however many flows there are, or it would be longer, and what
         * it costs to begin one count less. */
        if (s->window == 0)
            s->window =
                of_queue(&b, SK_MEMINFO_RCVBUF) / 8 * (s->receiver != 0 ? 7 : 4) / b.n_flows;
    }
    b.message = alloc_touched(MESSAGE + HEADER);
    make_packets(&b);
    begin_rate(&b);
    uint64_t first = s->describe ? 1 : 0;
    if (s->describe)
        send_descriptors(&b, 0);
    /* None of these is lost, so that they can be counted. */
    send_heaps(&b, first, s->common.warm_up);
    s->window = windowed ? s->window : 0;
    struct usage start = usage_now();
    b.warm_up = b.counts;
    b.start_ns = time_ns(CLOCK_MONOTONIC);
    b.turns_ns = 0;
    begin_rate(&b);
    send_heaps(&b, first + s->common.warm_up, s->heaps);
    struct usage used = usage_since(start);
    if (s->receiver != 0)
        used.elapsed_ns = b.turns_ns;
    send_end(&b, first + s->common.warm_up + s->heaps);
    print(&b, &used);
    free(b.cuts);
    free(b.message);
    return 0;
}
