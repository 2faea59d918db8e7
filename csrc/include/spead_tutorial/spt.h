/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial: a sender of SPEAD heaps over UDP, in C11 for Linux.
 *
 * Read this header from top to bottom; each part needs only those above it:
 *
 * 1. status and errors: how every function answers
 * 2. flavour: how the 64 bits of an item pointer are shared
 * 3. items and descriptors: what is sent
 * 4. heaps: items that travel together
 * 5. packets: a heap cut up, without any I/O
 * 6. rate: when the next burst may go, with time as an argument
 * 7. thread pool: the threads that do the sending
 * 8. streams: heaps queued by you, sent by a worker thread, or by yours
 * 9. completions: how you learn that your memory is yours again
 * 10. what a stream can tell about itself
 * 11. memory in large pages, for streams that send without copying
 *
 * Words used throughout. *Borrowed until <event>*: you own the memory, and must keep it alive and
 * at the same address until then. *Copied*: you may free it when the call returns. *Taken*: it is
 * ours to free. *init* and *fini* work on storage of yours; *create* and *destroy* on storage of
 * ours. Nothing here prints, exits, or reads the environment, and there are no global variables.
 *
 * What is not said of a parameter is the same for all: what it points to is borrowed until the
 * call returns; ``err`` may be ``NULL``, and is filled in where the call fails; ``stats`` and the
 * like are filled; the pool of a stream is borrowed until the stream is destroyed, and ``NULL`` for
 * a stream without a thread. What *create* returns is the caller's, or ``NULL`` where it fails;
 * *destroy* takes it, and accepts ``NULL``.
 *
 * The wire format is that of the SPEAD protocol specification (SSA4700-0000-001), version 4.
 */
#ifndef SPEAD_TUTORIAL_SPT_H
#define SPEAD_TUTORIAL_SPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks what the library exports. */
#define SPT_API __attribute__((visibility("default")))
/** Marks functions whose answer must not be ignored: the compiler warns where it is. */
#define SPT_MUST_CHECK __attribute__((warn_unused_result))

/* ---- 1. Status and errors -------------------------------------------------------------------- */

/**
 * The one list of statuses: ``X`` is given the name, the value and the meaning of each. Zero is
 * success, positive is "nothing wrong, but no", negative is an error.
 */
#define SPT_STATUS_LIST(X)                                                                         \
    X(SPT_OK, 0, "success")                                                                        \
    X(SPT_DONE, 1, "there are no more packets")                                                    \
    X(SPT_PENDING, 2, "not finished yet")                                                          \
    X(SPT_ERR_ARGUMENT, -1, "an argument is out of range")                                         \
    X(SPT_ERR_MEMORY, -2, "out of memory")                                                         \
    X(SPT_ERR_SYSTEM, -3, "a system call failed")                                                  \
    X(SPT_ERR_QUEUE_FULL, -4, "the queue of heaps is full")                                        \
    X(SPT_ERR_STOPPED, -5, "the stream or its thread pool has been stopped")                       \
    X(SPT_ERR_BUSY, -6, "the heap is being sent")                                                  \
    X(SPT_ERR_CANCELLED, -7, "the heap was cancelled")                                             \
    X(SPT_ERR_GROUP, -8, "a group of heaps is empty, or refers to what there is not")

/** What a function answers: one of :c:macro:`SPT_STATUS_LIST`. */
typedef enum spt_status {
#define SPT_STATUS_MEMBER(name, value, text) name = value,
    SPT_STATUS_LIST(SPT_STATUS_MEMBER)
#undef SPT_STATUS_MEMBER
} spt_status;

/** Details of a failure, in storage of the caller. Written only when a function fails. */
typedef struct spt_error {
    /** What kind of failure. */
    spt_status status;
    /** The ``errno`` behind ``SPT_ERR_SYSTEM``, else 0. */
    int sys_errno;
    /** One line: what was wrong, the limit, the way out. */
    char message[240];
} spt_error;

/**
 * The meaning of a status, in a few words.
 *
 * :param status: Any value.
 * :return: A constant string; ``"unknown status"`` for values that are none.
 */
SPT_API const char *spt_status_text(spt_status status);

/* ---- 2. Flavour ------------------------------------------------------------------------------ */

/** Compatibility with receivers that read descriptors differently: bits of ``bug_compat``. */
enum {
    /** Descriptors have 4-byte format fields and 8-byte shape fields, in every flavour. */
    SPT_COMPAT_DESCRIPTOR_WIDTHS = 1,
    /** A variable dimension is marked by 2 instead of 1. */
    SPT_COMPAT_SHAPE_BIT_1 = 2,
    /** NumPy headers give the other byte order (the program that makes them sees to it). */
    SPT_COMPAT_SWAP_ENDIAN = 4,
};

/** How an item pointer is divided: 1 mode bit, 63 - A bits of id, A bits of value or address. */
typedef struct spt_flavour {
    /** A: 8, 16, ... 56. The default flavour, SPEAD-64-40, has 40. */
    uint8_t heap_address_bits;
    /** A sum of ``SPT_COMPAT_*``. */
    uint8_t bug_compat;
} spt_flavour;

/** SPEAD-64-40, as a constant initialiser. */
#define SPT_FLAVOUR_DEFAULT {40, 0}

/**
 * Check and fill in a flavour.
 *
 * :param flavour: Filled on success.
 * :param heap_address_bits: A multiple of 8 from 8 to 56.
 * :param bug_compat: A sum of ``SPT_COMPAT_*``.
 * :return: ``SPT_OK`` or ``SPT_ERR_ARGUMENT``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_flavour_init(spt_flavour *flavour, int heap_address_bits,
                                                   int bug_compat, spt_error *err);

/* ---- 3. Items and descriptors ---------------------------------------------------------------- */

