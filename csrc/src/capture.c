/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns files of captured frames, read through a buffer that holds the largest frame that can be of
 * use: what is longer goes through it piece by piece. Files may be damaged, or written to do
 * damage: no length of them is believed. */
#include "capture.h"

#include "frame.h"
#include "status.h"

#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER = 1 << 20,
    MOST_BYTES = 1 << 18, /* of a frame: capture programs write no more */
    MOST_INTERFACES = 1 << 16,
    HEADER = 24,  /* of a file */
    RECORD = 16,  /* before a frame */
    TRAILER = 4,  /* after a block */
    FEWEST = 256, /* interfaces that there is room for, once there is one */
};

/* Blocks of pcapng. */
enum { INTERFACE = 1, PACKET = 2, SIMPLE_PACKET = 3, ENHANCED_PACKET = 6, SECTION = 0x0a0d0d0a };

typedef struct interface {
    uint16_t link;
    uint32_t most_bytes; /* that frames were cut to; 0: they were not */
} interface;

struct spti_capture {
    char path[80];
    int fd;
    bool is_swapped, is_ng;
    uint64_t begin;   /* of what is looked at, in the file */
    uint64_t offset;  /* of the buffer, likewise */
    size_t at, end;   /* in the buffer: what comes next, and where that ends */
    size_t passing;   /* bytes up to what is looked at next, which need not be in the buffer yet */
    uint32_t trailer; /* that has to be there then; 0: none */
    size_t n_interfaces, room;
    interface *interfaces;
    uint8_t buffer[BUFFER];
};

static spt_status damaged(const spti_capture *c, spt_error *err, const char *how)
{
    return spti_fail(err, SPT_ERR_ARGUMENT, "the capture %s is damaged at byte %llu: %s", c->path,
                     (unsigned long long)c->begin, how);
}

