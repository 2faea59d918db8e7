/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * spead_tutorial: the other end, where packets become heaps again.
 *
 * It reads on where ``spt.h`` ends, and uses its words: *borrowed*, *copied*, *taken*; what that
 * says of parameters holds here.
 *
 * 1. packets: one taken apart, without any I/O
 * 2. received heaps: what has arrived of one, and what has not
 * 3. items and descriptors: what is in a received heap
 * 4. depacketizer: where a packet's payload belongs, and what it completes
 * 5. accounts: where every packet went
 * 6. sockets: how packets come in
 * 7. streams: heaps received by a worker thread, and handed over to you
 * 8. memory for heaps: mapped, or kept in a pool to be used again
 * 9. rings of chunks: memory that many heaps share, on its way to a stream and back
 * 10. streams of chunks: every heap to its place in a chunk
 * 11. groups of streams that fill the same chunks
 *
 * Packets come from strangers. With any content, nothing here reads or writes beyond what it was
 * given, and the memory that is used is bounded by the configuration.
 */
#ifndef SPEAD_TUTORIAL_SPT_RECV_H
#define SPEAD_TUTORIAL_SPT_RECV_H

#include "spead_tutorial/spt.h"

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
    X(SPT_FAULT_SURPLUS, 7, "it is longer than it says")

/** What is wrong with a packet by itself: one of :c:macro:`SPT_FAULT_LIST`. */
typedef enum spt_fault {
#define SPT_FAULT_MEMBER(name, value, text) name = value,
    SPT_FAULT_LIST(SPT_FAULT_MEMBER)
#undef SPT_FAULT_MEMBER
    /** How many there are, and :c:enumerator:`SPT_FAULT_NONE`. */
    SPT_N_FAULTS,
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
    /** A: bits of value or address in its item pointers. */
    uint8_t heap_address_bits;
    /** Whether it says that the stream ends: stream control, as an immediate of 2. */
    bool is_stop;
    /** Whether it says how long its heap is. */
    bool has_heap_length;
    /** Of which heap it is a part. */
    uint64_t cnt;
    /** Bytes of payload in the whole heap; 0 where it does not say. */
    uint64_t heap_length;
    /** Where its payload belongs in the heap's. */
    uint64_t payload_offset;
    /** Where the last of its addressed items begins in the heap's payload; 0 without any. */
    uint64_t highest_address;
    /** Bytes of its payload. */
    size_t payload_length;
    /** Its payload. */
    const uint8_t *payload;
    /** Its item pointers, 8 bytes each, big-endian; the protocol's own four are among them. */
    const uint8_t *pointers;
    /** How many item pointers. */
    size_t n_pointers;
    /** How many of them are not the packet's own: all but immediates of the ids 1 to 4. */
    size_t n_items;
    /** Bytes of the packet. */
    size_t size;
} spt_received_packet;

/**
 * Take a packet apart (SPEAD specification, packet format). What the protocol's own items say may
 * stand anywhere among the item pointers; of one that is repeated, the last counts.
 *
 * :param packet: Filled on success; points into the bytes.
 * :param bytes: Where it begins; borrowed for as long as ``packet`` is used.
 * :param n_bytes: How many bytes there are; what follows the packet is not looked at.
 * :return: What is wrong with it. :c:enumerator:`SPT_FAULT_SURPLUS` is for callers to find: a
 *     datagram that is longer than ``packet->size``.
 */
SPT_API SPT_MUST_CHECK spt_fault spt_received_packet_parse(spt_received_packet *packet,
                                                           const void *bytes, size_t n_bytes);

/* ---- 2. Received heaps ----------------------------------------------------------------------- */

/** How it went with a heap. */
typedef enum spt_heap_state {
    /** Packets of it are still taken. */
    SPT_HEAP_LIVE = 0,
    /** All of it has arrived. */
    SPT_HEAP_COMPLETE,
    /** No packet said how long it is, and nothing is missing up to where a packet has been seen. */
    SPT_HEAP_CONTIGUOUS,
    /** Something is missing. */
    SPT_HEAP_INCOMPLETE,
} spt_heap_state;

/** Bytes of a heap's payload that have arrived: from ``begin`` on, up to ``end``. */
typedef struct spt_range {
    /** The first of them. */
    uint64_t begin;
    /** The first that is not one of them. */
    uint64_t end;
} spt_range;

/** An item pointer that has arrived. */
typedef struct spt_received_pointer {
    /** The pointer's 64 bits. */
    uint64_t word;
    /** In which packet it was sent last: where the payload of that one belongs. */
    uint64_t packet_offset;
} spt_received_pointer;

/** A heap of which something has arrived. To be read, not to be changed. */
typedef struct spt_received_heap {
    /** Yours. */
    void *user;
    /** Also yours. */
    uint64_t user_number;
    /** Its count. */
    uint64_t cnt;
    /** A: bits of value or address in its item pointers. */
    uint8_t heap_address_bits;
    /** How it went. */
    spt_heap_state state;
    /** Whether it had to make room for another one, or for the end, before it was complete. */
    bool evicted;
    /** Whether a packet said how long it is. */
    bool has_length;
    /** Bytes of its payload: what a packet said, or up to where it has arrived. */
    uint64_t length;
    /** Bytes of it that have arrived. */
    uint64_t received_length;
    /** Packets that were placed into it. */
    uint64_t packets;
    /** Packets that came, but were not taken: in order, all those after a loss. */
    uint64_t packets_not_taken;
    /**
     * Its payload. Bytes that have not arrived may be anything: what was in the memory before, or
     * what came in another packet and was read to there by mistake.
     */
    uint8_t *payload;
    /** Bytes of that memory: at least ``length``. */
    size_t room;
    /** What has arrived, in order of place, with gaps in between. */
    const spt_range *ranges;
    /** How many ranges there are. */
    size_t n_ranges;
    /** Item pointers that have arrived, in the order in which they came. */
    const spt_received_pointer *pointers;
    /** How many there are; repeated ones may be among them. */
    size_t n_pointers;
} spt_received_heap;