/**
 * Ids that the protocol itself uses. Those from 0 to 6 mean the same in every heap: an item of
 * yours cannot have them. Those from 0x10 on have their meaning inside descriptors only.
 */
enum {
    /** Padding. */
    SPT_ID_NULL = 0x00,
    /** The heap count, which tells a heap from those before. */
    SPT_ID_HEAP_CNT = 0x01,
    /** Bytes of payload in the whole heap. */
    SPT_ID_HEAP_LENGTH = 0x02,
    /** Where the packet's payload belongs in the heap's. */
    SPT_ID_PAYLOAD_OFFSET = 0x03,
    /** Bytes of payload in the packet. */
    SPT_ID_PAYLOAD_LENGTH = 0x04,
    /** A descriptor: a packet inside the payload. The ids from 0x10 on are those of its items. */
    SPT_ID_DESCRIPTOR = 0x05,
    /** Stream control: 0 where a stream starts, 2 where it ends. */
    SPT_ID_STREAM_CTRL = 0x06,
    /** The item's name. */
    SPT_ID_DESCRIPTOR_NAME = 0x10,
    /** The item's description. */
    SPT_ID_DESCRIPTOR_DESCRIPTION = 0x11,
    /** The item's shape. */
    SPT_ID_DESCRIPTOR_SHAPE = 0x12,
    /** The item's format. */
    SPT_ID_DESCRIPTOR_FORMAT = 0x13,
    /** The item's id. */
    SPT_ID_DESCRIPTOR_ID = 0x14,
    /** The header that describes the item's NumPy array. */
    SPT_ID_DESCRIPTOR_DTYPE = 0x15,
};

/** One value to send. */
typedef struct spt_item {
    /**
     * From 7 (what is below is the protocol's) to less than 2 to the power 63 - A; by convention
     * 0x1000 and above.
     */
    uint64_t id;
    /** The value as it goes on the wire; borrowed for as long as the heap holds it. */
    const void *value;
    /** Bytes of the value. */
    size_t length;
    /**
     * The value may travel inside the item pointer where it fits (A/8 bytes): true for items of
     * fixed shape made of whole bytes. It is read when the packet is made, so that it can be
     * edited in place between two transmissions.
     */
    bool allow_immediate;
} spt_item;

/** One field of an item's format: a type and how many bits. */
typedef struct spt_field {
    /** ``'u'``, ``'i'``, ``'f'``, ``'c'`` or ``'b'``. */
    char code;
    /**
     * How many bits: any number for ``'u'``, ``'i'`` and ``'b'``; 32 or 64 for ``'f'``; 8 for
     * ``'c'``.
     */
    uint32_t bits;
} spt_field;

/** What an item is, for receivers that have not been told. All of it is copied when added. */
typedef struct spt_descriptor {
    /** Id of the item that is described. */
    uint64_t id;
    /** The item's name; ASCII, NUL-terminated. */
    const char *name;
    /** What the item is, in words; ASCII, NUL-terminated. */
    const char *description;
    /** The header that describes a NumPy array, or ``NULL``; with one, the format is empty. */
    const char *numpy_header;
    /** The fields of an element, in their order. */
    const spt_field *format;
    /** How many fields there are in ``format``; 0 with a NumPy header. */
    size_t n_format;
    /** The dimensions; -1 where the size varies. */
    const int64_t *shape;
    /** How many dimensions there are in ``shape``; 0 for a scalar. */
    size_t n_shape;
} spt_descriptor;

/** What the elements of a variable are, as they lie in memory: in the byte order of this machine.
 */
typedef enum spt_type {
    /**
     * One ``uint64_t``, of which the low A bits are sent, inside the item pointer: for what is
     * counted, such as timestamps. Receivers see an unsigned integer of A bits.
     */
    SPT_UINT_IMMEDIATE = 1,
    /** One ``int64_t``, sent likewise. Receivers see a signed integer of A bits. */
    SPT_INT_IMMEDIATE,
    /** ``int8_t``. Elements of this type and of those below are sent as they lie in memory. */
    SPT_INT8,
    /** ``int16_t``. */
    SPT_INT16,
    /** ``int32_t``. */
    SPT_INT32,
    /** ``int64_t``. */
    SPT_INT64,
    /** ``uint8_t``. */
    SPT_UINT8,
    /** ``uint16_t``. */
    SPT_UINT16,
    /** ``uint32_t``. */
    SPT_UINT32,
    /** ``uint64_t``. */
    SPT_UINT64,
    /** ``float``. */
    SPT_FLOAT32,
    /** ``double``. */
    SPT_FLOAT64,
    /** ``float complex``. */
    SPT_COMPLEX64,
    /** ``double complex``. */
    SPT_COMPLEX128,
} spt_type;

/** Limits of variables. */
enum {
    /** Dimensions of a variable, at most. */
    SPT_MAX_DIMENSIONS = 8,
};

/**
 * An item and its descriptor in one: a number or an array of yours, with a name. What cannot be
 * said so (bits, texts, structures, sizes that vary) is an :c:struct:`spt_item` with an
 * :c:struct:`spt_descriptor`.
 */
