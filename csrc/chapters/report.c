/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the command line and the last line of the chapters' programs. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Options ---- */

static struct options with_usual(struct options o)
{
    return (struct options){
        .n_heaps = o.n_heaps > 0 ? o.n_heaps : 10000,
        .heap_size = o.heap_size > 0 ? o.heap_size : 1024 * 1024,
        .packet_size = o.packet_size > 0 ? o.packet_size : 1472,
        .n_streams = o.n_streams > 0 ? o.n_streams : 1,
        .cores = {-1, -1},
        .endpoint = {"127.0.0.1", 8888},
        .senders = 1,
        .ttl = -1,
    };
}

/* Fragments are no error, but they are slow, and a receiver needs every one of a packet's. */
static void tell_of_fragments(const struct options *options)
{
    size_t fits, size = options->packet_size / 8 * 8; /* as a stream rounds it */
    spt_status status = spt_route_packet_size(&options->endpoint, &fits, NULL);
    if (status == SPT_OK && size > fits && size <= UINT16_MAX) /* else the stream says it all */
        tell("packets of %zu bytes travel to %s in several fragments each: "
             "%zu is the most that goes in one piece",
             size, options->endpoint.host, fits);
}

spt_endpoint read_place(char *text)
{
    char *colon = strrchr(text, ':'), *host = text, *port = text, *end;
    if (colon != NULL)
        port = colon + 1;
    long number = strspn(port, "0123456789") == strlen(port) ? strtol(port, &end, 10) : 0;
    if (number < 1 || number > 65535)
        usage_error("port must be a number from 1 to 65535, not '%s'", port);
    if (colon == NULL)
        return (spt_endpoint){"", (int)number};
    bool in_brackets = host[0] == '[' && colon > host && colon[-1] == ']';
    colon[in_brackets ? -1 : 0] = '\0';
    return (spt_endpoint){host + in_brackets, (int)number};
}

void check_last_port(int port, size_t senders)
{
    if ((size_t)port + senders - 1 > 65535)
        usage_error("port must be at most %zu, as %zu senders have one each: not %d",
                    65536 - senders, senders, port);
}

/* Read where an array's packets go; the first destination stands for all routes. */
static void read_destinations(struct options *o, char *const *texts)
{
    while (texts[o->n_destinations] != NULL)
        o->n_destinations++;
    o->destinations = alloc_zeros(o->n_destinations * sizeof(*o->destinations));
    for (size_t j = 0; j < o->n_destinations; j++) {
        if (strrchr(texts[j], ':') == NULL || texts[j][0] == ':')
            usage_error("HOST:PORT must be a host and a port, not '%s'", texts[j]);
        o->destinations[j] = read_place(texts[j]);
    }
    if (o->sender >= o->senders)
        usage_error("--sender must be less than %zu, as many as there are: not %zu", o->senders,
                    o->sender);
    for (size_t j = 0; j < o->n_destinations; j++)
        check_last_port(o->destinations[j].port, o->senders);
    o->endpoint = o->destinations[0];
}

