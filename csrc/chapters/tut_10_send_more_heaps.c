/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 10, first step: more heaps in flight. */
#include "report.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory for a heap, to leave alone until it has been sent. */
struct state {
    uint64_t timestamp;
    int8_t *adc_samples;
    spt_heap *heap;
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

int main(int argc, char **argv)
{
    struct options options =
        parse_options(argc, argv, "Chapter 10, first step: more heaps in flight.", "nHpd",
                      (struct options){.packet_size = 9000});
    size_t heap_size = options.heap_size;
    size_t n_states = heap_size < 512 * 1024 ? 1024 * 1024 / heap_size : 2;
    if (n_states > options.n_heaps)
        n_states = options.n_heaps;
    spt_error err = {0};
    spt_flavour flavour = SPT_FLAVOUR_DEFAULT;
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = 0;
    config.max_heaps = n_states;
    config.max_packet_size = options.packet_size;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    spt_endpoint endpoint = {options.host, options.port};
    spt_stream *stream =
        check_made(spt_stream_create_udp(thread_pool, &endpoint, 1, &config, &udp, &err), &err);

    struct state *states = alloc_zeros(n_states * sizeof(*states));
    for (size_t i = 0; i < n_states; i++)
        states[i].adc_samples = alloc_bytes(heap_size);
    struct usage start = usage_now();
    for (size_t i = 0; i < options.n_heaps; i++) {
        struct state *state = &states[i % n_states];
        check(spt_stream_wait(stream, &state->sent, -1, &err), &err);
        spt_heap_destroy(state->heap);
        state->heap = check_made(spt_heap_create(&flavour, &err), &err);
        memset(state->adc_samples, (int)(i % 256), heap_size);
        state->timestamp = htobe64(i * heap_size);
        add_items(state->heap, &state->timestamp, state->adc_samples, heap_size, i == 0, &err);
        check(spt_stream_send_heap(stream, state->heap, &state->sent, &err), &err);
    }
    for (size_t i = 0; i < n_states; i++)
        check(spt_stream_wait(stream, &states[i].sent, -1, &err), &err);
    struct usage used = usage_since(start);

    spt_completion sent = {0};
    spt_heap *end = check_made(spt_heap_create(&flavour, &err), &err);
    check(spt_heap_add_end(end, &err), &err);
    check(spt_stream_send_heap(stream, end, &sent, &err), &err);
    check(spt_stream_wait(stream, &sent, -1, &err), &err);
    report(&options, stream, &used);
    for (size_t i = 0; i < n_states; i++) {
        spt_heap_destroy(states[i].heap);
        free(states[i].adc_samples);
    }
    free(states);
    spt_heap_destroy(end);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
