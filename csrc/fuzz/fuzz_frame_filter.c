/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Owns a libFuzzer target: whatever a filter is, it is read in bounded memory or refused; and its
 * negation takes exactly the frames that it does not take, unless too little is known of them.
 */
#include "../src/frame_filter.h"
#include "choices.h"

#include <string.h>

static const uint8_t from[2][16] = {{10, 0, 0, 1}, {0xfd, [15] = 1}};
static const uint8_t to[2][16] = {{239, 1, 2, 3}, {0xff, 2, [15] = 9}};

static spti_frame make_frame(size_t size, bool has_ports)
{
    int family = size == 16;
    return (spti_frame){{from[family], to[family]}, size, has_ports, {1234, 8888}, NULL, 0};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[2 * SPTI_FILTER_LENGTH], negated[sizeof(text) + 8];
    static const size_t sizes[] = {0, 4, 16};
    spti_frame_filter filter, other;
    spt_error err = {0};
    size = size < sizeof(text) ? size : sizeof(text) - 1;
    memcpy(text, data, size);
    text[size] = '\0';
    if (spti_frame_filter_parse(&filter, text, &err) != SPT_OK) {
        REQUIRE(err.status == SPT_ERR_ARGUMENT && err.message[0] != '\0');
        return 0;
    }
    REQUIRE(strlen(text) <= SPTI_FILTER_LENGTH && filter.n <= SPTI_FILTER_STEPS);
    (void)snprintf(negated, sizeof(negated), "not (%s)", text);
    bool has_other = spti_frame_filter_parse(&other, negated, NULL) == SPT_OK;
    for (int i = 0; i < 6; i++) {
        spti_frame frame = make_frame(sizes[i / 2], i % 2 != 0);
        bool takes = spti_frame_filter_takes(&filter, &frame);
        if (has_other && frame.has_ports && frame.address_size > 0)
            REQUIRE(takes != spti_frame_filter_takes(&other, &frame));
        else if (has_other)
            REQUIRE(takes || spti_frame_filter_takes(&other, &frame));
    }
    return 0;
}