struct options parse_options(int argc, char **argv, const char *doc, const char *accepted,
                             struct options defaults)
{
    bool asks = defaults.packet_size == ROUTE_SIZE;
    struct options o = with_usual(defaults);
    char **destinations = NULL;
    const struct word words[] = {
        {"-n", "HEAPS", "heaps to send (%)", WORD_SIZE, &o.n_heaps, .range = {1, INT64_MAX},
         .only = 'n'},
        {"-H", "BYTES", "bytes of samples in a heap (%)", WORD_SIZE, &o.heap_size,
         .range = {1, INT64_MAX}, .only = 'H'},
        {"-p", "BYTES",
         asks ? "bytes in a packet at most, UDP and IP not counted (the route's)"
              : "bytes in a packet at most, UDP and IP not counted (%)",
         WORD_SIZE, &o.packet_size, .range = {1, INT64_MAX}, .only = 'p'},
        {"-r", NULL, "random samples instead of a fill", WORD_ON, .to = &o.random, .only = 'r'},
        {"-s", "COUNT", "streams, each with a thread of its own (%)", WORD_SIZE, &o.n_streams,
         .range = {1, 1024}, .must = "a number from 1 to 1024", .only = 's'},
        {"-c", "A,B", "cores to pin the program's thread and the stream's to (any)", WORD_PAIR,
         o.cores, .must = "two cores, such as 0,1", .only = 'c'},
        {"--copy", NULL, "have the kernel copy the samples", WORD_ON, .to = &o.copy, .only = 'z'},
        {"--small-pages", NULL, "ordinary pages for them, not huge ones", WORD_ON,
         .to = &o.small_pages, .only = 'z'},
        {"--fill", NULL, "write the samples anew before they are sent", WORD_ON, .to = &o.fill,
         .only = 'z'},
        {"--json", NULL, "print a JSON object, not the rate", WORD_ON, .to = &o.json},
        {"host", NULL, "name or address to send to", WORD_TEXT, &o.endpoint.host, .only = 'd'},
        {"port", NULL, "UDP port to send to, 1 to 65535", WORD_INT, &o.endpoint.port,
         .range = {1, 65535}, .must = "a number from 1 to 65535", .only = 'd'},
        {"--rate", "MB/S", "of all packets together (%: as fast as possible)", WORD_RATE, &o.rate,
         .range = {0, 1000000}, .must = "a number of MB/s from 0 to 1e6", .only = 'a'},
        {"--sender", "INDEX", "which of the senders this is, from 0 on (%)", WORD_SIZE, &o.sender,
         .range = {0, MOST_SENDERS - 1}, .only = 'a'},
        {"--senders", "COUNT", "how many there are (%)", WORD_SIZE, &o.senders,
         .range = {1, MOST_SENDERS}, .only = 'a'},
        {"--interface", "ADDRESS", "address of the card to send from (the route's)", WORD_TEXT,
         &o.interface, .only = 'a'},
        {"--ttl", "COUNT", "networks that multicast may cross (the system's, mostly 1)", WORD_INT,
         &o.ttl, .range = {0, 255}, .only = 'a'},
        {"HOST:PORT", NULL, "a receiver, and its port for the first sender", WORD_REST,
         &destinations, .only = 'a'},
        {NULL},
    };
    read_words(argc, argv, doc,
               strchr(accepted, 'd') != NULL   ? "192.168.31.2 8888"
               : strchr(accepted, 'a') != NULL ? "--ttl 1 239.1.0.0:8888 239.1.0.1:8888"
                                               : "",
               accepted, words);
    if (destinations != NULL)
        read_destinations(&o, destinations);
    o.pinned = o.cores[0] >= 0;
    if (!asks && o.interface == NULL) /* which has a route of its own */
        tell_of_fragments(&o);
    return o;
}

/* ---- Usage ---- */

static int64_t timeval_ns(struct timeval value)
{
    return (int64_t)value.tv_sec * 1000000000 + (int64_t)value.tv_usec * 1000;
}

struct usage usage_now(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (struct usage){
        .elapsed_ns = time_ns(CLOCK_MONOTONIC),
        .cpu_user_ns = timeval_ns(used.ru_utime),
        .cpu_system_ns = timeval_ns(used.ru_stime),
        .program_cpu_ns = time_ns(CLOCK_THREAD_CPUTIME_ID),
        .page_faults = used.ru_minflt + used.ru_majflt,
        .context_switches = used.ru_nvcsw + used.ru_nivcsw,
    };
}

