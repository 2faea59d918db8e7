/* SPDX-License-Identifier: BSD-3-Clause */
/* What is received: packets put together to heaps, without any I/O. Part of spt_recv.h. */
#ifndef SPEAD_TUTORIAL_SPT_RECEIVED_H
#define SPEAD_TUTORIAL_SPT_RECEIVED_H

#include "spead_tutorial/spt_heap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. Packets ------------------------------------------------------------------------------ */

/**
 * The one list of what can be wrong with a packet by itself: ``X`` is given the name, the value and
 * the meaning of each.
 */
#define SPT_FAULT_LIST(X)                                                                          \
    X(SPT_FAULT_NONE, 0, "nothing is wrong with it")                                               \
    X(SPT_FAULT_HEADER, 1, "it does not begin as packets of SPEAD, version 4, do")                 \
    X(SPT_FAULT_FLAVOUR, 2, "its item pointers are divided as in no flavour of 64 bits")           \
    X(SPT_FAULT_POINTERS, 3, "it is too short for its item pointers")                              \
    X(SPT_FAULT_MISSING, 4, "it lacks its heap count, or its payload's offset or length")          \
    X(SPT_FAULT_PAYLOAD, 5, "it is too short for its payload")                                     \
    X(SPT_FAULT_BEYOND, 6, "its payload, or an item, lies beyond the end of its heap")             \
    X(SPT_FAULT_SURPLUS, 7, "it is longer than it says, or than is taken")

/** What is wrong with a packet by itself: one of :c:macro:`SPT_FAULT_LIST`. */
typedef enum spt_fault {
#define SPT_FAULT_MEMBER(name, value, text) name = value,
    SPT_FAULT_LIST(SPT_FAULT_MEMBER)
#undef SPT_FAULT_MEMBER
        SPT_N_FAULTS, /**< How many there are, and :c:enumerator:`SPT_FAULT_NONE`. */
} spt_fault;

/**
 * The meaning of a fault, in a few words.
 *
 * :param fault: Any value.
 * :return: A constant string; ``"unknown fault"`` for values that are none.
 */
SPT_API const char *spt_fault_text(spt_fault fault);

/** A packet that was taken apart. It points into the bytes that it was read from. */
typedef struct spt_received_packet {
    uint8_t heap_address_bits; /**< A: bits of value or address in its item pointers. */
    /** Whether it says that the stream ends: stream control, as an immediate of 2. */
    bool is_stop;
    bool has_heap_length;    /**< Whether it says how long its heap is. */
    uint64_t cnt;            /**< Of which heap it is a part. */
    uint64_t heap_length;    /**< Bytes of payload in the whole heap; 0 where it does not say. */
    uint64_t payload_offset; /**< Where its payload belongs in the heap's. */
    /** Where the last of its addressed items begins in the heap's payload; 0 without any. */
    uint64_t highest_address;
    size_t payload_length;  /**< Bytes of its payload. */
    const uint8_t *payload; /**< Its payload. */
    /** Its item pointers, 8 bytes each, big-endian; the protocol's own four are among them. */
    const uint8_t *pointers;
    size_t n_pointers; /**< How many item pointers. */
    /** How many of them are not the packet's own: all but immediates of the ids 1 to 4. */
    size_t n_items;
    size_t size; /**< Bytes of the packet. */
    /**
     * Who has sent it: any number that is the sender's alone; 0 where that is not known, as it is
     * set. Packets of different senders are of different heaps, whatever their counts.
     */
    uint64_t source;
} spt_received_packet;

/**
 * Take a packet apart (SPEAD specification, packet format). What the protocol's own items say may
 * stand anywhere among the item pointers; of one that is repeated, the last counts.
 *
 * :param packet: Filled on success; points into the bytes.
 * :param bytes: Where it begins; borrowed for as long as ``packet`` is used.
 * :param n_bytes: How many bytes there are; what follows the packet is not looked at.
 * :return: What is wrong with it. :c:enumerator:`SPT_FAULT_SURPLUS` is for callers to find: a
 *     datagram that is longer than ``packet->size``, or a packet that is longer than they take.
 */
