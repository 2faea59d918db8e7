/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns batches. Each packet has a header of its own, of zeros; only the sizes are those of the
 * chapters' packets. */
#include "batch.h"
#include "../chapters/command_line.h"
#include "../chapters/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>

enum {
    FIRST_HEADER = 56, /* what the chapters' packets have: 8 bytes, 4 items, 2 more in the first */
    OTHER_HEADER = 40,
    HEADER_ROOM = 64, /* so that none is in two pages, which would be two fragments */
    PAGE = 4096,
    MAX_FRAGMENTS = 17, /* of a zero-copy message: MAX_SKB_FRAGS, in pages */
};

/* UDP_MAX_SEGMENTS, which no header of the system's has. */
size_t max_segments(void)
{
    struct utsname kernel;
    int major = 0, minor = 0;
    if (uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2)
        return major > 6 || (major == 6 && minor >= 9) ? 128 : 64;
    return 64;
}

/* Fragments that the kernel makes of a packet whose memory it reads in place, at most. */
static size_t fragments(const struct batch *b, const struct iovec *payload)
{
    size_t page = b->huge_pages.data != NULL ? b->huge_pages.page_size : PAGE;
    return 1 + ((uintptr_t)payload->iov_base % page + payload->iov_len + page - 1) / page;
}

/* Divide a packet's payload into pieces: at most as many as are asked for, of one size. */
static size_t divide(const struct settings *s, uint8_t *payload, size_t size, struct iovec *pieces)
{
    size_t each = (size + s->pieces - 1) / s->pieces, n = 0;
    for (size_t at = 0; at < size; at += each)
        pieces[n++] = (struct iovec){payload + at, smaller(each, size - at)};
    return n;
}

static struct msghdr message_from(const struct settings *s, struct iovec *pieces)
{
    struct msghdr message = {.msg_iov = pieces};
    if (s->to != NULL) {
        message.msg_name = (void *)(uintptr_t)s->to;
        message.msg_namelen = sizeof(*s->to);
    }
    return message;
}

void lay_out(const struct settings *s, struct batch *b, size_t n)
{
    size_t segment = 0, segments = 0, length = 0, n_fragments = 0;
    bool full = true;
    struct iovec *pieces = b->pieces;
    uint8_t *header = b->headers;
    b->n_heaps = n;
    b->n_messages = b->n_packets = b->n_bytes = 0;
    for (size_t offset = 0; offset < n * s->heap_size;) {
        size_t header_size = offset % s->heap_size == 0 ? FIRST_HEADER : OTHER_HEADER;
        pieces[0] = (struct iovec){header, header_size};
        header += HEADER_ROOM;
        size_t payload =
            smaller(s->packet_size - header_size, s->heap_size - offset % s->heap_size);
        size_t n_pieces = 1 + divide(s, b->memory + offset, payload, pieces + 1);
        offset += payload;
        size_t size = header_size + payload;
        size_t more = s->zero_copy ? fragments(b, &pieces[1]) : 0;
        if (full || size > segment || length + size > MAX_DATAGRAM || segments == s->max_segments ||
            n_fragments + more > MAX_FRAGMENTS) {
            b->messages[b->n_messages++].msg_hdr = message_from(s, pieces);
            segment = size;
            segments = length = n_fragments = 0;
        } else if (segments == 1) {
            size_t m = b->n_messages - 1;
            spti_udp_set_segment(&b->messages[m].msg_hdr, &b->controls[m], (uint16_t)segment);
        }
        b->messages[b->n_messages - 1].msg_hdr.msg_iovlen += n_pieces;
        full = size < segment;
        segments++;
        length += size;
        n_fragments += more;
        b->n_packets++;
        b->n_bytes += size;
        pieces += n_pieces;
    }
}

/* Memory that has been written to. */
static void allocate_samples(const struct settings *s, struct batch *b, size_t size)
{
    b->size = size;
    if (s->huge_pages) {
        spt_error err = {0};
        check(spt_alloc(size, &b->huge_pages, &err), &err);
        if (b->huge_pages.reason != NULL)
            fail("%s", b->huge_pages.reason);
        b->memory = b->huge_pages.data;
        return;
    }
    b->memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (b->memory == MAP_FAILED)
        fail("no memory");
}

void batch_init(const struct settings *s, struct batch *b, size_t n)
{
    size_t payload = s->packet_size - FIRST_HEADER;
    size_t n_packets = n * ((s->heap_size + payload - 1) / payload);
    allocate_samples(s, b, n * s->heap_size);
    b->pieces = alloc_zeros((1 + s->pieces) * n_packets * sizeof(*b->pieces));
    b->headers = aligned_alloc(HEADER_ROOM, n_packets * HEADER_ROOM);
    if (b->headers == NULL)
        fail("no memory");
    memset(b->headers, 0, n_packets * HEADER_ROOM);
    b->messages = alloc_zeros(n_packets * sizeof(*b->messages));
    b->controls = alloc_zeros(n_packets * sizeof(*b->controls));
    lay_out(s, b, n);
}

void forget_samples(struct batch *b)
{
    if (madvise(b->memory, b->size, MADV_DONTNEED) != 0)
        fail("could not give memory back: %m");
}

void batch_fini(struct batch *b)
{
    if (b->huge_pages.data == NULL)
        munmap(b->memory, b->size);
    spt_free(&b->huge_pages);
    free(b->pieces);
    free(b->headers);
    free(b->messages);
    free(b->controls);
}
