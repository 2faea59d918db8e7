/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of 100 bytes, of which half are headers; mended, of 9000. */
#include "sending.h"

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    if (!s.mended)
        cut(&s, 100, 0);
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, NULL);
        send_heap(&s);
    }
    return 0;
}