SPT_API SPT_MUST_CHECK spt_fault spt_received_packet_parse(spt_received_packet *packet,
                                                           const void *bytes, size_t n_bytes);

/* ---- 2. Received heaps ----------------------------------------------------------------------- */

/** How it went with a heap. */
typedef enum spt_heap_state {
    SPT_HEAP_LIVE = 0, /**< Packets of it are still taken. */
    SPT_HEAP_COMPLETE, /**< All of it has arrived. */
    /** No packet said how long it is, and nothing is missing up to where a packet has been seen. */
    SPT_HEAP_CONTIGUOUS,
    SPT_HEAP_INCOMPLETE, /**< Something is missing. */
} spt_heap_state;

/** Bytes of a heap's payload that have arrived: from ``begin`` on, up to ``end``. */
typedef struct spt_range {
    uint64_t begin; /**< The first of them. */
    uint64_t end;   /**< The first that is not one of them. */
} spt_range;

/** An item pointer that has arrived. */
typedef struct spt_received_pointer {
    uint64_t word; /**< The pointer's 64 bits. */
    /** In which packet it was sent last: where the payload of that one belongs. */
    uint64_t packet_offset;
} spt_received_pointer;

/** A heap of which something has arrived. To be read, not to be changed. */
typedef struct spt_received_heap {
    void *user;                /**< Yours. */
    uint64_t user_number;      /**< Also yours. */
    uint64_t cnt;              /**< Its count. */
    uint64_t source;           /**< Who has sent it: see :c:struct:`spt_received_packet`. */
    uint8_t heap_address_bits; /**< A: bits of value or address in its item pointers. */
    spt_heap_state state;      /**< How it went. */
    /** Whether it had to make room for another one, or for the end, before it was complete. */
    bool evicted;
    bool has_length; /**< Whether a packet said how long it is. */
    /** Bytes of its payload: what a packet said, or up to where it has arrived. */
    uint64_t length;
    uint64_t received_length; /**< Bytes of it that have arrived. */
    uint64_t packets;         /**< Packets that were placed into it. */
    /** Packets that came, but were not taken: in order, all those after a loss. */
    uint64_t packets_not_taken;
    /**
     * Its payload. Bytes that have not arrived may be anything: what was in the memory before, or
     * what came in another packet and was read to there by mistake.
     */
    uint8_t *payload;
    size_t room;             /**< Bytes of that memory, with which it is put back. */
    const spt_range *ranges; /**< What has arrived, in order of place, with gaps in between. */
    size_t n_ranges;         /**< How many ranges there are. */
    /** Item pointers that have arrived, in the order in which they came. */
    const spt_received_pointer *pointers;
    size_t n_pointers; /**< How many there are; repeated ones may be among them. */
} spt_received_heap;

/* ---- 3. Items and descriptors ---------------------------------------------------------------- */

/** An item of a received heap. */
typedef struct spt_received_item {
    uint64_t id;        /**< Its id. */
    bool is_immediate;  /**< Whether its value came inside the item pointer. */
    uint64_t immediate; /**< The value of an immediate: a number of A bits. */
    uint64_t offset;    /**< Where the value of any other begins in the heap's payload. */
    uint64_t length;    /**< Bytes of that value. */
    /* Private: in which order they were sent. */
    uint64_t packet_offset_;
    size_t index_;
} spt_received_item;

/**
 * List the items of a heap: those with an address by that, then immediates as they were sent. Of
 * identical pointers one is listed; padding, and what packets say of themselves, is not. An
 * item reaches to the next address, the last one to the end of the heap; of several at one address,
 * all but the last are empty.
 *
 * :param heap: Borrowed. Of one that is incomplete, only immediates can be relied upon.
 * :param items: Filled; room for ``heap->n_pointers`` of them.
 * :return: How many were filled in.
 */