struct usage usage_since(struct usage start)
{
    struct usage now = usage_now();
    return (struct usage){
        .elapsed_ns = now.elapsed_ns - start.elapsed_ns,
        .cpu_user_ns = now.cpu_user_ns - start.cpu_user_ns,
        .cpu_system_ns = now.cpu_system_ns - start.cpu_system_ns,
        .program_cpu_ns = now.program_cpu_ns - start.program_cpu_ns,
        .page_faults = now.page_faults - start.page_faults,
        .context_switches = now.context_switches - start.context_switches,
    };
}

/* When the program was started, with nothing used: field 22 of proc_pid_stat(5), in ticks. */
static struct usage process_start(void)
{
    char line[1024] = "";
    FILE *stat = fopen("/proc/self/stat", "r");
    if (stat != NULL) {
        size_t n = fread(line, 1, sizeof(line) - 1, stat);
        line[n] = '\0';
        fclose(stat);
    }
    const char *field = strrchr(line, ')'); /* ends field 2, which may hold spaces */
    for (int i = 2; field != NULL && i < 22; i++)
        field = strchr(field + 1, ' ');
    int64_t ticks = field != NULL ? strtoll(field, NULL, 10) : 0;
    int64_t since_boot_ns = ticks * (1000000000 / sysconf(_SC_CLK_TCK));
    int64_t offset_ns = time_ns(CLOCK_BOOTTIME) - time_ns(CLOCK_MONOTONIC);
    return (struct usage){.elapsed_ns = since_boot_ns - offset_ns};
}

/* ---- The last line ---- */

static spt_stats sum_of_stats(spt_stream *const *streams, size_t n_streams)
{
    spt_stats sum = {0};
    for (size_t i = 0; i < n_streams; i++) {
        spt_stats stats;
        spt_stream_stats(streams[i], &stats);
        sum.bytes += stats.bytes;
        sum.packets += stats.packets;
        sum.messages += stats.messages;
        sum.send_calls += stats.send_calls;
        sum.waits += stats.waits;
        sum.looking_ns += stats.looking_ns;
        sum.waiting_looking_ns += stats.waiting_looking_ns;
        sum.errors += stats.errors;
        sum.zero_copy_messages += stats.zero_copy_messages;
        sum.zero_copy_copied += stats.zero_copy_copied;
    }
    return sum;
}

void print_about(void)
{
    const char *program = program_invocation_short_name;
    int chapter = 0;
    sscanf(program, "tut_%d", &chapter); /* which stays 0 where the program was renamed */
    printf("{\"chapter\": %d, \"program\": \"%s\", \"language\": \"" LANGUAGE "\", ", chapter,
           program);
}

void print_usage(const struct usage *u)
{
    printf("\"elapsed_ns\": %" PRId64 ", \"cpu_user_ns\": %" PRId64 ", \"cpu_system_ns\": %" PRId64
           ", \"program_cpu_ns\": %" PRId64 ", \"page_faults\": %" PRId64
           ", \"context_switches\": %" PRId64,
           u->elapsed_ns, u->cpu_user_ns, u->cpu_system_ns, u->program_cpu_ns, u->page_faults,
           u->context_switches);
}

/* What went to each: all got heaps of the same sizes, or the program had failed. */
static void print_destinations(const struct options *o, const spt_stats *stats)
{
    for (size_t j = 0; j < o->n_destinations; j++) {
        spt_endpoint to = o->destinations[j];
        bool is_ipv6 = strchr(to.host, ':') != NULL;
        printf("%s{\"to\": \"%s%s%s:%d\", \"heaps\": %zu, \"packets\": %" PRIu64
               ", \"bytes\": %" PRIu64 "}%s",
               j == 0 ? ", \"destinations\": [" : ", ", is_ipv6 ? "[" : "", to.host,
               is_ipv6 ? "]" : "", to.port, o->n_heaps, stats->packets / o->n_destinations,
               stats->bytes / o->n_destinations, j + 1 == o->n_destinations ? "]" : "");
    }
}

