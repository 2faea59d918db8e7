/* SPDX-License-Identifier: BSD-3-Clause */
/* A system call for each packet; mended, for each message of as many as fit. */
#include "sending.h"

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    cut(&s, PACKET_SIZE, s.mended);
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, NULL);
        send_heap(&s);
    }
    return 0;
}
