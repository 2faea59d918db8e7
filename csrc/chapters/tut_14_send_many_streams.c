/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 14: a stream for each core; together they send one sequence of heaps. */
#include "report.h"

/* A stream, and the heaps that its thread fills and sends: first, first + step, ... */
struct sender {
    size_t n_heaps, heap_size, batch_size, first, step;
    int core; /* -1: any */
    spt_stream *stream;
    uint64_t *timestamps;
    int8_t *adc_samples; /* batch_size rows of heap_size */
    spt_heap_reference *heaps;
    pthread_t thread;
};

/* A heap with both items. It refers to their values: they are read when the heap is sent. */
static spt_heap *make_heap(const struct sender *s, size_t i, unsigned parts, spt_error *err)
{
    const spt_variable items[] = {
        spt_immediate(0x1600, "timestamp", "Index of the first sample", s->timestamps + i),
        spt_array(0x3300, "adc_samples", "Samples of the converter", SPT_INT8,
                  s->adc_samples + i * s->heap_size, s->heap_size),
    };
    spt_heap *heap = check_made(spt_heap_create(NULL, err), err);
    check(spt_heap_add(heap, items, 2, parts, err), err);
    return heap;
}

static void sender_init(struct sender *s, const struct options *options, spt_error *err)
{
    s->timestamps = alloc_zeros(s->batch_size * sizeof(*s->timestamps));
    s->adc_samples = alloc_touched(s->batch_size * s->heap_size);
    s->heaps = alloc_zeros(s->batch_size * sizeof(*s->heaps));
    for (size_t i = 0; i < s->batch_size; i++)
        s->heaps[i] = (spt_heap_reference){make_heap(s, i, SPT_VALUES, err), -1, 0, -1};
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_heaps = s->batch_size;
    config.max_packet_size = options->packet_size;
    s->stream =
        check_made(spt_stream_create_udp(NULL, &options->endpoint, 1, &config, NULL, err), err);
    check(spt_stream_set_cnt_sequence(s->stream, s->first + 1, s->step, err), err);
}

static void *send_heaps(void *arg)
{
    struct sender *s = arg;
    spt_error err = {0};
    if (s->core >= 0)
        check(spt_set_affinity(s->core, &err), &err);
    for (size_t i = s->first; i < s->n_heaps;) {
        size_t n = 0;
        for (; n < s->batch_size && i < s->n_heaps; n++, i += s->step) {
            memset(s->adc_samples + n * s->heap_size, (int)(i % 256), s->heap_size);
            s->timestamps[n] = i * s->heap_size;
        }
        spt_completion sent = {0};
        check(spt_stream_send_heaps(s->stream, s->heaps, n, SPT_GROUP_SERIAL, &sent, &err), &err);
        check(spt_stream_wait(s->stream, &sent, -1, &err), &err);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(
        argc, argv, "Chapter 14: a stream for each core; together they send one sequence of heaps.",
        "nHpsd", (struct options){.packet_size = 9000, .n_streams = n_usable_cores()});
    size_t n_heaps = options.n_heaps, heap_size = options.heap_size;
    size_t n_streams = smaller(options.n_streams, n_heaps);
    size_t batch_size = smaller(larger(1, 512 * 1024 / heap_size), (n_heaps - 1) / n_streams + 1);
    spt_error err = {0};
    struct sender *senders = alloc_zeros(n_streams * sizeof(*senders));
    spt_stream **streams = alloc_zeros(n_streams * sizeof(*streams));
    for (size_t k = 0; k < n_streams; k++) {
        int core = n_streams <= n_usable_cores() ? usable_core(k) : -1;
        senders[k] = (struct sender){n_heaps, heap_size, batch_size, k, n_streams, .core = core};
        sender_init(&senders[k], &options, &err);
        streams[k] = senders[k].stream;
    }
    spt_heap *first_heap = make_heap(&senders[0], 0, SPT_ALL, &err);
    struct usage start = usage_now();
    memset(senders[0].adc_samples, 0, heap_size); /* with the descriptors: before all others */
    spt_completion sent = {0};
    check(spt_stream_send_heap(streams[0], first_heap, &sent, &err), &err);
    check(spt_stream_wait(streams[0], &sent, -1, &err), &err);
    senders[0].first += n_streams;
    for (size_t k = 0; k < n_streams; k++)
        senders[k].thread = start_thread(send_heaps, &senders[k]);
    for (size_t k = 0; k < n_streams; k++)
        pthread_join(senders[k].thread, NULL);
    struct usage used = usage_since(start);
    check(spt_stream_set_cnt_sequence(streams[0], n_heaps + 1, 1, &err), &err);
    check(spt_stream_send_end(streams[0], NULL, &err), &err);
    report(&options, streams, n_streams, &used);
    return 0; /* the kernel frees everything */
}
