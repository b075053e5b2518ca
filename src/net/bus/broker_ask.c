/* SPDX-License-Identifier: MIT */
/* The bus over NATS: how JetStream is asked, and its errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/broker.h"

enum {
    MOST_LACKING = 64,
    FIRST_PATIENCE_MS = 1000 /* timeout of a request that may have been lost with its broker; doubled each time */
};

struct broker *bus_broker_of(struct bus *b)
{
    return (struct broker *)b->wire;
}

int64_t bus_broker_deadline(const struct broker *b)
{
    return time_monotonic_ns() + b->timeout_ns;
}

int64_t bus_broker_ms_until(int64_t deadline_ns)
{
    int64_t left = deadline_ns - time_monotonic_ns();
    return left < 1000000 ? 1 : left / 1000000;
}

bool bus_broker_is_connected(struct broker *b)
{
    return !atomic_load(&b->closed) && natsConnection_Status(b->nc) == NATS_CONN_STATUS_CONNECTED;
}

int bus_broker_fail_away(struct broker *b, int code, struct err *e, const char *what)
{
    const char *begin = what ? what : "", *colon = what ? ": " : "";
    if (atomic_load(&b->closed))
        return err_set(e, ERR_CANCELLED, "%s%sthe bus is closed", begin, colon);
    if (natsConnection_IsClosed(b->nc))
        return err_set(e, ERR_UNSUPPORTED, "%s%sthe broker at %s refused the credentials; correct them and start again",
            begin, colon, b->where);
    return err_set(e, code, "%s%snot connected to the broker at %s", begin, colon, b->where);
}

/* Random in each connection, and no right by itself. */
static bool is_inbox(const char *right)
{
    return strstr(right, "_INBOX.") != NULL;
}

/* The text: Permissions Violation for Publish to "SUBJECT". */
void bus_broker_lacks(struct broker *b, const char *text)
{
    bool publish = strstr(text, "Publish");
    const char *subject = strchr(text, '"');
    size_t n = subject ? strcspn(subject + 1, "\"") : 0;
    char *right = mem_printf("%s \"%.*s\"", publish ? "publish to" : "subscribe to",
        (int)(n < BUS_MAX_SUBJECT ? n : BUS_MAX_SUBJECT), n ? subject + 1 : "?");
    pthread_mutex_lock(&b->lock);
    uint32_t before = (uint32_t)b->lacking.n;
    bool is_new = before < MOST_LACKING && strings_intern(&b->lacking, right, strlen(right)) == before;
    pthread_mutex_unlock(&b->lock);
    if (is_new && is_inbox(right))
        bus_tell(b->arg, "the broker at %s does not let this user hear answers (subscribe to \"%s.>\")", b->where,
            b->inboxes);
    else if (is_new)
        bus_tell(b->arg, "the broker at %s does not let this user %s", b->where, right);
    free(right);
}

bool bus_broker_right(struct broker *b, const char *word, char *out, size_t n)
{
    bool found = false;
    pthread_mutex_lock(&b->lock);
    for (uint32_t i = 0; i < b->lacking.n && !found; i++) {
        found = strstr(b->lacking.v[i], word) || is_inbox(b->lacking.v[i]);
        if (found)
            snprintf(out, n, "%s", b->lacking.v[i]);
    }
    pthread_mutex_unlock(&b->lock);
    return found;
}

