/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tests of capture.c, frame.c, frame_filter.c and source_pcap.c: captures that are written
 * here, byte by byte, as the descriptions of the formats have it, and received. */
#define CHECK_AFTER end

#include "support.h"

#include <errno.h>
#include <sys/mman.h>

enum { ROOM = 1 << 23, PAYLOAD = 24, HEAPS = 3, BUFFER = 1 << 20 };

/* ---- Captures -------------------------------------------------------------------------------- */

static uint8_t file[ROOM]; /* that is made */
static size_t size;
static bool is_little, is_ng;
static uint8_t frame[4096];
static size_t frame_size;
static char path[40]; /* where it is */
static int fd = -1;
static spt_recv_stream *receiver;

static void end(void)
{
    END(spt_recv_stream, receiver);
    end_fd(&fd);
}

/* A number of the file, in its byte order. */
static void put(uint64_t number, size_t n)
{
    for (size_t i = 0; i < n; i++)
        file[size + i] = (uint8_t)(number >> 8 * (is_little ? i : n - 1 - i));
    size += n;
}

static void put_interface(unsigned link, unsigned snaplen)
{
    put(1, 4), put(20, 4), put(link, 2), put(0, 2), put(snaplen, 4), put(20, 4);
}

/* A block of so many bytes, which are counted from one on. */
static void put_block(uint32_t type, size_t n)
{
    put(type, 4), put(n, 4);
    for (size_t i = 0; i < n - 12; i++)
        file[size++] = (uint8_t)(1 + i);
    put(n, 4);
}

/* The beginning of a section, and its interface. */
static void put_section(unsigned link, unsigned snaplen)
{
    put(0x0a0d0d0a, 4), put(28, 4), put(0x1a2b3c4d, 4), put(1, 2), put(0, 2);
    put(UINT64_MAX, 8), put(28, 4);
    put_interface(link, snaplen);
}

static void begin_file(bool ng, bool little, uint32_t magic, unsigned link)
{
    size = 0, is_ng = ng, is_little = little;
    if (!ng) {
        put(magic, 4), put(2, 2), put(4, 2), put(0, 8), put(65535, 4), put(link, 4);
        return;
    }
    put_section(link, 0);
}

/* The frame, of which so many bytes were captured, in a block of pcapng: with bytes behind it, and
 * options behind those. */
static void put_frame_block(unsigned type, uint64_t interface, size_t n, size_t more,
                            size_t options)
{
    size_t padded = (n + more + 3) / 4 * 4, begin = size;
    size_t total = (type == 3 ? 16 : 32) + padded + options;
    put(type, 4), put(total, 4);
    if (type == 2)
        put(interface, 2), put(0, 2), put(1, 8), put(n + more, 4);
    else if (type == 6)
        put(interface, 4), put(1, 8), put(n + more, 4);
    put(more > 0 ? n + more : frame_size, 4);
    memcpy(file + size, frame, n);
    memset(file + size + n, 1, padded - n + options);
    size = begin + total - 4;
    put(total, 4);
}