/* ---- 3. Items and descriptors ---------------------------------------------------------------- */

/** An item of a received heap. */
typedef struct spt_received_item {
    /** Its id. */
    uint64_t id;
    /** Whether its value came inside the item pointer. */
    bool is_immediate;
    /** The value of an immediate: a number of A bits. */
    uint64_t immediate;
    /** Where the value of any other begins in the heap's payload. */
    uint64_t offset;
    /** Bytes of that value. */
    uint64_t length;
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
    /** The first of them. */
    const uint8_t *data;
    /** How many. */
    size_t length;
} spt_bytes;

/** A descriptor that was received. It points into the bytes that it was read from. */
typedef struct spt_received_descriptor {
    /** Id of the item that is described. */
    uint64_t id;
    /** The item's name; not NUL-terminated, and it may be anything. */
    spt_bytes name;
    /** What the item is, in words. */
    spt_bytes description;
    /** The header that describes a NumPy array; empty where there is none. */
    spt_bytes numpy_header;
    /** How many fields an element has; 0 where a NumPy header describes it. */
    size_t n_format;
    /** How many dimensions it has. */
    size_t n_shape;
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
 * :param n_bytes: How many.
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

/** Dimensions of an item that are remembered. */
#define SPT_GROUP_DIMENSIONS 8

/** An item that was described, and its value in the heap that the group was last updated with. */
typedef struct spt_group_item {
    /** Its id. */
    uint64_t id;
    /** Its name. */
    const char *name;
    /** What it is, in words. */
    const char *description;
    /** Whether that heap has described it, as new or different. */
    bool is_new;
    /** What an element is: one of ``u i f b c``; 0 for others, such as several fields. */
    char code;
    /** Bits of an element, all of its fields; 0 where it is not known what one is. */
    uint32_t bits;
    /** Whether its bytes come lowest first. */
    bool little_endian;
    /** Whether the first index varies fastest. */
    bool fortran_order;
    /** How many dimensions it has: 0 for a single element. */
    size_t n_shape;
    /** The first of them: elements, or -1 where the size varies. */
    int64_t shape[SPT_GROUP_DIMENSIONS];
    /** Whether it has a value in that heap. */
    bool has_value;
    /** Whether that came inside the item pointer. */
    bool is_immediate;
    /** The value of an immediate: a number of A bits. */
    uint64_t immediate;
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

/**
 * Make a group without items.
 *
 * :param bug_compat: A sum of ``SPT_COMPAT_*``, as the sender has it.
 */
SPT_API SPT_MUST_CHECK spt_item_group *spt_item_group_create(int bug_compat, spt_error *err);

/** Free a group. */
SPT_API void spt_item_group_destroy(spt_item_group *group);

/**
 * Take in what a heap says: descriptors first, then values. An item that is described differently
 * replaces others with its id or name. Where a value has fewer bytes than its shape takes, no value
 * of that heap is taken. Of an incomplete heap only immediates are taken. Groups have at most 512
 * items; those beyond, and texts of more than 64 KiB, are left out.
 *
 * :param heap: Borrowed; values lie in it.
 * :param undescribed: Filled: values in the heap that nothing describes, or that are too short.
 * :return: ``SPT_OK``; ``SPT_ERR_MEMORY``, and no value is taken: update with the heap again.
 */
SPT_API SPT_MUST_CHECK spt_status spt_item_group_update(spt_item_group *group,
                                                        const spt_received_heap *heap,
                                                        size_t *undescribed, spt_error *err);

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
    /** Handed to the functions. */
    void *user;
    /**
     * Give memory to a heap that begins.
     *
     * :param user: As above.
     * :param size: Bytes; at least 1.
     * :param first: The packet that begins it; ``NULL`` where it has outgrown what it had.
     * :return: At least that many bytes, with any content; or ``NULL``, and no packet of that
     *     heap is taken.
     */
    void *(*get)(void *user, size_t size, const spt_received_packet *first);
    /**
     * Take memory back.
     *
     * :param user: As above.
     * :param memory: What ``get`` gave.
     * :param size: Bytes that were asked for.
     */
    void (*put)(void *user, void *memory, size_t size);
} spt_heap_memory;

/** malloc and free. */
#define SPT_HEAP_MEMORY_DEFAULT {NULL, NULL, NULL}

/** How a depacketizer works. Start from :c:macro:`SPT_DEPACKETIZER_CONFIG_DEFAULT`. */
typedef struct spt_depacketizer_config {
    /** Heaps of a substream that packets are taken of at a time; at least 1. */
    size_t max_heaps;
    /** Sequences of heaps that are independent: that of a heap is its count modulo this. */
    size_t substreams;
    /**
     * Whether a heap's packets may come in any order. Otherwise each has to begin where the one
     * before ended, and none is taken after a loss.
     */
    bool allow_out_of_order;
    /** Whether packets are taken that do not say how long their heap is. */
    bool allow_unsized_heaps;
    /** Bytes of payload that a heap may have at most: no packet of a longer one is taken. */
    uint64_t max_heap_size;
    /** Item pointers that a heap may have at most, those that packets repeat counted again. */
    size_t max_pointers;
    /** Gaps that a heap may have at most between what has arrived. */
    size_t max_gaps;
    /** Where payload is kept. */
    spt_heap_memory memory;
} spt_depacketizer_config;

/** The defaults: 4 heaps, one substream, packets in order, heaps of up to 1 GiB of any kind. */
#define SPT_DEPACKETIZER_CONFIG_DEFAULT                                                            \
    {4, 1, false, true, 1073741824, 1048576, 65536, SPT_HEAP_MEMORY_DEFAULT}

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
    /** How many there are. */
    SPT_N_FATES,
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
    /** Packets that came: the sum of all that follow. */
    uint64_t packets;
    /** Packets by what became of them: see :c:enum:`spt_fate`. */
    uint64_t fates[SPT_N_FATES];
    /** Malformed packets by what is wrong with them: see :c:enum:`spt_fault`. */
    uint64_t faults[SPT_N_FAULTS];
    /** Bytes of payload that have a place. */
    uint64_t placed_bytes;
    /** Heaps that a packet was placed into. */
    uint64_t heaps_begun;
    /** Those of them of which all has arrived, or all up to where it was known. */
    uint64_t heaps_complete;
    /** Those that something was missing of when another needed the room. */
    uint64_t heaps_evicted;
    /** Those that something was missing of at the end. */
    uint64_t heaps_flushed;
    /** Those that were ended with the stream, and not handed out. */
    uint64_t heaps_dropped;
    /** Those that packets are still taken of. */
    uint64_t heaps_live;
    /** Bytes that have arrived of heaps that something is missing of. */
    uint64_t incomplete_bytes;
    /**
     * Heaps between the first and the last that were not begun: gaps in the heap counts, whose
     * step is found out. Those that were refused a place are none.
     */
    uint64_t heaps_never_begun;
    /** Heaps that were complete with their first packet. */
    uint64_t single_packet_heaps;
    /** Packets whose heap had to be looked for: it was not that of the packet before. */
    uint64_t searches;
} spt_account;

