/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 19: one of an array's senders, each of which sends to every receiver. */
#include "report.h"

/* A stream with a substream for each receiver, at one rate for all of them together. */
struct sender {
    size_t sender, senders, n_receivers;
    spt_stream *stream;
    spt_heap_reference *references;
};

static void sender_init(struct sender *s, const struct options *options, spt_error *err)
{
    s->sender = options->sender;
    s->senders = options->senders;
    s->n_receivers = options->n_destinations;
    s->references = alloc_zeros(s->n_receivers * sizeof(*s->references));
    spt_endpoint *endpoints = alloc_zeros(s->n_receivers * sizeof(*endpoints));
    for (size_t j = 0; j < s->n_receivers; j++) {
        endpoints[j] = options->destinations[j];
        endpoints[j].port += (int)s->sender;
    }
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.rate = options->rate * 1e6;
    config.max_heaps = s->n_receivers;
    config.max_packet_size = options->packet_size;
    spt_udp_config udp = SPT_UDP_CONFIG_DEFAULT;
    udp.interface_address = options->interface;
    udp.ttl = options->ttl;
    s->stream =
        check_made(spt_stream_create_udp(NULL, endpoints, s->n_receivers, &config, &udp, err), err);
    free(endpoints);
}

/* Send the k-th heap to each receiver, a packet to each in turn. No other sender has the same heap
 * counts. */
static void send_heaps(struct sender *s, spt_heap *const *heaps, size_t k, spt_error *err)
{
    int64_t cnt = (int64_t)(k * s->senders + s->sender + 1);
    for (size_t j = 0; j < s->n_receivers; j++)
        s->references[j] = (spt_heap_reference){heaps[j], cnt, j, -1};
    spt_completion sent = {0};
    check(spt_stream_send_heaps(s->stream, s->references, s->n_receivers, SPT_GROUP_ROUND_ROBIN,
                                &sent, err),
          err);
    check(spt_stream_wait(s->stream, &sent, -1, err), err);
}

/* What a receiver gets; its heaps send the values as they are then. */
static spt_heap *make_heap(const uint64_t *timestamp, const uint64_t *sender, const int8_t *samples,
                           size_t heap_size, unsigned parts, spt_error *err)
{
    const spt_variable items[] = {
        spt_immediate(0x1600, "timestamp", "Index of the first sample", timestamp),
        spt_immediate(0x4101, "antenna", "Index of the sender", sender),
        spt_array(0x3300, "adc_samples", "Samples of the converter", SPT_INT8, samples, heap_size),
    };
    spt_heap *heap = check_made(spt_heap_create(NULL, err), err);
    check(spt_heap_add(heap, items, 3, parts, err), err);
    return heap;
}

int main(int argc, char **argv)
{
    struct options options = parse_options(
        argc, argv, "Chapter 19: one of an array's senders, each of which sends to every receiver.",
        "nHpa", (struct options){.packet_size = 9000});
    size_t heap_size = options.heap_size, n_receivers = options.n_destinations;
    spt_error err = {0};
    uint64_t timestamp = 0, index = options.sender;
    int8_t *adc_samples = alloc_touched(n_receivers * heap_size); /* a row for each */
    spt_heap **descriptors = alloc_zeros(n_receivers * sizeof(spt_heap *));
    spt_heap **heaps = alloc_zeros(n_receivers * sizeof(spt_heap *));
    spt_heap **ends = alloc_zeros(n_receivers * sizeof(spt_heap *));
    for (size_t j = 0; j < n_receivers; j++) {
        const int8_t *row = adc_samples + j * heap_size;
        descriptors[j] = make_heap(&timestamp, &index, row, heap_size, SPT_DESCRIPTORS, &err);
        heaps[j] = make_heap(&timestamp, &index, row, heap_size, SPT_VALUES, &err);
        ends[j] = check_made(spt_heap_create(NULL, &err), &err);
        check(spt_heap_add_end(ends[j], &err), &err);
    }

    struct sender sender;
    sender_init(&sender, &options, &err);
    struct usage start = usage_now();
    send_heaps(&sender, descriptors, 0, &err);
    for (size_t i = 0; i < options.n_heaps; i++) {
        for (size_t j = 0; j < n_receivers; j++) /* the samples say who sent them, and to whom */
            memset(adc_samples + j * heap_size, (int)((i + options.sender + j) % 256), heap_size);
        timestamp = i * heap_size;
        send_heaps(&sender, heaps, i + 1, &err);
    }
    struct usage used = usage_since(start);
    send_heaps(&sender, ends, options.n_heaps + 1, &err);
    report(&options, &sender.stream, 1, &used);
    return 0; /* the kernel frees everything */
}