/* The frame, of which so many bytes were captured. */
static void put_frame(size_t n)
{
    if (is_ng) {
        put_frame_block(6, 0, n, 0, 0);
        return;
    }
    put(1, 4), put(2, 4), put(n, 4), put(frame_size, 4);
    memcpy(file + size, frame, n);
    size += n;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* What is before IP in frames of all kinds, in hexadecimal, and which kind that is. */
static const struct {
    unsigned link;
    const char *before;
} links[] = {
    {1, "0102030405060708090a0b0c"},
    {1, "0102030405060708090a0b0c88a80001"},         /* a VLAN */
    {1, "0102030405060708090a0b0c88a8000181000002"}, /* in another one */
    {113, "0004000100060102030405060000"},
    {276, ""},
    {101, NULL},
    {228, NULL},
    {229, NULL},
};

static void add(uint64_t number, size_t n)
{
    frame_size = (size_t)(make_put(frame + frame_size, number, n) - frame);
}

static void add_bytes(const void *bytes, size_t n)
{
    memcpy(frame + frame_size, bytes, n);
    frame_size += n;
}

static void begin_frame(size_t link, bool is_ipv6)
{
    frame_size = 0;
    const char *hex = links[link].before;
    for (; hex != NULL && *hex != '\0'; hex += 2) {
        char one[3] = {hex[0], hex[1], 0};
        add(strtoul(one, NULL, 16), 1);
    }
    if (hex != NULL)
        add(is_ipv6 ? 0x86dd : 0x0800, 2);
    for (int i = 0; links[link].link == 276 && i < 18; i++)
        add(0, 1);
}

/* IPv4, with so many words of options, and what it has of fragments. */
static void add_ipv4(size_t options, unsigned protocol, unsigned fragment, size_t length)
{
    add(0x45 + options, 1), add(0, 1), add(20 + 4 * options + length, 2), add(7, 2);
    add(fragment, 2), add(64, 1), add(protocol, 1), add(0, 2);
    add(0x0a000001, 4), add(0x0a000002, 4);
    for (size_t i = 0; i < options; i++)
        add(0x01010101, 4);
}

/* IPv6, with options and a routing header, authentication, and an atomic fragment where asked. */
static void add_ipv6(bool extended, unsigned fragment, size_t length)
{
    size_t extensions = extended ? 8 + 16 + 12 + 8 : 0;
    add(0x60000000, 4), add(extensions + length, 2), add(extended ? 0 : 17, 1), add(64, 1);
    for (unsigned i = 0; i < 2; i++)
        add(0xfd00000000000000, 8), add(1 + i, 8);
    if (!extended)
        return;
    add(43, 1), add(0, 7);
    add(51, 1), add(1, 1), add(0, 14);
    add(44, 1), add(1, 1), add(0, 10);
    add(17, 1), add(0, 1), add(fragment, 2), add(9, 4);
}

static void add_udp(unsigned port, const void *payload, size_t n)
{
    add(1234, 2), add(port, 2), add(8 + n, 2), add(0, 2);
    add_bytes(payload, n);
}

static made_packet packet;

static void make_heap(uint64_t cnt)
{
    make_part(&packet, cnt, PAYLOAD, 0, PAYLOAD);
    make_add(&packet, false, 0x1000, 0);
    make_end_of(&packet, cnt, 0, PAYLOAD);
}

/* A frame with a heap in a packet. */
static void make_frame(size_t link, bool is_ipv6, bool extended, unsigned port, uint64_t cnt)
{
    make_heap(cnt);
    begin_frame(link, is_ipv6);
    if (is_ipv6)
        add_ipv6(extended, 0, 8 + packet.size);
    else
        add_ipv4(extended ? 3 : 0, 17, 0, 8 + packet.size);
    add_udp(port, packet.bytes, packet.size);
}

/* The same in the file, all of it. */
static void put_heap(size_t link, bool is_ipv6, bool extended, unsigned port, uint64_t cnt)
{
    make_frame(link, is_ipv6, extended, port, cnt);
    put_frame(frame_size);
}

/* ---- Receiving ------------------------------------------------------------------------------- */

/* Write the first bytes of the file, and add it. */
static spt_status add_file(size_t n, const char *filter, spt_error *err)
{
    end();
    fd = memfd_create("capture", MFD_CLOEXEC);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    REQUIRE(fd >= 0 && write(fd, file, n) == (ssize_t)n);
    receiver = new_receiver(NULL);
    return spt_recv_stream_add_udp_pcap(receiver, path, filter, err);
}

/* Take all heaps, and return how many there are. */
static uint64_t check_heaps(void)
{
    uint64_t n = 0;
    spt_status status;
    for (spt_received_heap *heap; (status = spt_recv_stream_get(receiver, -1, &heap)) == SPT_OK;
         n++) {
        CHECK_EQUAL(heap->length, PAYLOAD, heap->received_length, PAYLOAD);
        check_payload(heap);
        spt_recv_stream_return(receiver, heap);
    }
    CHECK_EQUAL(status, SPT_DONE);
    return n;
}

static uint64_t heaps_of_file(const char *filter)
{
    REQUIRE(add_file(size, filter, NULL) == SPT_OK);
    return check_heaps();
}

static spt_capture_stats counts(void)
{
    spt_recv_stats stats = stats_of(receiver);
    CHECK_EQUAL(stats.failure[0], 0, stats.sys_errno, 0);
    return stats.captures;
}

TEST(heaps_are_found_in_frames_of_every_kind_in_files_of_both_formats_and_byte_orders)
{
    static const uint32_t magics[] = {0xa1b2c3d4, 0xa1b23c4d};
    for (size_t link = 0; link < LENGTH(links); link++) {
        for (unsigned i = 0; i < 6; i++) {
            begin_file(i >= 4, i % 2 == 0, magics[i / 2 % 2], links[link].link);
            uint64_t n = 0;
            for (unsigned j = 0; j < 4; j++)
                put_heap(link, j / 2, j % 2, 8888, ++n);
            CHECK_EQUAL(heaps_of_file("udp dst port 8888 and net (10 or fd00::/16)"), n,
                        counts().frames, n, counts().others, 0);
        }
    }
}

TEST(blocks_that_are_none_of_frames_are_passed_by_and_sections_have_interfaces_of_their_own)
{
    begin_file(true, true, 0, 276);
    put(5, 4), put(16, 4), put(0, 4), put(16, 4);
    put_heap(4, false, false, 8888, 1);
    is_little = false;
    put_section(1, 70); /* simple blocks have no more of a frame than the interface captures */
    put_heap(0, false, false, 8888, 2);
    put_frame_block(3, 0, 70, 0, 0);
    CHECK_EQUAL(heaps_of_file(""), 2, counts().frames, 3, counts().cut, 1);
}

TEST(blocks_without_frames_are_passed_over_whatever_their_size)
{
    static const uint32_t types[] = {4, 5, 10, 0xbad, 0x40000bad, 0x80000001};
    static const size_t sizes[] = {12, 16, BUFFER - 4, BUFFER, BUFFER + 4, 3 * BUFFER + 8};
    for (size_t i = 0; i < LENGTH(types); i++) {
        begin_file(true, i % 2 == 0, 0, 1);
        for (uint64_t cnt = 1; cnt <= LENGTH(sizes); cnt++) {
            put_heap(0, false, false, 8888, cnt);
            put_block(types[i], sizes[cnt - 1]);
        }
        CHECK_EQUAL(heaps_of_file(""), LENGTH(sizes), counts().frames, LENGTH(sizes));
    }
}

TEST(a_large_block_that_is_cut_off_or_says_another_length_at_its_end_is_an_error_where_it_begins)
{
    static const size_t sizes[] = {BUFFER, BUFFER + 4, 2 * BUFFER + 100};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        char where[60];
        begin_file(true, i % 2 == 0, 0, 1);
        put_heap(0, false, false, 8888, 1);
        (void)snprintf(where, sizeof(where), "at byte %zu: ", size);
        size_t begin = size;
        put_block(4, sizes[i]);
        const size_t ends[] = {begin + 8, begin + BUFFER - 1, size - 4, size - 1};
        for (size_t j = 0; j < LENGTH(ends); j++) {
            CHECK(add_file(ends[j], "", NULL) == SPT_OK && check_heaps() == 1);
            CHECK_WORDS(stats_of(receiver).failure, where);
            CHECK_WORDS(stats_of(receiver).failure, "the file ends in the midst of this");
        }
        file[size - 3] ^= 1;
        put_heap(0, false, false, 8888, 2);
        CHECK_EQUAL(heaps_of_file(""), 1);
        CHECK_WORDS(stats_of(receiver).failure, where);
        CHECK_WORDS(stats_of(receiver).failure, "two lengths");
    }
}

