/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever comes through a connection, and wherever that is cut into
 * pieces, what is received is the same, and each packet is in the account once. Where nothing is
 * malformed or too long, it is what the same bytes in memory bring.
 */
#include "../tests/make_packet.h"
#include "choices.h"
#include "spead_tutorial/spt_recv.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 1 << 16, COUNTS = 8, PARTS = 4, MAX_HEAP = 4000, LARGEST = 1500 };

static uint8_t bytes[ROOM]; /* that are sent */
static size_t n_bytes;

static struct {
    size_t at;
    size_t longest; /* piece; 0: as long as there is room for */
    uint64_t state;
    int error; /* with which it ends, or 0 */
} connection;

/* What was received. */
typedef struct received {
    uint64_t heaps, sum; /* of all that heaps are */
    int error;
    spt_account account;
} received;

/* ---- The connection, in place of the kernel's ------------------------------------------------ */

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags);
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags);

/* Something that is always readable. */
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    (void)fd, (void)address, (void)length, (void)flags;
    return eventfd(1, EFD_CLOEXEC);
}

static uint64_t draw(uint64_t n)
{
    connection.state = connection.state * UINT64_C(6364136223846793005) + 1;
    return (connection.state >> 33) % n;
}

ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
    (void)fd, (void)flags;
    REQUIRE(size > 0);
    size_t n = n_bytes - connection.at;
    if (n == 0 || (connection.longest > 0 && draw(16) == 0)) {
        errno = n == 0 ? connection.error : EAGAIN;
        return errno != 0 ? -1 : 0;
    }
    if (connection.longest > 0 && n > connection.longest)
        n = 1 + draw(connection.longest);
    n = n < size ? n : size;
    memcpy(to, bytes + connection.at, n);
    connection.at += n;
    return (ssize_t)n;
}

static int listening(void)
{
    static int fd = -1;
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0);
    }
    return fd;
}

/* ---- Packets --------------------------------------------------------------------------------- */

/* Parts of heaps, mostly one after the other; now and then a byte is another one, or missing. */
static void make_bytes(choices *c)
{
    static made_packet made;
    uint64_t cnt = 0, part = PARTS, length = 0;
    for (n_bytes = 0; c->size > 0 && n_bytes < ROOM - LARGEST;) {
        if (part >= PARTS) {
            cnt = 1 + choose(c, COUNTS);
            part = choose(c, 8) == 1 ? choose(c, PARTS) : 0;
            length = choose(c, MAX_HEAP);
        }
        uint64_t each = length / PARTS, begin = part++ * each;
        make_part(&made, cnt, (int64_t)length, begin, part < PARTS ? each : length - begin);
        if (choose(c, 8) == 1)
            make_add(&made, true, choose(c, 8), choose(c, MAX_HEAP));
        make_end_of(&made, cnt, begin, part < PARTS ? each : length - begin);
        if (choose(c, 8) == 1)
            made.bytes[choose(c, made.size)] ^= (uint8_t)choose(c, 256);
        made.size -= choose(c, 32) == 1;
        memcpy(bytes + n_bytes, made.bytes, made.size);
        n_bytes += made.size;
    }
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static void add(received *r, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        r->sum = (r->sum ^ ((const uint8_t *)from)[i]) * UINT64_C(0x100000001b3);
}

static void add_heap(received *r, const spt_received_heap *heap)
{
    uint64_t said[] = {heap->cnt, heap->length, heap->received_length, heap->n_pointers};
    add(r, said, sizeof(said));
    for (size_t i = 0; i < heap->n_ranges; i++)
        add(r, heap->payload + heap->ranges[i].begin,
            (size_t)(heap->ranges[i].end - heap->ranges[i].begin));
    r->heaps++;
}

static received receive(bool any_order, size_t max_size, bool in_memory, size_t longest)
{
    received r = {0};
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    spt_receive_config how = SPT_RECEIVE_TCP_CONFIG_DEFAULT;
    config.heaps.allow_out_of_order = any_order;
    config.heaps.max_heap_size = 1 << 16;
    how.max_size = max_size;
    connection.at = 0;
    connection.longest = longest;
    spt_recv_stream *stream = spt_recv_stream_create(NULL, &config, NULL);
    REQUIRE(stream != NULL);
    if (in_memory)
        REQUIRE(spt_recv_stream_add_memory(stream, bytes, n_bytes, NULL) == SPT_OK);
    else
        REQUIRE(spt_recv_stream_add_tcp_socket(stream, listening(), &how, NULL) == SPT_OK);
    for (spt_received_heap *heap; spt_recv_stream_get(stream, -1, &heap) == SPT_OK;) {
        add_heap(&r, heap);
        spt_recv_stream_return(stream, heap);
    }
    spt_recv_stats stats;
    spt_recv_stream_stats(stream, &stats);
    spt_recv_stream_destroy(stream);
    r.error = stats.sys_errno;
    r.account = stats.account;
    r.account.searches = 0; /* packets that are expected are not looked for */
    return r;
}

static void check_same(const received *one, const received *other)
{
    REQUIRE(one->heaps == other->heaps && one->sum == other->sum);
    REQUIRE(memcmp(&one->account, &other->account, sizeof(one->account)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choices c = {data, size};
    bool any_order = choose(&c, 2) != 0;
    connection.error = choose(&c, 2) != 0 ? ECONNRESET : 0;
    connection.state = choose(&c, 256);
    size_t longest = 1 + choose(&c, 2 * LARGEST);
    size_t max_size = connection.state % 2 == 0 ? ROOM : 8 * connection.state;
    make_bytes(&c);
    received memory = receive(any_order, max_size, true, 0);
    received whole = receive(any_order, max_size, false, 0);
    received cut = receive(any_order, max_size, false, longest);
    check_same(&whole, &cut);
    REQUIRE(whole.error == cut.error);
    if (memory.account.fates[SPT_MALFORMED] == 0 && max_size == ROOM)
        check_same(&memory, &whole);
    REQUIRE(account_adds_up(&cut.account));
    return 0;
}
