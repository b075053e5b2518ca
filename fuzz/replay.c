/* SPDX-License-Identifier: MIT */
/* Stands in for libFuzzer: feeds each file of the directories (or files) named to the fuzz target, once. With a
 * sanitizer build a defect ends the program; a plain build finds crashes only. Exit status 77 (skipped) when there is
 * not one file. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t replayed;

static int replay_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return 1;
    }
    /* Exactly the input's size, so that reading one byte too far is seen. */
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, f) != size) {
        fprintf(stderr, "replay: %s: cannot be read\n", path);
        free(data);
        fclose(f);
        return 1;
    }
    fclose(f);
    printf("%s\n", path); /* the last line printed names the input that crashed */
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    replayed++;
    return 0;
}

static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno == ENOENT)
            return 0;
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return 1;
    }
    if (!S_ISDIR(st.st_mode))
        return replay_file(path, (size_t)st.st_size);
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return 1;
    }
    int bad = 0;
    for (int i = 0; i < n; i++) {
        char *child;
        if (entries[i]->d_name[0] != '.' && asprintf(&child, "%s/%s", path, entries[i]->d_name) >= 0) {
            bad |= replay(child);
            free(child);
        }
        free(entries[i]);
    }
    free(entries);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = 0;
    for (int i = 1; i < argc; i++)
        bad |= replay(argv[i]);
    printf("%zu inputs\n", replayed);
    return bad ? 1 : replayed ? 0 : 77;
}