TEST(frames_and_options_are_as_long_as_they_like)
{
    for (unsigned little = 0; little < 2; little++) {
        uint64_t n = 0;
        begin_file(true, little, 0, 1);
        for (size_t more = 1; more <= 2 * BUFFER; more *= 8) {
            static const unsigned types[] = {2, 3, 6};
            make_frame(0, false, false, 8888, ++n);
            put_frame_block(types[n % 3], 0, frame_size, more, 0);
            make_frame(0, false, false, 8888, ++n);
            put_frame_block(n % 4 == 0 ? 2 : 6, 0, frame_size, 0, more / 4 * 4);
        }
        CHECK_EQUAL(heaps_of_file(""), n, counts().frames, n, counts().others, 0);
    }
}

TEST(a_section_has_as_many_interfaces_as_it_likes_up_to_a_limit)
{
    enum { MOST = 1 << 16 };
    static const unsigned counted[] = {1, 256, 257, 300, 5000, MOST};
    begin_file(true, true, 0, 1);
    for (uint64_t i = 0; i < LENGTH(counted); i++) {
        size_t link = i % 2 == 0 ? 0 : 3; /* the last one is of another kind than the others */
        put_section(1, 0);
        for (unsigned j = 1; j < counted[i]; j++)
            put_interface(j + 1 < counted[i] ? 1 : links[link].link, 0);
        make_frame(counted[i] == 1 ? 0 : link, false, false, 8888, 1 + i);
        put_frame_block(i % 2 == 0 ? 6 : 2, counted[i] - 1, frame_size, 0, 0);
    }
    CHECK_EQUAL(heaps_of_file(""), LENGTH(counted), counts().frames, LENGTH(counted));
    put_interface(1, 0);
    CHECK_EQUAL(heaps_of_file(""), LENGTH(counted));
    CHECK_WORDS(stats_of(receiver).failure, "a section has 65536 interfaces at most");
}

