/* SPDX-License-Identifier: BSD-3-Clause */
/* Heaps of one packet, and a call for each; mended, as many in a message as fit. */
#include "sending.h"

enum { SMALL = 8192, WHOLE = HEADER + SMALL, TOGETHER = UDP_LARGEST / WHOLE };

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    size_t n = s.mended ? TOGETHER : 1, small = s.heaps * (HEAP_SIZE / SMALL);
    cut(&s, WHOLE, s.mended);
    fill(&s, 0, NULL);
    for (size_t i = 0; i < small; i += n) {
        for (size_t k = 0; k < n; k++) {
            uint64_t *header = (uint64_t *)(void *)(s.wire + k * WHOLE);
            header[1] = item(1, 1, i + k + 1);
            header[2] = item(1, 2, SMALL);
            header[3] = item(1, 3, 0);
            memset(header + HEADER / 8, (int)(i % 256), SMALL);
        }
        must(send(s.fd, s.wire, n * WHOLE, 0) >= 0, "send");
    }
    return 0;
}