/** Read the account. */
SPT_API void spt_depacketizer_account(const spt_depacketizer *d, spt_account *account);

/* ---- 6. Sockets ------------------------------------------------------------------------------ */

/** How a UDP socket is read. Start from :c:macro:`SPT_RECEIVE_CONFIG_DEFAULT`. */
typedef struct spt_receive_config {
    /** Bytes of a packet at most, UDP and IP headers not counted; longer ones are malformed. */
    size_t max_size;
    /** Bytes asked for in the socket's receive buffer; 0 leaves the system's. */
    size_t buffer_size;
    /** The address of the interface that a multicast group is joined on (IPv4), or ``NULL``. */
    const char *interface_address;
    /** The interface that a multicast group is joined on (IPv6); 0 leaves it to the system. */
    unsigned interface_index;
    /**
     * Let the kernel hand over runs of equal packets as one (generic receive offload, ``UDP_GRO``
     * in udp(7)) where it can.
     */
    bool gro;
    /**
     * Share the port with other sockets that are opened with this, by the same user
     * (``SO_REUSEPORT`` in socket(7)); not for multicast groups, of which every socket gets all.
     *
     * The kernel chooses a socket for each flow, which is what one socket sends, by a hash of its
     * addresses and ports: a heap that one sender sends stays whole, and it may be that several
     * flows go to one socket, and none to another. Each socket has a buffer of its own: where a
     * slow reader lets it fill, it drops, and the others do not. When a socket is opened or closed
     * the kernel chooses anew for all flows: heaps that are on their way then may be cut in two.
     * So open all of them before anything is sent, and close them when all has come. Other
     * programs of the same user can join in, and take a share.
     */
    bool reuse_port;
} spt_receive_config;

/** The defaults: packets of up to 9200 bytes, a receive buffer of 8 MiB, GRO, no shared port. */
#define SPT_RECEIVE_CONFIG_DEFAULT {9200, 8388608, NULL, 0, true, false}

/** The defaults for TCP, of which all that follows ``buffer_size`` means nothing: packets of up to
 * 65536 bytes, a receive buffer of 208 KiB. */
#define SPT_RECEIVE_TCP_CONFIG_DEFAULT {65536, 212992, NULL, 0, false, false}

/** Counts of a socket since it was opened. */
typedef struct spt_receive_stats {
    /** Datagrams that came; of a connection, packets that were found. */
    uint64_t datagrams;
    /** Their bytes, UDP and IP headers not counted. */
    uint64_t bytes;
    /** Messages that the kernel handed them over in: each is one of them, or with GRO a run. */
    uint64_t messages;
    /** System calls made to receive. */
    uint64_t calls;
    /** Datagrams whose payload the kernel has written to its place in a heap: it was expected. */
    uint64_t in_place;
    /**
     * What the socket had no room for (``SO_MEMINFO``, see socket(7)), in what the kernel keeps
     * in it: a datagram each, or with GRO a run of them.
     */
    uint64_t dropped;
    /** Bytes of its receive buffer, as the kernel counts them: twice what it says it has. */
    uint64_t buffer_size;
} spt_receive_stats;

/* ---- 7. Streams ------------------------------------------------------------------------------ */

/**
 * Receives heaps: readers bring packets, and those heaps that are finished wait in a ring until
 * you get them. All functions may be called from any thread, but not by what the stream itself
 * calls: its place function, and those of its memory.
 */
