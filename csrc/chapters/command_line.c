/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the reading of command lines. */
#include "command_line.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MOST_WORDS = 32, FIRST_LONG = 256 };

/* ---- Saying something, and failing ---- */

static void print_line(const char *before, const char *format, va_list arguments)
{
    fprintf(stderr, "%s: %s", program_invocation_short_name, before);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void tell(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line("", format, arguments);
    va_end(arguments);
}

_Noreturn static void end(int status, const char *before, const char *format, va_list arguments)
{
    flockfile(stderr); /* and keep it: another thread that fails says nothing more */
    print_line(before, format, arguments);
    fflush(stdout);
    _exit(status); /* what is still in flight is of no interest any more */
}

void usage_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    end(2, "error: ", format, arguments);
}

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    end(1, "", format, arguments);
}

/* What a program has said is said when it ends, and that may fail. */
static void check_written(void)
{
    bool lost = ferror(stdout) != 0;
    errno = 0;
    if ((fflush(stdout) == 0 && !lost) || fcntl(STDOUT_FILENO, F_GETFD) < 0)
        return; /* all of it, or nobody wanted it */
    fail("%s", errno != 0 ? strerror(errno) : "could not write all that it says");
}

/* ---- Values ---- */

static bool is_in_bytes(const struct word *word)
{
    return word->value != NULL && strcmp(word->value, "BYTES") == 0;
}

/* How many bytes a unit has; 0 where the text is none. */
static size_t bytes_of(const char *text)
{
    static const struct {
        const char *name;
        size_t bytes;
    } units[] = {
        {"", 1},          {"B", 1},     {"KiB", 1 << 10}, {"MiB", 1 << 20},
        {"GiB", 1 << 30}, {"kB", 1000}, {"MB", 1000000},  {"GB", 1000000000},
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcasecmp(text, units[i].name) == 0)
            return units[i].bytes;
    return 0;
}

static bool is_whole(const struct word *word, const char *text, size_t *number)
{
    size_t n_digits = strspn(text, "0123456789");
    const char *rest = text + n_digits;
    size_t unit = rest[0] == '\0';
    if (is_in_bytes(word))
        unit = bytes_of(rest + strspn(rest, " "));
    errno = 0;
    *number = strtoull(text, NULL, 10);
    if (n_digits == 0 || unit == 0 || errno != 0 || *number > SIZE_MAX / unit)
        return false;
    *number *= unit;
    return *number >= word->range[0] && *number <= word->range[1];
}

static bool read_real(const struct word *word, const char *text)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(number) || number < 0 ||
        (number == 0 && word->kind == WORD_REAL) ||
        (word->range[1] > 0 && number > (double)word->range[1]))
        return false;
    *(double *)word->to = number;
    return true;
}

static bool read_pair(const char *text, int numbers[2])
{
    int n_read = 0;
    return strspn(text, "0123456789,") == strlen(text) &&
           sscanf(text, "%4d,%4d%n", numbers, numbers + 1, &n_read) == 2 && text[n_read] == '\0';
}

static bool read_value(const struct word *word, const char *text)
{
    size_t number;
    switch (word->kind) {
    case WORD_ON:
    case WORD_OFF:
        *(bool *)word->to = word->kind == WORD_ON;
        return true;
    case WORD_SIZE:
    case WORD_INT:
        if (!is_whole(word, text, &number))
            return false;
        if (word->kind == WORD_SIZE)
            *(size_t *)word->to = number;
        else
            *(int *)word->to = (int)number;
        return true;
    case WORD_REAL:
    case WORD_RATE:
        return read_real(word, text);
    case WORD_PAIR:
        return read_pair(text, word->to);
    case WORD_TEXT:
        *(const char **)word->to = text;
        return true;
    case WORD_REST: /* they are not one */
        break;
    }
    return false;
}

static void take(const struct word *word, const char *text)
{
    const char *comma = strchr(word->name, ',');
    int n = comma != NULL ? (int)(comma - word->name) : (int)strlen(word->name);
    if (read_value(word, text))
        return;
    if (word->must != NULL)
        usage_error("%.*s must be %s, not '%s'", n, word->name, word->must, text);
    if (word->kind == WORD_REAL)
        usage_error("%.*s must be a number above 0, not '%s'", n, word->name, text);
    char most[24] = "2^63-1";
    if (word->range[1] < INT64_MAX)
        snprintf(most, sizeof(most), "%zu", word->range[1]);
    usage_error("%.*s must be a %s from %zu to %s%s, not '%s'", n, word->name,
                is_in_bytes(word) ? "number of bytes" : "whole number", word->range[0], most,
                is_in_bytes(word) ? ", such as 8192, 8KiB or 1MiB" : "", text);
}

