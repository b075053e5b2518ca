/* SPDX-License-Identifier: MIT */
#include "cli/secrets.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { MAX_TOKEN_BYTES = 4096 };

int cli_read_token(const char *option, const char *path, char **token, struct err *e)
{
    size_t n;
    int rc = file_read(path, MAX_TOKEN_BYTES, token, &n, e);
    if (rc)
        return err_wrap(e, "%s", option), rc;
    (*token)[strcspn(*token, "\r\n")] = '\0';
    if ((*token)[strspn(*token, " \t")])
        return 0;
    free(*token);
    *token = NULL;
    return err_set(e, ERR_ARG, "%s %s: the first line must be the token, not blanks", option, path);
}
