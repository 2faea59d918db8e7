/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sink: a UDP listener that counts what arrives and says whether it was right.
 *
 * It owns the receiving end of the lab's loopback experiments: a listener that reads as fast as
 * it can, or one that is slow on purpose. It reads SPEAD headers by itself, from the format's
 * description, and not by the library's code: what it confirms, it confirms from outside.
 */
#include "../bench/udp_socket.h"
#include "../chapters/command_line.h"
#include "../src/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sock_diag.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

enum {
    DATAGRAM_MAX = 65536,
    BATCH = 64,       /* datagrams for each recvmmsg */
    OPEN_HEAPS = 256, /* heaps remembered; an older one is taken for a new one */
    TICK_US = 100000, /* the longest wait before signals and silence are looked at */
};

enum { ITEM_NULL, ITEM_HEAP_CNT, ITEM_HEAP_LEN, ITEM_OFFSET, ITEM_LENGTH, ITEM_CONTROL = 6 };
enum { ITEM_SAMPLES = 0x3300, CONTROL_STOP = 2 };

struct options {
    int rcvbuf, port;
    size_t bytes_per_second, heaps, step;
    double silence_s;
    bool gro, check_fill, json;
    const char *host;
};

/* What the header of one packet says. */
struct packet {
    uint64_t heap_cnt, heap_len, offset, length;
    uint64_t fill_start, fill_end;
    bool has_fill, stop;
    const uint8_t *payload;
};

struct heap {
    uint64_t cnt, len, received;
    uint64_t fill_start, fill_end;
    bool used, complete, has_fill;
};

struct sink {
    struct options options;
    int fd;
    struct heap open[OPEN_HEAPS];
    size_t newest;
    uint64_t first_cnt, last_cnt, highest_cnt;
    uint64_t packets, bytes, payload_bytes, heaps, complete_heaps;
    uint64_t out_of_order, duplicates, malformed, bad_fill, fill_bytes;
    uint64_t first_ns, last_ns;
    const char *stopped; /* why, or NULL while it goes on */
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static uint64_t read_be64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | p[i];
    return value;
}

/* Read a packet's header and item pointers; false where it is not a packet of ours. */
static bool parse(const uint8_t *data, size_t size, struct packet *packet)
{
    memset(packet, 0, sizeof *packet);
    if (size < 8 || data[0] != 0x53 || data[1] != 4)
        return false;
    unsigned address_bytes = data[3];
    if (address_bytes < 1 || address_bytes > 7 || data[2] != 8 - address_bytes)
        return false;
    unsigned address_bits = 8 * address_bytes;
    uint64_t address_mask = (UINT64_C(1) << address_bits) - 1;
    size_t items = (size_t)data[6] << 8 | data[7];
    size_t header = 8 + 8 * items;
    if (header > size)
        return false;

    unsigned mandatory = 0;
    for (size_t i = 0; i < items; i++) {
        uint64_t pointer = read_be64(data + 8 + 8 * i);
        bool immediate = pointer >> 63;
        uint64_t id = (pointer & ~(UINT64_C(1) << 63)) >> address_bits;
        uint64_t value = pointer & address_mask;
        if (immediate) {
            if (id >= ITEM_HEAP_CNT && id <= ITEM_LENGTH)
                mandatory |= 1u << id;
            if (id == ITEM_HEAP_CNT)
                packet->heap_cnt = value;
            else if (id == ITEM_HEAP_LEN)
                packet->heap_len = value;
            else if (id == ITEM_OFFSET)
                packet->offset = value;
            else if (id == ITEM_LENGTH)
                packet->length = value;
            else if (id == ITEM_CONTROL && value == CONTROL_STOP)
                packet->stop = true;
        } else if (id == ITEM_SAMPLES) {
            packet->has_fill = true;
            packet->fill_start = value;
            packet->fill_end = UINT64_MAX; /* until another pointer says where it ends */
        } else if (packet->has_fill && value > packet->fill_start && value < packet->fill_end) {
            packet->fill_end = value;
        }
    }
    packet->payload = data + header;
    return mandatory == 0x1e && packet->length == size - header &&
           packet->offset <= packet->heap_len &&
           packet->length <= packet->heap_len - packet->offset;
}

/* Find the heap that a packet belongs to, or take it for a new one. */
static struct heap *find_heap(struct sink *sink, const struct packet *packet)
{
    for (size_t back = 0; back < OPEN_HEAPS; back++) {
        struct heap *heap = &sink->open[(sink->newest + OPEN_HEAPS - back) % OPEN_HEAPS];
        if (!heap->used)
            break;
        if (heap->cnt == packet->heap_cnt)
            return heap;
    }
    uint64_t cnt = packet->heap_cnt;
    if (sink->heaps == 0)
        sink->first_cnt = sink->highest_cnt = cnt;
    else if (cnt <= sink->last_cnt)
        sink->out_of_order++;
    if (cnt > sink->highest_cnt)
        sink->highest_cnt = cnt;
    if (cnt < sink->first_cnt)
        sink->first_cnt = cnt;
    sink->last_cnt = cnt;
    sink->heaps++;
    sink->newest = (sink->newest + 1) % OPEN_HEAPS;
    struct heap *heap = &sink->open[sink->newest];
    *heap = (struct heap){.cnt = cnt, .len = packet->heap_len, .used = true};
    return heap;
}

