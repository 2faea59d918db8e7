/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 5: an asynchronous call, whose end is waited for at once. */
#include "report.h"

/* A heap in flight: leave it alone until it has been sent. */
struct state {
    uint64_t timestamp;
    int8_t *adc_samples;
    spt_heap *heap;
    spt_completion sent;
};

static struct state *state_create(size_t heap_size)
{
    struct state *state = alloc_zeros(sizeof(*state));
    state->adc_samples = alloc_bytes(heap_size);
    return state;
}

static void state_destroy(struct state *state)
{
    spt_heap_destroy(state->heap);
    free(state->adc_samples);
    free(state);
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

static void fill_random(int8_t *samples, size_t n, unsigned short seed[3])
{
    for (size_t i = 0; i < n; i++)
        samples[i] = (int8_t)(nrand48(seed) % 200 - 100);
}

int main(int argc, char **argv)
{
    struct options options = parse_options(
        argc, argv, "Chapter 5: an asynchronous call, whose end is waited for at once.", "nHrcd",
        (struct options){.n_heaps = 100});
    spt_error err = {0};
    spt_thread_pool *thread_pool =
        check_made(spt_thread_pool_create(1, &options.cores[1], options.pinned, &err), &err);
    if (options.pinned)
        check(spt_set_affinity(options.cores[0], &err), &err);
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = 0;
    config.max_heaps = 2;
    spt_stream *stream = check_made(
        spt_stream_create_udp(thread_pool, &options.endpoint, 1, &config, NULL, &err), &err);

    size_t heap_size = options.heap_size;
    unsigned short seed[3] = {1};
    struct usage start = usage_now();
    for (size_t i = 0; i < options.n_heaps; i++) {
        struct state *new_state = state_create(heap_size);
        if (options.random)
            fill_random(new_state->adc_samples, heap_size, seed);
        else
            memset(new_state->adc_samples, (int)(i % 256), heap_size);
        new_state->timestamp = i * heap_size;
        unsigned parts = i == 0 ? SPT_ALL : SPT_VALUES;
        new_state->heap =
            make_heap(&new_state->timestamp, new_state->adc_samples, heap_size, parts, &err);
        check(spt_stream_send_heap(stream, new_state->heap, &new_state->sent, &err), &err);
        check(spt_stream_wait(stream, &new_state->sent, -1, &err), &err);
        state_destroy(new_state);
    }
    struct usage used = usage_since(start);
    check(spt_stream_send_end(stream, NULL, &err), &err);
    report(&options, &stream, 1, &used);
    spt_stream_destroy(stream);
    spt_thread_pool_destroy(thread_pool);
    return 0;
}