typedef struct spt_variable {
    /** As an item's. */
    uint64_t id;
    /** The item's name; ASCII. */
    const char *name;
    /** What the item is, in words; ASCII. */
    const char *description;
    /** What its elements are. */
    spt_type type;
    /**
     * The elements, in C order. They are read when packets are made: what they are then is what is
     * sent, each time anew.
     */
    const void *value;
    /** How many dimensions it has; 0 for a scalar. */
    size_t n_shape;
    /** How many elements along each of them. */
    size_t shape[SPT_MAX_DIMENSIONS];
} spt_variable;

/**
 * A variable that is a count, sent inside the item pointer.
 *
 * :param id: As an item's.
 * :param name: Borrowed until the variable is added to a heap.
 * :param description: Likewise.
 * :param value: In the byte order of this machine; borrowed. See ``SPT_UINT_IMMEDIATE``.
 * :return: By value, for :c:func:`spt_heap_add`.
 */
static inline spt_variable spt_immediate(uint64_t id, const char *name, const char *description,
                                         const uint64_t *value)
{
    spt_variable variable = {id, name, description, SPT_UINT_IMMEDIATE, value, 0, {0}};
    return variable;
}

/**
 * A variable that is an array with one dimension.
 *
 * :param id: As an item's.
 * :param name: As that of :c:func:`spt_immediate`.
 * :param description: Likewise.
 * :param type: What its elements are.
 * :param value: The elements; borrowed.
 * :param n: How many there are.
 * :return: By value, for :c:func:`spt_heap_add`.
 */
static inline spt_variable spt_array(uint64_t id, const char *name, const char *description,
                                     spt_type type, const void *value, size_t n)
{
    spt_variable variable = {id, name, description, type, value, 1, {n}};
    return variable;
}

/* ---- 4. Heaps -------------------------------------------------------------------------------- */

/** Items that travel together. It references their values, and never copies them. */
typedef struct spt_heap spt_heap;

/**
 * Make an empty heap.
 *
 * :param flavour: Copied; ``NULL`` for SPEAD-64-40.
 * :return: The heap, owned by the caller; ``NULL`` where memory is short.
 */
SPT_API SPT_MUST_CHECK spt_heap *spt_heap_create(const spt_flavour *flavour, spt_error *err);

/** Free a heap. It must not be in flight. */
SPT_API void spt_heap_destroy(spt_heap *heap);

/** What of a variable is added to a heap. */
enum {
    /** What it is, for receivers that have not been told. */
    SPT_DESCRIPTORS = 1,
    /** Its value. */
    SPT_VALUES = 2,
    /** Both. */
    SPT_ALL = SPT_DESCRIPTORS | SPT_VALUES,
};

/**
 * Add variables: of each its descriptor, its value, or first one and then the other.
 *
 * :param heap: Not in flight.
 * :param variables: Copied; their values are borrowed until the heap is destroyed.
 * :param n_variables: How many.
 * :param parts: ``SPT_DESCRIPTORS``, ``SPT_VALUES`` or ``SPT_ALL``.
 * :return: As :c:func:`spt_heap_add_item`; also ``SPT_ERR_ARGUMENT`` for a type or a shape that
 *     there is not. After a failure the heap is as before.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add(spt_heap *heap, const spt_variable *variables,
                                               size_t n_variables, unsigned parts, spt_error *err);

/**
 * Add a value. Pointers and payload keep the order in which they are added.
 *
 * :param heap: Not in flight.
 * :param item: Copied; its value is borrowed until the heap is destroyed.
 * :return: ``SPT_OK``; ``SPT_ERR_ARGUMENT`` for an id that is reserved or does not fit the
 *     flavour, or a heap grown beyond what its addresses reach; ``SPT_ERR_BUSY``;
 *     ``SPT_ERR_MEMORY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_item(spt_heap *heap, const spt_item *item,
                                                    spt_error *err);

/**
 * Add a descriptor: a small SPEAD packet inside the heap's payload.
 *
 * :param heap: Not in flight.
 * :param descriptor: Copied.
 * :return: As :c:func:`spt_heap_add_item`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_descriptor(spt_heap *heap,
                                                          const spt_descriptor *descriptor,
                                                          spt_error *err);

/**
 * Add the stream control item that says "the stream starts here".
 *
 * :param heap: Not in flight.
 * :return: As :c:func:`spt_heap_add_item`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_start(spt_heap *heap, spt_error *err);

/**
 * Add the stream control item that says "the stream ends here": receivers stop at it.
 *
 * :param heap: Not in flight.
 * :return: As :c:func:`spt_heap_add_item`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_end(spt_heap *heap, spt_error *err);

/**
 * Choose whether every packet repeats all item pointers, so that each can be read by itself.
 *
 * :param heap: Not in flight.
 * :param repeat: False in a new heap.
 * :return: ``SPT_OK`` or ``SPT_ERR_BUSY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_set_repeat_pointers(spt_heap *heap, bool repeat,
                                                               spt_error *err);

/** Whether every packet repeats all item pointers. */
SPT_API bool spt_heap_repeat_pointers(const spt_heap *heap);

/** The heap's flavour. */
SPT_API spt_flavour spt_heap_flavour(const spt_heap *heap);

/**
 * How many transmissions of a heap are queued or under way, in all streams. Nothing can be added to
 * it meanwhile.
 *
 * :return: 0 where the heap is not in flight.
 */
SPT_API size_t spt_heap_in_flight(const spt_heap *heap);

/* ---- 5. Packets ------------------------------------------------------------------------------ */

/** Limits of packets. */
enum {
    /** The smallest packet size: header, four pointers, one more, and 8 bytes of payload. */
    SPT_MIN_PACKET_SIZE = 56,
    /** Shorter pieces of payload are copied next to the header: cheaper than listing them. */
    SPT_COPY_BELOW = 256,
};

