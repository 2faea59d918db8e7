// SPDX-License-Identifier: BSD-3-Clause
// A thread makes the data, more slowly than the other could send it, and hands it over in a queue.
#include "../c/sending.h"

#include <cmath>
#include <condition_variable>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

int main(int argc, char **argv)
{
    sender s = sender_of(argc, argv);
    std::mutex mutex;
    std::condition_variable changed;
    std::queue<std::vector<uint8_t>> made, used;
    for (int i = 0; i < 4; i++)
        used.emplace(HEAP_SIZE);
    auto take = [&](auto &queue) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return !queue.empty(); });
        auto samples = std::move(queue.front());
        queue.pop();
        return samples;
    };
    auto put = [&](auto &queue, std::vector<uint8_t> samples) {
        std::lock_guard<std::mutex> lock(mutex);
        queue.push(std::move(samples));
        changed.notify_all();
    };
    std::thread producer([&] {
        for (size_t i = 0; i < s.heaps; i++) {
            auto samples = take(used);
            for (size_t k = 0; k < HEAP_SIZE && !s.mended; k++)
                samples[k] = static_cast<uint8_t>(128 + 100 * std::sin(0.01 * double(i + k)));
            put(made, std::move(samples));
        }
    });
    for (size_t i = 1; i <= s.heaps; i++) {
        auto samples = take(made);
        fill(&s, i, samples.data());
        send_heap(&s);
        put(used, std::move(samples));
    }
    producer.join();
}