/* ---- Help ---- */

static void print_default(const struct word *word)
{
    if (word->kind == WORD_SIZE)
        printf("%zu", *(const size_t *)word->to);
    else if (word->kind == WORD_INT)
        printf("%d", *(const int *)word->to);
    else if (word->kind == WORD_REAL || word->kind == WORD_RATE)
        printf("%g", *(const double *)word->to);
}

static int width_of(const struct word *word)
{
    return (int)(strlen(word->name) + (word->value != NULL ? 1 + strlen(word->value) : 0));
}

static void print_help(const struct word *word, int width)
{
    printf("  %s%s%s%*s", word->name, word->value != NULL ? " " : "",
           word->value != NULL ? word->value : "", width - width_of(word) + 2, "");
    for (const char *c = word->help; *c != '\0'; c++)
        if (*c == '%')
            print_default(word);
        else if (*c == '\n')
            printf("\n%*s", width + 4, "");
        else
            putchar(*c);
    putchar('\n');
}

_Noreturn static void help(const char *doc, const char *example, const struct word *const *words)
{
    int width = 0;
    printf("usage: %s [options]", program_invocation_short_name);
    for (const struct word *const *it = words; *it != NULL; it++) {
        width = width_of(*it) > width ? width_of(*it) : width;
        if ((*it)->name[0] != '-')
            printf((*it)->kind == WORD_REST ? " %s..."
                   : (*it)->optional        ? " [%s]"
                                            : " %s",
                   (*it)->name);
    }
    printf("\n\n%s\n\n", doc);
    for (; *words != NULL; words++)
        print_help(*words, width);
    printf("\nexample: %s%s%s\n", program_invocation_short_name, example[0] != '\0' ? " " : "",
           example);
    exit(0);
}

/* ---- Command lines ---- */

/* What getopt_long() is told. */
struct spec {
    char letters[2 * MOST_WORDS + 2];
    struct option longs[MOST_WORDS + 2];
    size_t n_letters, n_longs;
};

static void take_in(struct spec *spec, const struct word *word, size_t i)
{
    bool has_value = word->value != NULL;
    const char *long_name = strstr(word->name, "--");
    if (word->name[0] != '-')
        return;
    if (word->name[1] != '-') {
        spec->letters[spec->n_letters++] = word->name[1];
        if (has_value)
            spec->letters[spec->n_letters++] = ':';
    }
    if (long_name != NULL)
        spec->longs[spec->n_longs++] = (struct option){
            long_name + 2, has_value ? required_argument : no_argument, NULL, FIRST_LONG + (int)i};
}

/* Which of the words getopt_long() has found. */
static size_t found(const struct word *const *words, int c)
{
    size_t i = 0;
    if (c >= FIRST_LONG)
        return (size_t)(c - FIRST_LONG);
    while (words[i]->name[0] != '-' || words[i]->name[1] != c)
        i++;
    return i;
}

/* Take what is found by its place. */
static void take_places(char **argv, const struct word *const *words)
{
    for (; *words != NULL; words++) {
        if ((*words)->name[0] == '-')
            continue;
        if (*argv != NULL && (*words)->kind == WORD_REST) {
            *(char ***)(*words)->to = argv;
            return;
        }
        if (*argv != NULL)
            take(*words, *argv++);
        else if (!(*words)->optional)
            usage_error("%s is missing: see --help", (*words)->name);
    }
    if (*argv != NULL)
        usage_error("'%s' is one word too many: see --help", *argv);
}

void read_words(int argc, char **argv, const char *doc, const char *example, const char *accepted,
                const struct word *words)
{
    const struct word *own[MOST_WORDS + 1] = {NULL};
    const char *given[MOST_WORDS] = {NULL};
    struct spec spec = {.letters = "h", .n_letters = 1};
    size_t n = 0;
    for (; words->name != NULL && n < MOST_WORDS; words++)
        if (words->only == '\0' || strchr(accepted, words->only) != NULL) {
            take_in(&spec, words, n);
            own[n++] = words;
        }
    spec.longs[spec.n_longs] = (struct option){"help", no_argument, NULL, 'h'};
    atexit(check_written);
    argv[0] = program_invocation_short_name; /* by which getopt_long() calls it */
    for (int c; (c = getopt_long(argc, argv, spec.letters, spec.longs, NULL)) != -1;) {
        if (c == 'h')
            help(doc, example, own); /* before anything takes the place of a default */
        if (c == '?')
            exit(2); /* getopt_long() has said why */
        given[found(own, c)] = optarg != NULL ? optarg : "";
    }
    for (size_t i = 0; i < n; i++)
        if (given[i] != NULL)
            take(own[i], given[i]);
    take_places(argv + optind, own);
}