typedef struct spt_recv_stream spt_recv_stream;

/** How a stream receives. Start from :c:macro:`SPT_RECV_CONFIG_DEFAULT`. */
typedef struct spt_recv_config {
    /** How heaps are put together. */
    spt_depacketizer_config heaps;
    /** Heaps that are finished, and have not been got, at most; at least 1. */
    size_t ring_heaps;
    /**
     * What happens to a heap that the ring has no room for: it is dropped, and counted. Otherwise
     * nothing is read until there is room, so that packets are lost in the socket instead.
     */
    bool drop_when_full;
    /** Whether heaps that something is missing of are dropped, and counted. */
    bool contiguous_only;
    /** Whether nothing is read before :c:func:`spt_recv_stream_start`. */
    bool explicit_start;
    /** Whether the stream ends with a packet that says so; otherwise that is an item like others.
     */
    bool stop_on_stop_item;
} spt_recv_config;

/** The defaults: those of the depacketizer, a ring of 4 heaps that is waited for, and an end. */
#define SPT_RECV_CONFIG_DEFAULT {SPT_DEPACKETIZER_CONFIG_DEFAULT, 4, false, false, false, true}

/**
 * Make a stream. Without a reader it receives nothing.
 *
 * Mostly a thread of a pool reads. A stream that is made with ``NULL`` for a pool has none: who
 * asks for a heap with :c:func:`spt_recv_stream_get` reads the sockets, and has the heap while its
 * data is in the cache. What comes while you do not ask waits in the socket's buffer, and is lost
 * where that is full. Threads that ask at once take turns. :c:func:`spt_recv_stream_fd` is then
 * also readable when there is something to read.
 */
SPT_API SPT_MUST_CHECK spt_recv_stream *
spt_recv_stream_create(spt_thread_pool *pool, const spt_recv_config *config, spt_error *err);

/**
 * Receive from a UDP port.
 *
 * :param endpoint: The address to listen on: one of this machine's, that of a multicast group, or
 *     ``""`` for any; and the port, 0 for one that the system chooses.
 * :param config: Copied; ``NULL`` for the defaults.
 * :return: ``SPT_OK``; ``SPT_ERR_SYSTEM`` where the port is in use; ``SPT_ERR_ARGUMENT``;
 *     ``SPT_ERR_STOPPED``; ``SPT_ERR_MEMORY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_udp(spt_recv_stream *stream,
                                                          const spt_endpoint *endpoint,
                                                          const spt_receive_config *config,
                                                          spt_error *err);

/**
 * Receive from a socket of yours.
 *
 * :param socket: A UDP socket that is bound. It is duplicated: it stays yours, and may be closed.
 * :param config: Only ``max_size`` and ``gro`` are looked at. Copied; ``NULL`` for the defaults.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_udp_socket(spt_recv_stream *stream,
                                                                 int socket,
                                                                 const spt_receive_config *config,
                                                                 spt_error *err);

/**
 * Receive packets that are in memory, one after the other. The first one that is malformed ends
 * them. The stream ends with them.
 *
 * :param bytes: Borrowed until the stream is stopped or destroyed, or has ended.
 * :param n_bytes: How many.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_memory(spt_recv_stream *stream,
                                                             const void *bytes, size_t n_bytes,
                                                             spt_error *err);

/**
 * Receive from the first TCP connection that a port is asked for; there is no second. The stream
 * ends with it, and the connection with the stream. Behind a packet that is larger than
 * ``max_size``, or does not say how long it is, no other can be found: it is counted as malformed,
 * and the stream ends with the error ``EPROTO``. So is one in whose midst the connection ends.
 *
 * :param endpoint: The address to listen on, one of this machine's or ``""`` for any; and the port,
 *     0 for one that the system chooses.
 * :param config: Only ``max_size`` and ``buffer_size`` are looked at. Copied; ``NULL`` for
 *     :c:macro:`SPT_RECEIVE_TCP_CONFIG_DEFAULT`.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_tcp(spt_recv_stream *stream,
                                                          const spt_endpoint *endpoint,
                                                          const spt_receive_config *config,
                                                          spt_error *err);

/**
 * The same, with a socket of yours that listens.
 *
 * :param acceptor: One of TCP. It is duplicated, stays yours, and may be closed; from now on
 *     ``accept()`` does not wait (``O_NONBLOCK``).
 * :param config: Only ``max_size`` is looked at. Copied; ``NULL`` for the defaults.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_tcp_socket(spt_recv_stream *stream,
                                                                 int acceptor,
                                                                 const spt_receive_config *config,
                                                                 spt_error *err);

/**
 * Receive packets from a queue of this process. The stream ends when the queue has been stopped,
 * and is empty. Streams that receive from the same queue get some of its packets each.
 *
 * :param queue: Held until the stream is stopped or destroyed.
 * :return: As :c:func:`spt_recv_stream_add_udp`.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_inproc(spt_recv_stream *stream,
                                                             spt_inproc_queue *queue,
                                                             spt_error *err);

/**
 * Receive the UDP datagrams that are in a capture, as a program such as tcpdump writes: a file of
 * pcap or pcapng, of frames of Ethernet (with VLANs or without), of Linux's cooked ones (``-i
 * any``), or of IP. Datagrams that were captured before they were segmented are taken apart.
 * Fragments are not put together. The stream ends with the file, or where that is damaged; then
 * ``failure`` of its counts says how, and at which byte. It is read through a buffer of 1 MiB.
 *
 * :param path: Of the file.
 * :param filter: Which datagrams: conditions of libpcap's language, ``port NUMBER`` and ``host
 *     ADDRESS``, after ``src`` or ``dst`` or neither, joined by ``and``; ``""`` or ``NULL`` for
 *     all. VLANs make no difference.
 * :return: ``SPT_OK``; ``SPT_ERR_SYSTEM`` where it cannot be opened; ``SPT_ERR_ARGUMENT`` for other
 *     files and filters; ``SPT_ERR_STOPPED``; ``SPT_ERR_MEMORY``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_add_udp_pcap(spt_recv_stream *stream,
                                                               const char *path, const char *filter,
                                                               spt_error *err);

/**
 * Begin to read, for a stream that was made to be started. Readers cannot be added any more then.
 * For others it does nothing.
 *
 * :return: ``SPT_OK``; ``SPT_ERR_STOPPED`` after the stream or its pool has been stopped.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_start(spt_recv_stream *stream, spt_error *err);

/**
 * Get the next heap that is finished.
 *
 * :param timeout_ns: How long to wait at most; 0 not at all, negative for ever.
 * :param heap: Filled, for ``SPT_OK``: lent until :c:func:`spt_recv_stream_return`.
 * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_DONE`` where the stream
 *     has ended and there is no more.
 */
