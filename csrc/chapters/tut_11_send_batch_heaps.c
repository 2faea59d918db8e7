/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 11: one call, and one completion, for a batch of heaps. */
#include "report.h"

/* Heaps and their memory, to leave alone until they have been sent. */
struct batch {
    uint64_t *timestamps;
    int8_t *adc_samples; /* batch_size rows of heap_size */
    spt_heap *first_heap;
    spt_heap_reference *heaps;
    spt_completion sent;
};

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

static void batch_init(struct batch *batch, size_t batch_size, size_t heap_size, spt_error *err)
{
    batch->timestamps = alloc_zeros(batch_size * sizeof(*batch->timestamps));
    batch->adc_samples = alloc_touched(batch_size * heap_size);
    batch->heaps = alloc_zeros(batch_size * sizeof(*batch->heaps));
    batch->first_heap = make_heap(batch->timestamps, batch->adc_samples, heap_size, SPT_ALL, err);
    for (size_t i = 0; i < batch_size; i++) {
        spt_heap *heap = make_heap(batch->timestamps + i, batch->adc_samples + i * heap_size,
                                   heap_size, SPT_VALUES, err);
        batch->heaps[i] = (spt_heap_reference){.heap = heap, .cnt = -1, .rate = -1};
    }
}

static void batch_fini(struct batch *batch, size_t batch_size)
{
    for (size_t i = 0; i < batch_size; i++)
        spt_heap_destroy(batch->heaps[i].heap);
    spt_heap_destroy(batch->first_heap);
    free(batch->heaps);
    free(batch->adc_samples);
    free(batch->timestamps);
}

int main(int argc, char **argv)
{
    struct options options =
        parse_options(argc, argv, "Chapter 11: one call, and one completion, for a batch of heaps.",
                      "nHpd", (struct options){.packet_size = 9000});
    size_t heap_size = options.heap_size;
    size_t batch_size = smaller(larger(1, 512 * 1024 / heap_size), options.n_heaps);
    spt_error err = {0};
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = 0;
    config.max_heaps = 2 * batch_size;
    config.max_packet_size = options.packet_size;
    spt_stream *stream = check_made(
        spt_stream_create_udp(thread_pool, &options.endpoint, 1, &config, NULL, &err), &err);

    struct batch batches[2] = {0};
    for (size_t i = 0; i < 2; i++)
        batch_init(&batches[i], batch_size, heap_size, &err);
    spt_heap *heap = batches[0].heaps[0].heap;
    batches[0].heaps[0].heap = batches[0].first_heap;
    struct usage start = usage_now();
    for (size_t first = 0; first < options.n_heaps; first += batch_size) {
        struct batch *batch = &batches[first / batch_size % 2];
        check(spt_stream_wait(stream, &batch->sent, -1, &err), &err);
        size_t n = smaller(batch_size, options.n_heaps - first); /* fewer in the last batch */
        for (size_t i = 0; i < n; i++) {
            memset(batch->adc_samples + i * heap_size, (int)((first + i) % 256), heap_size);
            batch->timestamps[i] = (first + i) * heap_size;
        }
        check(spt_stream_send_heaps(stream, batch->heaps, n, SPT_GROUP_SERIAL, &batch->sent, &err),
              &err);
        batches[0].heaps[0].heap = heap; /* from now on; the call copied the other */
    }
    for (size_t i = 0; i < 2; i++)
        check(spt_stream_wait(stream, &batches[i].sent, -1, &err), &err);
    struct usage used = usage_since(start);
    check(spt_stream_send_end(stream, NULL, &err), &err);
    report(&options, &stream, 1, &used);
    for (size_t i = 0; i < 2; i++)
        batch_fini(&batches[i], batch_size);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
