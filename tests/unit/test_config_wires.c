/* What the configuration says of wires: signatures, headers, statuses, rates, proxies, networks, TLS; and of
 * the front's https. */
#include "host/config.h"
#include "host/config_values.h"

#include "core/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static char error[1600];

static int load(struct config *config, const char *text)
{
    error[0] = '\0';
    return config_load_text(config, "dir/x.conf", span_text(text), error, sizeof(error));
}

static void load_right(struct config *config, const char *text)
{
    if (load(config, text) < 0)
        fail_msg("%s", error);
}

/* Base64 of 24, 32 and 64 times 'A'. */
#define BYTES_24 "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
#define BYTES_32 "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
#define BYTES_64 BYTES_24 BYTES_24 "QUFBQUFBQUFBQUFBQUFBQQ=="
#define KEY_A    "PHeMdsnWZDJDbb7qWMobcZRzbIG/L3IcSe79r0PyFhg="

#define APP   "[app a]\nmodule = ./a\n"
#define OTHER "[output a.other]\ninner = a\n"
#define HOOK  APP "[output a.o]\nwire = http://h/\n"  /* 4 lines */
#define TLS   APP "[output a.o]\nwire = https://h/\n" /* 4 lines */

/* --- files that are right --- */

static void every_key_of_wires_reaches_its_field(void **state)
{
    (void)state;
    struct config config;
    load_right(&config, TLS "sign = whsec_" BYTES_24 ", whsk_" BYTES_32 "\n"
                            "header.X-Api-Key = s p {id}\n"
                            "header.authorization = Basic eA==\n"
                            "gzip = 6\n"
                            "success = 200 - 204, 304\n"
                            "refuse = 400, 422\n"
                            "disable = none\n"
                            "disable_after = 5d, 100\n"
                            "on_disable = a.other\n"
                            "concurrency = 64\n"
                            "order_by = customer\n"
                            "rate = 90/m\n"
                            "connection_age = 1h\n"
                            "proxy = http://me:p%40ss@Proxy.local:3128/\n"
                            "allow = 10.1.2.3\n"
                            "deny = private\n"
                            "ca = ca.pem\n"
                            "certificate = file:own.pem\n"
                            "certificate_key = /keys/own.key\n"
                            "pin = " BYTES_32 ",sha256//" BYTES_32 "\n" OTHER
                            "[output a.b]\nwire = http://h/\nmode = batch\nbatch_wait = 250ms\n");
    const struct config_wire *w = &config.outputs[0].wire;
    assert_true(config.outputs[0].url.tls);
    assert_int_equal(w->secret_count, 2);
    assert_int_equal(w->secrets[0].kind, WIRE_HMAC);
    assert_int_equal(w->secrets[0].size, 24);
    assert_int_equal(w->secrets[0].key[23], 'A');
    assert_int_equal(w->secrets[1].kind, WIRE_ED25519);
    assert_int_equal(w->secrets[1].size, 32);
    assert_int_equal(w->header_count, 2);
    assert_string_equal(w->headers[0].name, "X-Api-Key");
    assert_string_equal(w->headers[0].value, "s p {id}");
    assert_string_equal(w->headers[1].name, "authorization");
    assert_int_equal(w->gzip, 6);
    assert_int_equal(w->disable_failures, 100);
    assert_true(w->disable_ns == 5 * 24 * 3600 * NS_PER_S);
    assert_string_equal(w->on_disable, "other");
    assert_int_equal(w->concurrency, 64);
    assert_string_equal(w->order_by, "customer");
    assert_true(w->rate_mhz == 1500);
    assert_true(w->connection_age_ns == 3600 * NS_PER_S);
    assert_string_equal(w->egress.proxy->url.host, "proxy.local");
    assert_int_equal(w->egress.proxy->url.port, 3128);
    assert_string_equal(w->egress.proxy->authorization, "Basic bWU6cEBzcw=="); /* me:p@ss */
    assert_int_equal(w->egress.networks.allow_count, 1);
    assert_true(w->egress.networks.deny_count > 0);
    assert_string_equal(w->egress.ca, "dir/ca.pem");
    assert_string_equal(w->pair.certificate, "dir/own.pem");
    assert_string_equal(w->pair.key, "/keys/own.key");
    assert_int_equal(w->pin_count, 2);
    assert_int_equal(w->pins[1][31], 'A');
    assert_true(config.outputs[2].wire.batch_wait_ns == 250 * NS_PER_MS);
    config_dispose(&config);
}

