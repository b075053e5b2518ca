#include "http/gzip.h"

#include <zlib.h>

/* Level 1: answers are numbers in sequence, which shrink ten times even so; time matters more. */
enum { LEVEL = 1, GZIP_WINDOW = 15 + 16 };

bool gzip_pack(const void *data, size_t n, struct text *out)
{
    z_stream z = {0};
    if (n > UINT32_MAX || deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_WINDOW, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t bound = deflateBound(&z, n);
    z.next_in = (Bytef *)data;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)text_room(out, bound);
    z.avail_out = (uInt)bound;
    int rc = deflate(&z, Z_FINISH);
    out->n += z.total_out;
    deflateEnd(&z);
    if (rc == Z_STREAM_END && out->n < n)
        return true;
    text_fini(out);
    *out = (struct text){.fd = -1};
    return false;
}

bool gzip_unpack(const void *data, size_t n, struct text *out)
{
    z_stream z = {0};
    int rc = inflateInit2(&z, GZIP_WINDOW);
    z.next_in = (Bytef *)data;
    z.avail_in = (uInt)n;
    while (rc == Z_OK) {
        z.next_out = (Bytef *)text_room(out, 65536);
        z.avail_out = 65536;
        rc = inflate(&z, Z_NO_FLUSH);
        out->n += 65536 - z.avail_out;
    }
    inflateEnd(&z);
    return rc == Z_STREAM_END;
}
