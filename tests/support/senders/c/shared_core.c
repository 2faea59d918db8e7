/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads on one core: what makes the samples, and what sums them up and sends; mended, on any.
 */
#include "sending.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

static struct sender turns[2];
static sem_t empty, full;

/* Work for about a millisecond. */
static uint8_t work(size_t seed)
{
    double sum = 0;
    for (size_t k = 0; k < 50000; k++)
        sum += sin((double)(seed + k));
    return (uint8_t)(int8_t)sum;
}

static void *fill_all(void *unused)
{
    for (size_t i = 1; i <= turns[0].heaps; i++) {
        sem_wait(&empty);
        fill(&turns[i % 2], i, NULL);
        turns[i % 2].wire[HEADER] = work(i);
        sem_post(&full);
    }
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    cpu_set_t cores, one;
    turns[0] = turns[1] = sender_of(argc, argv);
    turns[1].wire = (uint8_t *)malloc(turns[1].size);
    sched_getaffinity(0, sizeof(cores), &cores);
    CPU_ZERO(&one);
    for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++)
        if (CPU_ISSET(core, &cores))
            CPU_SET(core, &one);
    if (!turns[0].mended)
        sched_setaffinity(0, sizeof(one), &one);
    sem_init(&empty, 0, 2);
    sem_init(&full, 0, 0);
    must(pthread_create(&thread, NULL, fill_all, NULL) == 0, "pthread_create");
    for (size_t i = 1; i <= turns[0].heaps; i++) {
        sem_wait(&full);
        turns[i % 2].wire[HEADER + 1] = work(i);
        send_heap(&turns[i % 2]);
        sem_post(&empty);
    }
    return 0;
}