static void defaults_of_wires_are_as_the_header_says(void **state)
{
    (void)state;
    struct config config;
    struct wire_options usual;
    load_right(&config, HOOK);
    const struct config_wire *w = &config.outputs[0].wire;
    wire_options_default(&usual);
    assert_memory_equal(&w->stored, &usual.stored, sizeof(w->stored));
    assert_memory_equal(&w->refused, &usual.refused, sizeof(w->refused));
    assert_memory_equal(&w->disables, &usual.disables, sizeof(w->disables));
    assert_int_equal(w->secret_count + w->header_count + w->gzip + w->pin_count + w->disable_failures, 0);
    assert_true(w->disable_ns == 0 && w->rate_mhz == 0 && w->batch_wait_ns == 0 && w->connection_age_ns == 0);
    assert_int_equal(w->concurrency, 1);
    assert_null(w->order_by);
    assert_null(w->on_disable);
    assert_null(w->egress.proxy);
    assert_null(w->egress.ca);
    assert_null(w->pair.certificate);
    assert_int_equal(w->egress.networks.allow_count + w->egress.networks.deny_count, 0);
    assert_null(config.https.text);
    config_dispose(&config);
}

#define STORED   offsetof(struct config_wire, stored)
#define REFUSED  offsetof(struct config_wire, refused)
#define DISABLES offsetof(struct config_wire, disables)
#define NO_LIST  ((size_t)-1)

static bool only_in(const struct config *config, unsigned status, size_t list)
{
    static const size_t lists[] = {STORED, REFUSED, DISABLES};
    const char *wire = (const char *)&config->outputs[0].wire;
    bool right = true;
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++) {
        const struct wire_statuses *statuses = (const struct wire_statuses *)(const void *)(wire + lists[i]);
        right = right && wire_statuses_have(statuses, status) == (lists[i] == list);
    }
    return right;
}

/* A list that is given takes its statuses from those that are not. */
static void a_status_means_one_thing(void **state)
{
    (void)state;
    struct config config;
    load_right(&config, HOOK "success = 200-299, 404, 410\n");
    assert_true(only_in(&config, 200, STORED) && only_in(&config, 404, STORED) &&
                only_in(&config, 410, STORED));
    assert_true(only_in(&config, 400, REFUSED) && only_in(&config, 429, NO_LIST) &&
                only_in(&config, 500, NO_LIST));
    config_dispose(&config);
    load_right(&config, HOOK "success = 200\nrefuse = 410-411\n");
    assert_true(only_in(&config, 201, NO_LIST));
    assert_true(only_in(&config, 410, REFUSED) && only_in(&config, 400, NO_LIST));
    config_dispose(&config);
    load_right(&config, HOOK "disable = 404, 410\nrefuse = none\n");
    assert_true(only_in(&config, 404, DISABLES) && only_in(&config, 400, NO_LIST));
    config_dispose(&config);
    load_right(&config, APP "[output a.o]\nwire = http://h/\nmode = pure\napp = b\n");
    assert_true(only_in(&config, 409, NO_LIST) && only_in(&config, 400, REFUSED));
    config_dispose(&config);
}

