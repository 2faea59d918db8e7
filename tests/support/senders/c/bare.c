/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing wrong: a bare loop whose messages hold as many packets as fit, a call for each heap. */
#include "sending.h"

#include <netinet/udp.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { TOGETHER = 65507 / PACKET_SIZE, MESSAGES = (PACKETS + TOGETHER - 1) / TOGETHER };

int main(int argc, char **argv)
{
    static struct heap heap;
    struct mmsghdr messages[MESSAGES] = {0};
    struct arguments to = parse(argc, argv);
    int fd = connected(to), size = PACKET_SIZE;
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)) != 0)
        fail(strerror(errno));
    for (size_t m = 0; m < MESSAGES; m++) {
        size_t first = m * TOGETHER, n = PACKETS - first < TOGETHER ? PACKETS - first : TOGETHER;
        messages[m].msg_hdr.msg_iov = heap.pieces[first];
        messages[m].msg_hdr.msg_iovlen = 2 * n;
    }
    for (size_t i = 0; i < to.heaps; i++) {
        fill(&heap, i + 1);
        send_all(fd, messages, MESSAGES);
    }
    return 0;
}
