/* `pure-host check` of the files of TLS. A host starts without them, and what needs them rests: so that is
 * the time to hear of them. */
#include "host/check.h"

#include "host/key_file.h"
#include "tls/context.h"
#include "tls/trust.h"

#include <errno.h>
#include <sys/stat.h>

#define DAY_S  INT64_C(86400)
#define SOON_S (14 * DAY_S)

/* One use of files: an output's, or the front's. */
struct use {
    const struct config *config;
    const char *ca; /* NULL: the system's, or none if `server` */
    unsigned ca_line;
    const struct config_pair *pair;
    bool server;
};

static unsigned problem(const struct use *u, FILE *out, unsigned line, const char *what, const char *remedy)
{
    fprintf(out, "pure-host: %s:%u: TLS: %s%s\n", u->config->path, line, what, remedy);
    return 1;
}

static void note(const struct use *u, FILE *out, unsigned line, const char *what, int64_t number)
{
    fprintf(out, "pure-host: note: %s:%u: TLS: ", u->config->path, line);
    fprintf(out, what, (long long)number);
    fputc('\n', out);
}

/* `*trust`: NULL if there is none. */
static unsigned check_ca(const struct use *u, struct tls_trust **trust, FILE *out)
{
    char why[400];
    unsigned passed_over;
    *trust = NULL;
    if (u->server && !u->ca)
        return 0;
    if (tls_trust_read(trust, u->ca, &passed_over, why, sizeof(why)) < 0)
        return problem(u, out, u->ca_line, why, "");
    if (passed_over > 0)
        note(u, out, u->ca_line, "%lld CA certificates cannot be read, and are passed over", passed_over);
    return 0;
}

static unsigned check_mode(const struct use *u, FILE *out)
{
    struct stat is;
    char what[400];
    const char *path = u->pair->key;
    if (stat(path, &is) < 0 || (is.st_mode & S_IRWXO) == 0 || key_file_is_credential(path))
        return 0; /* that it is not there is said by whoever reads it */
    snprintf(what, sizeof(what), "%.300s: everybody on this machine may use this key (mode %03o)", path,
             (unsigned)(is.st_mode & 0777));
    return problem(u, out, u->pair->key_line, what, ": chmod o-rwx");
}

/* Of each certificate of our chain: those of CAs expire, too. */
static unsigned check_dates(const struct use *u, int64_t now_s, FILE *out)
{
    char why[400];
    unsigned passed_over, line = u->pair->certificate_line;
    struct tls_trust *chain;
    int64_t ends_s = INT64_MAX, begins_s = INT64_MIN;
    if (tls_trust_read(&chain, u->pair->certificate, &passed_over, why, sizeof(why)) < 0)
        return 0; /* the context says it */
    for (unsigned i = 0; i < chain->count; i++) {
        const struct x509 *c = &chain->anchors[i];
        ends_s = c->not_after_s < ends_s ? c->not_after_s : ends_s;
        begins_s = c->not_before_s > begins_s ? c->not_before_s : begins_s;
    }
    tls_trust_drop(chain);
    snprintf(why, sizeof(why), "%.300s: ", u->pair->certificate);
    if (ends_s < now_s)
        return problem(u, out, line, why, "a certificate in it has expired: have it renewed");
    if (begins_s > now_s)
        return problem(u, out, line, why,
                       "a certificate in it is not yet valid: is this machine's clock right?");
    if (ends_s - now_s < SOON_S)
        fprintf(out, "pure-host: note: %s:%u: TLS: %sa certificate in it expires in %lld days\n",
                u->config->path, line, why, (long long)((ends_s - now_s) / DAY_S));
    return 0;
}

static unsigned check_pair(const struct use *u, struct tls_trust *trust, int64_t now_s, FILE *out)
{
    struct tls_context *context;
    char why[400];
    const struct tls_options options = {
        .trust = trust, .certificate = u->pair->certificate, .key = u->pair->key, .server = u->server};
    if (!u->pair->certificate)
        return 0;
    unsigned problems = check_mode(u, out) + check_dates(u, now_s, out);
    if (!u->server && !trust)
        return problems; /* without whom to trust there is no context */
    if (tls_context_make(&context, &options, why, sizeof(why)) < 0)
        return problems + problem(u, out, u->pair->certificate_line, why, "");
    tls_context_drop(context);
    return problems;
}

static unsigned check_use(const struct use *u, int64_t now_s, FILE *out)
{
    struct tls_trust *trust;
    unsigned problems = check_ca(u, &trust, out);
    problems += check_pair(u, trust, now_s, out);
    tls_trust_drop(trust);
    return problems;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Files that several outputs share are looked at once. */
static bool was_checked(const struct config *config, unsigned index)
{
    const struct config_wire *w = &config->outputs[index].wire;
    for (unsigned i = 0; i < index; i++) {
        const struct config_output *earlier = &config->outputs[i];
        if (earlier->kind == OUTPUT_WIRE && earlier->url.tls &&
            same_text(earlier->wire.egress.ca, w->egress.ca) &&
            same_text(earlier->wire.pair.certificate, w->pair.certificate) &&
            same_text(earlier->wire.pair.key, w->pair.key))
            return true;
    }
    return false;
}

unsigned check_tls(const struct config *config, int64_t now_s, FILE *out)
{
    unsigned problems = 0;
    const struct config_https *https = &config->https;
    if (https->text)
        problems +=
            check_use(&(struct use){config, https->ca, https->ca_line, &https->pair, true}, now_s, out);
    for (unsigned i = 0; i < config->output_count; i++) {
        const struct config_output *o = &config->outputs[i];
        const struct config_egress *egress = &o->wire.egress;
        if (o->kind != OUTPUT_WIRE || !o->url.tls || was_checked(config, i))
            continue;
        problems += check_use(
            &(struct use){config, egress->ca, egress->ca ? egress->ca_line : o->line, &o->wire.pair, false},
            now_s, out);
    }
    return problems;
}