SPT_API size_t spt_received_heap_items(const spt_received_heap *heap, spt_received_item *items);

/** Some bytes of a received heap. */
typedef struct spt_bytes {
    const uint8_t *data; /**< The first of them. */
    size_t length;       /**< How many. */
} spt_bytes;

/** A descriptor that was received. It points into the bytes that it was read from. */
typedef struct spt_received_descriptor {
    uint64_t id;           /**< Id of the item that is described. */
    spt_bytes name;        /**< The item's name; not NUL-terminated, and it may be anything. */
    spt_bytes description; /**< What the item is, in words. */
    /** The header that describes a NumPy array; empty where there is none. */
    spt_bytes numpy_header;
    size_t n_format; /**< How many fields an element has; 0 where a NumPy header describes it. */
    size_t n_shape;  /**< How many dimensions it has. */
    /* Private: the fields and dimensions as they came, and bytes of each of them. */
    spt_bytes format_, shape_;
    uint8_t format_width_, shape_width_;
    uint8_t variable_;
} spt_received_descriptor;

/**
 * Read a descriptor: the value of an item with the id :c:enumerator:`SPT_ID_DESCRIPTOR`, a packet
 * by itself.
 *
 * :param descriptor: Filled on success; points into the bytes.
 * :param bytes: The item's value; borrowed for as long as ``descriptor`` is used.
 * :param bug_compat: A sum of ``SPT_COMPAT_*``, as its sender had it.
 * :return: Whether it can be read: it has a name, and describes an item that is not the protocol's.
 */
SPT_API SPT_MUST_CHECK bool spt_received_descriptor_parse(spt_received_descriptor *descriptor,
                                                          const void *bytes, size_t n_bytes,
                                                          int bug_compat);

/**
 * A field of an element.
 *
 * :param i: Which, less than ``n_format``.
 * :return: By value; its code may be anything.
 */
SPT_API spt_field spt_received_descriptor_field(const spt_received_descriptor *descriptor,
                                                size_t i);

/**
 * A dimension.
 *
 * :param i: Which, less than ``n_shape``.
 * :return: Elements along it; -1 where the size varies.
 */
SPT_API int64_t spt_received_descriptor_dimension(const spt_received_descriptor *descriptor,
                                                  size_t i);

/**
 * Dimensions of an item that are remembered. Where it has more, ``n_shape`` says how many; its
 * value is all that came, as with a type that is not known.
 */
#define SPT_GROUP_DIMENSIONS 8

/** An item that was described, and its value in the heap that the group was last updated with. */
typedef struct spt_group_item {
    uint64_t id;             /**< Its id. */
    const char *name;        /**< Its name. */
    const char *description; /**< What it is, in words. */
    bool is_new;             /**< Whether that heap has described it, as new or different. */
    /** What an element is: one of ``u i f b c``; 0 for others, such as several fields. */
    char code;
    /** Bits of an element, all of its fields; 0 where it is not known what one is. */
    uint32_t bits;
    bool little_endian; /**< Whether its bytes come lowest first. */
    bool fortran_order; /**< Whether the first index varies fastest. */
    size_t n_shape;     /**< How many dimensions it has: 0 for a single element. */
    /** The first of them: elements, or -1 where the size varies. */
    int64_t shape[SPT_GROUP_DIMENSIONS];
    bool has_value;     /**< Whether it has a value in that heap. */
    bool is_immediate;  /**< Whether that came inside the item pointer. */
    uint64_t immediate; /**< The value of an immediate: a number of A bits. */
    /**
     * The bytes of its value, as many as its shape takes; all that came where its type is not
     * known. They are in the heap's memory, as long as the heap is lent; those of an immediate in
     * the group's, until the next update.
     */
    spt_bytes value;
    /* Private: an immediate as it came. */
    uint8_t inline_[8];
} spt_group_item;

