/* SPDX-License-Identifier: BSD-3-Clause */
/* Chapter 18: a socket for each core; the kernel spreads a sender's streams over them. */
#include "receiving.h"

#include <unistd.h>

enum { MAX_HEAPS = 8 }; /* under way at a socket: one for each of the sender's streams there */
enum { PATIENCE_MS = 100 };

/* What descriptors have said: they come to one socket, and are for all. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static spt_item_group *item_group;

/* A socket, and the thread that reads it and computes the power. */
struct receiver {
    const struct receiver_options *options;
    spt_recv_stream *stream;
    struct heaps *heaps;
    size_t received;
    int core; /* -1: any */
    pthread_t thread;
};

static void receiver_init(struct receiver *r, spt_error *err)
{
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.max_heaps = MAX_HEAPS;
    config.contiguous_only = true;
    r->stream = check_made(spt_recv_stream_create(NULL, &config, err), err);
    spt_receive_config udp = SPT_RECEIVE_CONFIG_DEFAULT;
    udp.reuse_port = true;
    check(spt_recv_stream_add_udp(r->stream, &r->options->endpoint, &udp, err), err);
}

/* Under the lock. A socket's first heap may be earlier than the descriptors at another. */
static void update(struct receiver *r, const spt_received_heap *heap, spt_error *err)
{
    size_t undescribed;
    check(spt_item_group_update(item_group, heap, &undescribed, err), err);
    int ms = r->heaps->n == 1 ? 0 : PATIENCE_MS;
    for (; ms < PATIENCE_MS && spt_item_group_size(item_group) == 0; ms++) {
        pthread_mutex_unlock(&lock);
        usleep(1000);
        pthread_mutex_lock(&lock);
        check(spt_item_group_update(item_group, heap, &undescribed, err), err);
    }
    say_described(r->options, item_group);
}

/* Tell the power of a heap; false if it is not understood. */
static bool tell_power(struct receiver *r, const spt_received_heap *heap, spt_error *err)
{
    int8_t few[sizeof(uint64_t)];
    pthread_mutex_lock(&lock);
    update(r, heap, err);
    const spt_group_item *timestamp = numbers(item_group, "timestamp");
    const spt_group_item *adc_samples = numbers(item_group, "adc_samples");
    bool understood = timestamp != NULL && is_int8(adc_samples);
    int64_t index = understood ? number_at(timestamp, 0) : 0;
    spt_bytes samples = understood ? adc_samples->value : (spt_bytes){0};
    if (understood && adc_samples->is_immediate) /* the group has these, not the heap */
        samples.data = memcpy(few, samples.data, samples.length);
    pthread_mutex_unlock(&lock);
    if (understood) {
        double power = mean_square_int8((const int8_t *)samples.data, samples.length);
        say(r->options, "Timestamp: %-10" PRId64 " Power: %.2f\n", index, power);
    }
    return understood;
}

static void *receive(void *arg)
{
    struct receiver *r = arg;
    spt_error err = {0};
    if (r->core >= 0)
        check(spt_set_affinity(r->core, &err), &err);
    spt_received_heap *heap;
    while ((heap = next_heap(r->heaps)) != NULL) {
        if (tell_power(r, heap, &err))
            r->received++;
        else
            r->heaps->not_understood++;
        spt_recv_stream_return(r->stream, heap);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct receiver_options options = parse_receiver_options(
        argc, argv,
        "Chapter 18: a socket for each core; the kernel spreads a sender's streams over them.",
        (struct receiver_options){.sockets = n_usable_cores()});
    size_t n = options.sockets;
    spt_error err = {0};
    item_group = check_made(spt_item_group_create(0, &err), &err);
    struct receiver *receivers = alloc_zeros(n * sizeof(*receivers));
    struct heaps *heaps = alloc_zeros(n * sizeof(*heaps));
    for (size_t k = 0; k < n; k++) { /* all of them, before anything is sent */
        int core = n <= n_usable_cores() ? usable_core(k) : -1;
        receivers[k] = (struct receiver){.options = &options, .heaps = &heaps[k], .core = core};
        receiver_init(&receivers[k], &err);
    }
    struct together together = {0};
    for (size_t k = 0; k < n; k++)
        heaps[k] = heaps_of_one(receivers[k].stream, &options, &together);
    for (size_t k = 0; k < n; k++)
        receivers[k].thread = start_thread(receive, &receivers[k]);
    size_t received = 0;
    for (size_t k = 0; k < n; k++) {
        pthread_join(receivers[k].thread, NULL);
        received += receivers[k].received;
    }
    struct heaps all = heaps_of_all(heaps, n);
    return report_heaps(&all, "Received %zu heaps\n", received); /* the kernel frees everything */
}