/* Check the part of item 0x3300 that a packet carries. */
static void check_fill(struct sink *sink, const struct heap *heap, const struct packet *packet)
{
    uint64_t start = packet->offset, end = packet->offset + packet->length;
    if (start < heap->fill_start)
        start = heap->fill_start;
    if (end > heap->fill_end)
        end = heap->fill_end;
    if (!heap->has_fill || start >= end)
        return;
    const uint8_t *bytes = packet->payload + (start - packet->offset);
    size_t count = (size_t)(end - start);
    uint8_t expected = (uint8_t)(heap->cnt - 1);
    sink->fill_bytes += count;
    /* All bytes equal the first one exactly if each equals its neighbour. */
    if (bytes[0] != expected || memcmp(bytes, bytes + 1, count - 1) != 0)
        sink->bad_fill++;
}

static void take_packet(struct sink *sink, const uint8_t *data, size_t size)
{
    sink->packets++;
    sink->bytes += size;
    struct packet packet;
    if (!parse(data, size, &packet)) {
        sink->malformed++;
        return;
    }
    sink->payload_bytes += packet.length;
    struct heap *heap = find_heap(sink, &packet);
    if (packet.has_fill) {
        heap->has_fill = true;
        heap->fill_start = packet.fill_start;
        heap->fill_end = packet.fill_end;
    }
    if (sink->options.check_fill)
        check_fill(sink, heap, &packet);
    heap->received += packet.length;
    if (heap->received > heap->len || heap->complete) {
        sink->duplicates++;
    } else if (heap->received == heap->len) {
        heap->complete = true;
        sink->complete_heaps++;
    }
    if (packet.stop)
        sink->stopped = "stop item";
    else if (sink->options.heaps != 0 && sink->complete_heaps >= sink->options.heaps)
        sink->stopped = "heaps";
}

/* Sleep so that no more than the wanted bytes a second are read. */
static void slow_down(struct sink *sink)
{
    double due = (double)sink->bytes / (double)sink->options.bytes_per_second * 1e9;
    uint64_t due_ns = sink->first_ns + (uint64_t)due;
    for (uint64_t now = spti_now_ns(); now < due_ns && !interrupted; now = spti_now_ns()) {
        uint64_t left = due_ns - now;
        if (left > TICK_US * UINT64_C(1000))
            left = TICK_US * UINT64_C(1000);
        nanosleep(&(struct timespec){.tv_nsec = (long)left}, NULL);
    }
}

/* Take a message: one packet, or those that the kernel has merged. */
static void take_message(struct sink *sink, const uint8_t *data, struct mmsghdr *message)
{
    size_t size = message->msg_len, at = 0;
    size_t step = sink->options.gro ? spti_udp_segment(&message->msg_hdr) : 0;
    do {
        size_t left = size - at;
        size_t n = step > 0 && step < left ? step : left;
        take_packet(sink, data + at, n);
        at += n;
    } while (at < size && sink->stopped == NULL);
}

/* Wait for messages, for a tick at most: so a signal that arrives just before the call is seen,
 * too. Return whether there were some. */
static bool receive(struct sink *sink)
{
    static uint8_t buffers[BATCH][DATAGRAM_MAX];
    spti_control control[BATCH];
    struct iovec pieces[BATCH];
    struct mmsghdr messages[BATCH];
    /* A slow reader takes one at a time, else it would be quick for a batch and then stop. */
    int batch = sink->options.bytes_per_second != 0 ? 1 : BATCH;
    for (int i = 0; i < batch; i++) {
        pieces[i] = (struct iovec){buffers[i], DATAGRAM_MAX};
        messages[i].msg_hdr = (struct msghdr){
            .msg_iov = &pieces[i],
            .msg_iovlen = 1,
            .msg_control = control[i].bytes,
            .msg_controllen = sizeof control[i].bytes,
        };
    }
    int got = recvmmsg(sink->fd, messages, (unsigned)batch, MSG_WAITFORONE, NULL);
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        fail("cannot receive: %m");
    if (got <= 0)
        return false;
    sink->last_ns = spti_now_ns();
    if (sink->packets == 0)
        sink->first_ns = sink->last_ns;
    for (int i = 0; i < got && sink->stopped == NULL; i++)
        take_message(sink, buffers[i], &messages[i]);
    return true;
}

/* Receive until the stream stops, or something else says that it is over. */
static void receive_all(struct sink *sink)
{
    uint64_t quiet_since = spti_now_ns();
    while (sink->stopped == NULL) {
        bool some = receive(sink);
        if (sink->stopped != NULL)
            break;
        if (some)
            quiet_since = sink->last_ns;
        if (some && sink->options.bytes_per_second != 0)
            slow_down(sink);
        if (interrupted)
            sink->stopped = "signal";
        else if (sink->options.silence_s > 0 &&
                 (double)(spti_now_ns() - quiet_since) >= sink->options.silence_s * 1e9)
            sink->stopped = "silence";
    }
}

