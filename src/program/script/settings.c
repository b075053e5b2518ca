/* SPDX-License-Identifier: MIT */
/* The environment: OTEL_*, JAEGER_*, WEFT_SPAN_*. */
#include "script/settings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAIRS_BYTES = 64 << 10, HEADER_BYTES = 8 << 10 };

void script_note(const struct script_settings *s, const char *fmt, ...)
{
    char line[1200];
    if (s->quiet)
        return;
    int n = snprintf(line, sizeof line, "weft-span: note: ");
    va_list args;
    va_start(args, fmt);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
    va_end(args);
    for (char *c = line; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?'; /* values of the environment come in here */
    strcat(line, "\n");
    ssize_t told = write(STDERR_FILENO, line, strlen(line)); /* single call: lines of many processes stay whole */
    (void)told;
}

/* The variable, or NULL; empty is not set, as OpenTelemetry wants it. */
static const char *variable(const char *name)
{
    const char *s = getenv(name);
    return s && *s ? s : NULL;
}

static const char *first_of(const char *a, const char *b)
{
    const char *s = variable(a);
    return s ? s : variable(b);
}

static bool is_word(const char *s, const char *word)
{
    return s && !strcasecmp(s, word);
}

/* ---- pairs and URLs ---- */

static char *unescape(struct arena *a, const char *s, size_t n)
{
    char *out = arena_strndup(a, s, n), *to = out;
    for (const char *from = out; *from; from++) {
        unsigned v;
        if (*from == '%' && isxdigit((unsigned char)from[1]) && isxdigit((unsigned char)from[2]) &&
            sscanf(from + 1, "%2x", &v) == 1 && v) {
            *to++ = (char)v;
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return out;
}

static void trim(const char **s, size_t *n)
{
    while (*n && isspace((unsigned char)**s)) {
        ++*s;
        --*n;
    }
    while (*n && isspace((unsigned char)(*s)[*n - 1]))
        --*n;
}

void script_read_pairs(struct arena *a, const char *s, struct script_attributes *out)
{
    while (*s) {
        size_t n = strcspn(s, ",");
        const char *equals = memchr(s, '=', n);
        if (equals) {
            const char *key = s, *value = equals + 1;
            size_t n_key = (size_t)(equals - s), n_value = n - n_key - 1;
            trim(&key, &n_key);
            trim(&value, &n_value);
            if (n_key)
                script_set_text(out, unescape(a, key, n_key), unescape(a, value, n_value));
        }
        s += n + (s[n] == ',');
    }
}

static bool is_address(const char *host)
{
    struct in6_addr address;
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1 ||
        !strcmp(host, "localhost");
}

bool script_read_url(struct arena *a, const char *s, const char *default_port, struct script_url *out, const char **why)
{
    *why = NULL;
    for (const char *c = s; *c; c++)
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            *why = "it holds characters that no URL has";
    out->tls = !strncasecmp(s, "https://", 8);
    if (!out->tls && strncasecmp(s, "http://", 7) != 0)
        *why = "http://HOST[:PORT][/PATH], or https://, is expected";
    if (*why)
        return false;
    s += out->tls ? 8 : 7;
    size_t n = strcspn(s, "/?#");
    const char *path = s + n, *at = memchr(s, '@', n);
    if (at) {
        *why = "user and password are not taken from URLs: use OTEL_EXPORTER_OTLP_HEADERS";
        return false;
    }
    bool bracket = *s == '[';
    const char *end = bracket ? memchr(s, ']', n) : memchr(s, ':', n);
    if (!end)
        end = s + n;
    const char *colon = bracket && end < s + n ? end + 1 : end;
    out->host = arena_strndup(a, s + bracket, (size_t)(end - s) - bracket);
    out->port = *colon == ':' ? arena_strndup(a, colon + 1, (size_t)(s + n - colon - 1))
        : out->tls            ? "443"
                              : default_port;
    char *rest;
    long port = strtol(out->port, &rest, 10);
    if (!*out->host || strlen(out->host) > 255 || (bracket && *end != ']') || *rest || port < 1 || port > 65535) {
        *why = "host or port make no sense";
        return false;
    }
    out->path = *path == '/' ? arena_strndup(a, path, strcspn(path, "#"))
                             : arena_printf(a, "/%.*s", (int)strcspn(path, "#"), path);
    out->numeric = is_address(out->host);
    return true;
}

/* ---- endpoint ---- */

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), n_end = strlen(end);
    return n >= n_end && !strcmp(s + n - n_end, end);
}

static void take_otlp(struct script_settings *s)
{
    const char *whole = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), *base = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (!whole && !base)
        return;
    s->endpoint = whole ? whole : base;
    if (strlen(s->endpoint) > HEADER_BYTES) {
        s->unusable = "it is too long";
        return;
    }
    if (!script_read_url(&s->arena, s->endpoint, "4318", &s->url, &s->unusable) || whole)
        return;
    size_t n = strlen(s->url.path);
    if (ends_in(s->url.path, "/v1/traces"))
        return;
    s->url.path = arena_printf(&s->arena, "%s%sv1/traces", s->url.path, s->url.path[n - 1] == '/' ? "" : "/");
}

