#include "wire/options.h"

#include "wire/connection.h"
#include "wire/http_class.h"
#include "wire/sealing.h"
#include "wire/signature.h"
#include "wire/template.h"

#include <strings.h>

void wire_options_default(struct wire_options *o)
{
    *o = (struct wire_options){.mode = WIRE_WEBHOOK,
                               .concurrency = 1,
                               .agent = "pure-host",
                               .batch_bytes = 256 * 1024,
                               .progress_ns = 10 * NS_PER_S,
                               .reply_ns = 30 * NS_PER_S,
                               .total_ns = 300 * NS_PER_S,
                               .backoff_min_ns = 100 * NS_PER_MS,
                               .backoff_max_ns = 60 * NS_PER_S};
    wire_options_statuses(o);
}

/* What is about the sender, the way or the moment, and not about the record. */
static const uint16_t no_refusals[] = {401, 403, 407, 408, 410, 425, 429};

void wire_options_statuses(struct wire_options *o)
{
    o->stored = o->refused = o->disables = (struct wire_statuses){0};
    wire_statuses_add(&o->stored, 200, 299);
    wire_statuses_add(&o->refused, 400, 499);
    for (unsigned i = 0; i < ARRAY_SIZE(no_refusals); i++)
        wire_statuses_remove(&o->refused, no_refusals[i]);
    if (o->mode == WIRE_PURE)
        wire_statuses_remove(&o->refused, 409); /* about the stream */
    wire_statuses_add(&o->disables, 410, 410);
}

/* --- headers --- */

#define TEXT_MAX        4096 /* bytes of a header's value */
#define HEADER_NAME_MAX 128  /* bytes */

/* What the wire writes itself, or what belongs to a connection (RFC 9110 section 7.6.1). */
static const char *own_header(const char *name)
{
#define OWN(name)                                               \
    {                                                           \
        name, "the header " name " is written by the wire only" \
    }
    static const struct {
        const char *name, *why;
    } own[] = {OWN("Host"),       OWN("Content-Length"),    OWN("Content-Encoding"),
               OWN("Connection"), OWN("Transfer-Encoding"), OWN("Keep-Alive"),
               OWN("TE"),         OWN("Trailer"),           OWN("Upgrade"),
               OWN("Expect"),     OWN("Proxy-Connection"),  OWN("Proxy-Authorization")};
#undef OWN
    for (unsigned i = 0; i < ARRAY_SIZE(own); i++) {
        if (strcasecmp(name, own[i].name) == 0)
            return own[i].why;
    }
    if (strncasecmp(name, "webhook-", strlen("webhook-")) == 0)
        return "headers webhook-* are written by the wire only";
    if (strncasecmp(name, "Pure-", strlen("Pure-")) == 0)
        return "headers Pure-* are written by the wire only";
    return NULL;
}

static const char *check_name(const struct wire_options *o, const char *name)
{
    struct span text = span_text(name);
    if (text.size == 0 || text.size > HEADER_NAME_MAX || !http_class_all(text, CLASS_TOKEN))
        return "the name of a header has 1 to 128 letters, digits and \"!#$%&'*+-.^_`|~\"";
    if (o->token && strcasecmp(name, "Authorization") == 0)
        return "a token and a header Authorization: one says it all";
    if (o->content_type && strcasecmp(name, "Content-Type") == 0)
        return "a content type and a header Content-Type: one says it all";
    return own_header(name);
}

const char *wire_header_check(const struct wire_options *o, const struct wire_header *header)
{
    struct template_names names = {o->source, o->event, o->mode == WIRE_WEBHOOK};
    const char *why = check_name(o, header->name);
    return why ? why : template_check(header->value, &names);
}

static const char *check_headers(const struct wire_options *o)
{
    if (o->header_count > WIRE_HEADERS_MAX)
        return "more than 32 headers";
    for (unsigned i = 0; i < o->header_count; i++) {
        const char *why = wire_header_check(o, &o->headers[i]);
        if (why)
            return why;
        for (unsigned k = 0; k < i; k++) {
            if (strcasecmp(o->headers[i].name, o->headers[k].name) == 0)
                return "a header is there twice";
        }
    }
    return NULL;
}

/* --- all --- */

static const char *check_texts(const struct wire_options *o)
{
    if (!o->agent || !template_field_value(o->agent, TEXT_MAX))
        return "the agent is not a header value";
    if (o->token && !template_field_value(o->token, TEXT_MAX))
        return "the token is not a header value";
    if (o->content_type && !template_field_value(o->content_type, TEXT_MAX))
        return "the content type is not a header value";
    if (o->proxied && o->proxy.authorization && !template_field_value(o->proxy.authorization, TEXT_MAX))
        return "the authorization at the proxy is not a header value";
    return NULL;
}

static const char *check_secrets(const struct wire_options *o)
{
    if (o->secret_count > WIRE_SECRETS_MAX)
        return "too many signing secrets: 4 at most";
    for (unsigned i = 0; i < o->secret_count; i++) {
        const char *why = secret_check(&o->secrets[i]);
        if (why)
            return why;
    }
    return NULL;
}

/* Receivers in mode pure are hosts. */
static const char *check_pure(const struct wire_options *o)
{
    if (!o->source || !template_field_value(o->source, WIRE_SOURCE_MAX))
        return "the source is not a header value of 1 to 200 bytes";
    if (!o->event || !template_field_value(o->event, WIRE_EVENT_MAX))
        return "the event is not a header value of 1 to 64 bytes";
    if (o->secret_count > 0)
        return "requests are signed in modes webhook and batch only";
    if (o->header_count > 0)
        return "headers are for modes webhook and batch only";
    if (o->gzip != 0)
        return "bodies are compressed in modes webhook and batch only";
    return o->seal_to ? sealing_check(o) : NULL;
}

static const char *check_sizes(const struct wire_options *o)
{
    if (o->gzip < 0 || o->gzip > 9)
        return "the gzip level is 1 to 9, or 0 for none";
    if (o->pipeline > CONNECTION_PIPELINE_MAX || (o->pipeline > 1 && o->mode != WIRE_PURE))
        return "requests can be pipelined in mode pure only, at most 8";
    if (o->concurrency > WIRE_CONCURRENCY_MAX || (o->concurrency > 1 && o->mode != WIRE_WEBHOOK))
        return "requests go side by side in mode webhook only, at most 64";
    if (o->order_by && (!*o->order_by || strlen(o->order_by) > WIRE_MEMBER_MAX))
        return "the name of the member to order by has 1 to 128 bytes";
    if (o->batch_bytes == 0 || o->progress_ns == 0 || o->reply_ns == 0 || o->total_ns == 0 ||
        o->backoff_min_ns == 0)
        return "sizes and times have to be above 0";
    return NULL;
}

static const char *check_destination(const struct wire_options *o)
{
    if (o->url.tls && !o->tls)
        return "https needs to know whom to trust";
    if (o->proxied && o->proxy.url.tls)
        return "a proxy is spoken to by http only";
    return NULL;
}

int wire_options_check(const struct wire_options *o, const char **why)
{
    const char *(*const checks[])(const struct wire_options *o) = {
        check_destination, check_texts, o->mode == WIRE_PURE ? check_pure : check_headers, check_secrets,
        check_sizes};
    *why = NULL;
    for (unsigned i = 0; i < ARRAY_SIZE(checks) && !*why; i++)
        *why = checks[i](o);
    return *why ? PE_CONFIG : 0;
}
