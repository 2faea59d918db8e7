/* SPDX-License-Identifier: BSD-3-Clause */
/* No segmentation offload: a message for each packet, though all of a heap in one call. */
#include "sending.h"

enum { MOST = HEAP_SIZE / (PACKET_SIZE - HEADER) + 1 };

int main(int argc, char **argv)
{
    static struct iovec pieces[MOST];
    static struct mmsghdr messages[MOST];
    struct sender s = sender_of(argc, argv);
    unsigned n = 0;
    cut(&s, PACKET_SIZE, s.mended);
    for (size_t at = 0; at < s.size; at += s.message, n++) {
        pieces[n] = (struct iovec){s.wire + at, least(s.message, s.size - at)};
        messages[n].msg_hdr = (struct msghdr){.msg_iov = &pieces[n], .msg_iovlen = 1};
    }
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, NULL);
        for (unsigned done = 0; done < n;) {
            int sent = sendmmsg(s.fd, messages + done, n - done, 0);
            must(sent > 0, "sendmmsg");
            done += (unsigned)sent;
        }
    }
    return 0;
}
