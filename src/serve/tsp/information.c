/* SPDX-License-Identifier: MIT */
/* Information about the server: `health` and `identifier`. */
#include <sys/utsname.h>

#include "base/machine.h"
#include "base/pool.h"
#include "tsp/routes.h"

static void write_identity(struct tsp_server *s, struct json *j)
{
    struct utsname u = {0};
    uname(&u);
    json_begin_object(j);
    json_kv_string(j, "version", s->o.version ? s->o.version : "0");
    json_kv_string(j, "buildTime", s->o.version ? s->o.version : "0");
    json_kv_string(j, "os", u.sysname);
    json_kv_string(j, "osArch", u.machine);
    json_kv_string(j, "osVersion", u.release);
    json_kv_i64(j, "cpuCount", pool_cpus());
    json_kv_i64(j, "maxMemory", (int64_t)machine_memory_bytes());
    json_kv_string(j, "productId", "weft");
    json_kv_string(j, "launcherName", "weft serve");
    json_kv_string(j, "tspVersion", "0.6.0");
    json_kv_bool(j, "codes", true); /* answers whose message says more than their status have a code */
    json_key(j, "opens");           /* ways of opening that a client may offer */
    json_begin_object(j);
    json_kv_bool(j, "paths", s->root != NULL);
    json_kv_bool(j, "uploads", s->upload_dir && s->o.max_upload_bytes);
    json_end_object(j);
    json_end_object(j);
}

void tsp_information_answer(struct call *c, const char *what)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (strcmp(c->q->method, "GET") && strcmp(c->q->method, "HEAD")) {
        http_header(c->q, "Allow", "GET");
        tsp_call_error(c, 405, "Method not allowed", NULL);
        return;
    }
    if (!strcmp(what, "health")) {
        json_begin_object(&j);
        json_kv_string(&j, "status", "UP");
        json_end_object(&j);
    } else {
        write_identity(c->s, &j);
    }
    tsp_call_json(c, 200, &t);
}