static void the_hosts_ways_are_those_of_outputs_that_say_nothing(void **state)
{
    (void)state;
    struct config config;
    load_right(&config, "[host]\nproxy = http://p:1\ndeny = private\nca = /ca\n" APP
                        "[output a.all]\nwire = https://h/\n"
                        "[output a.own]\nwire = https://h/\nproxy = none\nallow = 10.0.0.0/8\nca = own\n"
                        "[output a.third]\nwire = http://h/\nproxy = http://q:2\ndeny = 192.0.2.1\n");
    const struct config_egress *all = &config.outputs[0].wire.egress, *own = &config.outputs[1].wire.egress,
                               *third = &config.outputs[2].wire.egress;
    assert_string_equal(all->proxy->url.host, "p");
    assert_null(all->proxy->authorization);
    assert_string_equal(all->ca, "/ca");
    assert_true(all->networks.allow_count == 0 && all->networks.deny_count > 0);
    assert_null(own->proxy);
    assert_string_equal(own->ca, "dir/own");
    assert_int_equal(own->networks.allow_count, 1);
    assert_int_equal(own->networks.deny_count, all->networks.deny_count);
    assert_string_equal(third->proxy->url.host, "q");
    assert_int_equal(third->networks.deny_count, 1);
    config_dispose(&config);
}

static void secrets_are_one_a_line_of_a_file_or_variable_too(void **state)
{
    (void)state;
    struct config config;
    char text[400] = "whsec_" BYTES_64 "\n\nwhsk_";
    uint8_t public[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES], seed[32] = {1};
    crypto_sign_seed_keypair(public, secret, seed);
    sodium_bin2base64(text + strlen(text), sizeof(text) - strlen(text), secret, sizeof(secret),
                      sodium_base64_VARIANT_ORIGINAL);
    setenv("TEST_CONFIG_SIGN", text, 1);
    load_right(&config, HOOK "sign = env:TEST_CONFIG_SIGN\n");
    unsetenv("TEST_CONFIG_SIGN");
    const struct config_wire *w = &config.outputs[0].wire;
    assert_int_equal(w->secret_count, 2);
    assert_int_equal(w->secrets[0].size, 64);
    assert_int_equal(w->secrets[1].size, 32);
    config_dispose(&config);
}

/* They may come later, or be made anew: only their paths are the configuration's. */
static void files_of_tls_need_not_be_there(void **state)
{
    (void)state;
    struct config config;
    setenv("CREDENTIALS_DIRECTORY", "/run/credentials/pure", 1);
    load_right(&config, "[host]\nhttps = [::1]:7443\nhttps_certificate = file:/nonexistent/x.pem\n"
                        "https_key = credential:front.key\n" TLS "ca = file:/nonexistent\n");
    unsetenv("CREDENTIALS_DIRECTORY");
    assert_string_equal(config.https.pair.certificate, "/nonexistent/x.pem");
    assert_string_equal(config.https.pair.key, "/run/credentials/pure/front.key");
    assert_string_equal(config.outputs[0].wire.egress.ca, "/nonexistent");
    config_dispose(&config);
}

static void the_front_by_https_has_its_address_and_files(void **state)
{
    (void)state;
    struct config config;
    load_right(&config,
               "[host]\nhttps = 0.0.0.0:7443\nhttps_certificate = c\nhttps_key = k\nhttps_ca = ca\n" APP);
    const struct sockaddr_in *address = (const struct sockaddr_in *)&config.https.address;
    assert_string_equal(config.https.text, "0.0.0.0:7443");
    assert_int_equal(config.https.line, 2);
    assert_int_equal(ntohs(address->sin_port), 7443);
    assert_string_equal(config.https.ca, "dir/ca");
    config_dispose(&config);
    load_right(&config,
               "[host]\nhttps = 0.0.0.0:7443\nhttps_certificate = c\nhttps_key = k\ntoken = t\n" APP);
    assert_string_equal(config.http, "127.0.0.1:7070");
    config_dispose(&config);
    load_right(&config,
               "[host]\nhttp = none\nhttps = 127.0.0.1:7443\nhttps_certificate = c\nhttps_key = k\n" APP);
    assert_null(config.http);
    config_dispose(&config);
}

static void a_pure_wire_with_a_key_is_sealed(void **state)
{
    (void)state;
    struct config config;
    load_right(&config,
               "[host]\nkey = host.key\n" APP "[output a.o]\nwire = http://h/\nmode = pure\napp = b\n"
               "key = " KEY_A "\n");
    assert_int_equal(config.outputs[0].link_key_line, 9);
    assert_int_equal(config.outputs[0].link_key[0], 0x3c);
    config_dispose(&config);
}

