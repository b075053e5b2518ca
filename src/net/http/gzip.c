/* SPDX-License-Identifier: MIT */
#include "http/gzip.h"

#include <pthread.h>
#include <strings.h>
#include <zlib.h>

#include "http/http.h"

/* Level 1: speed matters more. Answers are numbers in sequence, which even so shrink to a seventh. */
enum { LEVEL = 1, GZIP_WINDOW = 15 + 16, MEMORY = 8 };

struct gzip_packers {
    pthread_mutex_t lock;
    size_t most;
    VEC(z_stream *) at_rest;
};

struct gzip_packers *http_gzip_packers_new(size_t most)
{
    struct gzip_packers *p = mem_zalloc(sizeof *p);
    p->most = most;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void free_stream(z_stream *z)
{
    deflateEnd(z);
    free(z);
}

void http_gzip_packers_free(struct gzip_packers *p)
{
    for (size_t i = 0; i < p->at_rest.n; i++)
        free_stream(p->at_rest.v[i]);
    vec_free(&p->at_rest);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Returns an idle stream, or a new one; NULL: no memory. */
static z_stream *take(struct gzip_packers *p)
{
    pthread_mutex_lock(&p->lock);
    z_stream *z = p->at_rest.n ? p->at_rest.v[--p->at_rest.n] : NULL;
    pthread_mutex_unlock(&p->lock);
    if (z)
        return z;
    z = mem_try(1, sizeof *z);
    if (!z)
        return NULL;
    if (deflateInit2(z, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) == Z_OK)
        return z;
    free(z);
    return NULL;
}

static void give_back(struct gzip_packers *p, z_stream *z)
{
    bool rest = deflateReset(z) == Z_OK;
    pthread_mutex_lock(&p->lock);
    rest = rest && p->at_rest.n < p->most;
    if (rest)
        vec_push(&p->at_rest, z);
    pthread_mutex_unlock(&p->lock);
    if (!rest)
        free_stream(z);
}

/* Space for compression: the upper bound if that is small; else the usual result, then more. */
static size_t room_to_pack(z_stream *z, size_t n, bool more)
{
    enum { LITTLE = 256 << 10, SHRINKS = 6 };
    return n <= LITTLE ? deflateBound(z, n) : more ? n / 2 : n / SHRINKS;
}

bool http_gzip_pack(struct gzip_packers *p, const void *data, size_t n, struct text *out)
{
    z_stream *z = n > UINT32_MAX ? NULL : take(p);
    if (!z)
        return false;
    int rc = Z_OK;
    z->next_in = (Bytef *)data;
    z->avail_in = (uInt)n;
    /* Compression that saves nothing is not worth while. */
    for (bool more = false; rc == Z_OK && out->n < n; more = true) {
        size_t room = room_to_pack(z, n, more);
        if (!text_try_grow(out, room))
            break;
        z->next_out = (Bytef *)(out->v + out->n);
        z->avail_out = (uInt)room;
        rc = deflate(z, Z_FINISH);
        out->n = z->total_out;
    }
    give_back(p, z);
    if (rc == Z_STREAM_END && out->n < n)
        return true;
    text_fini(out);
    *out = (struct text){.fd = -1};
    return false;
}

/* ---- unpacking ---- */

/* Z_BUF_ERROR: more than `most` bytes. */
static int unpack(const void *data, size_t n, size_t most, struct text *out)
{
    z_stream z = {0};
    int rc = inflateInit2(&z, GZIP_WINDOW);
    if (rc != Z_OK)
        return rc;
    z.next_in = (Bytef *)data;
    z.avail_in = (uInt)n;
    while (rc == Z_OK) {
        size_t room = out->n < 65536 ? 65536 : out->n;
        z.avail_out = (uInt)(room < most - out->n ? room : most - out->n + 1);
        z.next_out = (Bytef *)text_room(out, z.avail_out);
        uInt had = z.avail_out;
        rc = inflate(&z, Z_NO_FLUSH);
        out->n += had - z.avail_out;
        if (rc == Z_STREAM_END && z.avail_in)
            rc = inflateReset(&z); /* next member */
        if (out->n > most)
            rc = Z_BUF_ERROR;
        else if (rc == Z_BUF_ERROR || (rc == Z_OK && !z.avail_in && z.avail_out))
            rc = Z_DATA_ERROR; /* the data end too early */
    }
    inflateEnd(&z);
    return rc;
}

struct gzip_reader {
    z_stream z;
    struct text packed;
};

struct gzip_reader *http_gzip_reader_new(struct text *packed)
{
    struct gzip_reader *r = mem_try(1, sizeof *r);
    if (!r)
        return NULL;
    if (packed->n > UINT32_MAX || inflateInit2(&r->z, GZIP_WINDOW) != Z_OK) {
        free(r);
        return NULL;
    }
    r->packed = *packed;
    r->z.next_in = (Bytef *)r->packed.v;
    r->z.avail_in = (uInt)r->packed.n;
    *packed = (struct text){.fd = -1};
    return r;
}

size_t http_gzip_read(struct gzip_reader *r, char *out, size_t most)
{
    r->z.next_out = (Bytef *)out;
    r->z.avail_out = most < UINT32_MAX ? (uInt)most : UINT32_MAX;
    const uInt room = r->z.avail_out;
    int rc = Z_OK;
    while (rc == Z_OK && r->z.avail_out)
        rc = inflate(&r->z, Z_NO_FLUSH); /* returns no more at the end, and after damage */
    return room - r->z.avail_out;
}

void http_gzip_reader_free(struct gzip_reader *r)
{
    inflateEnd(&r->z);
    text_fini(&r->packed);
    free(r);
}

bool http_gzip_unpack(const void *data, size_t n, struct text *out)
{
    return unpack(data, n, SIZE_MAX - 1, out) == Z_STREAM_END;
}

int http_gzip_unpack_most(const void *data, size_t n, size_t most, struct text *out, struct err *e)
{
    int rc = n > UINT32_MAX ? Z_BUF_ERROR : unpack(data, n, most, out);
    if (rc == Z_BUF_ERROR)
        return err_set(e, ERR_LIMIT, "more than %zu bytes once it is unpacked", most);
    return rc == Z_STREAM_END
        ? 0
        : err_set(e, ERR_FORMAT, "it is no sound gzip: it ends too early, is damaged, or something else follows it");
}

int http_unpack(const void *data, size_t n, size_t most, struct text *out, struct err *e)
{
    return http_gzip_unpack_most(data, n, most, out, e);
}

int http_unpack_body(struct http_request *q, size_t most, struct text *out, struct err *e)
{
    const char *encoding = http_request_header(q, "Content-Encoding");
    if (!encoding || !*encoding || !strcasecmp(encoding, "identity"))
        return 0;
    if (strcasecmp(encoding, "gzip") != 0)
        return err_set(e, ERR_UNSUPPORTED, "Content-Encoding: gzip, or none");
    q->making = out;
    int rc = http_gzip_unpack_most(q->body, q->body_bytes, most, out, e);
    if (rc)
        return rc;
    q->body_bytes = out->n;
    q->body = text_cstr(out);
    return 0;
}