static void take_jaeger(struct script_settings *s)
{
    const char *endpoint = variable("JAEGER_ENDPOINT");
    if (!endpoint)
        return;
    s->endpoint = endpoint;
    s->thrift = true;
    if (strlen(endpoint) > HEADER_BYTES)
        s->unusable = "it is too long";
    else
        script_read_url(&s->arena, endpoint, "14268", &s->url, &s->unusable);
}

/* Takes the default address of a collector. pfeil's callers expect none there. */
static void take_default(struct script_settings *s, bool pfeil)
{
    s->only_kept = !s->endpoint && variable("WEFT_SPAN_SPOOL");
    s->off = !s->endpoint && !s->only_kept && pfeil;
    if (s->endpoint)
        return;
    s->endpoint = "http://127.0.0.1:4318";
    s->url = (struct script_url){.host = "127.0.0.1", .port = "4318", .path = "/v1/traces", .numeric = true};
}

static bool is_token(const char *s)
{
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("!#$&'*+-.^_`|~", *s))
            return false;
    return true;
}

static bool is_header_value(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
            return false;
    return true;
}

static void take_headers(struct script_settings *s)
{
    const char *given = first_of("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS");
    if (!given || s->thrift)
        return;
    if (strlen(given) > HEADER_BYTES) {
        script_note(s, "OTEL_EXPORTER_OTLP_HEADERS is too long: no headers are sent");
        return;
    }
    struct script_attributes pairs = {0};
    script_read_pairs(&s->arena, given, &pairs);
    for (size_t i = 0; i < pairs.list.n; i++) {
        const struct script_attribute *h = &pairs.list.v[i];
        if (is_token(h->key) && is_header_value(h->text))
            text_printf(&s->headers, "%s: %s\r\n", h->key, h->text);
        else
            script_note(s, "OTEL_EXPORTER_OTLP_HEADERS: a header that HTTP does not allow is left out");
    }
    free(pairs.list.v);
}

static void take_certificates(struct script_settings *s)
{
    s->ca_file = first_of("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE");
    s->client_certificate = first_of(
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE");
    s->client_key = first_of("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "OTEL_EXPORTER_OTLP_CLIENT_KEY");
}

static void put_base64(struct text *t, const char *s, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)(uint8_t)s[i] << 16 | (i + 1 < n ? (unsigned)(uint8_t)s[i + 1] << 8 : 0) |
            (i + 2 < n ? (unsigned)(uint8_t)s[i + 2] : 0);
        text_putc(t, digits[v >> 18]);
        text_putc(t, digits[v >> 12 & 63]);
        text_putc(t, i + 1 < n ? digits[v >> 6 & 63] : '=');
        text_putc(t, i + 2 < n ? digits[v & 63] : '=');
    }
}

static void take_jaeger_user(struct script_settings *s)
{
    const char *user = variable("JAEGER_USER"), *password = variable("JAEGER_PASSWORD");
    if (!user || !password || !s->thrift || strlen(user) + strlen(password) > HEADER_BYTES)
        return;
    char *both = arena_printf(&s->arena, "%s:%s", user, password);
    text_puts(&s->headers, "Authorization: Basic ");
    put_base64(&s->headers, both, strlen(both));
    text_puts(&s->headers, "\r\n");
}

static void take_timeout(struct script_settings *s)
{
    const char *given = first_of("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT");
    long ms = SCRIPT_TIMEOUT_MS;
    if (given) {
        char *end;
        ms = strtol(given, &end, 10);
        if (*end || ms < 1) {
            script_note(s, "OTEL_EXPORTER_OTLP_TIMEOUT is no number of milliseconds: %d is used", SCRIPT_TIMEOUT_MS);
            ms = SCRIPT_TIMEOUT_MS;
        }
    }
    s->timeout_ns = (int64_t)(ms < SCRIPT_MOST_TIMEOUT_MS ? ms : SCRIPT_MOST_TIMEOUT_MS) * 1000000;
}

/* ---- identity ---- */

void script_set_service(struct script_settings *s, const char *service)
{
    s->service = service;
    script_set_text(&s->resource, "service.name", service);
}

/* Returns the id of the machine's boot, which ties a span to its kernel trace. */
static const char *boot_id(struct arena *a)
{
    char id[64];
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    const char *line = f ? fgets(id, sizeof id, f) : NULL;
    if (f)
        fclose(f);
    if (line)
        id[strcspn(id, "\n")] = '\0';
    return line ? arena_strdup(a, id) : NULL;
}

/* Returns the pid namespace inside a container, where process numbers differ from the kernel's; 0 outside. */
static long long pid_namespace(void)
{
    const ino_t first = 0xeffffffc; /* Linux' PROC_PID_INIT_INO */
    struct stat st;
    return stat("/proc/self/ns/pid", &st) || st.st_ino == first ? 0 : (long long)st.st_ino;
}

