// SPDX-License-Identifier: BSD-3-Clause
// Receives heaps with spead2's C++ library into a pool of memory, and counts them: to be measured
// beside csrc/bench/receive.c, whose options it takes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <spead2/common_logging.h>
#include <spead2/common_memory_pool.h>
#include <spead2/common_thread_pool.h>
#include <spead2/recv_heap.h>
#include <spead2/recv_ring_stream.h>
#include <spead2/recv_udp.h>

namespace
{

constexpr std::size_t live = 4;
constexpr std::int64_t samples_id = 0x3300;

struct options {
    std::size_t warm_up = 0, heap_size = 1 << 20, packet_size = 9000, ring = 4;
    bool check = false;
    int socket = -1;
};

struct usage {
    std::int64_t elapsed_ns, cpu_user_ns, cpu_system_ns, program_cpu_ns, page_faults,
        context_switches;
};

std::int64_t time_ns(clockid_t clock)
{
    timespec now;
    clock_gettime(clock, &now);
    return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

std::int64_t timeval_ns(timeval value)
{
    return std::int64_t(value.tv_sec) * 1000000000 + std::int64_t(value.tv_usec) * 1000;
}

usage usage_now()
{
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    return {time_ns(CLOCK_MONOTONIC),        timeval_ns(used.ru_utime),
            timeval_ns(used.ru_stime),       time_ns(CLOCK_THREAD_CPUTIME_ID),
            used.ru_minflt + used.ru_majflt, used.ru_nvcsw + used.ru_nivcsw};
}

// The most memory that this process has had, in KiB.
long peak_memory()
{
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (word == "VmHWM:") {
            long kib = 0;
            status >> kib;
            return kib;
        }
    return 0;
}

const char usage_text[] = "usage: receive [-w HEAPS] [-H BYTES] [-p BYTES] [-r HEAPS] [--check] "
                          "[--json] --socket FD\n\n"
                          "Receives heaps with spead2's C++ library, and counts them. What the\n"
                          "options are, the receive of spead_tutorial says.\n\n"
                          "example: receive -H 65536 --socket 3\n";

options parse(int argc, char **argv)
{
    options o;
    for (int i = 1; i < argc; i++) {
        std::string word = argv[i];
        bool more = i + 1 < argc;
        if (word == "--help" || word == "-h") {
            std::fputs(usage_text, stdout);
            std::exit(0);
        } else if (word == "--check") {
            o.check = true;
        } else if (word == "-w" && more) {
            o.warm_up = std::stoul(argv[++i]);
        } else if (word == "-H" && more) {
            o.heap_size = std::stoul(argv[++i]);
        } else if (word == "-p" && more) {
            o.packet_size = std::stoul(argv[++i]);
        } else if (word == "-r" && more) {
            o.ring = std::stoul(argv[++i]);
        } else if (word == "--socket" && more) {
            o.socket = std::stoi(argv[++i]);
        } else if (word != "--json") {
            std::fprintf(stderr, "%sreceive: error: there is no option %s\n", usage_text,
                         word.c_str());
            std::exit(2);
        }
    }
    if (o.socket < 0) {
        std::fprintf(stderr, "%sreceive: error: --socket is needed\n", usage_text);
        std::exit(2);
    }
    return o;
}

bool right(const spead2::recv::heap &heap, const options &o)
{
    for (const auto &item : heap.get_items())
        if (item.id == samples_id) {
            for (std::size_t i = 0; i < o.heap_size; i++)
                if (item.ptr[i] != std::uint8_t(heap.get_cnt() + i + (i >> 8)))
                    return false;
            return item.length == o.heap_size;
        }
    return false;
}

} // namespace

int main(int argc, char **argv)
{
    options o = parse(argc, argv);
    spead2::set_log_function([](spead2::log_level, const std::string &) {});
    spead2::thread_pool pool;
    std::size_t n = 2 * (live + o.ring);
    auto memory = std::make_shared<spead2::memory_pool>(o.heap_size, o.heap_size, n, n);
    spead2::recv::ring_stream<> stream(
        pool, spead2::recv::stream_config().set_max_heaps(live).set_memory_allocator(memory),
        spead2::recv::ring_stream_config().set_heaps(o.ring));
    boost::asio::ip::udp::socket socket(pool.get_io_context(), boost::asio::ip::udp::v4(),
                                        o.socket);
    std::size_t max_size = o.packet_size > 9200 ? o.packet_size : 9200;
    stream.emplace_reader<spead2::recv::udp_reader>(std::move(socket), max_size);
    std::fputs("receive: listening on its socket\n", stderr);
    usage start = usage_now();
    std::size_t heaps = 0, wrong = 0;
    for (spead2::recv::heap &&heap : stream) {
        if (++heaps == o.warm_up)
            start = usage_now();
        wrong += o.check && !right(heap, o);
    }
    usage end = usage_now();
    stream.stop(); // counts are those of whole batches
    auto stats = stream.get_stats();
    std::size_t counted = heaps > o.warm_up ? heaps - o.warm_up : 0;
    if (wrong > 0) {
        std::fprintf(stderr, "receive: %zu heaps have other samples than were sent\n", wrong);
        return 1;
    }
    std::printf(
        "{\"program\": \"receive\", \"language\": \"c\", \"heaps\": %zu, "
        "\"heap_size\": %zu, \"packet_size\": %zu, \"payload_bytes\": %zu, "
        "\"packets\": %llu, \"incomplete_heaps\": %llu, \"peak_memory_bytes\": %ld, ",
        counted, o.heap_size, o.packet_size, counted * o.heap_size,
        (unsigned long long)stats.packets,
        (unsigned long long)(stats.incomplete_heaps_evicted + stats.incomplete_heaps_flushed),
        1024 * peak_memory());
    std::printf("\"elapsed_ns\": %lld, \"cpu_user_ns\": %lld, \"cpu_system_ns\": %lld, "
                "\"program_cpu_ns\": %lld, \"page_faults\": %lld, \"context_switches\": %lld}\n",
                (long long)(end.elapsed_ns - start.elapsed_ns),
                (long long)(end.cpu_user_ns - start.cpu_user_ns),
                (long long)(end.cpu_system_ns - start.cpu_system_ns),
                (long long)(end.program_cpu_ns - start.program_cpu_ns),
                (long long)(end.page_faults - start.page_faults),
                (long long)(end.context_switches - start.context_switches));
    return 0;
}
