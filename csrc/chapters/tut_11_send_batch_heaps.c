/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 11: one call, and one completion, for a batch of heaps. */
#include "report.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Heaps and their memory, to leave alone until they have been sent. */
struct batch {
    uint64_t *timestamps;
    int8_t *adc_samples; /* batch_size rows of heap_size */
    spt_heap *first_heap;
    spt_heap_reference *heaps;
    spt_completion sent;
};

/* Add both items; a first heap also describes them. The heap references the values, and sends what
 * they hold when its packets are made. */
static void add_items(spt_heap *heap, const uint64_t *timestamp, const int8_t *adc_samples,
                      size_t heap_size, bool describe, spt_error *err)
{
    size_t bits = spt_heap_flavour(heap).heap_address_bits;
    spt_descriptor descriptor = {
        .id = 0x1600,
        .name = "timestamp",
        .description = "Index of the first sample",
        .format = &(spt_field){'u', (uint32_t)bits},
        .n_format = 1,
    };
    spt_item item = {
        .id = 0x1600,
        .value = (const char *)timestamp + sizeof(*timestamp) - bits / 8, /* the low bytes */
        .length = bits / 8,
        .allow_immediate = true,
    };
    if (describe)
        check(spt_heap_add_descriptor(heap, &descriptor, err), err);
    check(spt_heap_add_item(heap, &item, err), err);

    char numpy_header[100];
    snprintf(numpy_header, sizeof(numpy_header),
             "{'descr': '|i1', 'fortran_order': False, 'shape': (%zu,)}", heap_size);
    descriptor = (spt_descriptor){
        .id = 0x3300,
        .name = "adc_samples",
        .description = "Samples of the converter",
        .numpy_header = numpy_header,
        .shape = &(int64_t){(int64_t)heap_size},
        .n_shape = 1,
    };
    item = (spt_item){
        .id = 0x3300,
        .value = adc_samples,
        .length = heap_size,
        .allow_immediate = true,
    };
    if (describe)
        check(spt_heap_add_descriptor(heap, &descriptor, err), err);
    check(spt_heap_add_item(heap, &item, err), err);
}

static void batch_init(struct batch *batch, const spt_flavour *flavour, size_t batch_size,
                       size_t heap_size, spt_error *err)
{
    batch->timestamps = alloc_zeros(batch_size * sizeof(*batch->timestamps));
    batch->adc_samples = alloc_bytes(batch_size * heap_size);
    batch->heaps = alloc_zeros(batch_size * sizeof(*batch->heaps));
    batch->first_heap = check_made(spt_heap_create(flavour, err), err);
    add_items(batch->first_heap, batch->timestamps, batch->adc_samples, heap_size, true, err);
    for (size_t i = 0; i < batch_size; i++) {
        spt_heap *heap = check_made(spt_heap_create(flavour, err), err);
        add_items(heap, batch->timestamps + i, batch->adc_samples + i * heap_size, heap_size, false,
                  err);
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
    size_t batch_size = heap_size < 512 * 1024 ? 512 * 1024 / heap_size : 1;
    if (batch_size > options.n_heaps)
        batch_size = options.n_heaps;
    spt_error err = {0};
    spt_flavour flavour = SPT_FLAVOUR_DEFAULT;
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = 0;
    config.max_heaps = 2 * batch_size;
    config.max_packet_size = options.packet_size;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_endpoint endpoint = {options.host, options.port};
    spt_stream *stream =
        check_made(spt_stream_create_udp(thread_pool, &endpoint, 1, &config, &udp, &err), &err);

    struct batch batches[2] = {0};
    for (size_t i = 0; i < 2; i++)
        batch_init(&batches[i], &flavour, batch_size, heap_size, &err);
    spt_heap *heap = batches[0].heaps[0].heap;
    batches[0].heaps[0].heap = batches[0].first_heap;
    struct usage start = usage_now();
    for (size_t first = 0; first < options.n_heaps; first += batch_size) {
        struct batch *batch = &batches[first / batch_size % 2];
        check(spt_stream_wait(stream, &batch->sent, -1, &err), &err);
        size_t left = options.n_heaps - first;
        size_t n = left < batch_size ? left : batch_size; /* fewer in the last batch */
        for (size_t i = 0; i < n; i++) {
            memset(batch->adc_samples + i * heap_size, (int)((first + i) % 256), heap_size);
            batch->timestamps[i] = htobe64((first + i) * heap_size);
        }
        check(spt_stream_send_heaps(stream, batch->heaps, n, SPT_GROUP_SERIAL, &batch->sent, &err),
              &err);
        batches[0].heaps[0].heap = heap; /* references are copied: it is for the next time */
    }
    for (size_t i = 0; i < 2; i++)
        check(spt_stream_wait(stream, &batches[i].sent, -1, &err), &err);
    struct usage used = usage_since(start);

    spt_completion sent = {0};
    spt_heap *end = check_made(spt_heap_create(&flavour, &err), &err);
    check(spt_heap_add_end(end, &err), &err);
    check(spt_stream_send_heap(stream, end, &sent, &err), &err);
    check(spt_stream_wait(stream, &sent, -1, &err), &err);
    report(&options, stream, &used);
    for (size_t i = 0; i < 2; i++)
        batch_fini(&batches[i], batch_size);
    spt_heap_destroy(end);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
