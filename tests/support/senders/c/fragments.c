/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets larger than the MTU, which the kernel cuts into IP fragments; mended, it sends those that
 * fit with segmentation offload. */
#include "sending.h"

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    if (!s.mended)
        cut(&s, 32000, 0);
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, NULL);
        send_heap(&s);
    }
    return 0;
}