static void take_resource(struct script_settings *s, bool pfeil)
{
    char host[256] = "";
    const char *given = variable("OTEL_RESOURCE_ATTRIBUTES"), *tags = variable("JAEGER_TAGS"), *boot;
    long long space;
    script_add_text(&s->resource, "service.name", "");
    if (gethostname(host, sizeof host - 1) == 0 && *host)
        script_add_text(&s->resource, "host.name", arena_strdup(&s->arena, host));
    if ((boot = boot_id(&s->arena)) != NULL)
        script_add_text(&s->resource, "host.boot_id", boot);
    if ((space = pid_namespace()) != 0)
        script_add_number(&s->resource, "weft.pid_namespace", space);
    if (tags && strlen(tags) <= PAIRS_BYTES)
        script_read_pairs(&s->arena, tags, &s->resource);
    if (given && strlen(given) <= PAIRS_BYTES)
        script_read_pairs(&s->arena, given, &s->resource);
    else if (given)
        script_note(s, "OTEL_RESOURCE_ATTRIBUTES is longer than %d bytes and left out", PAIRS_BYTES);
    const char *named = s->resource.list.v[0].text;
    const char *service = pfeil ? first_of("JAEGER_SERVICE_NAME", "OTEL_SERVICE_NAME")
                                : first_of("OTEL_SERVICE_NAME", "JAEGER_SERVICE_NAME");
    script_set_service(s, service ? service : *named ? named : "unknown_service");
}

/* ---- sampling ---- */

static double share_of(const char *given)
{
    char *end;
    double v = given ? strtod(given, &end) : 1;
    return !given || *end || !(v >= 0 && v <= 1) ? 1 : v;
}

static void take_sampler(struct script_settings *s, bool pfeil)
{
    const char *otel = variable("OTEL_TRACES_SAMPLER"), *jaeger = variable("JAEGER_SAMPLER_TYPE");
    s->share = 1;
    if (otel && !pfeil) {
        if (strstr(otel, "always_off"))
            s->share = 0;
        else if (strstr(otel, "traceidratio"))
            s->share = share_of(variable("OTEL_TRACES_SAMPLER_ARG"));
    } else if (is_word(jaeger, "const") || is_word(jaeger, "probabilistic")) {
        s->share = share_of(variable("JAEGER_SAMPLER_PARAM"));
    }
}

/* ---- spool ---- */

static void take_spool(struct script_settings *s)
{
    const char *given = variable("WEFT_SPAN_SPOOL"), *state = variable("XDG_STATE_HOME"), *home = variable("HOME");
    const char *most = variable("WEFT_SPAN_SPOOL_BYTES"), *temporary = variable("TMPDIR");
    s->spool_given = given;
    if (given)
        s->spool = given;
    else if (state && *state == '/')
        s->spool = arena_printf(&s->arena, "%s/weft/spans", state);
    else if (home && *home == '/')
        s->spool = arena_printf(&s->arena, "%s/.local/state/weft/spans", home);
    else
        s->spool = arena_printf(&s->arena, "%s/weft-spans-%u", temporary ? temporary : "/tmp", (unsigned)geteuid());
    s->spool_bytes = SCRIPT_SPOOL_BYTES;
    if (most) {
        char *end;
        errno = 0;
        unsigned long long v = strtoull(most, &end, 10);
        if (*end || errno || *most == '-')
            script_note(s, "WEFT_SPAN_SPOOL_BYTES is no number of bytes: %d is used", SCRIPT_SPOOL_BYTES);
        else
            s->spool_bytes = v;
    }
}

void script_read_settings(struct script_settings *s, bool pfeil, bool quiet)
{
    *s = (struct script_settings){.quiet = quiet, .headers = {.fd = -1}};
    if (pfeil)
        take_jaeger(s);
    if (!s->endpoint)
        take_otlp(s);
    if (!s->endpoint)
        take_jaeger(s);
    take_default(s, pfeil);
    take_timeout(s);
    take_headers(s);
    take_certificates(s);
    take_jaeger_user(s);
    take_resource(s, pfeil);
    take_sampler(s, pfeil);
    take_spool(s);
    s->announce = !is_word(variable("WEFT_SPAN_OPEN"), "no") && !s->thrift;
    s->off |= is_word(variable("OTEL_SDK_DISABLED"), "true") || is_word(variable("OTEL_TRACES_EXPORTER"), "none") ||
        is_word(variable("JAEGER_DISABLED"), "true");
    if (s->unusable && !s->off)
        script_note(s, "spans cannot be sent to %.200s, they wait in %.200s: %s",
            strchr(s->endpoint, '@') ? "the endpoint" : s->endpoint, s->spool, s->unusable); /* userinfo hidden: no
                                                                                              * passwords in logs */
}

void script_settings_fini(struct script_settings *s)
{
    text_fini(&s->headers);
    free(s->resource.list.v);
    arena_fini(&s->arena);
}
