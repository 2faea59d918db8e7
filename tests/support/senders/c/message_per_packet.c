/* SPDX-License-Identifier: BSD-3-Clause */
/* No segmentation offload: a message for each packet, though all of a heap in one call. */
#include "sending.h"

int main(int argc, char **argv)
{
    static struct heap heap;
    struct mmsghdr messages[PACKETS] = {0};
    struct arguments to = parse(argc, argv);
    int fd = connected(to);
    for (size_t p = 0; p < PACKETS; p++)
        messages[p].msg_hdr = (struct msghdr){.msg_iov = heap.pieces[p], .msg_iovlen = 2};
    for (size_t i = 0; i < to.heaps; i++) {
        fill(&heap, i + 1);
        send_all(fd, messages, PACKETS);
    }
    return 0;
}