SPT_API SPT_MUST_CHECK spt_status spt_recv_stream_get(spt_recv_stream *stream, int64_t timeout_ns,
                                                      spt_received_heap **heap);

/**
 * Give a heap back, before the stream is destroyed. Where its ``payload`` has been set to ``NULL``
 * that is the caller's; otherwise it is put back.
 *
 * :param stream: That handed it out.
 */
SPT_API void spt_recv_stream_return(spt_recv_stream *stream, spt_received_heap *heap);

/** How many heaps are in the ring: ``ring_heaps`` at most. */
SPT_API size_t spt_recv_stream_ready(spt_recv_stream *stream);

/**
 * A file descriptor that is readable while there is something to get, or the stream has ended. It
 * is to be polled, not to be read.
 */
SPT_API int spt_recv_stream_fd(spt_recv_stream *stream);

/**
 * The port that is received from.
 *
 * :return: That of the reader that was added last, which the system may have chosen; 0 where none
 *     has a socket, or after the stream is stopped.
 */
SPT_API int spt_recv_stream_port(spt_recv_stream *stream);

/**
 * Stop: nothing is received any more, ports are free, and live heaps end as they are. What is
 * finished can still be got. May be repeated; where another thread is stopping the stream, this
 * waits until it has.
 */
SPT_API void spt_recv_stream_stop(spt_recv_stream *stream);

/**
 * Stop and free. All heaps have been given back, and no other thread calls anything any more: only
 * one that is stopping the stream is waited for.
 */
SPT_API void spt_recv_stream_destroy(spt_recv_stream *stream);

/** Counts of frames that were read from captures. */
typedef struct spt_capture_stats {
    /** Frames: those that are none of the following hold a whole UDP datagram. */
    uint64_t frames;
    /** Frames that are of no UDP, or not what the filter asks for. */
    uint64_t others;
    /** Fragments of datagrams. */
    uint64_t fragments;
    /** Frames that were not captured as a whole. */
    uint64_t cut;
} spt_capture_stats;

/** Where everything went that came to a stream. */
typedef struct spt_recv_stats {
    /** Packets and heaps. */
    spt_account account;
    /** All of its sockets together. */
    spt_receive_stats sockets;
    /** Packets that had been read when the stream ended, and were not looked at any more. */
    uint64_t after_end;
    /** Times that a reader had a look, and found packets; */
    uint64_t batches;
    /** the most that it found at once. */
    uint64_t max_batch;
    /** Heaps that were dropped because something of them was missing; */
    uint64_t incomplete_dropped;
    /** of the last of these, the count, */
    uint64_t incomplete_cnt;
    /** how much of it had arrived, and */
    uint64_t incomplete_received;
    /** how long it is; 0 where no packet had said so. */
    uint64_t incomplete_length;
    /** Heaps that were dropped because the ring was full. */
    uint64_t ring_dropped;
    /** Times that a reader had to wait because the ring was full. */
    uint64_t ring_waits;
    /** ns that the longest of these waits took. */
    uint64_t longest_ring_wait_ns;
    /**
     * Without a thread: ns that the longest time took in which no call read the sockets, though
     * there may have been something; 0 with one. That ended with the next read. Where a read has
     * found no more, and :c:func:`spt_recv_stream_fd` is used, that is watched, and none begins.
     */
    uint64_t longest_unread_ns;
    /** The ``errno`` with which a socket or a file failed, which ended the stream; else 0. */
    int sys_errno;
    /** How a file failed, in a line, and at which byte; else empty. */
    char failure[240];
    /** All captures together. */
    spt_capture_stats captures;
} spt_recv_stats;

/** Read the counts: those of what has been read so far, at one moment. */
SPT_API void spt_recv_stream_stats(spt_recv_stream *stream, spt_recv_stats *stats);

/* ---- 8. Memory for heaps --------------------------------------------------------------------- */

/** How memory is mapped. */
typedef struct spt_mmap_config {
    /**
     * A sum of ``MAP_HUGETLB`` and the size of its pages, ``MAP_LOCKED``, ``MAP_NORESERVE`` and
     * ``MAP_POPULATE`` (see mmap(2)).
     */
    int flags;
    /**
     * Use huge pages where the system has any: reserved ones, or those that it makes by itself.
     * Each heap takes whole ones then.
     */
    bool prefer_huge;
} spt_mmap_config;

