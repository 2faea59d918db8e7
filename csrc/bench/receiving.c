/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the command line, the socket and the claims of receivers that are measured. */
#include "receiving.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 8 * 1024 * 1024 };

static char usage_text[512];

static void write_usage(const char *accepted)
{
    snprintf(usage_text, sizeof(usage_text),
             "usage: %s [-w HEAPS] [-H BYTES] [-p BYTES] [-r HEAPS]%s%s%s%s [--check] [--json]\n"
             "       host port | --socket FD\n",
             program_invocation_short_name, strchr(accepted, 'g') ? " [--no-gro]" : "",
             strchr(accepted, 'c') ? " [--no-copy]" : "",
             strchr(accepted, 'o') ? " [--out-of-order]" : "",
             strchr(accepted, 'm') ? " [--no-pool]" : "");
}

_Noreturn static void help(const char *doc, const char *accepted)
{
    printf("%s\n%s\n\n", usage_text, doc);
    puts(COMMON_HELP "  -r HEAPS        heaps that may wait to be got (4)");
    if (strchr(accepted, 'g'))
        puts("  --no-gro        a packet in a message, not a run of them");
    if (strchr(accepted, 'c'))
        puts("  --no-copy       leave what has come where it is");
    if (strchr(accepted, 'o'))
        puts("  --out-of-order  take a heap's packets in any order");
    if (strchr(accepted, 'm'))
        puts("  --no-pool       new memory for each heap");
    printf("  --check         see whether the samples are those of blast --fill\n"
           "  --json          print a JSON object, not the rate\n"
           "  --socket FD     a bound UDP socket to receive from\n"
           "  host, port      where to listen\n"
           "\nexample: %s 127.0.0.1 8888\n",
           program_invocation_short_name);
    exit(0);
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
    exit(1);
}

static int bound(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    (void)number(usage_text, "port", port, 1, 65535);
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0)
        usage_error(usage_text, gai_strerror(code));
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){BUFFER}, sizeof(int)) != 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) != 0)
        fail("could not listen there");
    freeaddrinfo(found);
    return fd;
}

static bool is_switch(struct receiving *r, int c)
{
    if (c == 'g')
        r->gro = false;
    else if (c == 'c')
        r->copy = false;
    else if (c == 'o')
        r->out_of_order = true;
    else if (c == 'm')
        r->pool = false;
    else if (c == 'k')
        r->check = true;
    else
        return false;
    return true;
}

struct receiving receiving_begin(int argc, char **argv, const char *doc, const char *accepted)
{
    static const struct option long_options[] = {
        COMMON_OPTIONS,
        {"no-gro", no_argument, NULL, 'g'},
        {"no-copy", no_argument, NULL, 'c'},
        {"out-of-order", no_argument, NULL, 'o'},
        {"check", no_argument, NULL, 'k'},
        {"no-pool", no_argument, NULL, 'm'},
        {NULL, 0, NULL, 0},
    };
    struct receiving r = {
        .common = COMMON_DEFAULTS, .ring = 4, .gro = true, .copy = true, .pool = true};
    int c;
    write_usage(accepted);
    while ((c = getopt_long(argc, argv, COMMON_LETTERS "r:", long_options, NULL)) != -1) {
        if (c == 'r')
            r.ring = number(usage_text, "-r", optarg, 1, 1 << 20);
        else if (c == 'h')
            help(doc, accepted);
        else if (tell(&r.common, usage_text, c))
            continue;
        else if ((strchr("gcom", c) != NULL && strchr(accepted, c) == NULL) || !is_switch(&r, c))
            usage_error(usage_text, "there is no such option here");
    }
    check_place(&r.common, usage_text, argc - optind);
    if (r.common.socket < 0)
        r.common.socket = bound(argv[optind], argv[optind + 1]);
    return r;
}

void receiving_ready(struct receiving *r)
{
    fprintf(stderr, "%s: listening on its socket\n", program_invocation_short_name);
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
    if (r->wrong > 0) {
        fprintf(stderr, "%s: %" PRIu64 " heaps have other samples than were sent\n",
                program_invocation_short_name, r->wrong);
        return 1;
    }
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
