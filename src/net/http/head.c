/* SPDX-License-Identifier: MIT */
#include "http/head.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* ---- checks of headers ---- */

struct headers {
    unsigned hosts, lengths, codings;
    bool other_coding, odd_name, odd_value;
    bool adrift;          /* a line does not begin where the previous one must end */
    const char *expected; /* begin of the next line */
};

/* Token of RFC 9110, section 5.6.2. */
static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("!#$%&'*+-.^_`|~", s[i]))
            return false;
    return n > 0;
}

static bool has_controls(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
            return true;
    return false;
}

static bool is(const char *name, size_t n, const char *wanted)
{
    return n == strlen(wanted) && !strncasecmp(name, wanted, n);
}

static enum MHD_Result take_header(
    void *headers, enum MHD_ValueKind kind, const char *name, size_t n, const char *value, size_t n_value)
{
    struct headers *h = headers;
    value = value ? value : "";
    h->odd_name |= !is_token(name, n);
    h->odd_value |= has_controls(value);
    h->hosts += is(name, n, MHD_HTTP_HEADER_HOST);
    h->lengths += is(name, n, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (is(name, n, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        h->codings++;
        h->other_coding |= strcasecmp(value, "chunked") != 0;
    }
    h->adrift |= name != h->expected;
    h->expected = value + strlen(value) + strlen("\r\n");
    return MHD_YES;
}

/* ---- checks of line ends ---- */

/* libmicrohttpd 0.9.75 accepts a bare LF as the end of a line, joins folded lines, and cuts values at a NUL, without
 * reporting it. It parses the head in place in one buffer, and replaces each CR and LF by a NUL. So the distances of
 * the texts that it passes, and the size of the head, are as sent; this shows such lines. Later versions check by
 * themselves (MHD_OPTION_CLIENT_DISCIPLINE_LVL). */
static bool is_in_one_buffer(void)
{
    return !strcmp(MHD_get_version(), "0.9.75");
}

static bool is_whole(
    struct MHD_Connection *mhd, const char *method, const char *version, const struct head_line *l, struct headers *h)
{
    const union MHD_ConnectionInfo *head = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return l->uri == method + strlen(method) + 1 && version == l->uri + l->uri_bytes + 1 && !h->adrift && head &&
        h->expected + strlen("\r\n") == method + head->header_size;
}

/* ---- check of the whole head ---- */

struct head_line http_head_line_of(const char *uri)
{
    struct head_line l = {.uri = uri, .uri_bytes = strlen(uri), .is_sound = *uri};
    for (size_t i = 0; i < l.uri_bytes; i++)
        l.is_sound &= (unsigned char)uri[i] > ' ' && uri[i] != 0x7f;
    return l;
}

int http_head_refusal(
    struct MHD_Connection *mhd, const char *method, const char *version, const struct head_line *line, const char **why)
{
    struct headers h = {.expected = version + strlen(version) + strlen("\r\n")};
    bool is_new = strcmp(version, MHD_HTTP_VERSION_1_0) != 0;
    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, take_header, &h);
    if (!is_token(method, strlen(method)) || !line->is_sound)
        return *why = "The request line is malformed", 400;
    if (is_in_one_buffer() && !is_whole(mhd, method, version, line, &h))
        return *why = "A line of the request's head has a NUL, is folded, or does not end with CR LF", 400;
    if (h.odd_name || h.odd_value)
        return *why = "A header's name or value has characters that none may have", 400;
    if (h.hosts > 1 || (is_new && !h.hosts))
        return *why = "The Host header is not one host", 400;
    if (h.lengths > 1)
        return *why = "There is more than one Content-Length", 400;
    if (h.codings && (h.lengths || !is_new))
        return *why = is_new ? "There are both Transfer-Encoding and Content-Length"
                             : "HTTP/1.0 has no Transfer-Encoding",
               400;
    if (h.codings > 1 || h.other_coding)
        return *why = "This Transfer-Encoding is not known: only chunked is", 501;
    return 0;
}

const char *http_head_chunks(struct MHD_Connection *mhd, const char *method)
{
    const union MHD_ConnectionInfo *head = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    bool chunked = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    return chunked && head && is_in_one_buffer() ? method + head->header_size : NULL;
}

bool http_head_has_trailer(struct MHD_Connection *mhd)
{
    return MHD_get_connection_values(mhd, MHD_FOOTER_KIND, NULL, NULL) > 0;
}
