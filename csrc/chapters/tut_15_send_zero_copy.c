/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 15: a recording that the kernel reads in place, instead of copying it. */
#include "report.h"

/* Rows of samples that are there already, and a heap for each. */
struct recording {
    uint64_t *timestamps;
    int8_t *adc_samples; /* n_rows rows of heap_size */
    spt_heap_reference *heaps;
};

/* Memory in huge pages, or in small ones. */
static int8_t *allocate(size_t n_bytes, bool small_pages, spt_error *err)
{
    if (small_pages)
        return alloc_small_pages(n_bytes);
    spt_memory memory;
    check(spt_alloc(n_bytes, &memory, err), err);
    if (memory.reason != NULL)
        tell("the recording is not in huge pages: %s", memory.reason);
    return memory.data;
}

/* A heap with both items. It refers to their values: they are read when the heap is sent. */
static spt_heap *make_heap(const uint64_t *timestamp, const int8_t *adc_samples, size_t heap_size,
                           unsigned parts, spt_error *err)
{
    const spt_variable items[] = {
        spt_immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
        spt_array(0x3300, "adc_samples", "Samples of the converter", SPT_INT8, adc_samples,
                  heap_size),
    };
    spt_heap *heap = check_made(spt_heap_create(NULL, err), err);
    check(spt_heap_add(heap, items, 2, parts, err), err);
    return heap;
}

static void recording_init(struct recording *r, size_t n_rows, size_t heap_size, bool small_pages,
                           spt_error *err)
{
    r->timestamps = alloc_zeros(n_rows * sizeof(*r->timestamps));
    r->adc_samples = allocate(n_rows * heap_size, small_pages, err);
    r->heaps = alloc_zeros(n_rows * sizeof(*r->heaps));
    for (size_t i = 0; i < n_rows; i++) {
        int8_t *row = memset(r->adc_samples + i * heap_size, (int)(i % 256), heap_size);
        spt_heap *heap = make_heap(r->timestamps + i, row, heap_size, SPT_VALUES, err);
        r->heaps[i] = (spt_heap_reference){.heap = heap, .cnt = -1, .rate = -1};
    }
}

int main(int argc, char **argv)
{
    struct options options = parse_options(
        argc, argv,
        "Chapter 15: a recording that the kernel reads in place, instead of copying it.", "nHpzd",
        (struct options){.packet_size = 9000});
    size_t heap_size = options.heap_size;
    size_t room = larger(heap_size, 8192); /* a small heap counts as this */
    size_t batch_size = smaller(larger(1, 4 * 1024 * 1024 / room), options.n_heaps);
    size_t n_batches = larger(1, 512 * 1024 * 1024 / room / batch_size); /* recorded */
    size_t n_rows = smaller(n_batches * batch_size, options.n_heaps);
    spt_error err = {0};
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_heaps = batch_size;
    config.max_packet_size = options.packet_size;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    udp.zero_copy = !options.copy;
    spt_stream *stream =
        check_made(spt_stream_create_udp(NULL, &options.endpoint, 1, &config, &udp, &err), &err);

    struct recording r;
    recording_init(&r, n_rows, heap_size, options.small_pages, &err);
    spt_heap *heap = r.heaps[0].heap;
    r.heaps[0].heap = make_heap(r.timestamps, r.adc_samples, heap_size, SPT_ALL, &err);
    struct usage start = usage_now();
    for (size_t i = 0; i < options.n_heaps;) {
        size_t first = i % n_rows, n = 0; /* again and again */
        for (; n < batch_size && i < options.n_heaps; n++, i++) {
            if (options.fill)
                memset(r.adc_samples + (first + n) * heap_size, (int)(i % 256), heap_size);
            r.timestamps[first + n] = i * heap_size;
        }
        spt_completion sent = {0};
        spt_heap_reference *heaps = r.heaps + first;
        check(spt_stream_send_heaps(stream, heaps, n, SPT_GROUP_SERIAL, &sent, &err), &err);
        check(spt_stream_wait(stream, &sent, -1, &err), &err);
        r.heaps[0].heap = heap; /* from now on, without descriptors */
    }
    struct usage used = usage_since(start);
    if (!options.copy)
        tell_of_copies(stream);
    check(spt_stream_send_end(stream, NULL, &err), &err);
    report(&options, &stream, 1, &used);
    return 0; /* the kernel frees everything */
}