/** Pieces that a packet of at most ``size`` bytes can have. */
#define SPT_MAX_PIECES(size) (2 * ((size) / SPT_COPY_BELOW) + 3)

/** A packet, described. */
typedef struct spt_packet {
    /** Bytes in the packet: the sum over its pieces. */
    size_t size;
    /** How many pieces it is made of. */
    size_t n_pieces;
    /** Bytes written into the scratch. */
    size_t scratch_used;
} spt_packet;

/** Cuts one heap into packets. Yours to allocate; its members are private. */
typedef struct spt_packetizer {
    const spt_heap *heap;
    uint64_t cnt;
    size_t max_packet_size, max_pointers;
    size_t payload_length, payload_offset;
    size_t n_pointers, next_pointer;
    size_t item, item_offset;
    bool padded, done;
} spt_packetizer;

/**
 * Start on a heap.
 *
 * :param heap: Borrowed until the last packet has been made, and not changed until then.
 * :param cnt: Heap count; the low A bits are used.
 * :param max_packet_size: At least :c:enumerator:`SPT_MIN_PACKET_SIZE`; rounded down to a multiple
 *     of 8. UDP and IP headers are not counted.
 * :return: ``SPT_OK``, or ``SPT_ERR_ARGUMENT`` for a packet size that is too small (also for
 *     the pointers that every packet should repeat).
 */
SPT_API SPT_MUST_CHECK spt_status spt_packetizer_init(spt_packetizer *p, const spt_heap *heap,
                                                      uint64_t cnt, size_t max_packet_size,
                                                      spt_error *err);

/**
 * The packet size with which all packets of a heap are equal, where it takes no more of them than
 * with the largest size. Such packets share messages also with those of the next heaps; a heap
 * whose last packet is shorter ends a message.
 *
 * :param max_packet_size: As for :c:func:`spt_packetizer_init`.
 * :return: A multiple of 8, and at most ``max_packet_size``; that itself, where packets cannot be
 *     equal (their payload is a multiple of 8 bytes), or there is but one.
 */
SPT_API size_t spt_equal_packet_size(const spt_heap *heap, size_t max_packet_size);

/**
 * Write the next packet's header and list its pieces.
 *
 * :param scratch: Filled with the header and short values; room for ``max_packet_size`` bytes.
 *     Borrowed for as long as the pieces are used.
 * :param pieces: Filled; room for :c:macro:`SPT_MAX_PIECES` entries. They point into the scratch
 *     and into the values of the heap.
 * :return: ``SPT_OK``, or ``SPT_DONE`` after the last packet.
 */
SPT_API SPT_MUST_CHECK spt_status spt_packetizer_next(spt_packetizer *p, void *scratch,
                                                      struct iovec *pieces, spt_packet *packet);

/* ---- 6. Rate --------------------------------------------------------------------------------- */

/** A rate limiter that is told the time. Yours to allocate; its members are private. */
typedef struct spt_rate {
    double ns_per_byte, burst_ratio;
    size_t burst_size, burst_bytes;
    /* When the next burst is due at the rate, and may go at the earliest when late. */
    uint64_t due_ns, earliest_ns;
    double due_fraction, earliest_fraction;
} spt_rate;

/**
 * Set up a limiter.
 *
 * :param rate: Bytes of SPEAD packets per second; 0 means no limit.
 * :param burst_size: Bytes sent back to back before looking at the clock.
 * :param burst_ratio: A late sender catches up at no more than ``rate * burst_ratio``; at least 1.
 */
SPT_API void spt_rate_init(spt_rate *r, double rate, size_t burst_size, double burst_ratio);

/**
 * When the next packet may go.
 *
 * :return: 0 for "now", else the time to wait for, on the same clock.
 */
SPT_API uint64_t spt_rate_next(spt_rate *r, uint64_t now_ns);

/**
 * Say that a packet has been sent.
 *
 * :param bytes: Its size.
 * :param rate: The rate to charge it at: negative for the limiter's, 0 for none.
 */
SPT_API void spt_rate_sent(spt_rate *r, size_t bytes, double rate);

/** Say that there was nothing to send until now: idle time earns no credit. */
SPT_API void spt_rate_idle(spt_rate *r, uint64_t now_ns);

/* ---- 7. Thread pool -------------------------------------------------------------------------- */

/**
 * Threads that send for any number of streams. After ``fork()`` they, and the streams, are the
 * parent's: a child leaves these alone, not even destroying them, and makes its own.
 */
typedef struct spt_thread_pool spt_thread_pool;

/**
 * Start the threads.
 *
 * :param n_threads: At least 1.
 * :param affinity: Cores to run on: thread i on ``affinity[i % n_affinity]``, or wherever the
 *     kernel likes where that is negative. Copied.
 * :param n_affinity: 0 leaves the choice to the kernel.
 */
SPT_API SPT_MUST_CHECK spt_thread_pool *
spt_thread_pool_create(size_t n_threads, const int *affinity, size_t n_affinity, spt_error *err);

/**
 * End the threads. Heaps that are still queued complete with ``SPT_ERR_STOPPED``. May be repeated;
 * where another thread is stopping the pool, this waits until it has.
 */
SPT_API void spt_thread_pool_stop(spt_thread_pool *pool);

/** Stop and free. Its streams must have been destroyed before. */
SPT_API void spt_thread_pool_destroy(spt_thread_pool *pool);

