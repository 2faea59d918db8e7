/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what is known of sequences of heap counts. Knows nothing of what became of heaps. */
#include "sequence.h"

#include <string.h>

enum {
    WINDOW = 64,       /* places behind the highest count that are filled by those that come late */
    FEWEST = 16,       /* counts that make a line of which something can be said */
    RAREST = 16,       /* one in so many may be missing */
    FEWEST_GAPS = 4,   /* at the same distance that are no chance */
    MOST_REFINED = 64, /* what a step may be divided by */
    YOUNG = 8,         /* counts of a line that may be of others, too */
};

/* ---- A line ---------------------------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How far a count is ahead of another one, the shorter way round. */
static int64_t ahead(uint64_t cnt, uint64_t of, unsigned address_bits)
{
    unsigned unused = 64 - address_bits;
    return (int64_t)((cnt - of) << unused) >> unused;
}

static uint64_t magnitude(int64_t distance)
{
    return distance < 0 ? -(uint64_t)distance : (uint64_t)distance;
}

static uint64_t absent(const spti_line *line)
{
    uint64_t places = line->step == 0 ? 0 : line->span / line->step + 1;
    return places > line->seen ? places - line->seen : 0; /* who goes round for ever has no span */
}

/* Whether a line has hardly any gaps, and so many counts that this is no chance. */
static bool is_regular(const spti_line *line)
{
    return line->seen >= FEWEST && absent(line) <= line->seen / RAREST;
}

/* A place of a line stays empty. */
static void note_gap(spti_line *line, uint64_t place)
{
    uint64_t distance = place - line->last_gap;
    if (line->gaps == 1)
        line->period = distance;
    line->uneven = line->uneven || (line->gaps > 1 && distance != line->period);
    line->last_gap = place;
    line->gaps++;
}

/* Move the window ahead by some places: those that leave it empty stay so. */
static void move_on(spti_line *line, uint64_t n)
{
    uint64_t first = line->span / line->step; /* the place of bit 0 */
    if (n > WINDOW)
        line->uneven = true; /* a long gap is not at every same distance */
    for (uint64_t i = WINDOW; i-- > 0 && n > 0;)
        if (i + n >= WINDOW && i <= first && (line->recent >> i & 1) == 0)
            note_gap(line, first - i);
    line->recent = (n < WINDOW ? line->recent << n : 0) | 1;
}

static void seed(spti_line *line, spti_key key, unsigned address_bits)
{
    *line = (spti_line){
        .source = key.source,
        .last = key.cnt,
        .seen = 1,
        .recent = 1,
        .address_bits = (uint8_t)address_bits,
    };
}

/* Take a count that was not there, whose distance is a multiple of the step. */
static void take(spti_line *line, int64_t distance)
{
    uint64_t places = magnitude(distance) / line->step;
    if (distance > 0) {
        if (places == 1 && line->recent >> (WINDOW - 1) == 1)
            line->recent = line->recent << 1 | 1;
        else
            move_on(line, places);
        line->last += (uint64_t)distance;
        line->span += (uint64_t)distance;
    } else {
        line->recent |= UINT64_C(1) << places;
        uint64_t behind = magnitude(distance);
        line->span = behind > line->span ? behind : line->span;
    }
    if (++line->seen == YOUNG)
        line->early = absent(line);
}

/* ---- Which line a count belongs to ----------------------------------------------------------- */

/* Whether a count is near a line of some step: not far behind, and not further ahead than is
 * likely. */
static bool is_near(const spti_line *line, int64_t distance, uint64_t step)
{
    uint64_t places = magnitude(distance) / step;
    uint64_t most = line->seen / RAREST;
    return distance < 0 ? places < WINDOW : places <= (most > WINDOW ? most : WINDOW);
}

/* Give a line a smaller step. */
static void refine(spti_line *line, uint64_t step)
{
    uint64_t by = line->step / step, recent = 0;
    for (uint64_t i = 0; i * by < WINDOW; i++)
        recent |= (line->recent >> i & 1) << i * by;
    line->recent = recent;
    line->step = step;
    line->gaps = 0;
    line->early = absent(line);
    line->uneven = line->early > 0; /* where these are is not known */
}

/* The step with which a line takes a count: its own, where the count goes on in it and was not
 * there before; 0 for none. */
