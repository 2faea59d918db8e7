// SPDX-License-Identifier: BSD-3-Clause
// Two threads, each with a socket of its own, but one fair lock for both: each waits for the other.
#include "../c/sending.h"

#include <atomic>
#include <thread>

struct fair_lock {
    std::atomic<int> next{0}, served{0};
    void lock()
    {
        int mine = next++;
        for (int now = served; now != mine; now = served)
            served.wait(now);
    }
    void unlock()
    {
        served++;
        served.notify_all();
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
