/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever is in a capture, it is read to an end, every frame is counted
 * once, and what is taken for a datagram lies within the file.
 */
#include "choices.h"
#include "spead_tutorial/spt_recv.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spt_recv_config config = SPT_RECV_CONFIG_DEFAULT;
    config.heaps.max_heap_size = 1 << 16;
    spt_recv_stream *stream = spt_recv_stream_create(NULL, &config, NULL);
    char path[40];
    int fd = memfd_create("capture", MFD_CLOEXEC);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    REQUIRE(stream != NULL && fd >= 0 && write(fd, data, size) == (ssize_t)size);
    spt_recv_stats stats = {0};
    if (spt_recv_stream_add_udp_pcap(stream, path, "port 8888", NULL) == SPT_OK) {
        for (spt_received_heap *heap; spt_recv_stream_get(stream, -1, &heap) == SPT_OK;)
            spt_recv_stream_return(stream, heap);
        spt_recv_stream_stats(stream, &stats);
    }
    spt_capture_stats c = stats.captures;
    REQUIRE(c.others + c.fragments + c.cut <= c.frames && c.frames <= size / 16);
    REQUIRE((stats.failure[0] != '\0') == (stats.sys_errno != 0));
    spt_recv_stream_destroy(stream);
    close(fd);
    return 0;
}