/** Remembers descriptors, so that items are found by name. It is used by one thread. */
typedef struct spt_item_group spt_item_group;

/** Bytes of memory that a group's items may take, unless it is told otherwise: 64 MiB. */
#define SPT_GROUP_MEMORY 67108864

/**
 * Make a group without items.
 *
 * :param bug_compat: A sum of ``SPT_COMPAT_*``, as the sender has it.
 */
SPT_API SPT_MUST_CHECK spt_item_group *spt_item_group_create(int bug_compat, spt_error *err);

/** Free a group. */
SPT_API void spt_item_group_destroy(spt_item_group *group);

/**
 * Say how much memory the group's items may take, as descriptors come from strangers. An item takes
 * less than 512 bytes, and those of its name and its description. Values are not counted: they lie
 * in their heap.
 *
 * :param bytes: At first :c:macro:`SPT_GROUP_MEMORY`. Items that the group has already stay.
 */
SPT_API void spt_item_group_set_max_memory(spt_item_group *group, size_t bytes);

/**
 * Take in what a heap says: descriptors first, then values. An item that is described differently
 * replaces others with its id or name. Where a value has fewer bytes than its shape takes, no value
 * of that heap is taken. Of an incomplete heap only immediates are taken. Descriptors that there is
 * no room for are left out, and counted (:c:func:`spt_item_group_left_out`); the others are taken
 * in. The time it takes grows with the number of items in the heap, times the logarithm of those in
 * the group.
 *
 * :param heap: Borrowed; values lie in it.
 * :param undescribed: Filled: values in the heap that nothing describes, or that are too short.
 * :return: ``SPT_OK``; ``SPT_ERR_MEMORY``, and no value is taken: update with the heap again.
 */
SPT_API SPT_MUST_CHECK spt_status spt_item_group_update(spt_item_group *group,
                                                        const spt_received_heap *heap,
                                                        size_t *undescribed, spt_error *err);

/**
 * How many descriptors of the heap that the group was last updated with are left out: those that
 * the group's memory has no room for, that have a text of more than 64 KiB, or that cannot be read.
 */
SPT_API size_t spt_item_group_left_out(const spt_item_group *group);

/** How many items a group has. */
SPT_API size_t spt_item_group_size(const spt_item_group *group);

/**
 * An item by its place, in the order in which they were described.
 *
 * :param i: Which, less than there are.
 * :return: Lent until the next update.
 */
SPT_API const spt_group_item *spt_item_group_at(const spt_item_group *group, size_t i);

/**
 * An item by its name.
 *
 * :param name: Its name.
 * :return: Lent until the next update; ``NULL`` where none was described.
 */
SPT_API const spt_group_item *spt_item_group_find(const spt_item_group *group, const char *name);

/* ---- 4. Depacketizer ------------------------------------------------------------------------- */

/**
 * Where the payload of heaps is kept. A depacketizer calls it from within its own calls; the
 * owner of a payload that was handed on puts it back, from any thread.
 */
typedef struct spt_heap_memory {
    void *user; /**< Handed to the functions. */
    /**
     * Give memory to a heap that begins.
     *
     * :param size: Bytes; at least 1.
     * :param first: The packet that begins it; ``NULL`` where it has outgrown what it had.
     * :return: At least that many bytes, with any content; or ``NULL``, and no packet of that
     *     heap is taken.
     */
    void *(*get)(void *user, size_t size, const spt_received_packet *first);
    /**
     * Take memory back.
     *
     * :param memory: What ``get`` gave.
     * :param size: Bytes that were asked for.
     */
    void (*put)(void *user, void *memory, size_t size);
} spt_heap_memory;

/** malloc and free. */
#define SPT_HEAP_MEMORY_DEFAULT {NULL, NULL, NULL}

