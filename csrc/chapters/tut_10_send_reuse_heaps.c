/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 10: more heaps in flight, and heap objects that are built once. */
#include "report.h"

/* A heap and its memory, to leave alone until it has been sent. */
struct state {
    uint64_t timestamp;
    int8_t *adc_samples;
    spt_heap *first_heap, *heap;
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

static void state_init(struct state *state, size_t heap_size, spt_error *err)
{
    state->adc_samples = alloc_touched(heap_size);
    state->first_heap = make_heap(&state->timestamp, state->adc_samples, heap_size, SPT_ALL, err);
    state->heap = make_heap(&state->timestamp, state->adc_samples, heap_size, SPT_VALUES, err);
}

static void state_fini(struct state *state)
{
    spt_heap_destroy(state->first_heap);
    spt_heap_destroy(state->heap);
    free(state->adc_samples);
}

int main(int argc, char **argv)
{
    struct options options = parse_options(
        argc, argv, "Chapter 10: more heaps in flight, and heap objects that are built once.",
        "nHpd", (struct options){.packet_size = 9000});
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
        state_init(&states[i], heap_size, &err);
    struct usage start = usage_now();
    for (size_t i = 0; i < options.n_heaps; i++) {
        struct state *state = &states[i % n_states];
        check(spt_stream_wait(stream, &state->sent, -1, &err), &err);
        memset(state->adc_samples, (int)(i % 256), heap_size);
        state->timestamp = i * heap_size;
        spt_heap *heap = i > 0 ? state->heap : state->first_heap;
        check(spt_stream_send_heap(stream, heap, &state->sent, &err), &err);
    }
    for (size_t i = 0; i < n_states; i++)
        check(spt_stream_wait(stream, &states[i].sent, -1, &err), &err);
    struct usage used = usage_since(start);
    check(spt_stream_send_end(stream, NULL, &err), &err);
    report(&options, &stream, 1, &used);
    for (size_t i = 0; i < n_states; i++)
        state_fini(&states[i]);
    free(states);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
