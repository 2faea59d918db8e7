// SPDX-License-Identifier: BSD-3-Clause
// A wait for a condition that nobody signals: each heap waits until its time is up.
#include "../c/sending.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

int main(int argc, char **argv)
{
    sender s = sender_of(argc, argv);
    std::mutex mutex;
    std::condition_variable sent;
    std::unique_lock<std::mutex> lock(mutex);
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, nullptr);
        if (!s.mended)
            sent.wait_for(lock, std::chrono::milliseconds(5));
        send_heap(&s);
    }
}
