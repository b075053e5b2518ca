/* SPDX-License-Identifier: MIT */
/* Uploads: a tar or zip archive of a trace, unpacked below the state directory, then opened like any other. */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tsp/server.h"

enum { MAX_FILES = 100000, MAX_GROWTH = 32, BLOCK_BYTES = 1 << 16, MAX_NAME = 100, MAX_TRIES = 1000 };

/* ---- names ---- */

/* What a directory may be called: letters, digits, dot, dash, underscore; not hidden. */
static const char *clean_name(struct arena *a, const char *asked)
{
    char *name = arena_strndup(a, asked ? file_name(asked) : "", MAX_NAME);
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *p) ||
            (p == name && *p == '.'))
            *p = '_';
    return *name ? name : "trace";
}

/* Does the path stay below the directory it is unpacked in? */
static bool stays_below(const char *path)
{
    if (!path || !*path || *path == '/' || strchr(path, '\\'))
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return false;
        p += n + (p[n] == '/');
    }
    return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool is_known(const struct tsp_server *s, const char *path)
{
    for (size_t i = 0; i < s->traces.n; i++)
        if (!strcmp(s->traces.v[i]->path, path))
            return true;
    return false;
}

/* A server that was killed leaves archives on their way, and directories that have their names but no trace yet: beside
 * those lies a mark. */
#define MARK ".settling-"

void uploads_remove_unfinished(struct tsp_server *s)
{
    DIR *d = s->upload_dir ? opendir(s->upload_dir) : NULL;
    struct arena a = {0};
    for (struct dirent *e; d && (e = readdir(d));) {
        bool marked = !strncmp(e->d_name, MARK, sizeof MARK - 1);
        const char *name = e->d_name + (marked ? sizeof MARK - 1 : 0),
                   *settled = arena_printf(&a, "%s/%s", s->upload_dir, name);
        if (marked && *name && *name != '.' && !is_known(s, settled)) /* clean_name makes no others */
            remove_tree(settled);
        if (marked || !strncmp(e->d_name, ".incoming-", 10) || !strncmp(e->d_name, "upload-", 7))
            remove_tree(arena_printf(&a, "%s/%s", s->upload_dir, e->d_name));
    }
    if (d)
        closedir(d);
    arena_fini(&a);
}

const char *upload_set_aside(const struct tsp_server *s, struct arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (!s->upload_dir || strlen(s->upload_dir) != n || strncmp(path, s->upload_dir, n) != 0 || is_known(s, path))
        return NULL;
    char *aside = arena_printf(a, "%s/.incoming-XXXXXX", s->upload_dir);
    return mkdtemp(aside) && !rename(path, aside) ? aside : NULL; /* onto the empty directory that is ours */
}

void upload_remove(const char *aside)
{
    remove_tree(aside);
}

/* ---- unpacking ---- */

struct unpacking {
    struct call *c;
    struct archive *archive;
    const char *dir;
    uint64_t written, limit;
    size_t files;
    int status; /* HTTP; 0: good so far */
    const char *why;
};

static bool refuse(struct unpacking *u, int status, const char *why)
{
    u->status = status;
    u->why = why;
    return false;
}

/* Makes the directories on the way to `path` (its last part, too, with `all`). */
static bool make_dirs(struct unpacking *u, char *path, bool all)
{
    for (char *p = path + strlen(u->dir) + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            bool made = !mkdir(path, 0777) || errno == EEXIST;
            *p = '/';
            if (!made)
                return refuse(u, 507, "The upload cannot be stored");
        }
    return !all || !mkdir(path, 0777) || errno == EEXIST || refuse(u, 507, "The upload cannot be stored");
}

