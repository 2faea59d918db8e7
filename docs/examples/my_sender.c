/* SPDX-License-Identifier: BSD-3-Clause */
/* Send samples from standard input as SPEAD heaps: my_sender HOST PORT [HEAP_SIZE] < samples */
#include <spead_tutorial/spt.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    N_BLOCKS = 4,        /* one is being filled, and three are on their way */
    DESCRIBE_EVERY = 100 /* heaps, for receivers that join late */
};

/* A heap and its memory, to leave alone until it has been sent. */
struct block {
    uint64_t timestamp;
    int8_t *samples;
    spt_heap *heap, *described_heap;
    spt_completion sent;
};

struct sender {
    spt_thread_pool *pool;
    spt_stream *stream;
    struct block blocks[N_BLOCKS];
};

/* Put both items into a new heap, which references their values; NULL after a failure. */
static spt_heap *make_heap(const struct block *block, size_t heap_size, unsigned parts,
                           spt_error *err)
{
    const spt_variable items[] = {
        spt_immediate(0x1600, "timestamp", "Index of the first sample", &block->timestamp),
        spt_array(0x3300, "adc_samples", "Samples of the converter", SPT_INT8, block->samples,
                  heap_size),
    };
    spt_heap *heap = spt_heap_create(NULL, err);
    if (heap != NULL && spt_heap_add(heap, items, 2, parts, err) != SPT_OK) {
        spt_heap_destroy(heap);
        return NULL;
    }
    return heap;
}

/* The stream goes first, and gives back what it had borrowed: then the rest may go. */
static void sender_fini(struct sender *s)
{
    spt_stream_destroy(s->stream);
    spt_thread_pool_destroy(s->pool);
    for (int i = 0; i < N_BLOCKS; i++) {
        spt_heap_destroy(s->blocks[i].heap);
        spt_heap_destroy(s->blocks[i].described_heap);
        free(s->blocks[i].samples);
    }
}

/* After a failure, what has been made is the caller's to give to sender_fini(). */
static spt_status sender_init(struct sender *s, const char *host, int port, size_t heap_size,
                              spt_error *err)
{
    *s = (struct sender){0};
    spt_stream_config config = SPT_STREAM_CONFIG_DEFAULT;
    config.max_heaps = N_BLOCKS;
    s->pool = spt_thread_pool_create(1, NULL, 0, err);
    if (s->pool == NULL)
        return err->status;
    s->stream = spt_stream_create_udp(s->pool, &(spt_endpoint){host, port}, 1, &config, NULL, err);
    if (s->stream == NULL)
        return err->status;
    for (int i = 0; i < N_BLOCKS; i++) {
        struct block *block = &s->blocks[i];
        block->samples = malloc(heap_size);
        if (block->samples == NULL) {
            *err = (spt_error){.status = SPT_ERR_MEMORY, .message = "no memory for samples"};
            return err->status;
        }
        block->heap = make_heap(block, heap_size, SPT_VALUES, err);
        block->described_heap = make_heap(block, heap_size, SPT_ALL, err);
        if (block->heap == NULL || block->described_heap == NULL)
            return err->status;
    }
    return SPT_OK;
}

/* Send all that there is, and tell the receiver that it ends. */
static spt_status sender_run(struct sender *s, FILE *from, size_t heap_size, spt_error *err)
{
    spt_status status;
    for (uint64_t i = 0;; i++) {
        struct block *block = &s->blocks[i % N_BLOCKS];
        /* Until its last heap has been sent, the block is not ours. */
        status = spt_stream_wait(s->stream, &block->sent, -1, err);
        if (status != SPT_OK)
            return status;
        size_t n = fread(block->samples, 1, heap_size, from);
        if (n < heap_size) {
            if (n > 0)
                fprintf(stderr, "%zu samples at the end fill no heap: not sent\n", n);
            break;
        }
        block->timestamp = i * heap_size;
        spt_heap *heap = i % DESCRIBE_EVERY == 0 ? block->described_heap : block->heap;
        status = spt_stream_send_heap(s->stream, heap, &block->sent, err);
        if (status != SPT_OK)
            return status;
    }
    for (int i = 0; i < N_BLOCKS && status == SPT_OK; i++)
        status = spt_stream_wait(s->stream, &s->blocks[i].sent, -1, err);
    return status == SPT_OK ? spt_stream_send_end(s->stream, NULL, err) : status;
}

int main(int argc, char **argv)
{
    size_t heap_size = argc > 3 ? strtoul(argv[3], NULL, 10) : 1 << 20;
    if (argc < 3 || heap_size == 0) {
        fprintf(stderr, "usage: %s HOST PORT [HEAP_SIZE] < samples\n", argv[0]);
        return 2;
    }
    spt_error err = {0};
    struct sender sender;
    spt_status status = sender_init(&sender, argv[1], atoi(argv[2]), heap_size, &err);
    if (status == SPT_OK)
        status = sender_run(&sender, stdin, heap_size, &err);
    if (status == SPT_OK) {
        spt_stats stats;
        spt_stream_stats(sender.stream, &stats);
        printf("heaps: %" PRIu64 ", packets: %" PRIu64 ", bytes: %" PRIu64 "\n", stats.heaps,
               stats.packets, stats.bytes);
    } else {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
    }
    sender_fini(&sender);
    return status == SPT_OK ? 0 : 1;
}
