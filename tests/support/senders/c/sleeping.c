/* SPDX-License-Identifier: BSD-3-Clause */
/* usleep() after each message, so as not to be too fast for a receiver. */
#include "sending.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, NULL);
        for (size_t at = 0; at < s.size; at += s.message) {
            must(send(s.fd, s.wire + at, least(s.message, s.size - at), 0) >= 0, "send");
            if (!s.mended)
                usleep(200);
        }
    }
    return 0;
}