TEST(datagrams_that_were_captured_before_they_were_segmented_are_taken_apart)
{
    begin_file(false, true, 0xa1b2c3d4, 1);
    make_heap(1);
    begin_frame(0, false);
    add_ipv4(0, 17, 0, 8 + 2 * packet.size);
    add(1234, 2), add(8888, 2), add(8 + 2 * packet.size, 2), add(0, 2);
    add_bytes(packet.bytes, packet.size);
    make_heap(2);
    add_bytes(packet.bytes, packet.size);
    put_frame(frame_size);
    CHECK_EQUAL(heaps_of_file(NULL), 2, counts().frames, 1);
}

TEST(fragments_cut_frames_and_others_are_counted_and_padding_is_not_looked_at)
{
    begin_file(false, true, 0xa1b2c3d4, 1);
    make_frame(0, false, false, 8888, 1);
    add(0, 6);
    put_frame(frame_size); /* padded */
    make_frame(0, false, false, 8888, 2);
    put_frame(frame_size - 1); /* cut */
    frame[23] = 6;             /* TCP */
    put_frame(frame_size);
    begin_frame(0, false);
    add_ipv4(0, 17, 0x2000, 64); /* the first fragment */
    add_udp(8888, file, 56);
    put_frame(frame_size);
    begin_frame(0, true);
    add_ipv6(true, 0x0100, 64); /* a later one */
    add_udp(8888, file, 56);
    put_frame(frame_size);
    CHECK_EQUAL(heaps_of_file(NULL), 1);
    spt_capture_stats c = counts();
    CHECK_EQUAL(c.frames, 5, c.cut, 1, c.others, 1, c.fragments, 2);
}

/* From 10.0.0.1, port 1234, to 10.0.0.2, ports 8888 and 8889; from fd00::1 to fd00::2, port 8888.
 */
static void make_filtered_file(void)
{
    begin_file(false, true, 0xa1b2c3d4, 1);
    for (unsigned i = 0; i < 3; i++)
        put_heap(0, i == 2, false, i == 1 ? 8889 : 8888, 1 + i);
}

/* By how many of the three heaps they take; of more than one condition, neither goes first. */
static const char *const filters[HEAPS + 1][16] = {
    {"src port 8889", "src host fd00::2", "port 8889 or ip6 and port 1",
     "src and dst net 10.0.0.2/31", "ip6 dst net fd00::/127", "port 0"},
    {"dst port 8889", "host 10.0.0.2 and port 8888",
     "udp and src host fd00::1 and dst host fd00::2", "ip6", "not ip6 && ! port 8889",
     "not not ip6||!(udp)", "port 8889 or (ip6 and port 1)", "dst port (8889 or 1234)",
     "portrange 8889-9000", "src or dst port 8889", "ip6 dst net fd00::2/127", "net ::/0",
     "not net 0.0.0.0/0"},
    {"udp port 8888", "ip", "port 8889 or ip6", "not port 8889 and 8888",
     "port 8889 or 8888 and ip", "src and dst portrange 1234-8888", "dst or src host 10.0.0.2",
     "src and dst net 10.0.0.0/30", "ip dst host 10.0.0.2 or 10.0.0.3", "net 10",
     "net 10.0.1 or net 10.0.0.2", "net 10.0/16", "net 10.0.0.0 mask 255.0.255.0"},
    {" udp\t", "port 1234", "port 8889 or (1 or 8888)", "dst port 8889 or not 8889",
     "udp dst portrange 9000-8889 or 8888", "src 10.0.0.1 or fd00::1", "portrange 0-65535"},
};