void report(const struct options *options, spt_stream *const *streams, size_t n_streams,
            const struct usage *used)
{
    struct usage life = usage_since(process_start());
    struct usage u = used != NULL ? *used : life;
    size_t n_heaps = options->n_heaps * larger(1, options->n_destinations);
    size_t payload_bytes = n_heaps * options->heap_size;
    if (!options->json) {
        printf("%.2f MB/s\n", (double)payload_bytes / (double)u.elapsed_ns * 1e3);
        return;
    }
    spt_stats stats = sum_of_stats(streams, n_streams);
    print_about();
    printf("\"random\": %s, \"streams\": %zu, ", options->random ? "true" : "false", n_streams);
    printf("\"heaps\": %zu, \"heap_size\": %zu, \"packet_size\": %zu, \"payload_bytes\": %zu, ",
           n_heaps, options->heap_size, options->packet_size, payload_bytes);
    printf("\"spead_bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"messages\": %" PRIu64 ", ",
           stats.bytes, stats.packets, stats.messages);
    printf("\"send_calls\": %" PRIu64 ", \"waits\": %" PRIu64 ", \"errors\": %" PRIu64 ", ",
           stats.send_calls, stats.waits, stats.errors);
    printf("\"looking_ns\": %" PRIu64 ", \"waiting_looking_ns\": %" PRIu64 ", ", stats.looking_ns,
           stats.waiting_looking_ns);
    printf("\"zero_copy_messages\": %" PRIu64 ", \"zero_copy_copied\": %" PRIu64 ", ",
           stats.zero_copy_messages, stats.zero_copy_copied);
    print_usage(&u);
    print_destinations(options, &stats);
    puts("}");
}

/* ---- What is to be told ---- */

void tell_of_copies(spt_stream *stream)
{
    spt_stats stats;
    spt_stream_stats(stream, &stats);
    uint64_t copied = stats.messages - stats.zero_copy_messages + stats.zero_copy_copied;
    if (10 * copied > stats.messages)
        tell("%" PRIu64 " of %" PRIu64 " messages were copied, and not read in place", copied,
             stats.messages);
}

/* ---- Failing ---- */

void check(spt_status status, const spt_error *err)
{
    if (status != SPT_OK)
        fail("%s", err->message);
}

void *check_made(void *made, const spt_error *err)
{
    check(made != NULL ? SPT_OK : err->status, err);
    return made;
}

/* ---- Cores and threads ---- */

static cpu_set_t usable_cores(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
        CPU_ZERO(&cores); /* more than a set has room for: none is known */
    return cores;
}

size_t n_usable_cores(void)
{
    cpu_set_t cores = usable_cores();
    return larger(1, (size_t)CPU_COUNT(&cores));
}

int usable_core(size_t i)
{
    cpu_set_t cores = usable_cores();
    int found = -1; /* the last one, if somebody takes others away meanwhile */
    for (size_t core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &cores)) {
            found = (int)core;
            if (i-- == 0)
                break;
        }
    }
    return found;
}

pthread_t start_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, function, argument);
    if (error != 0)
        fail("could not start a thread: %s", strerror(error));
    return thread;
}

/* ---- Memory ---- */

static void *check_memory(void *memory, size_t n_bytes)
{
    if (memory == NULL)
        fail("no memory for %zu bytes: lower -H", n_bytes);
    return memory;
}

void *alloc_bytes(size_t n_bytes)
{
    return check_memory(malloc(n_bytes), n_bytes);
}

void *alloc_touched(size_t n_bytes)
{
    return memset(alloc_bytes(n_bytes), 1, n_bytes);
}

void *alloc_zeros(size_t n_bytes)
{
    return check_memory(calloc(1, n_bytes), n_bytes);
}

void *alloc_small_pages(size_t n_bytes)
{
    void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check_memory(memory != MAP_FAILED ? memory : NULL, n_bytes);
    madvise(memory, n_bytes, MADV_NOHUGEPAGE); /* an error where there are none but small ones */
    return memset(memory, 1, n_bytes);
}
