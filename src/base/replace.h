/* Private to base: replacing a file in one step. The new contents go to PATH.tmp.PID.N; readers see the old file or the whole new one, also after
 * a crash or a full disk. */
#ifndef WEFT_BASE_REPLACE_H
#define WEFT_BASE_REPLACE_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/err.h"

struct replace {
    const char *path; /* borrowed until replace_end */
    char *temporary;
    int fd;
};
int replace_begin(struct replace *, const char *path, struct err *e);
int replace_write(struct replace *, const void *data, size_t n, struct err *e);
/* The same, of data that lie in up to REPLACE_PIECES pieces, in one system call where the system allows. Changes the pieces. */
enum { REPLACE_PIECES = 256 };
int replace_gather(struct replace *, struct iovec *pieces, size_t n, struct err *e);
/* fsync, rename, fsync of the directory. Ends the struct in any case. */
int replace_commit(struct replace *, struct err *e);
/* Removes what was written. */
void replace_abort(struct replace *);

#endif
