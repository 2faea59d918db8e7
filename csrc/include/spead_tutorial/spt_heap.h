/* SPDX-License-Identifier: BSD-3-Clause */
/* What is sent: items, heaps, and the packets that they are cut into without I/O. Part of spt.h. */
#ifndef SPEAD_TUTORIAL_SPT_HEAP_H
#define SPEAD_TUTORIAL_SPT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Status and errors -------------------------------------------------------------------- */

/** Marks what the library exports. */
#define SPT_API __attribute__((visibility("default")))
/** Marks functions whose answer must not be ignored: the compiler warns where it is. */
#define SPT_MUST_CHECK __attribute__((warn_unused_result))

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
    spt_status status; /**< What kind of failure. */
    int sys_errno;     /**< The ``errno`` behind ``SPT_ERR_SYSTEM``, else 0. */
    char message[240]; /**< One line: what was wrong, the limit, the way out. */
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
    SPT_COMPAT_SHAPE_BIT_1 = 2, /**< A variable dimension is marked by 2 instead of 1. */
    /** NumPy headers give the other byte order (the program that makes them sees to it). */
    SPT_COMPAT_SWAP_ENDIAN = 4,
};

/** How an item pointer is divided: 1 mode bit, 63 - A bits of id, A bits of value or address. */
typedef struct spt_flavour {
    uint8_t heap_address_bits; /**< A: 8, 16, ... 56. The default flavour, SPEAD-64-40, has 40. */
    uint8_t bug_compat;        /**< A sum of ``SPT_COMPAT_*``. */
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
    SPT_ID_NULL = 0x00,           /**< Padding. */
    SPT_ID_HEAP_CNT = 0x01,       /**< The heap count, which tells a heap from those before. */
    SPT_ID_HEAP_LENGTH = 0x02,    /**< Bytes of payload in the whole heap. */
    SPT_ID_PAYLOAD_OFFSET = 0x03, /**< Where the packet's payload belongs in the heap's. */
    SPT_ID_PAYLOAD_LENGTH = 0x04, /**< Bytes of payload in the packet. */
    /** A descriptor: a packet inside the payload. The ids from 0x10 on are those of its items. */
    SPT_ID_DESCRIPTOR = 0x05,
    SPT_ID_STREAM_CTRL = 0x06,     /**< Stream control: 0 where a stream starts, 2 where it ends. */
    SPT_ID_DESCRIPTOR_NAME = 0x10, /**< The item's name. */
    /** The item's description. */
    SPT_ID_DESCRIPTOR_DESCRIPTION = 0x11,
    SPT_ID_DESCRIPTOR_SHAPE = 0x12,  /**< The item's shape. */
    SPT_ID_DESCRIPTOR_FORMAT = 0x13, /**< The item's format. */
    SPT_ID_DESCRIPTOR_ID = 0x14,     /**< The item's id. */
    SPT_ID_DESCRIPTOR_DTYPE = 0x15,  /**< The header that describes the item's NumPy array. */
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
    size_t length; /**< Bytes of the value. */
    /**
     * The value may travel inside the item pointer where it fits (A/8 bytes): true for items of
     * fixed shape made of whole bytes. It is read when the packet is made, so that it can be
     * edited in place between two transmissions.
     */
    bool allow_immediate;
} spt_item;

/** One field of an item's format: a type and how many bits. */
typedef struct spt_field {
    char code; /**< ``'u'``, ``'i'``, ``'f'``, ``'c'`` or ``'b'``. */
    /**
     * How many bits: any number for ``'u'``, ``'i'`` and ``'b'``; 32 or 64 for ``'f'``; 8 for
     * ``'c'``.
     */
    uint32_t bits;
} spt_field;

