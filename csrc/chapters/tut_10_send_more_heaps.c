/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 10, first step: more heaps in flight. */
#include "report.h"

/* Memory for a heap, to leave alone until it has been sent. */
struct state {
    uint64_t timestamp;
    int8_t *adc_samples;
    spt_heap *heap;
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

int main(int argc, char **argv)
{
    struct options options =
        parse_options(argc, argv, "Chapter 10, first step: more heaps in flight.", "nHpd",
                      (struct options){.packet_size = 9000});
    size_t heap_size = options.heap_size;
    size_t n_states = smaller(larger(2, 1024 * 1024 / heap_size), options.n_heaps);
    spt_error err = {0};
    spt_thread_pool *thread_pool = check_made(spt_thread_pool_create(1, NULL, 0, &err), &err);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = 0;
    config.max_heaps = n_states;
    config.max_packet_size = options.packet_size;
    spt_stream *stream = check_made(
        spt_stream_create_udp(thread_pool, &options.endpoint, 1, &config, NULL, &err), &err);

    struct state *states = alloc_zeros(n_states * sizeof(*states));
    for (size_t i = 0; i < n_states; i++)
        states[i].adc_samples = alloc_touched(heap_size);
    struct usage start = usage_now();
    for (size_t i = 0; i < options.n_heaps; i++) {
        struct state *state = &states[i % n_states];
        check(spt_stream_wait(stream, &state->sent, -1, &err), &err);
        spt_heap_destroy(state->heap);
        memset(state->adc_samples, (int)(i % 256), heap_size);
        state->timestamp = i * heap_size;
        unsigned parts = i == 0 ? SPT_ALL : SPT_VALUES;
        state->heap = make_heap(&state->timestamp, state->adc_samples, heap_size, parts, &err);
        check(spt_stream_send_heap(stream, state->heap, &state->sent, &err), &err);
    }
    for (size_t i = 0; i < n_states; i++)
        check(spt_stream_wait(stream, &states[i].sent, -1, &err), &err);
    struct usage used = usage_since(start);
    check(spt_stream_send_end(stream, NULL, &err), &err);
    report(&options, &stream, 1, &used);
    for (size_t i = 0; i < n_states; i++) {
        spt_heap_destroy(states[i].heap);
        free(states[i].adc_samples);
    }
    free(states);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