static void rates_are_kept_in_requests_of_a_thousand_seconds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t rate_mhz;
    } rates[] = {{"100/s", 100000}, {"1/m", 16}, {"6000/m", 100000}, {"1000000 / s", 1000000000}};
    for (unsigned i = 0; i < ARRAY_SIZE(rates); i++) {
        struct config config;
        char text[200];
        snprintf(text, sizeof(text), HOOK "rate = %s\n", rates[i].text);
        load_right(&config, text);
        assert_true(config.outputs[0].wire.rate_mhz == rates[i].rate_mhz);
        config_dispose(&config);
    }
}

/* --- files that are wrong --- */

#define SIGN  ": needs whsec_… or whsk_… of Standard Webhooks"
#define TOKEN "the name of a header has 1 to 128 letters, digits and \"!#$%&'*+-.^_`|~\""
#define PROXY \
    "5: proxy: needs none, or http://HOST:PORT, with USER:PASSWORD@ before the host if the proxy wants it"
#define CREDENTIALS \
    "5: proxy: needs USER:PASSWORD before the '@', with what is neither letter nor digit percent-encoded"
#define NETWORKS \
    "needs networks, separated by commas: private, any, ADDRESS or ADDRESS/BITS, such as 10.0.0.0/8"
#define DISABLE                                                                                             \
    "needs a number of failures in a row from 1 to 1000000, a time from 1s to 365d, or both, such as 100, " \
    "5d"
#define RATE "needs requests a second or a minute, such as 100/s or 6000/m"
#define PINS                                                                                                \
    "needs SHA-256 sums of public keys (SubjectPublicKeyInfo) in base64, 44 characters each, separated by " \
    "commas"
#define HTTPS "[host]\nhttps = 127.0.0.1:7443\nhttps_certificate = c\nhttps_key = k\n"