/**
 * Run the calling thread on one core only.
 *
 * :param core: Its number.
 * :return: ``SPT_OK``; ``SPT_ERR_ARGUMENT`` for no core's number, ``SPT_ERR_SYSTEM`` for one that
 *     there is not, or that this process may not use.
 */
SPT_API SPT_MUST_CHECK spt_status spt_set_affinity(int core, spt_error *err);

/* ---- 8. Streams ------------------------------------------------------------------------------ */

/**
 * A queue of heaps and what sends them. All functions on it may be called from any thread.
 *
 * Mostly a thread of a pool sends. A stream that is made with ``NULL`` for a pool has none: the
 * threads that call it do the work, which costs least where they also prepare the data, for it is
 * still in their cache. Heaps are gathered until they are 256 KiB, and sent in the call that makes
 * them so; what is left is sent by a call that waits, flushes or polls. No send ever waits for the
 * socket or for a rate. Nothing happens between calls: in an event loop, watch
 * :c:func:`spt_stream_fd`.
 */
typedef struct spt_stream spt_stream;

/** How a stream sends. Start from :c:macro:`SPT_STREAM_CONFIG_DEFAULT`. */
typedef struct spt_stream_config {
    /** Bytes of a packet at most, UDP and IP headers not counted. */
    size_t max_packet_size;
    /** Bytes of SPEAD packets per second; 0 for no limit. */
    double rate;
    /** Bytes sent back to back before looking at the clock. */
    size_t burst_size;
    /** A late stream catches up at no more than ``rate * burst_rate_ratio``; at least 1. */
    double burst_rate_ratio;
    /** Heaps between queueing and completion, at most; at least 1. */
    size_t max_heaps;
    /** Keep the times of this many heaps for :c:func:`spt_stream_timeline`; 0 keeps none. */
    size_t timeline;
    /**
     * Completions are listed for :c:func:`spt_stream_poll`, and announced on
     * :c:func:`spt_stream_fd`; false: they are only waited for.
     */
    bool poll;
    /** Cut each heap into equal packets where it can be: see :c:func:`spt_equal_packet_size`. */
    bool equal_packets;
} spt_stream_config;

/** The defaults: 1472 bytes fill an Ethernet frame of 1500 under IPv4. */
#define SPT_STREAM_CONFIG_DEFAULT {1472, 0.0, 65536, 1.05, 4, 0, false, false}

/** Where a substream goes. */
typedef struct spt_endpoint {
    /** A name or an address, IPv4 or IPv6. */
    const char *host;
    /** 1 to 65535. */
    int port;
} spt_endpoint;

/** How a UDP socket is made. Start from :c:macro:`SPT_UDP_CONFIG_DEFAULT`. */
typedef struct spt_udp_config {
    /** Bytes asked for in the socket's send buffer; 0 leaves the system's. */
    size_t buffer_size;
    /** Multicast time to live (IPv4) or hop limit (IPv6); -1 leaves the system's. */
    int ttl;
    /** The address of the interface to send from (IPv4), or ``NULL``. */
    const char *interface_address;
    /** The interface for IPv6 multicast; 0 leaves the choice to the system. */
    unsigned interface_index;
    /** Let the kernel cut runs of equal packets (generic segmentation offload) where it can. */
    bool gso;
    /**
     * Packets that are larger than the path takes fail with ``EMSGSIZE`` (``IP_PMTUDISC_DO``, see
     * ip(7)); false: they are fragmented without an error.
     */
    bool dont_fragment;
    /**
     * Have the kernel read the memory of heaps in place instead of copying it (``MSG_ZEROCOPY``,
     * see msg_zerocopy.rst of the kernel's documentation), where it can and that pays; a heap is
     * complete only once the kernel does not read it any more. It is for data that is in
     * memory already: what has just been written is in a cache, from where copying is cheap. See
     * :c:func:`spt_alloc` for the memory, and ``zero_copy_messages`` of the statistics for what
     * became of it.
     */
    bool zero_copy;
} spt_udp_config;

/** The defaults: a send buffer of 512 KiB, GSO where the kernel has it, fragments, and copies. */
#define SPT_UDP_CONFIG_DEFAULT {524288, -1, NULL, 0, true, false, false}

/**
 * Ask the route for the largest packet that goes to an endpoint in one piece (``IP_MTU``, see
 * ip(7), less the headers of UDP and IP).
 *
 * :param size: Filled: a ``max_packet_size``, a multiple of 8. It is what this machine knows: hops
 *     beyond the first make themselves known when something is too large for them.
 * :return: ``SPT_OK``; ``SPT_ERR_ARGUMENT`` for no such host or port; ``SPT_ERR_SYSTEM`` where
 *     there is no way to it.
 */
SPT_API SPT_MUST_CHECK spt_status spt_route_packet_size(const spt_endpoint *endpoint, size_t *size,
                                                        spt_error *err);

/**
 * Make a stream that sends over UDP, with a socket of its own.
 *
 * :param endpoints: One for each substream, of one address family. Copied.
 * :param n_endpoints: At least 1.
 * :param udp: Copied; ``NULL`` for the defaults.
 */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_udp(spt_thread_pool *pool, const spt_endpoint *endpoints, size_t n_endpoints,
                      const spt_stream_config *config, const spt_udp_config *udp, spt_error *err);

