/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of a program that is no part of the library: a table says what it takes, and
 * what is wrong with it is said in one line. It knows nothing of the library.
 */
#ifndef COMMAND_LINE_H
#define COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum word_kind {
    WORD_ON,  /* an option without a value: a bool becomes true */
    WORD_OFF, /* ... or false */
    WORD_SIZE,
    WORD_INT,
    WORD_REAL, /* a double, above 0 */
    WORD_RATE, /* ... or 0 */
    WORD_PAIR, /* two int, with a comma */
    WORD_TEXT, /* a const char *, borrowed */
    WORD_REST, /* a char **, borrowed: this word and all that follow; NULL comes last */
};

/* Something that may be on the command line. */
struct word {
    /* "-n", "--json", or "-H, --heap-size"; without a dash it is found by its place. */
    const char *name;
    /* What stands for its value in the help, or NULL; of BYTES there may be units, as in 8KiB. */
    const char *value;
    const char *help; /* its default takes the place of a % */
    enum word_kind kind;
    void *to;         /* where it goes; the default is there before */
    size_t range[2];  /* the least and the most; of a real, 0 is no limit */
    const char *must; /* what it must be, where its kind does not say that */
    char only;        /* it is there only in programs that accept this letter */
    bool optional;    /* of those that are found by their place */
};

/* Most values that are sizes have this limit, which no machine has room for. */
#define WORD_MOST ((size_t)1 << 40)

/* Read a command line: words end with one without a name. --help prints all of them and exits. */
void read_words(int argc, char **argv, const char *doc, const char *example, const char *accepted,
                const struct word *words);

/* Say something in a line, of a run that goes on. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* End the program with one line: it was asked for wrongly (status 2), or something failed (1). */
void usage_error(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif
