// SPDX-License-Identifier: BSD-3-Clause
// The address is looked up for each send; mended, once.
#include "../c/sending.h"

#include <netdb.h>

int main(int argc, char **argv)
{
    sender s = sender_of(argc, argv);
    addrinfo *to = nullptr;
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, nullptr);
        for (size_t at = 0; at < s.size; at += s.message) {
            if (!s.mended || to == nullptr)
                must(getaddrinfo(argv[1], argv[2], nullptr, &to) == 0, "getaddrinfo");
            size_t n = least(s.message, s.size - at);
            must(sendto(s.fd, s.wire + at, n, 0, to->ai_addr, to->ai_addrlen) >= 0, "sendto");
            if (!s.mended)
                freeaddrinfo(to);
        }
    }
}