/** How a depacketizer works. Start from :c:macro:`SPT_DEPACKETIZER_CONFIG_DEFAULT`. */
typedef struct spt_depacketizer_config {
    size_t max_heaps; /**< Heaps of a substream that packets are taken of at a time; at least 1. */
    /** Sequences of heaps that are independent: that of a heap is its count modulo this. */
    size_t substreams;
    /**
     * Whether a heap's packets may come in any order. Otherwise each has to begin where the one
     * before ended, and none is taken after a loss.
     */
    bool allow_out_of_order;
    /** Whether packets are taken that do not say how long their heap is. */
    bool allow_unsized_heaps;
    /** Whether heaps of different senders are different ones, though their counts are the same. */
    bool by_sender;
    /** Bytes of payload that a heap may have at most, 1 or more: no packet of a longer one is
     * taken. */
    uint64_t max_heap_size;
    /** Item pointers that a heap may have at most, those that packets repeat counted again: 2 or
     * more, as the heap that ends a stream has. */
    size_t max_pointers;
    size_t max_gaps;        /**< Gaps that a heap may have at most between what has arrived. */
    spt_heap_memory memory; /**< Where payload is kept. */
} spt_depacketizer_config;

/** The defaults: 4 heaps, one substream, packets in order, heaps of up to 1 GiB of any kind. */
#define SPT_DEPACKETIZER_CONFIG_DEFAULT                                                            \
    {4, 1, false, true, true, 1073741824, 1048576, 65536, SPT_HEAP_MEMORY_DEFAULT}

/** Finds out where packets belong, and which heaps they complete. It is used by one thread. */
typedef struct spt_depacketizer spt_depacketizer;

/**
 * Make a depacketizer. All that it needs besides the memory of heaps is allocated now, or when a
 * heap has more pointers or gaps than any before.
 *
 * :return: Owned by the caller; ``NULL`` for a configuration that cannot be, or without memory.
 */
SPT_API SPT_MUST_CHECK spt_depacketizer *
spt_depacketizer_create(const spt_depacketizer_config *config, spt_error *err);

/** Free a depacketizer, its live heaps, and those that were not handed out or were recycled. */
SPT_API void spt_depacketizer_destroy(spt_depacketizer *d);

/**
 * The one list of what becomes of a packet: ``X`` is given the name, the value and the meaning of
 * each. Every packet becomes exactly one of these.
 */
#define SPT_FATE_LIST(X)                                                                           \
    X(SPT_PLACED, 0, "it has a place in a heap")                                                   \
    X(SPT_MALFORMED, 1, "something is wrong with it by itself")                                    \
    X(SPT_DUPLICATE, 2, "what it brings had arrived before")                                       \
    X(SPT_LATE, 3, "its heap is finished, or was given up")                                        \
    X(SPT_AFTER_LOSS, 4, "packets are taken in order, and one before it is missing")               \
    X(SPT_INCONSISTENT, 5, "it contradicts other packets of its heap")                             \
    X(SPT_TOO_LARGE, 6, "its heap is larger than allowed, or has too many items or gaps")          \
    X(SPT_UNSIZED, 7, "it does not say how long its heap is, and has to")                          \
    X(SPT_NO_MEMORY, 8, "there was no memory for its heap")                                        \
    X(SPT_NO_PLACE, 9, "its heap was given no place")

/** What becomes of a packet: one of :c:macro:`SPT_FATE_LIST`. */
typedef enum spt_fate {
#define SPT_FATE_MEMBER(name, value, text) name = value,
    SPT_FATE_LIST(SPT_FATE_MEMBER)
#undef SPT_FATE_MEMBER
        SPT_N_FATES, /**< How many there are. */
} spt_fate;

/**
 * The meaning of a fate, in a few words.
 *
 * :param fate: Any value.
 * :return: A constant string; ``"unknown fate"`` for values that are none.
 */
