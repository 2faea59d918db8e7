/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns filters: how they are read, and what they take. Looks up no names. */
#include "frame_filter.h"

#include "status.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define SIGNS "()!&|"

/* What the value of a condition is. */
typedef enum subject { NOTHING, HOST, NET, PORT, PORTRANGE } subject;

/* What a condition has before its value. */
typedef struct head {
    spti_filter_kind protocol; /* SPTI_FILTER_NOT: none is said */
    bool of[2], both;
    subject subject;
} head;

static const head no_head = {.protocol = SPTI_FILTER_NOT};

typedef struct reader {
    spti_frame_filter *filter;
    const char *begin, *next; /* of the word, and what is behind it */
    char word[64];            /* none that means something is so long */
    head head;                /* of the condition before */
    int depth;                /* of parentheses */
    bool only_values;         /* in these */
    bool is_full;
} reader;

/* ---- Words ----------------------------------------------------------------------------------- */

static void read_word(reader *r)
{
    static const char *const signs[][2] = {{"!", "not"}, {"&&", "and"}, {"||", "or"}};
    r->begin = r->next + strspn(r->next, BLANKS);
    size_t n = strcspn(r->begin, BLANKS SIGNS);
    if (n == 0 && r->begin[0] != '\0')
        n = r->begin[0] == r->begin[1] && strchr("&|", r->begin[0]) != NULL ? 2 : 1;
    r->next = r->begin + n;
    (void)snprintf(r->word, sizeof(r->word), "%.*s", (int)n, r->begin);
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (strcmp(r->word, signs[i][0]) == 0)
            strcpy(r->word, signs[i][1]);
}

static bool is(const reader *r, const char *word)
{
    return strcmp(r->word, word) == 0;
}

static bool skip(reader *r, const char *word)
{
    bool there = is(r, word);
    if (there)
        read_word(r);
    return there;
}