static int open_socket(const struct options *options)
{
    int fd = bound_to(options->host, options->port), on = 1;
    struct timeval tick = {.tv_usec = TICK_US};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick) != 0)
        fail("cannot set a time-out: %m");
    if (options->rcvbuf != 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &options->rcvbuf, sizeof options->rcvbuf) != 0)
        fail("cannot set the socket buffer: %m");
    if (options->gro && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0)
        fail("this kernel has no UDP_GRO: leave --gro out (%m)");
    return fd;
}

static void announce(int fd)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        fail("cannot tell the address of the socket");
    printf("listening %s %s\n", host, port);
    fflush(stdout);
}

static void report(const struct sink *sink)
{
    /* Counts in the range seen that never arrived, in whatever order the others did. */
    uint64_t gaps = 0;
    if (sink->heaps != 0) {
        uint64_t range = (sink->highest_cnt - sink->first_cnt) / sink->options.step + 1;
        gaps = range > sink->heaps ? range - sink->heaps : 0;
    }
    uint32_t memory[SK_MEMINFO_VARS] = {0}; /* kernels before 4.12 leave it as it is */
    socklen_t size = sizeof memory;
    (void)getsockopt(sink->fd, SOL_SOCKET, SO_MEMINFO, memory, &size);
    int rcvbuf = 0;
    size = sizeof rcvbuf;
    (void)getsockopt(sink->fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &size);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"packets", sink->packets},
        {"bytes", sink->bytes},
        {"payload_bytes", sink->payload_bytes},
        {"heaps", sink->heaps},
        {"complete_heaps", sink->complete_heaps},
        {"gaps", gaps},
        {"out_of_order", sink->out_of_order},
        {"duplicates", sink->duplicates},
        {"malformed", sink->malformed},
        {"dropped", memory[SK_MEMINFO_DROPS]},
        {"bad_fill", sink->bad_fill},
        {"fill_bytes", sink->fill_bytes},
        {"rcvbuf", (uint64_t)rcvbuf},
        {"elapsed_ns", sink->last_ns - sink->first_ns},
    };
    bool json = sink->options.json;
    fputs(json ? "{" : "", stdout);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf(json ? "\"%s\": %" PRIu64 ", " : "%s %" PRIu64 ", ", rows[i].name, rows[i].value);
    printf(json ? "\"stopped\": \"%s\"}\n" : "stopped by %s\n", sink->stopped);
    if (fflush(stdout) != 0)
        fail("cannot write the summary: %m");
}

static struct options parse_options(int argc, char **argv)
{
    struct options o = {.step = 1};
    const struct word words[] = {
        {"-b", "BYTES", "ask for a socket buffer of BYTES (SO_RCVBUF)", WORD_INT, &o.rcvbuf,
         .range = {1, INT32_MAX / 2}},
        {"-r", "BYTES", "read no more than BYTES a second: a slow listener", WORD_SIZE,
         &o.bytes_per_second, .range = {1, WORD_MOST}},
        {"-t", "SECONDS", "end after SECONDS without a packet", WORD_REAL, &o.silence_s,
         .range = {0, 1000000}, .must = "a number of seconds up to 1e6"},
        {"-c", "HEAPS", "end after HEAPS complete heaps", WORD_SIZE, &o.heaps,
         .range = {1, INT64_MAX}},
        {"-s", "STEP", "heap counts differ by STEP (%)", WORD_SIZE, &o.step,
         .range = {1, INT64_MAX}},
        {"--gro", NULL, "let the kernel hand over merged packets (UDP_GRO)", WORD_ON, .to = &o.gro},
        {"--check-fill", NULL, "check that item 0x3300 of the heap with count n is all bytes n - 1",
         WORD_ON, .to = &o.check_fill},
        {"--json", NULL, "print the summary as one JSON object", WORD_ON, .to = &o.json},
        {"HOST", NULL, "address to listen at", WORD_TEXT, .to = &o.host},
        {"PORT", NULL, "UDP port, 0 to 65535; 0 takes a free one", WORD_INT, &o.port,
         .range = {0, 65535}},
        {NULL},
    };
    read_words(
        argc, argv,
        "Receive SPEAD over UDP, count it, and check that nothing is missing. The first line\n"
        "printed is 'listening HOST PORT', the last one a summary. It ends with a stream's\n"
        "stop heap, with Ctrl-C, or as the options say.",
        "-t 5 --json 127.0.0.1 8888", "", words);
    return o;
}

int main(int argc, char **argv)
{
    static struct sink sink;
    sink.options = parse_options(argc, argv);
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sink.fd = open_socket(&sink.options);
    announce(sink.fd);
    receive_all(&sink);
    report(&sink);
    close(sink.fd);
    return 0;
}
