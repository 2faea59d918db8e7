// SPDX-License-Identifier: BSD-3-Clause
// Two threads, each with a socket of its own, but one fair lock for both: each waits for the other.
#include "../c/sending.h"

#include <condition_variable>
#include <mutex>
#include <thread>

struct fair_lock {
    std::mutex mutex;
    std::condition_variable changed;
    size_t next = 0, served = 0;
    void lock()
    {
        std::unique_lock<std::mutex> hold(mutex);
        size_t mine = next++;
        changed.wait(hold, [&] { return served == mine; });
    }
    void unlock()
    {
        std::lock_guard<std::mutex> hold(mutex);
        served++;
        changed.notify_all();
    }
};

int main(int argc, char **argv)
{
    fair_lock shared;
    auto send_half = [&](size_t first) {
        sender s = sender_of(argc, argv);
        fair_lock own, &lock = s.mended ? own : shared;
        for (size_t i = first; i <= s.heaps; i += 2) {
            fill(&s, i, nullptr);
            for (size_t at = 0; at < s.size; at += s.message) {
                lock.lock();
                must(send(s.fd, s.wire + at, least(s.message, s.size - at), 0) >= 0, "send");
                lock.unlock();
            }
        }
    };
    std::thread other(send_half, 2);
    send_half(1);
    other.join();
}