static uint64_t same_step(const spti_line *line, int64_t distance)
{
    if (!is_near(line, distance, line->step) || magnitude(distance) % line->step != 0)
        return 0;
    uint64_t places = magnitude(distance) / line->step;
    return distance <= 0 && (line->recent >> places & 1) != 0 ? 0 : line->step;
}

/* A smaller one, which the count shows, unless the line is regular as it is. */
static uint64_t smaller_step(const spti_line *line, int64_t distance)
{
    uint64_t step = common_divisor(line->step, magnitude(distance));
    bool fits = step < line->step && line->step / step <= MOST_REFINED && !is_regular(line);
    return fits && is_near(line, distance, step) ? step : 0;
}

/* Take a second count: the first one was waiting for it. */
static void pair(spti_line *line, int64_t distance)
{
    line->step = magnitude(distance);
    take(line, distance);
}

/* The line of a sender with a single count, or with two that are further apart, whose end is
 * nearest to a count; SPTI_LINES where there is none. */
static size_t nearest(const spti_line *lines, spti_key key, unsigned address_bits)
{
    size_t found = SPTI_LINES;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < SPTI_LINES; i++) {
        const spti_line *line = &lines[i];
        if (line->seen == 0 || line->seen > 2 || line->source != key.source)
            continue;
        uint64_t distance = magnitude(ahead(key.cnt, line->last, address_bits));
        if (line->seen == 2) { /* its other end may be nearer */
            uint64_t other = magnitude(ahead(key.cnt, line->last - line->step, address_bits));
            distance = other < distance ? other : distance;
        }
        if (distance < least && distance > 0 && (line->seen == 1 || distance < line->step)) {
            found = i;
            least = distance;
        }
    }
    return found;
}

/* Whether a gap between lines is one in a line that was left, and taken up again. */
static uint64_t between(const spti_line *lines, const spti_line *line)
{
    uint64_t least = 0;
    for (const spti_line *it = lines; it < lines + SPTI_LINES; it++) {
        if (it == line || it->seen <= 2 || it->source != line->source || it->step != line->step)
            continue;
        int64_t gap = ahead(line->last - line->span, it->last, line->address_bits);
        uint64_t most = (line->seen + it->seen) * line->step; /* further away it is another one */
        if (gap > 0 && magnitude(gap) < most && magnitude(gap) % line->step == 0 &&
            (least == 0 || magnitude(gap) < least))
            least = magnitude(gap);
    }
    return least == 0 ? 0 : least / line->step - 1;
}

/* Whether a line is regular, and those that go on with it elsewhere: who pauses between them may
 * also do so within. */
static bool are_regular(const spti_line *lines, const spti_line *line)
{
    uint64_t seen = 0, gone = 0;
    for (const spti_line *it = lines; it < lines + SPTI_LINES; it++) {
        if (it->seen <= 2 || it->source != line->source || it->step != line->step)
            continue;
        seen += it->seen;
        gone += absent(it) + between(lines, it);
    }
    return is_regular(line) && gone <= seen / RAREST;
}

/* How many of a line's first counts may have been taken for those of a line of much larger steps,
 * as where there are several channels, whose first counts are as far apart as these are. */
static uint64_t taken_elsewhere(const spti_line *lines, const spti_line *line)
{
    uint64_t most = line->early < absent(line) ? line->early : absent(line);
    for (const spti_line *it = lines; it < lines + SPTI_LINES; it++)
        if (it->seen > 2 && it->source == line->source && it->step / WINDOW > line->step)
            return most;
    return 0;
}

/* What is missing of a line, and what may be. */
static void count(const spti_line *lines, const spti_line *line, uint64_t *missing,
                  uint64_t *skipped)
{
    if (line->seen <= 2)
        return;
    spti_line whole = *line;
    move_on(&whole, WINDOW);
    bool shared = whole.gaps >= FEWEST_GAPS && !whole.uneven;
    uint64_t unclear =
        are_regular(lines, line) && !shared ? taken_elsewhere(lines, line) : absent(line);
    *missing += absent(line) - unclear;
    *skipped += unclear + between(lines, line);
}

static void to_front(spti_line *lines, size_t i)
{
    if (i == 0)
        return;
    spti_line line = lines[i];
    memmove(lines + 1, lines, i * sizeof(*lines));
    lines[0] = line;
}