TEST(a_filter_takes_what_comes_from_or_goes_to_ports_and_addresses)
{
    make_filtered_file();
    for (uint64_t n = 0; n <= HEAPS; n++)
        for (size_t i = 0; filters[n][i] != NULL; i++)
            CHECK_EQUAL(heaps_of_file(filters[n][i]), n, counts().others, HEAPS - n);
}

/* In each, what is not understood is between two signs. */
static const char *const not_understood[3][16] = {
    {"port@@", "port @65536@", "port @010@", "port @1-2@", "port @-1@", "portrange @1-@",
     "portrange 1 @-@ 2", "ip port @1@", "src or @port@ 1", "dst port@@", "port 1@)@",
     "port 1 or @10.0.0.1@"},
    {"host @there@", "host @10.1@", "host @10.0.0.0/8@", "@10.0.0.1@", "net @10.1.0.0/8@",
     "net @10.0.0.0/33@", "net @10.0.0.1@ mask 255.0.0.0", "net @fd00::1/64@",
     "net @fd00::@ mask ffff::", "ip host @fd00::1@", "udp host @10.0.0.1@"},
    {"@tcp@", "udp and@@", "udp port 1 @port@ 2", "udp @&@ port 1", "(port 1@@", "(@)@",
     "(port 1) or @2@", "port (1 or port @2)@", "@ether@ host 1", "@len@ > 5\n", "@vlan@ 5 and udp",
     "@udp[0]@ = 1"},
};

TEST(a_filter_that_is_not_understood_is_refused_in_a_line_that_says_where_and_what_is)
{
    make_filtered_file();
    CHECK_EQUAL(heaps_of_file(""), HEAPS);
    for (size_t i = 0; i < 3 * 16; i++) {
        const char *before = not_understood[i / 16][i % 16];
        if (before == NULL)
            continue;
        const char *wrong = strchr(before, '@') + 1;
        int at = (int)(wrong - before), n = (int)strcspn(wrong, "@");
        char filter[64], where[64];
        (void)snprintf(filter, sizeof(filter), "%.*s%.*s%s", at - 1, before, n, wrong,
                       wrong + n + 1);
        (void)snprintf(where, sizeof(where), "'%.*s' (character %d)", n, wrong, at);
        const char *const words[] = {where, "'tcpdump -r FILE -w FILTERED FILTER' knows more"};
        for (size_t j = 0; j < LENGTH(words); j++)
            CHECK_REFUSED(SPT_ERR_ARGUMENT, words[j],
                          spt_recv_stream_add_udp_pcap(receiver, path, filter, &err));
    }
}

TEST(a_filter_that_is_too_long_or_too_deep_is_refused)
{
    static const struct {
        const char *again, *last, *behind;
        size_t most;
    } cases[] = {
        {"(", "udp", ")", 10},     {"not(", "udp", ")", 10}, {"udp or ", "udp", "", 49},
        {"not ", "!udp", "", 249}, {" ", "", "", 1000},
    };
    static char text[1 << 20];
    make_filtered_file();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const size_t times[] = {cases[i].most, cases[i].most + 1, 5000, 100000};
        for (size_t j = 0; j < LENGTH(times); j++) {
            char *to = text;
            for (size_t n = 0; n < times[j]; n++)
                to = stpcpy(to, cases[i].again);
            to = stpcpy(to, cases[i].last);
            for (size_t n = 0; n < times[j]; n++)
                to = stpcpy(to, cases[i].behind);
            if (j == 0)
                CHECK_EQUAL(heaps_of_file(text), 3);
            else
                CHECK_REFUSED(SPT_ERR_ARGUMENT, "within each other at most",
                              spt_recv_stream_add_udp_pcap(receiver, path, text, &err));
        }
    }
}

