/* SPDX-License-Identifier: MIT */
/* Access control: passwords, tokens, TLS. Error messages contain no secret. */
#include <sys/stat.h>

#include "world.h"

static char url[200];

static const char *url_of(const char *scheme, const char *user)
{
    snprintf(url, sizeof url, "%s://%s127.0.0.1:%d", scheme, user, world_port());
    return url;
}

static int try_open(struct bus_options o, struct err *e)
{
    struct bus *b;
    struct bus_reply r;
    o.timeout_ns = 3 * NS_PER_S;
    *e = (struct err){0};
    int rc = bus_open(&o, &b, e);
    assert_null(strstr(e->text, "s3cret"));
    assert_null(strstr(e->text, "anna"));
    if (rc)
        return rc;
    assert_int_equal(bus_ask(b, "nobody.here", "", 0, in_ms(3000), &r), ERR_NOTFOUND); /* connection works */
    bus_close(b);
    return 0;
}

static const char *write_file(const char *name, const char *text)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", world_directory(), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    return path;
}

static void test_password(void **state)
{
    static const char *const arguments[] = {"--user", "anna", "--pass", "s3cret", NULL};
    struct err e;
    world_need();
    world_serve_with(arguments);
    assert_int_equal(try_open((struct bus_options){.url = url_of("nats", "anna:s3cret@")}, &e), 0);
    assert_int_equal(try_open((struct bus_options){.url = url_of("nats", "anna:s3cret1@")}, &e), ERR_IO);
    assert_non_null(strstr(e.text, "refused"));
    assert_non_null(strstr(e.text, "nats://127.0.0.1:"));
    assert_int_equal(try_open((struct bus_options){.url = url_of("nats", "")}, &e), ERR_IO);
    /* Optional connection: an error is returned by the first query, or at once if the broker was as quick. */
    struct bus *b;
    struct bus_reply r = {0};
    int rc = bus_open(&(struct bus_options){.url = url_of("nats", "anna:s3cret1@"), .later = true}, &b, &e);
    if (!rc)
        assert_int_equal(bus_ask(b, "x", "", 0, in_ms(1000), &r), ERR_TIMEOUT);
    else
        assert_int_equal(rc, ERR_IO);
    const char *said = rc ? e.text : r.text;
    assert_non_null(strstr(said, "nats://127.0.0.1:"));
    assert_null(strstr(said, "s3cret"));
    bus_close(b);
}

static void test_token(void **state)
{
    static const char *const arguments[] = {"--auth", "s3cret", NULL};
    struct err e;
    world_need();
    world_serve_with(arguments);
    const char *u = url_of("nats", "");
    assert_int_equal(try_open((struct bus_options){.url = u, .token = write_file("token", "s3cret\n")}, &e), 0);
    assert_int_equal(try_open((struct bus_options){.url = u, .token = write_file("token", "s3cret2")}, &e), ERR_IO);
    assert_int_equal(try_open((struct bus_options){.url = u, .token = write_file("token", "\n")}, &e), ERR_ARG);
    assert_int_equal(try_open((struct bus_options){.url = u, .token = "/nowhere/token"}, &e), ERR_IO);
    assert_non_null(strstr(e.text, "/nowhere/token"));
    assert_int_equal(try_open((struct bus_options){.url = u, .creds = "/nowhere/creds"}, &e), ERR_ARG);
    assert_non_null(strstr(e.text, "/nowhere/creds"));
}

static void test_tls(void **state)
{
    static char certificate[250], key[250], command[900];
    static const char *const arguments[] = {"--tls", "--tlscert", certificate, "--tlskey", key, NULL};
    struct err e;
    world_need();
    if (system("command -v openssl >/dev/null"))
        skip_without("openssl");
    snprintf(certificate, sizeof certificate, "%s/certificate.pem", world_directory());
    snprintf(key, sizeof key, "%s/key.pem", world_directory());
    snprintf(command, sizeof command,
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 "
        "-keyout %s -out %s 2>/dev/null",
        key, certificate);
    assert_int_equal(system(command), 0);
    world_serve_with(arguments);
    const char *u = url_of("tls", "");
    assert_int_equal(try_open((struct bus_options){.url = u}, &e), ERR_IO); /* signature of an unknown authority */
    if (try_open((struct bus_options){.url = u, .tls_ca = certificate}, &e))
        fail_msg("%s", e.text);
    assert_int_equal(try_open((struct bus_options){.url = u, .tls_ca = key}, &e), ERR_ARG);
    assert_int_equal(try_open((struct bus_options){.url = u, .tls_ca = "/nowhere/ca"}, &e), ERR_ARG);
    assert_int_equal(
        try_open((struct bus_options){.url = u, .tls_ca = certificate, .tls_cert = certificate}, &e), ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest nats[] = {
        cmocka_unit_test(test_password),
        cmocka_unit_test(test_token),
        cmocka_unit_test(test_tls),
    };
    return _cmocka_run_group_tests("access", nats, sizeof nats / sizeof *nats, world_nats, world_end);
}
