#include "tests/faults/table.h"

#include <stdio.h>

extern const struct fault_row fault_transport_rows[], fault_reply_rows[], fault_policy_rows[],
    fault_tls_rows[], fault_name_rows[];

const struct fault_row *const fault_tables[] = {fault_transport_rows, fault_reply_rows, fault_policy_rows,
                                                fault_tls_rows,       fault_name_rows,  NULL};

const struct fault_step fault_behaves[] = {REQUEST, SEND(FAULT_OK), AGAIN};
const struct fault_step fault_behaves_tls[] = {SECURE, REQUEST, SEND(FAULT_OK), AGAIN};

static uint64_t ms_or(unsigned ms, unsigned otherwise)
{
    return (ms > 0 ? ms : otherwise) * NS_PER_MS;
}

void fault_options(const struct fault_row *row, struct wire_options *o)
{
    const char *why, *url = row->url      ? row->url
                            : row->tls.on ? "https://a.example/hook"
                                          : "http://a.example/hook";
    wire_options_default(o);
    o->mode = row->mode;
    wire_options_statuses(o);
    int error = url_parse(&o->url, url, &why);
    if (error == 0 && row->proxied)
        error = url_parse(&o->proxy.url, "http://10.0.0.2:80", &why);
    assert(error == 0);
    (void)error;
    o->proxied = row->proxied;
    o->agent = "pure-host/1.0";
    o->source = "here/app/out";
    o->event = "measured";
    o->progress_ns = ms_or(row->progress_ms, 1000);
    o->reply_ns = ms_or(row->reply_ms, 1000);
    o->total_ns = ms_or(row->total_ms, 2000);
    o->backoff_min_ns = o->backoff_max_ns = ms_or(row->backoff_ms, 1000);
    o->connection_age_ns = row->connection_age_ms * NS_PER_MS;
    o->disable_failures = row->disable_failures;
    memset(o->epoch, 0xa5, sizeof o->epoch);
}