static const struct {
    const char *text, *error;
} broken[] = {
    /* sign */
    {HOOK "sign =\n", "5: sign: there is no signing secret"},
    {HOOK "sign = s3cret\n", "5: sign: a signing secret begins with whsec_ or whsk_"},
    {HOOK "sign = whsec_QUFB\n", "5: sign: a signing secret (whsec_) has 24 to 64 bytes"},
    {HOOK "sign = whsk_" BYTES_24 "\n", "5: sign: a signing key (whsk_) has 32 or 64 bytes"},
    {HOOK "sign = whsec_" BYTES_32 "x\n",
     "5: sign: a signing secret is not base64, padded, of at most 64 bytes"},
    {HOOK "sign = hook.secret\n",
     "5: sign: a signing secret begins with whsec_ or whsk_: did you mean file:hook.secret?"},
    {HOOK "sign = whsec_" BYTES_32 " whsec_QUFB\n",
     "5: sign: a signing secret (whsec_) has 24 to 64 bytes (number 2 of those given)"},
    {HOOK "headers.X-A = 1\n", "5: unknown key 'headers.X-A' in [output]: did you mean 'header.X-A'?"},
    {HOOK "sing = x\n", "5: unknown key 'sing' in [output]: did you mean 'sign'?"},
    {APP "[output a.o]\nwire = http://h/\nmode = pure\napp = b\nsign = whsec_" BYTES_32 "\n",
     "7: 'sign' is for wires with mode = webhook or batch only: remove it"},
    /* headers */
    {HOOK "header. = x\n", "5: header.: " TOKEN},
    {HOOK "header.a b = x\n", "5: header.a b: " TOKEN},
    {HOOK "header.Host = x\n", "5: header.Host: the header Host is written by the wire only"},
    {HOOK "header.Content-Type = x\n",
     "5: header.Content-Type: a content type and a header Content-Type: one says it all"},
    {HOOK "header.Webhook-Id = x\n", "5: header.Webhook-Id: headers webhook-* are written by the wire only"},
    {HOOK "header.Pure-X = x\n", "5: header.Pure-X: headers Pure-* are written by the wire only"},
    {HOOK "header.X = 1\nheader.Y = 2\nheader.x = s3cret\n",
     "7: 'header.x' is given twice: it stands in line 5 already"},
    {HOOK "header.X =\n",
     "5: header.X: a header's value has 1 to 4096 bytes, no control bytes, and no space at its ends"},
    {HOOK "header.X = s3cret\x01\n",
     "5: header.X: a header's value has 1 to 4096 bytes, no control bytes, and no space at its ends"},
    {HOOK "header.X = s3cret {nobody}\n",
     "5: header.X: no such placeholder in a header: there are {id}, {number}, {timestamp}, {attempt}, "
     "{host}, {app}, {output}, {event} and {data.MEMBER}, and {{ is a brace"},
    {HOOK "header.X = s3cret {data.id}\nmode = batch\n",
     "5: header.X: {data.MEMBER} in a header is of one record: with mode = webhook only"},
    {HOOK "header.Authorization = s3cret\ntoken = t\n",
     "5: header.Authorization: a token and a header Authorization: one says it all"},
    {APP "[output a.o]\ninner = a\nheader.X = 1\n",
     "5: 'header.NAME' is for wires with mode = webhook or batch only: remove it"},
    /* statuses */
    {HOOK "success = ok\n", "5: success = ok: needs statuses from 200 to 599, such as 200-299, 304"},
    {HOOK "success = none\n", "5: success = none: needs statuses from 200 to 599, such as 200-299, 304"},
    {HOOK "success = 199\n", "5: success = 199: needs statuses from 200 to 599, such as 200-299, 304"},
    {HOOK "refuse = 400-600\n",
     "5: refuse = 400-600: needs statuses from 200 to 599, such as 200-299, 304, or none"},
    {HOOK "refuse = 404-400\n",
     "5: refuse = 404-400: needs statuses from 200 to 599, such as 200-299, 304, or none"},
    {HOOK "disable = 410,\n",
     "5: disable = 410,: needs statuses from 200 to 599, such as 200-299, 304, or none"},
    {HOOK "success = 200-299, 404\nrefuse = 400-499\n",
     "6: refuse: 404 is in success already (line 5): a status means one thing"},
    {HOOK "disable = 410\nrefuse = 410\n",
     "5: disable: 410 is in refuse already (line 6): a status means one thing"},
    /* the end of an output */
    {HOOK "disable_after = 0\n", "5: disable_after = 0: " DISABLE},
    {HOOK "disable_after = 5, 6\n", "5: disable_after = 5, 6: " DISABLE},
    {HOOK "disable_after = 1d, 2d\n", "5: disable_after = 1d, 2d: " DISABLE},
    {HOOK "disable_after = 999ms\n", "5: disable_after = 999ms: " DISABLE},
    {HOOK "disable_after = often\n", "5: disable_after = often: " DISABLE},
    {HOOK "on_disable = b.c\n", "5: on_disable = b.c: needs the name of another output of the same app"},
    {HOOK "on_disable = a.o\n", "5: on_disable: needs another output of the app, not this one"},
    {HOOK "on_disable = o\n", "5: on_disable: needs another output of the app, not this one"},
    {HOOK "on_disable = othr\n" OTHER, "5: on_disable: there is no output 'a.othr': did you mean 'other'?"},
    {HOOK "on_disable = alarm\n", "5: on_disable: there is no output 'a.alarm': add [output a.alarm]"},
    {HOOK "on_disable = o2\n[app b]\nmodule = ./b\n[output b.o2]\ninner = a\n",
     "5: on_disable: there is no output 'a.o2': add [output a.o2]"},
    {APP "[output a.o]\ninner = a\non_disable = other\n" OTHER,
     "5: 'on_disable' is for wires only: remove it"},
    /* how much, how fast */
    {HOOK "gzip = 0\n", "5: gzip = 0: needs a whole number from 1 to 9"},
    {HOOK "gzip = yes\n", "5: gzip = yes: needs a whole number from 1 to 9"},
    {HOOK "concurrency = 65\n", "5: concurrency = 65: needs a whole number from 1 to 64"},
    {HOOK "mode = batch\nconcurrency = 2\n",
     "6: 'concurrency' is for wires with mode = webhook only: remove it"},
    {HOOK "order_by = x\n",
     "5: order_by is for wires with concurrency above 1: without, all records are in order"},
    {HOOK "concurrency = 2\norder_by =\n",
     "6: order_by: needs the name of a member of the records, which are JSON objects: 1 to 128 bytes"},
    {HOOK "rate = 100\n", "5: rate = 100: " RATE},
    {HOOK "rate = 0/s\n", "5: rate = 0/s: " RATE},
    {HOOK "rate = 5/h\n", "5: rate = 5/h: " RATE},
    {HOOK "rate = 1000001/s\n", "5: rate = 1000001/s: " RATE},
    {HOOK "batch_wait = 1s\n", "5: 'batch_wait' is for wires with mode = batch only: remove it"},
    {HOOK "connection_age = 0s\n",
     "5: connection_age = 0s: needs a time from 1s to 365d, with ms, s, m, h or d"},
    /* proxies: no message holds one */
    {HOOK "proxy = off\n", PROXY},
    {HOOK "proxy = https://s3cret:x@h:1\n", PROXY},
    {HOOK "proxy = http://s3cret:x@h:1/path\n", PROXY},
    {HOOK "proxy = http://s3cret@h:1\n", CREDENTIALS},
    {HOOK "proxy = http://me:s3cret%0a@h:1\n", CREDENTIALS},
    {HOOK "proxy = http://me:s3cret%4@h:1\n", CREDENTIALS},
    {"[host]\nporxy = http://me:s3cret@h:1\n", "2: unknown key 'porxy' in [host]: did you mean 'proxy'?"},
    /* networks */
    {HOOK "allow = public\n", "5: allow = public: " NETWORKS},
    {HOOK "deny = private,\n", "5: deny = private,: " NETWORKS},
    {"[host]\ndeny = 10.0.0.0/8 10.1.0.0/16\n", "2: deny = 10.0.0.0/8 10.1.0.0/16: " NETWORKS},
    /* TLS */
    {HOOK "ca = x\n", "5: 'ca' is for wires to https:// URLs only: remove it"},
    {HOOK "pin = " BYTES_32 "\n", "5: 'pin' is for wires to https:// URLs only: remove it"},
    {TLS "ca =\n", "5: ca: needs the path of a PEM file of CA certificates, or of a directory of such files"},
    {TLS "certificate = c\n", "5: certificate: its private key is missing: add certificate_key = FILE"},
    {TLS "certificate_key = k\n", "5: certificate_key: its certificate is missing: add certificate = FILE"},
    {TLS "certificate_key = credential:x\n", "5: certificate_key: credential:x: $CREDENTIALS_DIRECTORY is "
                                             "not set: start the host as a systemd service "
                                             "with LoadCredential="},
    {TLS "pin = QUFB\n", "5: pin = QUFB: " PINS},
    {TLS "pin = " BYTES_64 "\n", "5: pin = " BYTES_64 ": " PINS},
    /* sealed wires */
    {APP "[output a.o]\nwire = http://h/\nmode = pure\napp = b\nkey = " KEY_A "\n",
     "7: key: this host has no key: make one with 'pure-host key new FILE' and add key = FILE to [host]"},
    {HOOK "key = " KEY_A "\n", "5: 'key' is for links and wires with mode = pure only: remove it"},
    /* https */
    {"[host]\nhttp = 127.0.0.1:7443\nhttps = 127.0.0.1:7443\nhttps_certificate = c\nhttps_key = k\n" APP,
     "3: https: http is at the same address and port (line 2)"},
    {"[host]\nhttps_cert = c\n", "2: unknown key 'https_cert' in [host]: did you mean 'https_certificate'?"},
    {"[host]\nhttps = localhost:1\n",
     "2: https = localhost:1: needs an IP address and a port, such as 0.0.0.0:7443 or [::]:7443"},
    {"[host]\nhttps = 127.0.0.1:7443\nhttps_key = k\n",
     "2: https needs a certificate: add https_certificate = FILE and https_key = FILE"},
    {"[host]\nhttp = none\n",
     "2: http = none leaves no way to ask the host for anything: add https = ADDRESS:PORT, or listen on "
     "127.0.0.1"},
    {"[host]\nhttp = none\nhttps = 0.0.0.0:7443\nhttps_certificate = c\nhttps_key = k\n",
     "3: https is reached from other machines: add token = file:PATH or https_ca = FILE to "
     "[host], or listen on 127.0.0.1"},
    {"[host]\nhttps_ca = c\n", "2: https_ca is for https: add https = ADDRESS:PORT, or remove it"},
    {"[host]\nhttps = 0.0.0.0:7443\nhttps_certificate = c\nhttps_key = k\n" APP,
     "2: https is reached from other machines: add token = file:PATH or https_ca = FILE to [host], or listen "
     "on "
     "127.0.0.1"},
    {HTTPS "https_cert = x\n", "5: unknown key 'https_cert' in [host]: did you mean 'https_certificate'?"},
};