/* Begin a line. Of the half that has not been used for longer, the shortest one goes. */
static void begin_line(spti_sequence *s, spti_line *lines, spti_key key, unsigned address_bits)
{
    size_t goes = SPTI_LINES - 1;
    for (size_t i = goes; i >= SPTI_LINES / 2; i--)
        if (lines[i].seen < lines[goes].seen)
            goes = i;
    count(lines, &lines[goes], &s->missing, &s->skipped);
    to_front(lines, goes);
    seed(lines, key, address_bits);
}

/* Have a count make a pair with the nearest that has none, or with one of a pair, whose other count
 * then waits again. */
static bool make_pair(spti_sequence *s, spti_line *lines, spti_key key, unsigned address_bits)
{
    size_t i = nearest(lines, key, address_bits);
    if (i == SPTI_LINES)
        return false;
    spti_key high = {lines[i].last, key.source};
    spti_key low = {lines[i].last - lines[i].step, key.source};
    bool had_pair = lines[i].seen == 2;
    bool to_low = had_pair && magnitude(ahead(key.cnt, low.cnt, address_bits)) <
                                  magnitude(ahead(key.cnt, high.cnt, address_bits));
    spti_key near = to_low ? low : high;
    seed(&lines[i], near, address_bits);
    pair(&lines[i], ahead(key.cnt, near.cnt, address_bits));
    to_front(lines, i);
    if (had_pair) {
        begin_line(s, lines, to_low ? high : low, address_bits);
        to_front(lines, 1);
    }
    return true;
}

/* Whether a count is far nearer to the end of another line than a step. Then it is by chance that
 * it goes on in a line that is young: as first counts of senders' channels, which are far apart. */
static bool belongs_elsewhere(const spti_line *lines, const spti_line *line, spti_key key)
{
    for (const spti_line *it = lines; it < lines + SPTI_LINES && !is_regular(line); it++) {
        uint64_t distance = magnitude(ahead(key.cnt, it->last, line->address_bits));
        if (it != line && it->seen > 0 && it->source == key.source && distance > 0 &&
            distance < line->step / WINDOW)
            return true;
    }
    return false;
}

/* Have a line take a count; of those that can, the one with the smallest step. */
static bool find_line(spti_line *lines, uint64_t step_of(const spti_line *, int64_t), spti_key key,
                      unsigned address_bits, bool only_ahead)
{
    size_t found = SPTI_LINES;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < SPTI_LINES && lines[i].seen > 0; i++) {
        const spti_line *line = &lines[i];
        int64_t distance = ahead(key.cnt, line->last, address_bits);
        if (line->source != key.source || line->address_bits != address_bits || line->step == 0 ||
            (only_ahead && distance <= 0))
            continue;
        uint64_t step = step_of(line, distance);
        if (step > 0 && step < least && !belongs_elsewhere(lines, line, key)) {
            least = step;
            found = i;
        }
    }
    if (found == SPTI_LINES)
        return false;
    if (least < lines[found].step)
        refine(&lines[found], least);
    take(&lines[found], ahead(key.cnt, lines[found].last, address_bits));
    to_front(lines, found);
    return true;
}

void spti_sequence_note(spti_sequence *s, spti_key key, unsigned address_bits, bool ends)
{
    spti_line *lines = s->lines[(key.source ^ key.source >> 32) % SPTI_BUCKETS];
    bool all_ones = key.cnt == (UINT64_C(1) << address_bits) - 1;
    if (ends && all_ones) /* some senders end so: it is next to none of theirs */
        return;
    if (find_line(lines, same_step, key, address_bits, ends) || ends)
        return;
    if (!find_line(lines, smaller_step, key, address_bits, false) &&
        !make_pair(s, lines, key, address_bits))
        begin_line(s, lines, key, address_bits);
}

void spti_sequence_missing(const spti_sequence *s, uint64_t *missing, uint64_t *skipped)
{
    *missing = s->missing;
    *skipped = s->skipped;
    for (size_t i = 0; i < SPTI_BUCKETS; i++)
        for (size_t j = 0; j < SPTI_LINES; j++)
            count(s->lines[i], &s->lines[i][j], missing, skipped);
}
