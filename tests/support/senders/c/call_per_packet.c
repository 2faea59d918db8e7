/* SPDX-License-Identifier: BSD-3-Clause */
/* A system call for each packet. */
#include "sending.h"

int main(int argc, char **argv)
{
    static struct heap heap;
    struct arguments to = parse(argc, argv);
    int fd = connected(to);
    for (size_t i = 0; i < to.heaps; i++) {
        fill(&heap, i + 1);
        for (size_t p = 0; p < PACKETS; p++) {
            struct msghdr message = {.msg_iov = heap.pieces[p], .msg_iovlen = 2};
            if (sendmsg(fd, &message, 0) < 0)
                fail(strerror(errno));
        }
    }
    return 0;
}
