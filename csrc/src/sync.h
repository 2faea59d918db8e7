/* SPDX-License-Identifier: BSD-3-Clause */
/* How threads keep out of each other's way, and tell each other: locks that are held until the end
 * of a block, and descriptors of eventfd(2) that are made readable and unreadable. */
#ifndef SPTI_SYNC_H
#define SPTI_SYNC_H

#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

static inline void spti_let_go(pthread_mutex_t *const *lock)
{
    pthread_mutex_unlock(*lock);
}

/* Take a lock, which is let go where the block ends: one in a block. */
#define SPTI_HOLD(lock)                                                                            \
    __attribute__((cleanup(spti_let_go))) pthread_mutex_t *const spti_held_ = (lock);              \
    pthread_mutex_lock(spti_held_)

/* Add to an event's count. Where it is full, it is readable anyway. */
static inline void spti_event_add(int fd, uint64_t n)
{
    ssize_t written = write(fd, &n, sizeof(n));
    (void)written;
}

/* Make it unreadable, if another thread was not faster. */
static inline void spti_event_empty(int fd)
{
    uint64_t count;
    ssize_t got = read(fd, &count, sizeof(count));
    (void)got;
}

#endif
