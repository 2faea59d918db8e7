/* SPDX-License-Identifier: BSD-3-Clause */
/* Slow data: every sample is a sine, which takes far longer to compute than to send. */
#include "sending.h"

#include <math.h>

int main(int argc, char **argv)
{
    static uint8_t samples[HEAP_SIZE];
    struct sender s = sender_of(argc, argv);
    for (size_t i = 1; i <= s.heaps; i++) {
        for (size_t k = 0; k < HEAP_SIZE && !s.mended; k++)
            samples[k] = (uint8_t)(int8_t)(100 * sin(0.01 * (double)(i * HEAP_SIZE + k)));
        fill(&s, i, samples);
        send_heap(&s);
    }
    return 0;
}