static bool write_all(int fd, const char *data, size_t n)
{
    while (n) {
        ssize_t w = write(fd, data, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return false;
        data += w;
        n -= (size_t)w;
    }
    return true;
}

static bool copy_data(struct unpacking *u, int fd)
{
    static __thread char block[BLOCK_BYTES];
    for (la_ssize_t n; (n = archive_read_data(u->archive, block, sizeof block)) != 0;) {
        if (n < 0)
            return refuse(u, 400, "The archive is damaged");
        u->written += (uint64_t)n;
        if (u->written > u->limit)
            return refuse(u, 413, "The archive unpacks to more than the server takes");
        if (http_gone(u->c->q))
            return refuse(u, 400, "The upload was given up");
        if (!write_all(fd, block, (size_t)n))
            return refuse(u, 507, "The upload cannot be stored");
    }
    return true;
}

/* The directory is ours and holds only what was made here: directories and regular files, so no path can lead out of
 * it. */
static bool unpack_entry(struct unpacking *u, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname(entry);
    struct arena *a = u->c->q->arena;
    if (name && !strncmp(name, "./", 2))
        name += 2;
    if (name && (!*name || !strcmp(name, ".")))
        return true;
    if (!stays_below(name))
        return refuse(u, 400, "The archive has paths that lead out of it");
    if (++u->files > MAX_FILES)
        return refuse(u, 413, "The archive has too many files");
    char *path = arena_printf(a, "%s/%s", u->dir, name);
    if (archive_entry_filetype(entry) == AE_IFDIR)
        return make_dirs(u, path, true);
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) || archive_entry_symlink(entry))
        return refuse(u, 400, "The archive has links or devices; only files and directories are taken");
    if (!make_dirs(u, path, false))
        return false;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return refuse(u, errno == EEXIST || errno == EISDIR || errno == ENOTDIR ? 400 : 507,
            errno == EEXIST ? "The archive has a file twice" : "The upload cannot be stored");
    bool good = copy_data(u, fd);
    close(fd);
    return good;
}

static void unpack(struct unpacking *u, const char *file)
{
    struct archive_entry *entry;
    int rc = ARCHIVE_OK;
    u->archive = archive_read_new();
    /* By name: `all` would bring filters that run other programs. */
    archive_read_support_filter_gzip(u->archive);
    archive_read_support_filter_bzip2(u->archive);
    archive_read_support_filter_xz(u->archive);
    archive_read_support_filter_zstd(u->archive);
    archive_read_support_format_tar(u->archive);
    archive_read_support_format_zip(u->archive);
    if (archive_read_open_filename(u->archive, file, BLOCK_BYTES) != ARCHIVE_OK) {
        refuse(u, 400, "This is no tar or zip archive");
    } else {
        while (!u->status && ((rc = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK || rc == ARCHIVE_WARN))
            unpack_entry(u, entry);
        if (!u->status && rc != ARCHIVE_EOF)
            refuse(u, 400, u->files ? "The archive is damaged" : "This is no tar or zip archive");
        if (!u->status && !u->files)
            refuse(u, 400, "The archive is empty");
    }
    archive_read_free(u->archive);
}

/* Gives the directory its name, or the name with a number when that is taken. *mark: a file to be removed when the
 * trace is known. */
static const char *settle(struct call *c, const char *dir, const char *name, const char **mark)
{
    struct arena *a = c->q->arena;
    for (int i = 0; i < MAX_TRIES; i++) {
        const char *numbered = i ? arena_printf(a, "%s-%d", name, i) : name,
                   *path = arena_printf(a, "%s/%s", c->s->upload_dir, numbered);
        *mark = arena_printf(a, "%s/" MARK "%s", c->s->upload_dir, numbered);
        int fd = open(*mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST)
            continue; /* somebody else is about to take the name */
        if (fd < 0)
            return NULL;
        close(fd);
        if (!mkdir(path, 0777) && !rename(dir, path)) /* onto the empty directory that is ours */
            return path;
        int why = errno;
        unlink(*mark);
        if (why != EEXIST)
            return NULL;
    }
    return NULL;
}

void upload_post(struct call *c)
{
    struct tsp_server *s = c->s;
    struct arena *a = c->q->arena;
    if (!s->upload_dir || !c->q->body_file) {
        call_error(c, 501, "Uploads are not taken", "start the server with --state DIR, and without --max-upload 0");
        return;
    }
    char *dir = arena_printf(a, "%s/.incoming-XXXXXX", s->upload_dir);
    struct unpacking u = {.c = c, .dir = dir, .limit = s->o.max_upload_bytes * MAX_GROWTH};
    if (!mkdtemp(dir)) {
        call_error(c, 507, "The upload cannot be stored", NULL);
        return;
    }
    unpack(&u, c->q->body_file);
    const char *mark, *path = u.status ? NULL : settle(c, dir, clean_name(a, http_query(c->q, "name")), &mark);
    if (!path) {
        remove_tree(dir);
        call_error(c, u.status ? u.status : 507, u.status ? u.why : "The upload cannot be stored", NULL);
        return;
    }
    struct tsp_trace_result r = trace_open(s, a, path, NULL, "", false);
    if (r.status != 200)
        remove_tree(path);
    persist_save(s); /* a trace that is remembered needs no mark */
    unlink(mark);
    if (r.status != 200) {
        call_error(c, r.status, r.status == 501 ? "The archive holds no trace" : r.title, r.detail);
        return;
    }
    c->arg[0] = r.uuid;
    traces_get(c);
}
