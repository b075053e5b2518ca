/* SPDX-License-Identifier: MIT */
/* Errors: one enum, one struct that collects causes. Library code returns a code and fills the struct; it never prints,
 * never exits. */
#ifndef WEFT_BASE_ERR_H
#define WEFT_BASE_ERR_H

#include <stddef.h>

/* X(code, value, "what it means") */
#define WEFT_ERRORS(X) \
    X(OK, 0, "no error") \
    X(NOMEM, -1, "out of memory") \
    X(IO, -2, "a system call failed; the message names the file and the reason") \
    X(FORMAT, -3, "the input breaks the rules of its format; the message says where") \
    X(UNSUPPORTED, -4, "valid, but of a kind that weft does not read") \
    X(NOTFOUND, -5, "nothing by that name, number or time") \
    X(AMBIGUOUS, -6, "a name that means several things; the message lists them") \
    X(ARG, -7, "an argument makes no sense") \
    X(LIMIT, -8, "a stated limit was exceeded") \
    X(STALE, -9, "a store does not belong to the data beside it") \
    X(CANCELLED, -10, "the caller asked to stop") \
    X(LOST, -11, "a file became shorter, or unreadable, while it was in use") \
    X(TIMEOUT, -12, "no answer in the time given") \
    X(BUSY, -13, "too much at once; later it may go")

enum weft_err {
#define X(name, value, text) ERR_##name = value,
    WEFT_ERRORS(X)
#undef X
};

/* The stack of causes of one failure, outermost first once printed: "a: b: c". Zero-initialise. */
struct err {
    int code;          /* enum weft_err of the innermost cause */
    char text[1024];   /* always terminated; cut at the end when causes do not fit */
};

/* Sets the innermost cause (printf-like) and returns `code`. `e` may be NULL. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Sets the innermost cause for a failed system call: appends strerror(errno). Returns ERR_IO (ERR_NOMEM for ENOMEM;
 * ERR_LIMIT for EMFILE and ENFILE, with a hint how to raise the limit). */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prepends "fmt: ": each layer says what it was doing. Returns e->code (or ERR_IO when e is NULL). */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Short meaning of a code. Never NULL. */
const char *err_name(int code);

#endif