/**
 * Make a stream that sends over UDP, with a socket of yours.
 *
 * :param socket: A UDP socket. It is duplicated: it stays yours, and may be closed.
 * :param endpoints: One for each substream, of the socket's address family. Copied.
 * :param n_endpoints: At least 1.
 * :param udp: Only ``gso`` is looked at: how the socket is set up is yours to say. Copied;
 *     ``NULL`` for the defaults. ``zero_copy`` is an ``SPT_ERR_ARGUMENT``: the kernel would count
 *     also what others send through the socket.
 * :param err: Details of a failure, or ``NULL``. No socket is ever made instead: a closed one
 *     (a negative number) is an ``SPT_ERR_ARGUMENT``.
 */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_udp_socket(spt_thread_pool *pool, int socket, const spt_endpoint *endpoints,
                             size_t n_endpoints, const spt_stream_config *config,
                             const spt_udp_config *udp, spt_error *err);

/** Make a stream that collects its packets in memory, one after the other. */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_memory(spt_thread_pool *pool, const spt_stream_config *config, spt_error *err);

/**
 * Copy out what a memory stream has collected.
 *
 * :param stream: Made by :c:func:`spt_stream_create_memory`.
 * :param to: Filled with the first ``size`` bytes; may be ``NULL`` when ``size`` is 0.
 * :param size: Room in ``to``.
 * :return: Bytes collected so far; 0 for other streams.
 */
SPT_API size_t spt_stream_memory(spt_stream *stream, void *to, size_t size);

/** How a TCP connection is made. Start from :c:macro:`SPT_TCP_CONFIG_DEFAULT`. */
typedef struct spt_tcp_config {
    /** Bytes asked for in the socket's send buffer; 0 leaves the system's. */
    size_t buffer_size;
    /** The address of the interface to send from, or ``NULL``. */
    const char *interface_address;
} spt_tcp_config;

/** The defaults: a send buffer of 208 KiB. */
#define SPT_TCP_CONFIG_DEFAULT {212992, NULL}

/**
 * Connect to a receiver, and make a stream that sends over TCP. Packets follow each other with
 * nothing in between; large ones (65536 bytes) cost least. Where the connection ends, that heap and
 * all later ones fail, with ``EPIPE`` or ``ECONNRESET``.
 *
 * :param endpoint: The only substream. Copied.
 * :param tcp: Copied; ``NULL`` for the defaults.
 * :param err: Details of a failure, or ``NULL``: ``ECONNREFUSED`` without a listener, ``EINTR``
 *     where a signal came meanwhile.
 */
SPT_API SPT_MUST_CHECK spt_stream *spt_stream_create_tcp(spt_thread_pool *pool,
                                                         const spt_endpoint *endpoint,
                                                         const spt_stream_config *config,
                                                         const spt_tcp_config *tcp, spt_error *err);

/**
 * Make a stream that sends over TCP, with a socket of yours.
 *
 * :param socket: One of TCP that is connected. It is duplicated: it stays yours, and may be closed.
 */
SPT_API SPT_MUST_CHECK spt_stream *spt_stream_create_tcp_socket(spt_thread_pool *pool, int socket,
                                                                const spt_stream_config *config,
                                                                spt_error *err);

/**
 * A queue of packets within the process, from streams that send to streams that receive: a network
 * that loses nothing. It outlives its owner for as long as a stream has it. All functions may be
 * called from any thread.
 */
typedef struct spt_inproc_queue spt_inproc_queue;

/**
 * Make a queue.
 *
 * :param max_packets: How many may be in it; 0 for no limit. While it is full, streams that send
 *     to it wait.
 * :param max_bytes: How many bytes these may have; 0 for no limit.
 */
SPT_API SPT_MUST_CHECK spt_inproc_queue *spt_inproc_queue_create(size_t max_packets,
                                                                 size_t max_bytes, spt_error *err);

/**
 * Put a packet in; it does not wait.
 *
 * :param bytes: Copied. Whether they are a packet is for the receiver to say.
 * :param n_bytes: How many.
 * :return: ``SPT_OK``; ``SPT_ERR_QUEUE_FULL``; ``SPT_ERR_STOPPED``; ``SPT_ERR_ARGUMENT`` for more
 *     bytes than ever fit; ``SPT_ERR_MEMORY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_inproc_queue_add_packet(spt_inproc_queue *queue,
                                                              const void *bytes, size_t n_bytes,
                                                              spt_error *err);

/**
 * Take no more packets. Those in the queue can still be received, then the streams that receive
 * from it end. May be repeated.
 */
SPT_API void spt_inproc_queue_stop(spt_inproc_queue *queue);

/** Let go of it. It is not stopped by that, and is freed with the last stream that has it. */
SPT_API void spt_inproc_queue_destroy(spt_inproc_queue *queue);

/**
 * Make a stream that sends to queues of this process. While one is full, the stream waits; packets
 * for one that has been stopped fail with ``ECANCELED``.
 *
 * :param queues: One for each substream; held until the stream is destroyed.
 * :param n_queues: At least 1.
 */
SPT_API SPT_MUST_CHECK spt_stream *
spt_stream_create_inproc(spt_thread_pool *pool, spt_inproc_queue *const *queues, size_t n_queues,
                         const spt_stream_config *config, spt_error *err);

/**
 * Stop: what is still queued completes with ``SPT_ERR_STOPPED``, and further sends are refused.
 * May be repeated. Call :c:func:`spt_stream_flush` before, to have everything sent.
 */
SPT_API void spt_stream_stop(spt_stream *stream);

/** Stop and free. */
SPT_API void spt_stream_destroy(spt_stream *stream);

/** How many endpoints a stream has: at least 1; for a memory stream, 1. */
SPT_API size_t spt_stream_num_substreams(const spt_stream *stream);