int bus_broker_fail(struct broker *b, natsStatus s, jsErrCode code, struct err *e, const char *what)
{
    char right[BUS_MAX_SUBJECT + 40];
    const char *name = strrchr(what, ' ');
    if ((s == NATS_TIMEOUT || s == NATS_NO_RESPONDERS) && !code &&
        bus_broker_right(b, name ? name + 1 : what, right, sizeof right))
        return err_set(e, ERR_UNSUPPORTED, "%s: the broker at %s does not let this user %s", what, b->where, right);
    if (code == JSNotEnabledErr || code == JSNotEnabledForAccountErr)
        return err_set(
            e, ERR_UNSUPPORTED, "%s: the broker at %s has no JetStream; start it as nats-server -js", what, b->where);
    if (code == JSClusterNoPeersErr || code == JSStreamReplicasNotSupportedErr || code == JSInsufficientResourcesErr)
        return err_set(e, ERR_UNSUPPORTED, "%s: there are too few brokers at %s to keep it %d times (--replicas)", what,
            b->where, (int)b->replicas);
    if (code == JSClusterNotAvailErr)
        return err_set(
            e, ERR_TIMEOUT, "%s: too few of the brokers at %s are there: JetStream has no leader", what, b->where);
    if (code)
        return err_set(e, ERR_IO, "%s: the broker at %s says JetStream error %d", what, b->where, (int)code);
    switch (s) {
    case NATS_TIMEOUT:
        if (bus_broker_is_connected(b))
            return err_set(e, ERR_TIMEOUT, "%s: no answer from the broker at %s in time", what, b->where);
        return bus_broker_fail_away(b, ERR_TIMEOUT, e, what);
    case NATS_CONNECTION_CLOSED:
    case NATS_CONNECTION_DISCONNECTED: return bus_broker_fail_away(b, ERR_TIMEOUT, e, what);
    case NATS_NO_RESPONDERS:
        return err_set(
            e, ERR_UNSUPPORTED, "%s: the broker at %s has no JetStream; start it as nats-server -js", what, b->where);
    case NATS_INSUFFICIENT_BUFFER: return bus_broker_fail_away(b, ERR_IO, e, what);
    case NATS_MAX_PAYLOAD: return err_set(e, ERR_LIMIT, "%s: larger than the broker at %s takes", what, b->where);
    case NATS_NO_MEMORY: return err_set(e, ERR_NOMEM, "out of memory: %s", what);
    default: return err_set(e, ERR_IO, "%s: the broker at %s: %s", what, b->where, natsStatus_GetText(s));
    }
}

int bus_broker_await(struct broker *b, int64_t deadline_ns, struct err *e)
{
    bool in_time = true;
    pthread_mutex_lock(&b->lock);
    while (in_time && !atomic_load(&b->closed) && !natsConnection_IsClosed(b->nc) && !bus_broker_is_connected(b))
        in_time = wait_until(&b->change, &b->lock, deadline_ns);
    pthread_mutex_unlock(&b->lock);
    return bus_broker_is_connected(b) ? 0 : bus_broker_fail_away(b, ERR_TIMEOUT, e, "bus");
}

/* Returns whether the same request may be answered a moment later. */
static bool is_passing(const struct broker_attempt *a)
{
    if (a->code)
        return a->code == JSClusterNotAvailErr ||
            a->code == JSStreamSubjectOverlapErr; /* overlap with itself, while another node makes it */
    return a->status == NATS_NO_RESPONDERS || (a->status != NATS_NOT_FOUND && !a->once);
}

int bus_broker_once(struct broker *b, struct broker_attempt *a, int64_t deadline_ns, struct err *e)
{
    jsOptions o;
    jsOptions_Init(&o);
    a->code = 0;
    a->status = NATS_TIMEOUT;
    int rc = bus_broker_await(b, deadline_ns, e);
    if (rc)
        return rc;
    for (int64_t wait_ms = FIRST_PATIENCE_MS;; wait_ms *= 2) {
        int64_t left_ms = bus_broker_ms_until(deadline_ns);
        o.Wait = a->once || left_ms < wait_ms ? left_ms : wait_ms;
        a->status = a->step(a->arg, &o, &a->code);
        if (a->status != NATS_TIMEOUT || o.Wait == left_ms)
            break;
    }
    if (a->status == NATS_NO_RESPONDERS)
        a->code = 0; /* the library's own, and not always true: the stream may be gone, or about to come */
    return a->status == NATS_OK ? 0 : bus_broker_fail(b, a->status, a->code, e, a->what);
}

