/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the command line, the socket and the claims of receivers that are measured. */
#include "receiving.h"
#include "udp_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>

enum { BUFFER = 8 * 1024 * 1024 };

static void set_buffer(int fd, size_t size)
{
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){(int)size}, sizeof(int)) != 0)
        fail("cannot set the socket buffer: %m");
}

static int listening(const char *host, int port)
{
    int fd = bound_to(host, port);
    set_buffer(fd, BUFFER);
    return fd;
}

struct receiving receiving_begin(int argc, char **argv, const char *doc, const char *accepted)
{
    struct receiving r = {.common = COMMON_DEFAULTS,
                          .ring = 4,
                          .messages = RECEIVE_MESSAGES,
                          .buffer = BUFFER,
                          .gro = true,
                          .copy = true,
                          .pool = true,
                          .thread = true};
    const struct word words[] = {
        {"-r", "HEAPS", "heaps that may wait to be got (%)", WORD_SIZE, &r.ring,
         .range = {1, 1 << 20}},
        {"-m", "MESSAGES", "in a system call, at most (%)", WORD_SIZE, &r.messages,
         .range = {1, RECEIVE_MESSAGES}, .only = 'b'},
        {"-b", "BYTES", "of packets that the socket keeps (%)", WORD_SIZE, &r.buffer,
         .range = {1, 1 << 30}, .only = 'b'},
        {"--no-gro", NULL, "a packet in a message, not a run of them", WORD_OFF, .to = &r.gro,
         .only = 'g'},
        {"--no-copy", NULL, "leave what has come where it is", WORD_OFF, .to = &r.copy,
         .only = 'c'},
        {"--out-of-order", NULL, "take a heap's packets in any order", WORD_ON,
         .to = &r.out_of_order, .only = 'o'},
        {"--no-pool", NULL, "new memory for each heap", WORD_OFF, .to = &r.pool, .only = 'm'},
        {"--no-thread", NULL, "read the socket where heaps are asked for", WORD_OFF,
         .to = &r.thread, .only = 't'},
        {"--check", NULL, "see whether the samples are those of blast --fill", WORD_ON,
         .to = &r.check},
        COMMON_WORDS(r.common),
        {NULL},
    };
    read_words(argc, argv, doc, "127.0.0.1 8888", accepted, words);
    r.common.socket = common_socket(&r.common, listening);
    if (r.buffer != BUFFER)
        set_buffer(r.common.socket, r.buffer);
    return r;
}

void receiving_ready(struct receiving *r)
{
    tell("listening on its socket");
    r->start = usage_now();
}

void receiving_heaps(struct receiving *r, uint64_t n)
{
    bool warmed_up = r->n_heaps < r->common.warm_up && r->n_heaps + n >= r->common.warm_up;
    r->n_heaps += n;
    if (warmed_up)
        r->start = usage_now();
}

void receiving_check(struct receiving *r, uint64_t cnt, const uint8_t *samples)
{
    for (size_t i = 0; i < r->common.heap_size; i++)
        if (samples[i] != (uint8_t)(cnt + i + (i >> 8))) {
            r->wrong++;
            return;
        }
}

/* The most memory that this process has had, in KiB; what getrusage() says is its parent's, too. */
static long peak_memory(void)
{
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && kib == 0 && fgets(line, sizeof(line), status) != NULL)
        sscanf(line, "VmHWM: %ld", &kib);
    if (status != NULL)
        fclose(status);
    return kib;
}

int receiving_end(struct receiving *r)
{
    struct usage used = usage_since(r->start);
    size_t heaps = r->n_heaps > r->common.warm_up ? r->n_heaps - r->common.warm_up : 0;
    size_t payload_bytes = heaps * r->common.heap_size;
    if (r->wrong > 0)
        fail("%" PRIu64 " heaps have other samples than were sent", r->wrong);
    if (!r->common.json) {
        printf("%.2f MB/s\n", (double)payload_bytes / (double)used.elapsed_ns * 1e3);
        return 0;
    }
    printf("{\"program\": \"%s\", \"language\": \"c\", \"heaps\": %zu, \"heap_size\": %zu, ",
           program_invocation_short_name, heaps, r->common.heap_size);
    printf("\"packet_size\": %zu, \"payload_bytes\": %zu, \"packets\": %" PRIu64
           ", \"incomplete_heaps\": %" PRIu64 ", \"calls\": %" PRIu64 ", ",
           r->common.packet_size, payload_bytes, r->packets, r->incomplete, r->calls);
    printf("\"peak_memory_bytes\": %ld, ", 1024 * peak_memory());
    print_usage(&used);
    puts("}");
    return 0;
}
