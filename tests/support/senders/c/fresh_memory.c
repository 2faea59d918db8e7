/* SPDX-License-Identifier: BSD-3-Clause */
/* Fresh memory for every heap, given back when the heap has gone; mended, the same again. */
#include "sending.h"

#include <sys/mman.h>

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    for (size_t i = 1; i <= s.heaps; i++) {
        if (!s.mended) {
            /* As malloc() does for what is large; in small pages where huge ones are preferred. */
            s.wire = (uint8_t *)mmap(NULL, s.size, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            must(s.wire != MAP_FAILED, "mmap");
            madvise(s.wire, s.size, MADV_NOHUGEPAGE);
        }
        fill(&s, i, NULL);
        send_heap(&s);
        if (!s.mended)
            munmap(s.wire, s.size);
    }
    return 0;
}