/**
 * Memory that is mapped for each heap, and unmapped after it.
 *
 * :param config: Borrowed for as long as the memory is used.
 * :param memory: Filled on success.
 * :return: ``SPT_OK``, or ``SPT_ERR_ARGUMENT`` for other flags.
 */
SPT_API SPT_MUST_CHECK spt_status spt_mmap_memory(const spt_mmap_config *config,
                                                  spt_heap_memory *memory, spt_error *err);

/**
 * Keeps buffers that heaps have left for those that follow: no page of them has to be had from the
 * system again. A heap that needs one while there is none gets a new one; there is no limit.
 *
 * Buffers that can be away at a time: a heap has one while it is live, while it waits in the ring
 * of its stream and before that, and while you have it. That is ``max_heaps * substreams +
 * ring_heaps + 1``, and as many as you have; one that does not say how long it is has two while it
 * grows.
 */
typedef struct spt_memory_pool spt_memory_pool;

/** What a pool keeps. */
typedef struct spt_memory_pool_config {
    /** Bytes that are asked for at least; for less, the pool is passed by. */
    size_t lower;
    /** Bytes that are asked for at most, and bytes of a buffer. */
    size_t upper;
    /** Buffers that are kept at most: those that come back above it are freed. */
    size_t max_free;
    /** Buffers that are made now, with their pages. */
    size_t initial;
    /** Where fewer are left, a thread makes others, up to this; 0 for none. */
    size_t low_water;
    /**
     * Where buffers come from; ``{0}`` for malloc and free. Its functions are called from any
     * thread.
     */
    spt_heap_memory base;
} spt_memory_pool_config;

/**
 * Make a pool.
 *
 * :param threads: Borrowed until the pool is destroyed, to make buffers; ``NULL`` without
 *     ``low_water``. A thread that makes one does not read packets meanwhile.
 * :param config: Copied. What ``base`` works on has to stay until all buffers are back.
 */
SPT_API SPT_MUST_CHECK spt_memory_pool *spt_memory_pool_create(spt_thread_pool *threads,
                                                               const spt_memory_pool_config *config,
                                                               spt_error *err);

/**
 * The memory that a pool gives, for any number of depacketizers, streams and threads.
 *
 * :param pool: Borrowed. Nothing is to be got from it once it is destroyed.
 */
SPT_API spt_heap_memory spt_memory_pool_memory(spt_memory_pool *pool);

/**
 * Destroy a pool, after the streams that get from it. Buffers that are away may be put back later,
 * even after its threads have gone: the last of them frees what is left of it.
 */
SPT_API void spt_memory_pool_destroy(spt_memory_pool *pool);

/** What was asked of a pool since it was made, and what it has. */
typedef struct spt_memory_pool_stats {
    /** Requests: the sum of those that got a buffer of the pool, of ``empty`` and ``passed_by``. */
    uint64_t gets;
    /** Requests that came while the pool had no buffer. */
    uint64_t empty;
    /** Requests for less than ``lower`` or more than ``upper`` bytes. */
    uint64_t passed_by;
    /** Bytes of the largest request. */
    size_t largest;
    /** Buffers that it has now, */
    size_t free;
    /** and that it had when they were fewest. */
    size_t fewest_free;
    /** Buffers of the pool that are away now, */
    size_t in_use;
    /** and that were away when they were most. */
    size_t most_in_use;
} spt_memory_pool_stats;

/** Read the counts, at one moment. */
SPT_API void spt_memory_pool_read_stats(spt_memory_pool *pool, spt_memory_pool_stats *stats);

/* ---- 9. Rings of chunks ---------------------------------------------------------------------- */

/** Memory that many heaps share. It is yours, and in one ring or stream at a time. */
typedef struct spt_chunk {
    /** Where payload goes. What is not marked in ``present`` may be anything. */
    void *data;
    /** Bytes of it. */
    size_t data_size;
    /** A byte for each heap, or packet: 1 where it has arrived, else 0. */
    uint8_t *present;
    /** Bytes of it. */
    size_t present_size;
    /** What the place function tells of heaps; or ``NULL``. */
    uint8_t *extra;
    /** Bytes of it. */
    size_t extra_size;
    /** Which chunk it is, once a stream has filled it. */
    int64_t chunk_id;
    /** Which stream has filled it. */
    uint64_t stream_id;
    /** Yours. */
    void *user;
    /* Private: the next one in the ring. */
    struct spt_chunk *next_;
} spt_chunk;

/**
 * A queue of chunks that has an end, in both senses. All functions may be called from any thread.
 */
typedef struct spt_chunk_ring spt_chunk_ring;

/**
 * Make a ring.
 *
 * :param capacity: Chunks in it at most, at least 1; streams that end may put in more.
 */
SPT_API SPT_MUST_CHECK spt_chunk_ring *spt_chunk_ring_create(size_t capacity, spt_error *err);

/** Free a ring; chunks that are in it are the caller's. No stream uses it any more. */
SPT_API void spt_chunk_ring_destroy(spt_chunk_ring *ring);

/**
 * Put a chunk in.
 *
 * :param chunk: Borrowed until it is got.
 * :param timeout_ns: How long to wait for room at most; 0 not at all, negative for ever.
 * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_ERR_STOPPED``.
 */
SPT_API SPT_MUST_CHECK spt_status spt_chunk_ring_put(spt_chunk_ring *ring, spt_chunk *chunk,
                                                     int64_t timeout_ns);