static void each_broken_file_has_its_exact_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        struct config config;
        char wanted[1600];
        snprintf(wanted, sizeof(wanted), "dir/x.conf:%s", broken[i].error);
        if (load(&config, broken[i].text) == 0)
            fail_msg("loaded: %s", broken[i].text);
        assert_string_equal(error, wanted);
        assert_null(strstr(error, "s3cret"));
    }
}

/* Of a value that came from elsewhere nothing is in a message, whatever key it is of. */
static void no_error_holds_what_came_from_elsewhere(void **state)
{
    (void)state;
    static const char *const keys[] = {"sign",  "header.X",       "success", "refuse",      "disable",
                                       "rate",  "disable_after",  "gzip",    "on_disable",  "order_by",
                                       "proxy", "allow",          "deny",    "concurrency", "ca",
                                       "pin",   "connection_age", "key",     "certificate", "wire"};
    setenv("TEST_CONFIG_SECRET", "the s3cret\nvalue", 1);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        struct config config;
        char text[300];
        snprintf(text, sizeof(text), APP "[output a.o]\n%s = env:TEST_CONFIG_SECRET\n", keys[i]);
        assert_int_equal(load(&config, text), PE_CONFIG);
        assert_null(strstr(error, "s3cret"));
    }
    unsetenv("TEST_CONFIG_SECRET");
}