static bool add(reader *r, spti_filter_step step)
{
    r->is_full = r->filter->n == SPTI_FILTER_STEPS;
    if (!r->is_full)
        r->filter->steps[r->filter->n++] = step;
    return !r->is_full;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* A decimal number: what is behind it, or NULL. With a zero before it, it might be an octal one. */
static const char *read_number(const char *text, unsigned long most, unsigned long *number)
{
    bool good = text[0] == '0' ? strspn(text, "0123456789") == 1 : text[0] > '0' && text[0] <= '9';
    char *end;
    *number = strtoul(text, &end, 10);
    return good && *number <= most ? end : NULL;
}

static bool read_ports(reader *r, spti_filter_step *step)
{
    unsigned long first, last;
    const char *end = read_number(r->word, UINT16_MAX, &first);
    last = first;
    if (end != NULL && *end == '-' && r->head.subject == PORTRANGE)
        end = read_number(end + 1, UINT16_MAX, &last);
    if (end == NULL || *end != '\0')
        return false;
    step->kind = SPTI_FILTER_PORT;
    step->ports[0] = (uint16_t)(first < last ? first : last);
    step->ports[1] = (uint16_t)(first < last ? last : first);
    read_word(r);
    return true;
}

/* An address, or the first bytes of one of IPv4; returns its bits, or 0. */
static unsigned parse_address(spti_filter_step *step, const char *text)
{
    step->address_size = 16;
    if (inet_pton(AF_INET6, text, step->address) == 1)
        return 128;
    step->address_size = 4;
    for (unsigned missing = 0; missing < 4; missing++) {
        char whole[80];
        (void)snprintf(whole, sizeof(whole), "%s%.*s", text, (int)(2 * missing), ".0.0.0");
        if (inet_pton(AF_INET, whole, step->address) == 1)
            return 32 - 8 * missing;
    }
    return 0;
}

/* "ADDRESS", and of nets "ADDRESS/BITS" or "ADDRESS mask MASK", as the next words. */
static bool read_address(reader *r, spti_filter_step *step)
{
    bool is_net = r->head.subject == NET;
    char *slash = is_net ? strchr(r->word, '/') : NULL;
    if (slash != NULL)
        *slash++ = '\0';
    unsigned long bits = parse_address(step, r->word), all = 8 * step->address_size;
    const char *end = slash == NULL ? "" : read_number(slash, all, &bits);
    if ((bits == 0 && slash == NULL) || (bits < all && !is_net) || end == NULL || *end != '\0')
        return false;
    for (size_t i = 0; i < step->address_size; i++)
        step->mask[i] = (uint8_t)(bits >= 8 * i + 8 ? 0xff : bits < 8 * i ? 0 : 0xff00 >> bits % 8);
    read_word(r);
    if (is_net && slash == NULL && skip(r, "mask")) {
        if (step->address_size != 4 || inet_pton(AF_INET, r->word, step->mask) != 1)
            return false;
        read_word(r);
    }
    step->kind = SPTI_FILTER_ADDRESS;
    for (size_t i = 0; i < step->address_size; i++)
        if ((step->address[i] & ~step->mask[i]) != 0) /* it is no net */
            return false;
    return r->head.protocol == SPTI_FILTER_NOT ||
           (r->head.protocol == SPTI_FILTER_IPV4) == (step->address_size == 4);
}

static bool read_value(reader *r)
{
    const char *begin = r->begin;
    const head *h = &r->head;
    bool any = !h->of[0] && !h->of[1];
    spti_filter_step step = {.of = {any || h->of[0], any || h->of[1]}, .both = h->both};
    if (h->subject >= PORT ? read_ports(r, &step) : read_address(r, &step))
        return add(r, step);
    r->begin = begin; /* which is what is wrong */
    return false;
}

/* ---- Conditions ------------------------------------------------------------------------------ */

static bool read_all(reader *r);

/* "(...)", in which values stand for conditions as they do here. */
static bool read_group(reader *r, bool only_values)
{
    const reader outside = *r;
    r->is_full = r->depth == SPTI_FILTER_DEPTH;
    if (r->is_full)
        return false;
    r->depth++;
    r->only_values = r->only_values || only_values;
    read_word(r);
    bool good = read_all(r) && skip(r, ")");
    r->depth = outside.depth;
    r->only_values = outside.only_values;
    r->head = outside.head;
    return good;
}

/* "src", "dst", or both of them, or nothing. */
static bool read_way(reader *r, head *h)
{
    static const char *const sides[] = {"src", "dst"};
    for (int side = 0; side < 2; side++) {
        if (!skip(r, sides[side]))
            continue;
        h->of[side] = true;
        h->subject = HOST;
        h->both = skip(r, "and");
        h->of[1 - side] = h->both || skip(r, "or");
        return !h->of[1 - side] || skip(r, sides[1 - side]);
    }
    return true;
}

static bool read_head(reader *r, head *h)
{
    static const char *const protocols[] = {"udp", "ip", "ip6"};
    static const char *const subjects[] = {"", "host", "net", "port", "portrange"};
    for (int i = 0; i < 3 && h->protocol == SPTI_FILTER_NOT; i++)
        if (skip(r, protocols[i]))
            h->protocol = (spti_filter_kind)(SPTI_FILTER_ANY + i);
    if (!read_way(r, h))
        return false;
    for (subject i = HOST; i <= PORTRANGE; i++)
        if (skip(r, subjects[i])) {
            h->subject = i;
            break;
        }
    return h->subject == NOTHING || h->protocol == SPTI_FILTER_NOT ||
           (h->protocol == SPTI_FILTER_ANY) == (h->subject >= PORT);
}

static bool read_condition(reader *r)
{
    head h = no_head;
    if (!read_head(r, &h))
        return false;
    bool is_protocol = h.subject == NOTHING && h.protocol != SPTI_FILTER_NOT;
    bool is_new = is_protocol || h.subject != NOTHING; /* else it is as in the condition before */
    if (is_new)
        r->head = is_protocol ? no_head : h;
    if (is_new && r->only_values)
        return false;
    if (is_protocol)
        return add(r, (spti_filter_step){.kind = h.protocol});
    return is(r, "(") ? read_group(r, is_new) : r->head.subject != NOTHING && read_value(r);
}

static bool read_negated(reader *r)
{
    bool negated = false;
    while (skip(r, "not"))
        negated = !negated;
    return read_condition(r) && (!negated || add(r, (spti_filter_step){.kind = SPTI_FILTER_NOT}));
}

static bool read_all(reader *r)
{
    bool good = read_negated(r);
    while (good && (is(r, "and") || is(r, "or"))) {
        spti_filter_kind kind = is(r, "and") ? SPTI_FILTER_AND : SPTI_FILTER_OR;
        read_word(r);
        good = read_negated(r) && add(r, (spti_filter_step){.kind = kind});
    }
    return good;
}

spt_status spti_frame_filter_parse(spti_frame_filter *filter, const char *text, spt_error *err)
{
    reader r = {.filter = filter, .next = text, .head = no_head};
    r.is_full = strnlen(text, SPTI_FILTER_LENGTH + 1) > SPTI_FILTER_LENGTH;
    filter->n = 0;
    if (!r.is_full) {
        read_word(&r);
        if (r.word[0] == '\0' || (read_all(&r) && r.word[0] == '\0'))
            return SPT_OK;
    }
    if (r.is_full)
        return spti_fail(err, SPT_ERR_ARGUMENT,
                         "a filter has %d characters, %d conditions and words that join them, and "
                         "%d parentheses within each other at most: 'tcpdump -r FILE -w FILTERED "
                         "FILTER' filters by more",
                         SPTI_FILTER_LENGTH, SPTI_FILTER_STEPS, SPTI_FILTER_DEPTH);
    int n = (int)strcspn(r.begin, BLANKS);
    return spti_fail(
        err, SPT_ERR_ARGUMENT,
        "cannot filter by '%.*s' (character %td): filters know [ip|ip6] [src|dst] host "
        "or net, [udp] [src|dst] port or portrange, numbers, and, or, not, (); 'tcpdump "
        "-r FILE -w FILTERED FILTER' knows more",
        n < 30 ? n : 30, r.begin, r.begin - text + 1);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

typedef enum verdict { NO, MAYBE, YES } verdict;

static verdict least(verdict a, verdict b)
{
    return a < b ? a : b;
}

static verdict most(verdict a, verdict b)
{
    return a < b ? b : a;
}

static verdict of_side(const spti_filter_step *step, const spti_frame *frame, int side)
{
    if (step->kind == SPTI_FILTER_PORT) {
        uint16_t port = frame->ports[side];
        bool takes = port >= step->ports[0] && port <= step->ports[1];
        return !frame->has_ports ? MAYBE : takes ? YES : NO;
    }
    if (frame->address_size != step->address_size)
        return frame->address_size == 0 ? MAYBE : NO;
    for (size_t i = 0; i < step->address_size; i++)
        if ((frame->addresses[side][i] & step->mask[i]) != step->address[i])
            return NO;
    return YES;
}

static verdict of_condition(const spti_filter_step *step, const spti_frame *frame)
{
    if (step->kind == SPTI_FILTER_ANY)
        return YES;
    if (step->kind == SPTI_FILTER_IPV4 || step->kind == SPTI_FILTER_IPV6) {
        size_t size = step->kind == SPTI_FILTER_IPV4 ? 4 : 16;
        return frame->address_size == 0 ? MAYBE : frame->address_size == size ? YES : NO;
    }
    verdict from = of_side(step, frame, 0), to = of_side(step, frame, 1);
    if (!step->of[0] || !step->of[1])
        return step->of[0] ? from : to;
    return step->both ? least(from, to) : most(from, to);
}

bool spti_frame_filter_takes(const spti_frame_filter *filter, const spti_frame *frame)
{
    verdict found[SPTI_FILTER_STEPS + 1] = {YES}; /* that nothing joins yet */
    size_t n = 0;
    for (size_t i = 0; i < filter->n; i++) {
        const spti_filter_step *step = &filter->steps[i];
        if (step->kind < SPTI_FILTER_NOT) {
            found[n++] = of_condition(step, frame);
        } else if (step->kind == SPTI_FILTER_NOT) {
            found[n - 1] = (verdict)(YES - found[n - 1]);
        } else {
            n--;
            found[n - 1] = step->kind == SPTI_FILTER_AND ? least(found[n - 1], found[n])
                                                         : most(found[n - 1], found[n]);
        }
    }
    return found[0] != NO;
}