/**
 * Get the chunk that has been in it for longest.
 *
 * :param timeout_ns: How long to wait at most; 0 not at all, negative for ever.
 * :param chunk: Filled, for ``SPT_OK``; else ``NULL``.
 * :return: ``SPT_OK``; ``SPT_PENDING`` after the time, or a signal; ``SPT_DONE`` where the ring has
 *     been stopped and is empty.
 */
SPT_API SPT_MUST_CHECK spt_status spt_chunk_ring_get(spt_chunk_ring *ring, int64_t timeout_ns,
                                                     spt_chunk **chunk);

/** How many chunks are in a ring. */
SPT_API size_t spt_chunk_ring_size(spt_chunk_ring *ring);

/** How many chunks a ring has room for. */
SPT_API size_t spt_chunk_ring_capacity(const spt_chunk_ring *ring);

/** Stop: nothing can be put in any more; what is in it can still be got. */
SPT_API void spt_chunk_ring_stop(spt_chunk_ring *ring);

/** Say that one more puts chunks in. Streams do so by themselves. */
SPT_API void spt_chunk_ring_add_producer(spt_chunk_ring *ring);

/**
 * Say that one of them puts no chunks in any more. The ring stops with the last of them.
 *
 * :return: Whether it was the last.
 */
SPT_API bool spt_chunk_ring_remove_producer(spt_chunk_ring *ring);

/**
 * A file descriptor that is readable while there is something to get, or the ring is stopped. It is
 * to be polled, not to be read. Where streams without a thread fill the ring, it is also readable
 * when there is something to read for them: then there may be nothing to get yet.
 */
SPT_API int spt_chunk_ring_data_fd(spt_chunk_ring *ring);

/** The same for room, or the ring is stopped. */
SPT_API int spt_chunk_ring_space_fd(spt_chunk_ring *ring);

/* ---- 10. Streams of chunks ------------------------------------------------------------------- */

/** What a place function is told of a heap, and says of it: 80 bytes. */
typedef struct spt_place_data {
    /** The heap's first packet that came. */
    const uint8_t *packet;
    /** Bytes of it. */
    size_t packet_size;
    /** A value for each item that was asked for: that in this packet, or -1 without. */
    const int64_t *items;
    /** To be set: the chunk that the heap belongs to; it is refused where this stays negative. */
    int64_t chunk_id;
    /** To be set: which byte of ``present`` is the heap's. */
    uint64_t heap_index;
    /** To be set: where in the chunk's data the heap begins. */
    uint64_t heap_offset;
    /** Counters to be changed: see ``n_stats`` in the configuration. */
    uint64_t *batch_stats;
    /** Room for what the chunk is to be told of the heap. */
    uint8_t *extra;
    /** To be set: where in the chunk's ``extra`` that goes. */
    uint64_t extra_offset;
    /** To be set: bytes of it; 0 at first. */
    uint64_t extra_size;
} spt_place_data;

/**
 * Say where a heap belongs. It is called by the worker, for each heap once, but for the one that
 * ends the stream. What it says is checked: a heap is written nowhere but in its chunk. It
 * calls no function of a stream that receives, nor of a ring of chunks: their locks are held.
 *
 * :param data: To be read, and filled in.
 * :param data_size: Bytes of it.
 * :param user: As configured.
 */
typedef void (*spt_place_function)(spt_place_data *data, size_t data_size, void *user);

/** How a stream fills chunks. */
typedef struct spt_chunk_config {
    /** Decides. */
    spt_place_function place;
    /** Handed to it. */
    void *place_user;
    /** Ids of the items that it wants to know the values of. Copied. */
    const uint64_t *items;
    /** How many. */
    size_t n_items;
    /** Chunks that are filled at a time, at least 1: a newer one pushes out the oldest. */
    size_t max_chunks;
    /** Bytes that a place function may put into ``extra``. */
    size_t max_heap_extra;
    /**
     * Bytes of payload in a packet, where ``present`` has a byte for each packet: from a heap's
     * index on, one for each run of this length in bytes. 0 where it has one for each heap.
     */
    size_t packet_payload_size;
    /** Counters in ``batch_stats``. */
    size_t n_stats;
    /** Whether such a counter keeps the largest value of a batch; otherwise batches are added. */
    const bool *stat_is_maximum;
    /** What chunks have as their ``stream_id``. */
    uint64_t stream_id;
    /** Where chunks go that are filled. Borrowed until the stream is destroyed. */
    spt_chunk_ring *data_ring;
    /** Where chunks come from. Borrowed until the stream is destroyed. */
    spt_chunk_ring *free_ring;
} spt_chunk_config;

/** Chunk ids that are believed: fewer bits than any item can have. */
#define SPT_MAX_CHUNK_ID ((INT64_C(1) << 56) - 1)
/** How far a chunk may be ahead of the newest: a heap further away is refused. */
#define SPT_MAX_CHUNK_STEP (INT64_C(1) << 32)

/**
 * Make a stream that fills chunks: readers are added as to any other, and there are no heaps to be
 * got. It waits for free chunks, and for room for those that are filled. It ends as others do: then
 * those that it has begun are put into the ring for them, which stops when no stream puts chunks
 * in any more. :c:func:`spt_recv_stream_stop` stops both rings.
 *
 * Where it has no pool, who asks the ring of filled chunks for one with
 * :c:func:`spt_chunk_ring_get` reads, and :c:func:`spt_chunk_ring_data_fd` is readable when a
 * socket has something to read. Streams that fill chunks for the same ring take turns, and so do
 * threads that ask at once.
 *
 * :param config: Copied. Memory and the ring of heaps are not used, nor are heaps taken that do not
 *     say how long they are.
 */