static void lists_have_limits(void **state)
{
    (void)state;
    struct config config;
    char text[8192] = HOOK "sign = ";
    for (unsigned i = 0; i <= WIRE_SECRETS_MAX; i++)
        strcat(text, "whsec_" BYTES_24 "\n");
    setenv("TEST_CONFIG_SIGN", strstr(text, "whsec_"), 1);
    assert_int_equal(load(&config, HOOK "sign = env:TEST_CONFIG_SIGN\n"), PE_CONFIG);
    assert_string_equal(error, "dir/x.conf:5: sign: too many signing secrets: 4 at most");
    unsetenv("TEST_CONFIG_SIGN");
    strcpy(text, HOOK);
    for (unsigned i = 0; i < WIRE_HEADERS_MAX; i++)
        sprintf(text + strlen(text), "header.X-%u = v\n", i);
    load_right(&config, text);
    assert_int_equal(config.outputs[0].wire.header_count, WIRE_HEADERS_MAX);
    config_dispose(&config);
    strcat(text, "header.Y = v\n");
    assert_int_equal(load(&config, text), PE_CONFIG);
    assert_string_equal(error, "dir/x.conf:37: header.Y: more than 32 headers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_wires_reaches_its_field),
        cmocka_unit_test(defaults_of_wires_are_as_the_header_says),
        cmocka_unit_test(a_status_means_one_thing),
        cmocka_unit_test(the_hosts_ways_are_those_of_outputs_that_say_nothing),
        cmocka_unit_test(secrets_are_one_a_line_of_a_file_or_variable_too),
        cmocka_unit_test(files_of_tls_need_not_be_there),
        cmocka_unit_test(the_front_by_https_has_its_address_and_files),
        cmocka_unit_test(a_pure_wire_with_a_key_is_sealed),
        cmocka_unit_test(rates_are_kept_in_requests_of_a_thousand_seconds),
        cmocka_unit_test(each_broken_file_has_its_exact_error),
        cmocka_unit_test(no_error_holds_what_came_from_elsewhere),
        cmocka_unit_test(lists_have_limits),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