TEST(what_is_not_known_of_a_frame_does_not_keep_it_from_being_counted)
{
    static const char *const by_fragments[2][6] = {
        {"port 1 and host 10.0.0.3", "ip6 or not net 10"},
        {"port 8889", "not port 8889", "not (port 1 or not port 2)", "port 1 and host 10.0.0.1",
         "not port 1 or host 10.0.0.3"},
    };
    begin_file(false, true, 0xa1b2c3d4, 1);
    begin_frame(0, false);
    add_ipv4(0, 17, 0x2000, 64);
    add_udp(8888, file, 56);
    put_frame(frame_size);
    for (uint64_t n = 0; n < 2; n++)
        for (size_t i = 0; by_fragments[n][i] != NULL; i++)
            CHECK_EQUAL(heaps_of_file(by_fragments[n][i]), 0, counts().fragments, n);
}

TEST(what_is_no_capture_is_refused_in_words_that_say_what_is_read)
{
    begin_file(false, true, 0xa1b2c3d4, 105);
    receiver = new_receiver(NULL);
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "frames of type 105", add_file(size, "", &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "is no capture", add_file(3, "", &err));
    file[0]++;
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "is no capture", add_file(size, "", &err));
    CHECK_REFUSED(SPT_ERR_ARGUMENT, "is no file",
                  spt_recv_stream_add_udp_pcap(receiver, "/dev/zero", "", &err));
    CHECK_REFUSED(SPT_ERR_SYSTEM, "No such file",
                  spt_recv_stream_add_udp_pcap(receiver, "/no/such/file", "", &err));
}

/* Some heaps in a file; returns where the last one's record begins. */
static size_t make_small_file(bool ng)
{
    size_t last = 0;
    begin_file(ng, true, 0xa1b2c3d4, 1);
    for (uint64_t cnt = 1; cnt <= HEAPS; cnt++) {
        last = size;
        put_heap(0, cnt == 2, cnt == 2, 8888, cnt);
    }
    return last;
}

TEST(a_file_that_ends_early_wherever_gives_what_was_before_that_and_says_where_it_ends)
{
    for (int ng = 0; ng < 2; ng++) {
        size_t last = make_small_file(ng);
        char where[40];
        (void)snprintf(where, sizeof(where), "at byte %zu: the file ends", last);
        for (size_t n = 0; n < size; n++) {
            spt_error err;
            if (add_file(n, "", &err) != SPT_OK) {
                CHECK(n < 24);
                continue;
            }
            uint64_t heaps = check_heaps();
            spt_recv_stats stats = stats_of(receiver);
            CHECK((stats.failure[0] != 0) == (stats.sys_errno == EBADMSG));
            if (n < last)
                continue;
            CHECK_EQUAL(heaps, HEAPS - 1);
            CHECK(n == last ? stats.failure[0] == 0 : strstr(stats.failure, where) != NULL);
        }
    }
}

TEST(a_length_that_no_record_has_is_an_error_at_that_byte)
{
    size_t last = make_small_file(false);
    memset(file + last + 8, 0xff, 4);
    CHECK_EQUAL(heaps_of_file(""), HEAPS - 1);
    CHECK_WORDS(stats_of(receiver).failure, "no frame is so long");
    last = make_small_file(true);
    for (unsigned length = 0; length < 11; length++) {
        file[last + 4] =
            (uint8_t)(length < 8 ? length : length + 5); /* none, or no multiple of 4 */
        CHECK_EQUAL(heaps_of_file(""), HEAPS - 1);
        CHECK_WORDS(stats_of(receiver).failure, "no block has such a length");
    }
    memset(file + last + 4, 0xfc, 4);
    CHECK_EQUAL(heaps_of_file(""), HEAPS - 1);
    CHECK_WORDS(stats_of(receiver).failure, "the file ends");
}

TEST(a_file_is_read_in_turns_by_who_asks_for_heaps_and_by_a_thread)
{
    begin_file(false, true, 0xa1b2c3d4, 1);
    for (uint64_t cnt = 1; cnt <= 300; cnt++)
        put_heap(0, false, false, 8888, cnt);
    OWN(spt_thread_pool) pool = new_pool(1);
    CHECK_EQUAL(heaps_of_file(""), 300);
    END(spt_recv_stream, receiver);
    receiver = new_receiver(pool);
    REQUIRE(spt_recv_stream_add_udp_pcap(receiver, path, "", NULL) == SPT_OK);
    CHECK_EQUAL(check_heaps(), 300);
    END(spt_recv_stream, receiver);
}