/** What an item is, for receivers that have not been told. All of it is copied when added. */
typedef struct spt_descriptor {
    uint64_t id;             /**< Id of the item that is described. */
    const char *name;        /**< The item's name; ASCII, NUL-terminated. */
    const char *description; /**< What the item is, in words; ASCII, NUL-terminated. */
    /** The header that describes a NumPy array, or ``NULL``; with one, the format is empty. */
    const char *numpy_header;
    const spt_field *format; /**< The fields of an element, in their order. */
    size_t n_format;         /**< How many fields there are in ``format``; 0 with a NumPy header. */
    const int64_t *shape;    /**< The dimensions; -1 where the size varies. */
    size_t n_shape;          /**< How many dimensions there are in ``shape``; 0 for a scalar. */
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
    SPT_INT16,      /**< ``int16_t``. */
    SPT_INT32,      /**< ``int32_t``. */
    SPT_INT64,      /**< ``int64_t``. */
    SPT_UINT8,      /**< ``uint8_t``. */
    SPT_UINT16,     /**< ``uint16_t``. */
    SPT_UINT32,     /**< ``uint32_t``. */
    SPT_UINT64,     /**< ``uint64_t``. */
    SPT_FLOAT32,    /**< ``float``. */
    SPT_FLOAT64,    /**< ``double``. */
    SPT_COMPLEX64,  /**< ``float complex``. */
    SPT_COMPLEX128, /**< ``double complex``. */
} spt_type;

/** Limits of variables. */
enum {
    SPT_MAX_DIMENSIONS = 8, /**< Dimensions of a variable, at most. */
};

/**
 * An item and its descriptor in one: a number or an array of yours, with a name. What cannot be
 * said so (bits, texts, structures, sizes that vary) is an :c:struct:`spt_item` with an
 * :c:struct:`spt_descriptor`.
 */
typedef struct spt_variable {
    uint64_t id;             /**< As an item's. */
    const char *name;        /**< The item's name; ASCII. */
    const char *description; /**< What the item is, in words; ASCII. */
    spt_type type;           /**< What its elements are. */
    /**
     * The elements, in C order. They are read when packets are made: what they are then is what is
     * sent, each time anew.
     */
    const void *value;
    size_t n_shape;                   /**< How many dimensions it has; 0 for a scalar. */
    size_t shape[SPT_MAX_DIMENSIONS]; /**< How many elements along each of them. */
} spt_variable;

/**
 * A variable that is a count, sent inside the item pointer.
 *
 * :param name: Borrowed until the variable is added to a heap.
 * :param description: Likewise.
 * :param value: In the byte order of this machine; borrowed. See ``SPT_UINT_IMMEDIATE``.
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
 * :param name: As that of :c:func:`spt_immediate`.
 * :param description: Likewise.
 * :param type: What its elements are.
 * :param value: The elements; borrowed.
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
 * :return: The heap, owned by the caller; ``NULL`` where memory is short, or for no flavour.
 */
SPT_API SPT_MUST_CHECK spt_heap *spt_heap_create(const spt_flavour *flavour, spt_error *err);

/** Free a heap. It must not be in flight. */
SPT_API void spt_heap_destroy(spt_heap *heap);

/** What of a variable is added to a heap. */
enum {
    SPT_DESCRIPTORS = 1, /**< What it is, for receivers that have not been told. */
    SPT_VALUES = 2,      /**< Its value. */
    /** Both. */
    SPT_ALL = SPT_DESCRIPTORS | SPT_VALUES,
};

/**
 * Add variables: of each its descriptor, its value, or first one and then the other.
 *
 * :param variables: Copied; their values are borrowed until the heap is destroyed.
 * :param parts: ``SPT_DESCRIPTORS``, ``SPT_VALUES`` or ``SPT_ALL``.
 * :return: As :c:func:`spt_heap_add_item`; also ``SPT_ERR_ARGUMENT`` for a type or a shape that
 *     there is not. After a failure the heap is as before.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add(spt_heap *heap, const spt_variable *variables,
                                               size_t n_variables, unsigned parts, spt_error *err);

/**
 * Add a value. Pointers and payload keep the order in which they are added.
 *
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
 * :param descriptor: Copied.
 * :return: As :c:func:`spt_heap_add_item`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_descriptor(spt_heap *heap,
                                                          const spt_descriptor *descriptor,
                                                          spt_error *err);

/**
 * Add the stream control item that says "the stream starts here".
 *
 * :return: As :c:func:`spt_heap_add_item`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_start(spt_heap *heap, spt_error *err);

/**
 * Add the stream control item that says "the stream ends here": receivers stop at it.
 *
 * :return: As :c:func:`spt_heap_add_item`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_heap_add_end(spt_heap *heap, spt_error *err);

/**
 * Choose whether every packet repeats all item pointers, so that each can be read by itself.
 *
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
    size_t size;         /**< Bytes in the packet: the sum over its pieces. */
    size_t n_pieces;     /**< How many pieces it is made of. */
    size_t scratch_used; /**< Bytes written into the scratch. */
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

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_HEAP_H */