/**
 * Choose the heap counts that are given out: next, next + step, ... The first is 1, the step 1.
 *
 * :param next: The next heap's count.
 * :param step: Not 0.
 * :return: ``SPT_OK`` or ``SPT_ERR_ARGUMENT``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_set_cnt_sequence(spt_stream *stream, uint64_t next,
                                                              uint64_t step, spt_error *err);

/* ---- 9. Completions -------------------------------------------------------------------------- */

/**
 * Tells that a heap, or a group of heaps, has been sent, or why not. It lies in your memory, so
 * that sending allocates nothing: set it to zeros (``= {0}``), fill in ``user`` if you like, and
 * hand it to a send.
 *
 * The completion, and every heap sent with it, and every value of those heaps, is borrowed from the
 * send until it is complete. Then it can be used again; on a stream with ``config.poll``, the
 * completion itself only when :c:func:`spt_stream_poll` has handed it out, or with the stream's
 * end.
 */
typedef struct spt_completion {
    /** Yours. */
    void *user;
    /** ``SPT_OK``, or the first thing that went wrong. */
    spt_status status;
    /** The ``errno`` behind ``SPT_ERR_SYSTEM``. */
    int sys_errno;
    /** Bytes of SPEAD packets handed over. */
    uint64_t bytes;
    /** Where it first went wrong: the heap count. */
    uint64_t failed_cnt;
    /** Where it first went wrong: bytes of the packet. */
    size_t failed_packet_size;
    /** With ``EMSGSIZE``: the packet size that would have gone through; 0 where unknown. */
    size_t fitting_packet_size;
    /* Private. */
    int state_;
    struct spt_completion *next_;
} spt_completion;

/** One heap of a group. */
typedef struct spt_heap_reference {
    /** The heap; borrowed until its completion is complete. */
    spt_heap *heap;
    /**
     * The heap count, or -1 for the next of the stream's sequence. One that is given does not move
     * the sequence on.
     */
    int64_t cnt;
    /** Which endpoint to send to, counted from 0. */
    size_t substream_index;
    /** Bytes of SPEAD packets per second: negative for the stream's, 0 for no limit. */
    double rate;
} spt_heap_reference;

/** How the packets of a group's heaps follow each other. */
typedef enum spt_group_mode {
    /** A packet of each heap in turn. */
    SPT_GROUP_ROUND_ROBIN = 0,
    /** All of one heap, then all of the next. */
    SPT_GROUP_SERIAL = 1,
} spt_group_mode;

/**
 * Queue a group of heaps; all of them or none. Nothing is copied, and nothing is waited for;
 * without a thread they may also be sent.
 *
 * :param heaps: Copied; the heaps and their values are borrowed until the completion is complete.
 * :param n_heaps: At least 1.
 * :param mode: The order of their packets.
 * :param completion: Borrowed until complete; not in use.
 * :return: ``SPT_OK``; ``SPT_ERR_QUEUE_FULL`` where ``max_heaps`` leaves no room;
 *     ``SPT_ERR_GROUP`` for no heaps, or a count, a substream or a rate that there is not;
 *     ``SPT_ERR_ARGUMENT`` for a heap that does not fit the packet size; ``SPT_ERR_STOPPED``.
 *     After a failure nothing is borrowed and no heap count was used up.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_send_heaps(spt_stream *stream,
                                                        const spt_heap_reference *heaps,
                                                        size_t n_heaps, spt_group_mode mode,
                                                        spt_completion *completion, spt_error *err);

/**
 * Queue one heap, with the next heap count, on the first substream, at the stream's rate.
 *
 * :param heap: It and its values are borrowed until the completion is complete.
 * :param completion: Borrowed until complete; not in use.
 * :return: As :c:func:`spt_stream_send_heaps`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_send_heap(spt_stream *stream, spt_heap *heap,
                                                       spt_completion *completion, spt_error *err);

/**
 * Say to every endpoint that the stream ends, after all that is queued, and wait until that is
 * sent: a heap with :c:func:`spt_heap_add_end`, to each.
 *
 * :param stream: Borrowed; one without ``config.poll``, where completions are yours to take. It can
 *     send afterwards, but receivers no longer listen.
 * :param flavour: That of the heaps before; copied. ``NULL`` for SPEAD-64-40.
 * :return: As :c:func:`spt_stream_send_heap` and :c:func:`spt_stream_wait`; ``SPT_ERR_ARGUMENT``
 *     for a stream with ``config.poll``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_send_end(spt_stream *stream,
                                                      const spt_flavour *flavour, spt_error *err);

/** Whether a completion is complete, without waiting; so is one that was never used. */
SPT_API bool spt_completion_done(const spt_completion *completion);

/**
 * Wait until a completion is complete.
 *
 * :param stream: The stream it was sent with.
 * :param completion: Returned to the caller when complete. One that was never used is complete.
 * :param timeout_ns: How long to wait at most; negative for ever.
 * :param err: If something went wrong, says which heap and why, or ``NULL``.
 * :return: ``SPT_PENDING`` after the time, else the completion's status.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_wait(spt_stream *stream, spt_completion *completion,
                                                  int64_t timeout_ns, spt_error *err);

/**
 * Put into words what went wrong with a completion.
 *
 * :param completion: Complete.
 * :param err: Filled unless the status is ``SPT_OK``; or ``NULL``.
 * :return: The completion's status.
 */
SPT_API spt_status spt_completion_explain(const spt_completion *completion, spt_error *err);