/* Have so many bytes, or SPT_DONE where the file has ended before them, and not in the midst. */
static spt_status need(spti_capture *c, size_t n, spt_error *err)
{
    if (c->end - c->at >= n)
        return SPT_OK;
    memmove(c->buffer, c->buffer + c->at, c->end - c->at);
    c->offset += c->at;
    c->end -= c->at;
    c->at = 0;
    while (c->end < n) {
        ssize_t got = read(c->fd, c->buffer + c->end, BUFFER - c->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return spti_fail_errno(err, "cannot read the capture %s at byte %llu", c->path,
                                   (unsigned long long)(c->offset + c->end));
        if (got == 0)
            return c->offset + c->end == c->begin
                       ? SPT_DONE
                       : damaged(c, err, "the file ends in the midst of this");
        c->end += (size_t)got;
    }
    return SPT_OK;
}

static uint32_t get32(const spti_capture *c, size_t at)
{
    uint32_t value;
    memcpy(&value, c->buffer + c->at + at, sizeof(value));
    return c->is_swapped ? bswap_32(value) : value;
}

static uint32_t get16(const spti_capture *c, size_t at)
{
    uint16_t value;
    memcpy(&value, c->buffer + c->at + at, sizeof(value));
    return c->is_swapped ? bswap_16(value) : value;
}

/* Give the next frames an interface. */
static spt_status add_interface(spti_capture *c, unsigned link, uint32_t most_bytes, spt_error *err)
{
    if (c->n_interfaces == MOST_INTERFACES)
        return spti_fail(
            err, SPT_ERR_ARGUMENT,
            "cannot read the capture %s from byte %llu on: a section has %d interfaces "
            "at most",
            c->path, (unsigned long long)c->begin, MOST_INTERFACES);
    if (c->n_interfaces == c->room) {
        size_t room = c->room == 0 ? FEWEST : 2 * c->room;
        interface *more = realloc(c->interfaces, room * sizeof(*more));
        if (more == NULL)
            return spti_fail(err, SPT_ERR_MEMORY, "no memory for the interfaces of the capture %s",
                             c->path);
        c->interfaces = more;
        c->room = room;
    }
    c->interfaces[c->n_interfaces++] = (interface){(uint16_t)link, most_bytes};
    return SPT_OK;
}

/* Go on behind what was looked at last: SPT_PENDING where more of it has to be read yet. */
static spt_status pass(spti_capture *c, spt_error *err)
{
    size_t there = c->end - c->at, n = c->passing < there ? c->passing : there;
    c->at += n;
    c->passing -= n;
    if (c->passing > 0) {
        SPTI_TRY(need(c, c->passing < BUFFER ? c->passing : BUFFER, err));
        return SPT_PENDING;
    }
    if (c->trailer > 0) {
        SPTI_TRY(need(c, TRAILER, err));
        if (get32(c, 0) != c->trailer)
            return damaged(c, err, "the block says two lengths");
        c->at += TRAILER;
        c->trailer = 0;
    }
    c->begin = c->offset + c->at;
    return SPT_OK;
}

/* ---- pcap ------------------------------------------------------------------------------------ */

static spt_status next_record(spti_capture *c, spti_captured *frame, spt_error *err)
{
    SPTI_TRY(need(c, RECORD, err));
    size_t n = get32(c, 8);
    if (n > MOST_BYTES)
        return damaged(c, err, "no frame is so long");
    SPTI_TRY(need(c, RECORD + n, err));
    *frame = (spti_captured){c->interfaces[0].link, c->buffer + c->at + RECORD, n};
    c->passing = RECORD + n;
    return SPT_OK;
}

/* ---- pcapng ---------------------------------------------------------------------------------- */

/* The byte order is that of a section, and said before anything of it is read. */
static spt_status begin_section(spti_capture *c, spt_error *err)
{
    c->is_swapped = false;
    c->is_swapped = get32(c, 8) != 0x1a2b3c4d;
    c->n_interfaces = 0;
    return get32(c, 8) == 0x1a2b3c4d ? SPT_OK : damaged(c, err, "its byte order is none");
}

static spt_status describe_interface(spti_capture *c, size_t size, spt_error *err)
{
    if (size < 20)
        return damaged(c, err, "this block is too short");
    SPTI_TRY(add_interface(c, get16(c, 8), get32(c, 12), err));
    return SPT_PENDING;
}

static spt_status find_frame(spti_capture *c, uint32_t type, size_t size, spti_captured *frame,
                             spt_error *err)
{
    bool simple = type == SIMPLE_PACKET;
    size_t header = simple ? 12 : 28;
    if (size < header + TRAILER)
        return damaged(c, err, "this block is too short");
    size_t number = simple ? 0 : type == PACKET ? get16(c, 8) : get32(c, 8);
    if (number >= c->n_interfaces)
        return damaged(c, err, "it has no such interface");
    size_t n = get32(c, simple ? 8 : 20), most = c->interfaces[number].most_bytes;
    if (simple && most > 0 && n > most) /* it says how long the frame was before it was cut */
        n = most;
    if (n > size - header - TRAILER)
        return damaged(c, err, "the frame is longer than its block");
    n = n < MOST_BYTES ? n : MOST_BYTES; /* no datagram is so long: what is behind it is not */
    *frame = (spti_captured){c->interfaces[number].link, c->buffer + c->at + header, n};
    return SPT_OK;
}

static spt_status look_into(spti_capture *c, uint32_t type, size_t size, spti_captured *frame,
                            spt_error *err)
{
    switch (type) {
    case INTERFACE:
        return describe_interface(c, size, err);
    case PACKET:
    case SIMPLE_PACKET:
    case ENHANCED_PACKET:
        return find_frame(c, type, size, frame, err);
    default:
        return SPT_PENDING;
    }
}

static spt_status next_block(spti_capture *c, spti_captured *frame, spt_error *err)
{
    SPTI_TRY(need(c, 12, err));
    uint32_t type = get32(c, 0);
    if (type == SECTION)
        SPTI_TRY(begin_section(c, err));
    size_t size = get32(c, 4);
    bool fits = size <= BUFFER;
    if (size < 12 || size % 4 != 0)
        return damaged(c, err, "no block has such a length");
    SPTI_TRY(need(c, fits ? size : BUFFER, err));
    if (fits && get32(c, size - TRAILER) != size)
        return damaged(c, err, "the block says two lengths");
    c->passing = fits ? size : size - TRAILER;
    c->trailer = fits ? 0 : (uint32_t)size;
    return look_into(c, type, size, frame, err);
}

spt_status spti_capture_next(spti_capture *c, spti_captured *frame, spt_error *err)
{
    SPTI_TRY(pass(c, err));
    return c->is_ng ? next_block(c, frame, err) : next_record(c, frame, err);
}

/* ---- Beginning and end ----------------------------------------------------------------------- */

static bool is_pcap(const spti_capture *c)
{
    uint32_t magic = get32(c, 0);
    return magic == 0xa1b2c3d4 || magic == 0xa1b23c4d; /* times in microseconds, or nanoseconds */
}

static spt_status read_header(spti_capture *c, spt_error *err)
{
    spt_status status = need(c, HEADER, err);
    if (status == SPT_ERR_SYSTEM)
        return status;
    c->is_ng = status == SPT_OK && get32(c, 0) == SECTION;
    if (c->is_ng)
        return SPT_OK;
    c->is_swapped = status == SPT_OK && !is_pcap(c);
    if (status != SPT_OK || !is_pcap(c))
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "%s is no capture: tcpdump -w FILE writes one, as pcap or pcapng",
                         c->path);
    unsigned link = get32(c, 20) & 0xffff; /* what is above is of checksums */
    c->passing = HEADER;
    if (spti_link_is_known(link))
        return add_interface(c, link, 0, err);
    return spti_fail(err, SPT_ERR_ARGUMENT,
                     "the capture %s is of frames of type %u: Ethernet (1), IP (101, 228, 229) and "
                     "Linux's cooked ones (113, 276) can be read",
                     c->path, link);
}

/* Not what may have to be waited for, as a pipe. */
static spt_status open_file(spti_capture *c, const char *path, spt_error *err)
{
    struct stat what;
    c->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (c->fd < 0 || fstat(c->fd, &what) < 0)
        return spti_fail_errno(err, "cannot open the capture %s", c->path);
    return S_ISREG(what.st_mode)
               ? SPT_OK
               : spti_fail(err, SPT_ERR_ARGUMENT, "%s is no file: captures are read from files",
                           c->path);
}

spti_capture *spti_capture_open(const char *path, spt_error *err)
{
    spti_capture *c = malloc(sizeof(*c));
    if (c == NULL)
        return SPTI_NULL(err, SPT_ERR_MEMORY, "no memory for a reader");
    memset(c, 0, offsetof(spti_capture, buffer));
    size_t length = strlen(path), cut = length < sizeof(c->path) ? 0 : length - sizeof(c->path) + 1;
    strcpy(c->path, path + cut);
    if (open_file(c, path, err) == SPT_OK && read_header(c, err) == SPT_OK)
        return c;
    spti_capture_close(c);
    return NULL;
}

void spti_capture_close(spti_capture *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->interfaces);
    free(c);
}
