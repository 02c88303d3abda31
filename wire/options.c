#include "wire/options.h"

#include "wire/connection.h"
#include "wire/sealing.h"

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

/* RFC 9110 section 5.5: a field value has no control bytes but the tab; the ends are not white space. */
static bool field_value(const char *text, size_t max)
{
    size_t size = strlen(text);
    if (size == 0 || size > max || text[0] == ' ' || text[size - 1] == ' ')
        return false;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < 0x20 || *at == 0x7f)
            return false;
    }
    return true;
}

#define TEXT_MAX 4096

int wire_options_check(const struct wire_options *o, const char **why)
{
    *why = NULL;
    if (o->url.tls)
        *why = "https is not supported by this wire";
    else if (!o->agent || !field_value(o->agent, TEXT_MAX))
        *why = "the agent is not a header value";
    else if (o->token && !field_value(o->token, TEXT_MAX))
        *why = "the token is not a header value";
    else if (o->content_type && !field_value(o->content_type, TEXT_MAX))
        *why = "the content type is not a header value";
    else if (o->mode == WIRE_PURE && (!o->source || !field_value(o->source, WIRE_SOURCE_MAX)))
        *why = "the source is not a header value of 1 to 200 bytes";
    else if (o->mode == WIRE_PURE && (!o->event || !field_value(o->event, WIRE_EVENT_MAX)))
        *why = "the event is not a header value of 1 to 64 bytes";
    else if (o->pipeline > CONNECTION_PIPELINE_MAX || (o->pipeline > 1 && o->mode != WIRE_PURE))
        *why = "requests can be pipelined in mode pure only, at most 8";
    else if (o->batch_bytes == 0 || o->progress_ns == 0 || o->reply_ns == 0 || o->total_ns == 0 ||
             o->backoff_min_ns == 0)
        *why = "sizes and times have to be above 0";
    else if (o->seal_to)
        *why = sealing_check(o);
    return *why ? PE_CONFIG : 0;
}
