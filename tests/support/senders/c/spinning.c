/* SPDX-License-Identifier: BSD-3-Clause */
/* A rate, kept by reading the clock until the time of the next heap has come. */
#include "sending.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    struct sender s = sender_of(argc, argv);
    double next = now();
    for (size_t i = 1; i <= s.heaps; i++) {
        fill(&s, i, NULL);
        while (!s.mended && now() < next)
            ;
        next = now() + 0.005;
        send_heap(&s);
    }
    return 0;
}