/**
 * Take what is complete from a stream with ``config.poll``, in order of completion.
 *
 * :param completions: Filled with pointers that were handed to sends.
 * :param n: Room in ``completions``.
 * :return: How many were filled in; call again when it is ``n``.
 */
SPT_API size_t spt_stream_poll(spt_stream *stream, spt_completion **completions, size_t n);

/**
 * The file descriptor of a stream with ``config.poll``: readable when something has been completed
 * since :c:func:`spt_stream_poll` last emptied the list, which also makes it unreadable again.
 * Without a thread, also when there is something to send, and nothing holds it up: polling does it.
 *
 * :return: The descriptor, or -1.
 */
SPT_API int spt_stream_fd(const spt_stream *stream);

/**
 * Wait until all that is queued now is complete.
 *
 * :param timeout_ns: How long to wait at most; negative for ever.
 * :return: ``SPT_OK`` or ``SPT_PENDING``. Whether it went well is in the completions.
 */
SPT_API SPT_MUST_CHECK spt_status spt_stream_flush(spt_stream *stream, int64_t timeout_ns);

/**
 * Give up on a completion: packets that have not been handed over are not sent, and it is complete
 * when this returns; with ``SPT_ERR_CANCELLED``, unless all of them had been, or one has failed.
 *
 * :param stream: The stream it was sent with.
 * :param completion: Returned to the caller.
 */
SPT_API void spt_stream_cancel(spt_stream *stream, spt_completion *completion);

/* ---- 10. What a stream can tell about itself ------------------------------------------------- */

/** Limits of statistics. */
enum {
    /** Errors are counted for each ``errno`` below this. */
    SPT_N_ERRNO = 134,
};

/** Counts since the stream was made. */
typedef struct spt_stats {
    /** Heaps completed, whether well or not. */
    uint64_t heaps;
    /** Packets that the transport took. */
    uint64_t packets;
    /** Bytes in those packets, UDP and IP headers not counted. */
    uint64_t bytes;
    /** System calls made to send. */
    uint64_t send_calls;
    /** Messages in those calls that were taken. */
    uint64_t messages;
    /** Those of the messages that carried several packets. */
    uint64_t gso_messages;
    /** Messages whose memory the kernel was to read in place. */
    uint64_t zero_copy_messages;
    /** Those of the messages that it has copied after all, as it does on loopback. */
    uint64_t zero_copy_copied;
    /** Times the socket was full and had to be waited for. */
    uint64_t waits;
    /** ns in which the thread of the pool did not sleep, but looked whether there is more to do. */
    uint64_t looking_ns;
    /**
     * The same of threads that wait for a completion and, on a stream without a thread, of those
     * that send for it. What several do at once is added up.
     */
    uint64_t waiting_looking_ns;
    /** Packets that failed. */
    uint64_t errors;
    /** Packets that failed, by ``errno``. */
    uint64_t errors_by_errno[SPT_N_ERRNO];
} spt_stats;

/** Read the counts. Complete for all heaps whose completion has been seen. */
SPT_API void spt_stream_stats(const spt_stream *stream, spt_stats *stats);

/** When things happened to a heap; ns of ``CLOCK_MONOTONIC``, 0 for what did not happen. */
typedef struct spt_times {
    /** The heap count. */
    uint64_t cnt;
    /** Bytes of its SPEAD packets. */
    uint64_t bytes;
    /** When it was queued. */
    uint64_t queued_ns;
    /** Before the call that handed over its first packet. */
    uint64_t first_packet_ns;
    /** After the call that handed over its last packet. */
    uint64_t last_packet_ns;
    /** When it was complete: the memory is its owner's again. */
    uint64_t completed_ns;
} spt_times;

/**
 * Copy out the times of the last heaps, oldest first.
 *
 * :param times: Filled.
 * :param n: Room in ``times``.
 * :return: How many were filled in: at most ``config.timeline``.
 */
SPT_API size_t spt_stream_timeline(spt_stream *stream, spt_times *times, size_t n);

/* ---- 11. Memory ------------------------------------------------------------------------------ */

/** Memory, and what it consists of. */
typedef struct spt_memory {
    /** Where it begins: at the beginning of a page. */
    void *data;
    /** Its bytes: what was asked for, rounded up to whole huge pages. */
    size_t size;
    /** Bytes in a page of it: 2 MiB, or those of an ordinary page. */
    size_t page_size;
    /** Why it is not in huge pages, and what to do about it; ``NULL`` where it is. Not yours. */
    const char *reason;
} spt_memory;

/**
 * Allocate memory in huge pages, where the system has any: reserved ones, or those that it makes by
 * itself (see transhuge.rst of the kernel's documentation). The memory has been written
 * to, so that it costs nothing to touch any more, and holds zeros.
 *
 * A message that is sent without copying has a limit of pages: 7 packets of 9000 bytes where
 * they are huge, 4 where they are not.
 *
 * :param size: Bytes; at least 1.
 * :param memory: Filled; to be given to :c:func:`spt_free`, also after a failure, if to anything.
 * :return: ``SPT_OK``, with the pages that there are; ``SPT_ERR_MEMORY``, or ``SPT_ERR_ARGUMENT``
 *     for sizes that cannot be.
 */
SPT_API SPT_MUST_CHECK spt_status spt_alloc(size_t size, spt_memory *memory, spt_error *err);

/**
 * Free such memory.
 *
 * :param memory: What is in it is taken; all of it is set to zero. Once no heap that is being sent
 *     references it.
 */
SPT_API void spt_free(spt_memory *memory);

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_H */
