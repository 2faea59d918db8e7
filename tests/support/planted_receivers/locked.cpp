// SPDX-License-Identifier: BSD-3-Clause
// A receiver that takes a lock for each packet, which another thread holds while it computes:
// PROGRAM HOST PORT [mended].
#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <sys/socket.h>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex lock;
static std::vector<std::uint8_t> last(1 << 16);
static volatile unsigned sum;

static void summarize(bool mended)
{
    for (;;) {
        std::vector<std::uint8_t> copy;
        {
            std::lock_guard<std::mutex> held(lock);
            auto until = std::chrono::steady_clock::now() + 2ms;
            while (!mended && std::chrono::steady_clock::now() < until)
                sum = std::accumulate(last.begin(), last.end(), 0U);
            copy = last;
        }
        if (mended)
            sum = std::accumulate(copy.begin(), copy.end(), 0U);
        std::this_thread::sleep_for(mended ? 20ms : 100us);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 1;
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(argv[2])));
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)) != 0)
        return 1;
    std::thread other(summarize, argc > 3);
    std::vector<std::uint8_t> room(1 << 16);
    while (recv(fd, room.data(), room.size(), 0) >= 0) {
        std::lock_guard<std::mutex> held(lock);
        std::swap(room, last);
    }
    std::_Exit(1);
}