int bus_broker_try(struct broker *b, struct broker_attempt *a, int64_t deadline_ns, struct err *e)
{
    for (;;) {
        int rc = bus_broker_once(b, a, deadline_ns, e);
        if (!rc)
            return 0;
        int64_t now = time_monotonic_ns(), again = now + BUS_BROKER_AGAIN_MS * INT64_C(1000000);
        if (!is_passing(a) || again >= deadline_ns || atomic_load(&b->closed))
            return rc;
        pthread_mutex_lock(&b->lock);
        wait_until(&b->change, &b->lock, again);
        pthread_mutex_unlock(&b->lock);
    }
}

struct replicating {
    struct broker *broker;
    const char *stream;
    bool current;
};

static natsStatus replicate(void *arg, jsOptions *o, jsErrCode *code)
{
    struct replicating *r = arg;
    jsStreamInfo *i = NULL;
    natsStatus s = js_GetStreamInfo(&i, r->broker->js, r->stream, o, code);
    bool enough = s == NATS_OK && i->Config->Replicas >= r->broker->replicas;
    r->current = enough && i->Cluster && i->Cluster->ReplicasLen + 1 >= r->broker->replicas;
    for (int k = 0; r->current && k < i->Cluster->ReplicasLen; k++)
        r->current = i->Cluster->Replicas[k]->Current || i->Cluster->Replicas[k]->Offline;
    if (s == NATS_OK && !enough) {
        i->Config->Replicas = r->broker->replicas;
        s = js_UpdateStream(NULL, r->broker->js, i->Config, o, code);
    }
    jsStreamInfo_Destroy(i);
    return s;
}

int bus_broker_replicate(struct broker *b, const char *stream, const char *what, int64_t deadline_ns, struct err *e)
{
    struct replicating r = {.broker = b, .stream = stream, .current = b->replicas <= 1};
    struct broker_attempt a = {.step = replicate, .arg = &r, .what = what};
    int rc = 0;
    while (!rc && !r.current) {
        rc = bus_broker_try(b, &a, deadline_ns, e);
        int64_t again = time_monotonic_ns() + BUS_BROKER_AGAIN_MS * INT64_C(1000000);
        if (!rc && !r.current && again >= deadline_ns)
            return err_set(e, ERR_TIMEOUT, "%s: the brokers at %s have not copied it in time", what, b->where);
        pthread_mutex_lock(&b->lock);
        if (!rc && !r.current)
            wait_until(&b->change, &b->lock, again);
        pthread_mutex_unlock(&b->lock);
    }
    return rc;
}

/* "$JS.ACK.STREAM.CONSUMER.delivered.stream.consumer.time.pending"; newer servers put a domain and an account before
 * the stream, and a random token behind. */
bool bus_broker_mark(const char *reply, struct bus_broker_mark *out)
{
    enum { OLD = 9, NEW = 11, NUMBERS = 5 };
    static const char prefix[] = "$JS.ACK.";
    uint64_t v[NUMBERS];
    unsigned tokens = 1;
    if (!reply || strncmp(reply, prefix, sizeof prefix - 1) != 0)
        return false;
    for (const char *c = reply; *c; c++)
        tokens += *c == '.';
    if (tokens != OLD && tokens < NEW)
        return false;
    for (unsigned skip = tokens == OLD ? 4 : 6; skip; skip--)
        reply = strchr(reply, '.') + 1;
    for (unsigned i = 0; i < NUMBERS; i++) {
        char *end;
        v[i] = strtoull(reply, &end, 10);
        if (end == reply || (*end != '.' && *end))
            return false;
        reply = *end ? end + 1 : end;
    }
    *out = (struct bus_broker_mark){v[0], v[1], v[2], v[4], (int64_t)v[3]};
    return true;
}
