// SPDX-License-Identifier: BSD-3-Clause
// Chapter 18: a socket for each core; the kernel spreads a sender's streams over them.
#include "receiving.hpp"
#include <mutex>
#include <thread>

// Under way at a socket: one for each of the sender's streams there.
constexpr std::size_t MAX_HEAPS = 8;
constexpr int PATIENCE_MS = 100;

// What descriptors have said: they come to one socket, and are for all.
struct described {
    std::mutex lock;
    spt::item_group item_group;
};

// A socket, and what its thread does: it reads, and computes the power.
struct receiver {
    receiver(const receiver_options &options, described &known, const spt::recv_config &config)
        : options(options), known(known), stream(spt::no_thread, config)
    {
        spt::receive_config udp;
        udp.reuse_port = true;
        stream.add_udp(options.endpoint, udp);
    }

    // Under the lock. A socket's first heap may be earlier than the descriptors at another.
    void update(const spt::received_heap &heap, heaps &heaps, std::unique_lock<std::mutex> &lock)
    {
        known.item_group.update(heap);
        int ms = heaps.n == 1 ? 0 : PATIENCE_MS;
        for (; ms < PATIENCE_MS && spt_item_group_size(known.item_group.get()) == 0; ms++) {
            lock.unlock();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            lock.lock();
            known.item_group.update(heap);
        }
        say_described(&options, known.item_group.get());
    }

    // Tell the power of a heap; false if it is not understood.
    bool tell_power(const spt::received_heap &heap, heaps &heaps)
    {
        std::unique_lock lock(known.lock);
        update(heap, heaps, lock);
        const spt::group_item *timestamp = numbers(known.item_group.get(), "timestamp");
        const spt::group_item *adc_samples = numbers(known.item_group.get(), "adc_samples");
        if (timestamp == nullptr || !is_int8(adc_samples))
            return false;
        const std::int64_t index = number_at(timestamp, 0);
        auto samples = spt::values<std::int8_t>(*adc_samples);
        std::vector<std::int8_t> few;
        if (adc_samples->is_immediate) { // the group has these, not the heap
            few.assign(samples.begin(), samples.end());
            samples = few;
        }
        lock.unlock();
        const double power = mean_square_int8(samples.data(), samples.size());
        say(&options, "Timestamp: %-10" PRId64 " Power: %.2f\n", index, power);
        return true;
    }

    void receive(heaps &heaps, int core)
    {
        if (core >= 0)
            spt::thread_pool::set_affinity(core);
        while (const spt::received_heap heap{stream.get(), next_heap(&heaps)}) {
            if (tell_power(heap, heaps))
                received++;
            else
                heaps.not_understood++;
        }
    }

    const receiver_options &options;
    described &known;
    spt::recv_stream stream;
    std::size_t received = 0;
};

int main(int argc, char **argv)
{
    const auto options = parse_receiver_options(
        argc, argv,
        "Chapter 18: a socket for each core; the kernel spreads a sender's streams over them.",
        {.sockets = n_usable_cores()});
    const std::size_t n = options.sockets;
    described known;
    spt::recv_config config;
    config.heaps.max_heaps = MAX_HEAPS;
    config.contiguous_only = true;
    std::vector<receiver> receivers;
    receivers.reserve(n);
    for (std::size_t k = 0; k < n; k++) // all of them, before anything is sent
        receivers.emplace_back(options, known, config);
    together together{};
    std::vector<heaps> each;
    each.reserve(n);
    for (const receiver &one : receivers)
        each.push_back(heaps_of_one(one.stream.get(), &options, &together));
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < n; k++)
        threads.emplace_back(
            [&, k] { receivers[k].receive(each[k], n <= n_usable_cores() ? usable_core(k) : -1); });
    threads.clear(); // and waits for them
    std::size_t received = 0;
    for (const receiver &one : receivers)
        received += one.received;
    const heaps all = heaps_of_all(each.data(), n);
    return report_heaps(&all, "Received %zu heaps\n", received);
}