SPT_API const char *spt_fate_text(spt_fate fate);

/**
 * Take a packet. Where it has a place, copy its payload there before anything else is called: the
 * heap that it completes, and the one that had to make room for it, can then be handed out by
 * :c:func:`spt_depacketizer_next`.
 *
 * :param packet: As it was parsed.
 * :param to: Filled with where the payload belongs, for :c:enumerator:`SPT_PLACED`; ``NULL`` for
 *     others, and perhaps where there is no payload.
 * :return: What became of it.
 */
SPT_API SPT_MUST_CHECK spt_fate spt_depacketizer_take(spt_depacketizer *d,
                                                      const spt_received_packet *packet,
                                                      uint8_t **to);

/**
 * Count a packet that could not be parsed, or was longer than it said.
 *
 * :param fault: What is wrong with it.
 */
SPT_API void spt_depacketizer_malformed(spt_depacketizer *d, spt_fault fault);

/**
 * Hand out a heap that is finished, oldest first.
 *
 * :return: Lent: it and its payload until :c:func:`spt_depacketizer_recycle`; ``NULL`` where there
 *     is none.
 */
SPT_API spt_received_heap *spt_depacketizer_next(spt_depacketizer *d);

/**
 * Give a heap back. Its payload is put back, unless its ``payload`` has been set to ``NULL``: then
 * it is the caller's.
 *
 * :param d: That handed it out.
 * :param heap: Taken.
 */
SPT_API void spt_depacketizer_recycle(spt_depacketizer *d, spt_received_heap *heap);

/** End all live heaps, oldest first, as they are. */
SPT_API void spt_depacketizer_flush(spt_depacketizer *d);

/**
 * End the stream, as the packet that has just been placed said: where it has completed its heap,
 * that one is not handed out; all live heaps end as they are.
 */
SPT_API void spt_depacketizer_stop(spt_depacketizer *d);

/* ---- 5. Accounts ----------------------------------------------------------------------------- */

/** Where every packet and every heap went, since the depacketizer was made. */
typedef struct spt_account {
    uint64_t packets;            /**< Packets that came: the sum of ``fates``. */
    uint64_t fates[SPT_N_FATES]; /**< Packets by what became of them: see :c:enum:`spt_fate`. */
    /** Malformed packets by what is wrong with them: see :c:enum:`spt_fault`. */
    uint64_t faults[SPT_N_FAULTS];
    uint64_t placed_bytes; /**< Bytes of payload that have a place. */
    uint64_t heaps_begun;  /**< Heaps that a packet was placed into. */
    /** Those of them of which all has arrived, or all up to where it was known. */
    uint64_t heaps_complete;
    /** Those that something was missing of when another needed the room. */
    uint64_t heaps_evicted;
    uint64_t heaps_flushed; /**< Those that something was missing of at the end. */
    uint64_t heaps_dropped; /**< Those that were ended with the stream, and not handed out. */
    uint64_t heaps_live;    /**< Those that packets are still taken of. */
    /** Bytes that have arrived of heaps that something is missing of. */
    uint64_t incomplete_bytes;
    /**
     * Heaps that were not begun: heap counts that are missing in a sequence that is regular but for
     * them. Those that were refused a place are none.
     */
    uint64_t heaps_never_begun;
    /**
     * Heap counts that are missing in sequences that are not: nothing tells whether such heaps were
     * sent here.
     */
    uint64_t counts_skipped;
    /** Packets from the middle of a heap that came next after another sender's of that count. */
    uint64_t sender_mismatches;
    uint64_t single_packet_heaps; /**< Heaps that were complete with their first packet. */
    /** Packets whose heap had to be looked for: it was not that of the packet before. */
    uint64_t searches;
} spt_account;

/** Read the account. */
SPT_API void spt_depacketizer_account(const spt_depacketizer *d, spt_account *account);

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_RECEIVED_H */
