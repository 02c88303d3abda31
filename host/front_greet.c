#include "host/front_greet.h"

#include "host/front_client.h"

void front_greet(struct client *c)
{
    struct front *front = c->front;
    c->greeting = true;
    front->greeting++;
    uint64_t most_ns = min_u64(FRONT_GREET_NS, front->config->request_ns);
    c->request_ns = min_u64(c->request_ns, front->loop->now_ns + most_ns);
    struct tls_context *context = tls_current_take(front->https);
    int error = context ? secure_start(&c->secure, context, NULL, NULL) : PE_TLS_FILES;
    tls_context_drop(context);
    if (error < 0) {
        front_greet_failed(c, error);
        client_close(c);
    }
}

void front_greet_ends(struct client *c)
{
    if (!c->greeting)
        return;
    c->greeting = false;
    c->front->greeting--;
    front_listen_adjust(c->front);
}

void front_greet_failed(struct client *c, int error)
{
    struct front *front = c->front;
    uint64_t now_ns = front->loop->now_ns;
    front->counters.handshake_fails++;
    front->greet_unsaid++;
    if (front->greet_said_ns > 0 && now_ns - front->greet_said_ns < FRONT_GREET_SAY_NS)
        return;
    const char *detail = secure_detail(&c->secure);
    log_line(front->log, LOG_NOTICE, "https: a TLS handshake has failed: %s%s%s (%llu failed since %s)",
             pure_error_text(error), detail[0] ? ": " : "", detail, (unsigned long long)front->greet_unsaid,
             front->greet_said_ns > 0 ? "it was last said" : "the start");
    front->greet_said_ns = now_ns;
    front->greet_unsaid = 0;
}