SPT_API SPT_MUST_CHECK spt_recv_stream *
spt_recv_stream_create_chunks(spt_thread_pool *pool, const spt_recv_config *config,
                              const spt_chunk_config *chunks, spt_error *err);

/** What became of heaps and chunks. */
typedef struct spt_chunk_stats {
    /** Heaps whose chunk had been pushed out. */
    uint64_t too_old_heaps;
    /** Heaps that were refused by the place function, or for what it said. */
    uint64_t rejected_heaps;
    /** Those of the latter that it had a place for where there is none. */
    uint64_t misplaced_heaps;
    /** Chunks that were put into the ring. */
    uint64_t chunks;
    /** Times that the worker waited for a free chunk. */
    uint64_t chunk_waits;
    /** ns that the longest of these waits took. */
    uint64_t longest_chunk_wait_ns;
    /** Times that the worker waited for room for one that was filled. */
    uint64_t room_waits;
    /** ns that the longest of these waits took. */
    uint64_t longest_room_wait_ns;
    /** What was wrong with the last place that there is not; empty before. */
    char misplaced[160];
} spt_chunk_stats;

/**
 * Read the counts, those of what has been read so far.
 *
 * :param stream: That fills chunks.
 * :param place_stats: Filled with what the place function has counted in all batches: room for
 *     ``n_stats`` of them; or ``NULL``.
 */
SPT_API void spt_recv_stream_chunk_stats(spt_recv_stream *stream, spt_chunk_stats *stats,
                                         uint64_t *place_stats);

/* ---- 11. Groups of streams that fill the same chunks ----------------------------------------- */

/**
 * Streams that share one sequence of chunks, each of which writes a part of every chunk: never the
 * same bytes as another. All functions may be called from any thread, but not by what a stream
 * itself calls.
 */
typedef struct spt_chunk_group spt_chunk_group;

/** What the streams of a group share. */
typedef struct spt_chunk_group_config {
    /**
     * Chunks that are filled at a time, at least 1: a newer one pushes out the oldest. Each stream
     * fills ``max_chunks`` of its own among them, up to the newest that it has seen.
     */
    size_t max_chunks;
    /**
     * Whether a chunk that is pushed out waits until every stream has left it. One that receives
     * nothing then holds up all, from the first chunk on: :c:func:`spt_chunk_group_read_stats` says
     * which. Otherwise streams that lag are made to leave it at once: their heaps in it end, and
     * those that come for it afterwards are too old.
     */
    bool lossless;
    /** Where chunks go that are filled. Borrowed until the group is destroyed. */
    spt_chunk_ring *data_ring;
    /** Where chunks come from. Borrowed until the group is destroyed. */
    spt_chunk_ring *free_ring;
} spt_chunk_group_config;

/** Make a group, to which streams are to be added. */
SPT_API SPT_MUST_CHECK spt_chunk_group *spt_chunk_group_create(const spt_chunk_group_config *config,
                                                               spt_error *err);

/**
 * Add a stream, as :c:func:`spt_recv_stream_create_chunks` makes them: all of them before the first
 * reader. Chunks leave in the order of their ids, each once. A stream that ends by itself leaves
 * the others alone; with the last one the ring for data stops. To stop one of them with
 * :c:func:`spt_recv_stream_stop` stops all, and both rings.
 *
 * :param group: Owns the stream, which is not to be destroyed by itself.
 * :param pool: Borrowed until the group is destroyed. It has a thread for each stream of the group
 *     that it is given for. ``NULL`` for streams without a thread.
 * :param chunks: Copied. Its rings are those of the group, and no others. ``max_chunks`` is at
 *     most the group's. ``stream_id`` is that of the chunks which this stream was the first to
 *     need.
 * :param err: Details of a failure, or ``NULL``: ``SPT_ERR_ARGUMENT``, or ``SPT_ERR_BUSY`` after a
 *     reader was added, or the group was stopped.
 * :return: Lent until the group is destroyed; or ``NULL``.
 */
SPT_API SPT_MUST_CHECK spt_recv_stream *
spt_chunk_group_add(spt_chunk_group *group, spt_thread_pool *pool, const spt_recv_config *config,
                    const spt_chunk_config *chunks, spt_error *err);

/** Stop all streams, and both rings. What has been filled, or begun, can still be got. */
SPT_API void spt_chunk_group_stop(spt_chunk_group *group);

/** Stop, and free the group and its streams. No other thread calls anything of them any more. */
SPT_API void spt_chunk_group_destroy(spt_chunk_group *group);

/** How the streams of a group wait for each other. */
typedef struct spt_chunk_group_stats {
    /** Times that streams waited for another one to leave the oldest chunk. */
    uint64_t member_waits;
    /** ns that the longest of these waits took. */
    uint64_t longest_member_wait_ns;
    /** Whether they do now; the rest says for whom, else it is 0: */
    bool waits;
    /** how many streams were added before that one, */
    size_t slow_member;
    /** which chunk it holds, */
    int64_t slow_chunk_id;
    /** and for how many ns it has been waited for. */
    uint64_t slow_ns;
} spt_chunk_group_stats;

/** Read the counts, at one moment. Those of packets, heaps and chunks are the streams' own. */
SPT_API void spt_chunk_group_read_stats(spt_chunk_group *group, spt_chunk_group_stats *stats);

#ifdef __cplusplus
}
#endif

#endif /* SPEAD_TUTORIAL_SPT_RECV_H */
