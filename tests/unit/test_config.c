/* The configuration: what a good file becomes, and the exact error of each broken one. */
#include "host/config.h"
#include "host/config_values.h"

#include "core/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static char error[1200];

static int load(struct config *config, const char *text)
{
    error[0] = '\0';
    return config_load_text(config, "dir/x.conf", span_text(text), error, sizeof(error));
}

/* --- files that are right --- */

static void defaults_are_as_the_header_says(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "[app a]\nmodule=./a.so\n[output a.o]\nwire=http://h/\n"), 0);
    const struct sockaddr_in *address = (const struct sockaddr_in *)&config.http_address;
    assert_int_equal(address->sin_family, AF_INET);
    assert_int_equal(ntohs(address->sin_port), 7070);
    assert_int_equal(ntohl(address->sin_addr.s_addr), INADDR_LOOPBACK);
    assert_string_equal(config.http, "127.0.0.1:7070");
    assert_null(config.store_path);
    assert_int_equal(config.segment_bytes, 64 << 20);
    assert_true(config.name[0] != '\0');
    assert_null(config.token);
    assert_int_equal(config.owners, 2);
    assert_int_equal(config.loops, 1);
    assert_int_equal(config.connections, 1024);
    assert_int_equal(config.max_body, (1 << 20) + (64 << 10));
    assert_int_equal(config.body_memory, 64 << 20);
    assert_true(config.request_ns == 30 * NS_PER_S && config.idle_ns == 60 * NS_PER_S);
    assert_string_equal(config.apps[0].arg, "");
    assert_int_equal(config.apps[0].inbox_bytes, 4 << 20);
    assert_int_equal(config.apps[0].durability, DURABILITY_MEMORY);
    assert_true(config.apps[0].interval_ns == 5 * NS_PER_MS);
    assert_true(config.apps[0].keep_ms == 0 && config.apps[0].keep_bytes == 0);
    assert_null(config.apps[0].disk_key);
    const struct config_output *output = &config.outputs[0];
    assert_int_equal(output->mode, WIRE_WEBHOOK);
    assert_string_equal(output->event, "o");
    assert_string_equal(output->content_type, "application/json");
    assert_int_equal(output->queue_bytes, 4 << 20);
    assert_int_equal(output->max_record, 1 << 20);
    assert_int_equal(output->backlog_bytes, 1 << 30);
    assert_int_equal(output->attempts, 0);
    assert_int_equal(output->dead, 10000);
    assert_null(output->disk_key);
    assert_int_equal(output->batch_bytes, 256 << 10);
    assert_int_equal(output->batch_records, 0);
    assert_true(output->progress_ns == 10 * NS_PER_S && output->reply_ns == 30 * NS_PER_S);
    assert_true(output->total_ns == 300 * NS_PER_S);
    assert_true(output->backoff_min_ns == 100 * NS_PER_MS && output->backoff_max_ns == 60 * NS_PER_S);
    config_dispose(&config);
}

static void every_key_reaches_its_field(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "[host]\n"
                                   "name = pi.home\n"
                                   "http = [::1]:81\n"
                                   "token = secret\n"
                                   "store = data/journal\n"
                                   "segment = 1M\n"
                                   "owners = 3\n"
                                   "loops = 1\n"
                                   "connections = 7\n"
                                   "max_body = 2K\n"
                                   "body_memory = 3M\n"
                                   "request_timeout = 250ms\n"
                                   "idle_timeout = 2h\n"
                                   "[app a]\n"
                                   "module = /lib/a.so\n"
                                   "arg = step=1\n"
                                   "inbox = 1M\n"
                                   "durability = interval\n"
                                   "interval = 60s\n"
                                   "keep = 7d, 1G\n"
                                   "[output a.w]\n"
                                   "event = tick\n"
                                   "queue = 1G\n"
                                   "max_record = 2K\n"
                                   "backlog = 1T\n"
                                   "attempts = 5\n"
                                   "dead = 1000000\n"
                                   "wire = http://h:8080/x\n"
                                   "mode = pure\n"
                                   "app = b\n"
                                   "token = t\n"
                                   "batch_bytes = 64K\n"
                                   "batch_records = 9\n"
                                   "progress_timeout = 1s\n"
                                   "reply_timeout = 2s\n"
                                   "total_timeout = 3m\n"
                                   "backoff_min = 1s\n"
                                   "backoff_max = 1s\n"
                                   "[output a.h]\n"
                                   "wire = http://h/\n"
                                   "content_type = text/plain; charset=utf-8\n"
                                   "[output a.i]\n"
                                   "inner = a\n"),
                     0);
    assert_string_equal(config.name, "pi.home");
    assert_int_equal(config.http_address.ss_family, AF_INET6);
    assert_string_equal(config.token, "secret");
    assert_string_equal(config.store_path, "dir/data/journal");
    assert_int_equal(config.segment_bytes, 1 << 20);
    assert_int_equal(config.owners, 3);
    assert_int_equal(config.connections, 7);
    assert_int_equal(config.max_body, 2048);
    assert_int_equal(config.body_memory, 3 << 20);
    assert_true(config.request_ns == 250 * NS_PER_MS && config.idle_ns == 7200 * NS_PER_S);
    assert_int_equal(config.app_count, 1);
    assert_string_equal(config.apps[0].name, "a");
    assert_string_equal(config.apps[0].module, "/lib/a.so");
    assert_string_equal(config.apps[0].arg, "step=1");
    assert_int_equal(config.apps[0].inbox_bytes, 1 << 20);
    assert_int_equal(config.apps[0].durability, DURABILITY_INTERVAL);
    assert_true(config.apps[0].interval_ns == 60 * NS_PER_S);
    assert_true(config.apps[0].keep_ms == UINT64_C(7) * 24 * 3600 * 1000);
    assert_true(config.apps[0].keep_bytes == UINT64_C(1) << 30);
    assert_string_equal(config.apps[0].disk_key, "durability");
    assert_int_equal(config.apps[0].disk_line, 18);
    assert_int_equal(config.output_count, 3);
    const struct config_output *wire = &config.outputs[0], *inner = &config.outputs[2];
    assert_int_equal(wire->line, 21);
    assert_string_equal(wire->app, "a");
    assert_string_equal(wire->output, "w");
    assert_int_equal(wire->kind, OUTPUT_WIRE);
    assert_string_equal(wire->event, "tick");
    assert_int_equal(wire->queue_bytes, 1 << 30);
    assert_int_equal(wire->max_record, 2048);
    assert_true(wire->backlog_bytes == UINT64_C(1) << 40);
    assert_int_equal(wire->attempts, 5);
    assert_int_equal(wire->dead, 1000000);
    assert_string_equal(wire->disk_key, "backlog");
    assert_int_equal(wire->disk_line, 25);
    assert_string_equal(wire->url_text, "http://h:8080/x");
    assert_int_equal(wire->url.port, 8080);
    assert_string_equal(wire->url.target, "/x/apps/b/records");
    assert_int_equal(wire->mode, WIRE_PURE);
    assert_string_equal(wire->target_app, "b");
    assert_string_equal(wire->token, "t");
    assert_int_equal(wire->batch_bytes, 64 << 10);
    assert_int_equal(wire->batch_records, 9);
    assert_true(wire->progress_ns == NS_PER_S && wire->reply_ns == 2 * NS_PER_S);
    assert_true(wire->total_ns == 180 * NS_PER_S);
    assert_true(wire->backoff_min_ns == NS_PER_S && wire->backoff_max_ns == NS_PER_S);
    assert_string_equal(config.outputs[1].content_type, "text/plain; charset=utf-8");
    assert_int_equal(inner->kind, OUTPUT_INNER);
    assert_string_equal(inner->inner_app, "a");
    config_dispose(&config);
}

static void comments_blank_lines_indentation_and_crlf_change_nothing(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "\xef\xbb\xbf"
                                   "; a comment\r\n"
                                   "    [host]   ; the host\r\n"
                                   "    http    = 127.0.0.1:7072          ; the front\r\n"
                                   "\r\n"
                                   "# another\r\n"
                                   "\t[ app  counter ] # an app\r\n"
                                   "\tmodule  = ./counter.so\t; a module\r\n"
                                   "  arg = a;b ;c"),
                     0);
    assert_string_equal(config.http, "127.0.0.1:7072");
    assert_string_equal(config.apps[0].name, "counter");
    assert_string_equal(config.apps[0].module, "dir/./counter.so");
    assert_string_equal(config.apps[0].arg, "a;b");
    config_dispose(&config);
}

static void modules_are_found_from_the_file_or_among_the_installed(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "[app a]\nmodule = ../m/a.so\n[app b]\nmodule = no-such-app.so\n"), 0);
    assert_string_equal(config.apps[0].module, "dir/../m/a.so");
    const char *tail = "/../lib/pure/apps/no-such-app.so", *path = config.apps[1].module;
    assert_int_equal(path[0], '/');
    assert_true(strlen(path) > strlen(tail));
    assert_string_equal(path + strlen(path) - strlen(tail), tail);
    config_dispose(&config);
}

static void a_pure_wire_leads_to_the_records_of_the_receiving_app(void **state)
{
    (void)state;
    static const char *const urls[] = {"http://h", "http://h/"};
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        char text[200];
        struct config config;
        snprintf(text, sizeof(text), "[app a]\nmodule=./a\n[output a.o]\nwire=%s\napp=b\nmode=pure\n",
                 urls[i]);
        assert_int_equal(load(&config, text), 0);
        assert_string_equal(config.outputs[0].url.target, "/apps/b/records");
        config_dispose(&config);
    }
}

static void a_small_queue_lowers_the_largest_record(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "[app a]\nmodule=./a\n[output a.o]\ninner=a\nqueue=64K\n"), 0);
    assert_int_equal(config.outputs[0].max_record, 16384);
    config_dispose(&config);
}

static void ipv6_and_other_loopback_addresses_need_no_token(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1",
                                            "127.0.0.1:65535"};
    for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
        char text[200];
        struct config config;
        snprintf(text, sizeof(text), "[host]\nhttp=%s\n[app a]\nmodule=./a\n", addresses[i]);
        assert_int_equal(load(&config, text), 0);
        config_dispose(&config);
    }
}

static void where_the_store_is_decides_what_is_on_disk(void **state)
{
    (void)state;
    static const struct {
        const char *host, *app;
        const char *path; /* NULL: memory */
        enum app_durability durability;
    } cases[] = {
        {"", "", NULL, DURABILITY_MEMORY},
        {"store = memory\n", "", NULL, DURABILITY_MEMORY},
        {"store = memory\n", "durability = memory\n", NULL, DURABILITY_MEMORY},
        {"store = /var/lib/pure\n", "", "/var/lib/pure", DURABILITY_SYNC},
        {"store = s\n", "durability = sync\n", "dir/s", DURABILITY_SYNC},
        {"store = ./memory\n", "durability = interval\n", "dir/./memory", DURABILITY_INTERVAL},
        {"store = s\n", "interval = 1ms\n", "dir/s", DURABILITY_INTERVAL},
        {"store = s\n", "durability = memory\n", "dir/s", DURABILITY_MEMORY},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[200];
        struct config config;
        /* [host] last: an app cannot know of the store when it is read */
        snprintf(text, sizeof(text), "[app a]\nmodule=./a\n%s[host]\n%s", cases[i].app, cases[i].host);
        assert_int_equal(load(&config, text), 0);
        if (cases[i].path)
            assert_string_equal(config.store_path, cases[i].path);
        else
            assert_null(config.store_path);
        assert_int_equal(config.apps[0].durability, cases[i].durability);
        config_dispose(&config);
    }
}

static void a_history_is_limited_by_time_or_bytes_or_both_in_any_order(void **state)
{
    (void)state;
    static const struct {
        const char *written;
        uint64_t ms, bytes;
    } cases[] = {
        {"7d", UINT64_C(7) * 24 * 3600 * 1000, 0},
        {"1M", 0, 1 << 20},
        {"1m", 60000, 0},
        {"1048576", 0, 1 << 20},
        {"1s,1T", 1000, UINT64_C(1) << 40},
        {"2G ,\t12h", 12 * 3600 * 1000, UINT64_C(2) << 30},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[200];
        struct config config;
        snprintf(text, sizeof(text), "[host]\nstore=s\n[app a]\nmodule=./a\nkeep = %s\n", cases[i].written);
        assert_int_equal(load(&config, text), 0);
        assert_true(config.apps[0].keep_ms == cases[i].ms);
        assert_true(config.apps[0].keep_bytes == cases[i].bytes);
        config_dispose(&config);
    }
}

static void what_asks_for_nothing_on_disk_needs_no_store(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(
        load(&config, "[app a]\nmodule=./a\n[output a.o]\nwire=http://h/\nbacklog=0\nattempts=0\n"), 0);
    assert_int_equal(config.outputs[0].backlog_bytes, 0);
    assert_null(config.outputs[0].disk_key);
    config_dispose(&config);
}

/* --- values from elsewhere --- */

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

struct place {
    char directory[64];
    char secret[128], config[128];
};

static void make_place(struct place *place)
{
    snprintf(place->directory, sizeof(place->directory), "%s", "test-config-XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    snprintf(place->secret, sizeof(place->secret), "%s/secret", place->directory);
    snprintf(place->config, sizeof(place->config), "%s/x.conf", place->directory);
}

static void remove_place(const struct place *place)
{
    unlink(place->secret);
    unlink(place->config);
    assert_int_equal(rmdir(place->directory), 0);
}

static void values_come_from_files_variables_and_credentials(void **state)
{
    (void)state;
    struct place place;
    struct config config;
    make_place(&place);
    write_file(place.secret, "s3cret\n", 7);
    const char *text = "[host]\ntoken = file:secret\n"
                       "[app a]\nmodule = ./a\narg = env:TEST_CONFIG_ARG\n"
                       "[output a.o]\nwire = http://h/\ntoken = credential:secret\n";
    write_file(place.config, text, strlen(text));
    setenv("TEST_CONFIG_ARG", "from the environment", 1);
    setenv("CREDENTIALS_DIRECTORY", place.directory, 1);
    assert_int_equal(config_load(&config, place.config, error, sizeof(error)), 0);
    assert_string_equal(config.token, "s3cret");
    assert_string_equal(config.apps[0].arg, "from the environment");
    assert_string_equal(config.outputs[0].token, "s3cret");
    config_dispose(&config);
    unsetenv("TEST_CONFIG_ARG");
    unsetenv("CREDENTIALS_DIRECTORY");
    remove_place(&place);
}

static void a_file_or_credential_that_cannot_be_used_is_named(void **state)
{
    (void)state;
    struct place place;
    struct config config;
    make_place(&place);
    char text[1024], wanted[1024];
    setenv("CREDENTIALS_DIRECTORY", place.directory, 1);
    assert_int_equal(load(&config, "[host]\ntoken = credential:none\n"), PE_CONFIG);
    assert_string_equal(error,
                        "dir/x.conf:2: token: credential:none cannot be read: No such file or directory");
    assert_int_equal(load(&config, "[host]\ntoken = credential:../secret\n"), PE_CONFIG);
    assert_string_equal(error,
                        "dir/x.conf:2: token: credential:../secret: a credential has a name, not a path");
    unsetenv("CREDENTIALS_DIRECTORY");
    char here[256];
    assert_non_null(getcwd(here, sizeof(here)));
    snprintf(text, sizeof(text), "[app a]\nmodule = ./a\narg = file:%s/%s\n", here, place.secret);
    snprintf(wanted, sizeof(wanted), "dir/x.conf:3: arg: file:%s/%s holds more than 65536 bytes", here,
             place.secret);
    char *large = malloc(CONFIG_VALUE_MAX + 1);
    memset(large, 'x', CONFIG_VALUE_MAX + 1);
    write_file(place.secret, large, CONFIG_VALUE_MAX + 1);
    assert_int_equal(load(&config, text), PE_CONFIG);
    assert_string_equal(error, wanted);
    write_file(place.secret, large, CONFIG_VALUE_MAX); /* at the limit exactly */
    assert_int_equal(load(&config, text), 0);
    assert_int_equal(strlen(config.apps[0].arg), CONFIG_VALUE_MAX);
    config_dispose(&config);
    write_file(place.secret, "a\0b", 3);
    snprintf(wanted, sizeof(wanted), "dir/x.conf:3: arg: file:%s/%s holds a NUL byte", here, place.secret);
    assert_int_equal(load(&config, text), PE_CONFIG);
    assert_string_equal(error, wanted);
    free(large);
    remove_place(&place);
}

static void no_error_holds_a_secret(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[host]\ntoken = s3cret with spaces\n",
        "[host]\ntoken = env:TEST_CONFIG_SECRET\n",
        "[host]\nhttp = env:TEST_CONFIG_SECRET\n",
        "[host]\nowners = env:TEST_CONFIG_SECRET\n",
        "[host]\nmax_body = env:TEST_CONFIG_SECRET\n",
        "[host]\nidle_timeout = env:TEST_CONFIG_SECRET\n",
        "[host]\nsegment = env:TEST_CONFIG_SECRET\n",
        "[app a]\nmodule = ./a\ndurability = env:TEST_CONFIG_SECRET\n",
        "[app a]\nmodule = ./a\nkeep = env:TEST_CONFIG_SECRET\n",
        "[app a]\nmodule = ./a\n[output a.o]\nwire = http://user:s3cret@h/\n",
        "[app a]\nmodule = ./a\n[output a.o]\nwire = env:TEST_CONFIG_SECRET\n",
        "[app a]\nmodule = ./a\n[output a.o]\nmode = env:TEST_CONFIG_SECRET\n",
        "[app a]\nmodule = ./a\n[output a.o]\ninner = env:TEST_CONFIG_SECRET\n",
        "[app a]\nmodule = ./a\n[output a.o]\ncontent_type = env:TEST_CONFIG_NEWLINE\n",
        "[host]\ntokn = s3cret\n",
        "[host]\ns3cret\n",
    };
    setenv("TEST_CONFIG_SECRET", "the s3cret value", 1);
    setenv("TEST_CONFIG_NEWLINE", "s3cret\nx", 1);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct config config;
        assert_int_equal(load(&config, texts[i]), PE_CONFIG);
        assert_null(strstr(error, "s3cret"));
    }
    unsetenv("TEST_CONFIG_SECRET");
    unsetenv("TEST_CONFIG_NEWLINE");
}

/* --- files that are wrong --- */

#define APP    "[app a]\nmodule = ./a\n"
#define OUTPUT APP "[output a.o]\n"
#define STORE  "[host]\nstore = s\n"
#define KEEP   "needs a time from 1s to 3650d, a size from 1M to 1T, or both, such as 7d, 1G"
#define HOST_KEYS                                                                            \
    "name, http, token, store, segment, owners, loops, connections, max_body, body_memory, " \
    "request_timeout, "                                                                      \
    "idle_timeout, link, key, link_window"
#define OUTPUT_KEYS                                                                                      \
    "inner, wire, link, event, queue, max_record, backlog, attempts, dead, mode, app, key, mtu, token, " \
    "content_type, batch_bytes, "                                                                        \
    "batch_records, progress_timeout, reply_timeout, total_timeout, backoff_min, backoff_max"

static const struct {
    const char *text, *error;
} broken[] = {
    /* unknown names */
    {"[host]\nhtpp = 127.0.0.1:1\n", "2: unknown key 'htpp' in [host]: did you mean 'http'?"},
    {"[host]\nHTTP = 127.0.0.1:1\n", "2: unknown key 'HTTP' in [host]: known are " HOST_KEYS},
    {"[host]\n\x1b[31m = 1\n", "2: unknown key '?[31m' in [host]: known are " HOST_KEYS},
    {"[app a]\nmodul = x\n", "2: unknown key 'modul' in [app]: did you mean 'module'?"},
    {OUTPUT "sign = file:x\n", "4: unknown key 'sign' in [output]: known are " OUTPUT_KEYS},
    {OUTPUT "bacth_bytes = 1K\n", "4: unknown key 'bacth_bytes' in [output]: did you mean 'batch_bytes'?"},
    {"[hots]\n", "1: unknown section [hots]: did you mean [host]?"},
    {"[outputs a.b]\n", "1: unknown section [outputs a.b]: did you mean [output a.b]?"},
    {"[store x]\n",
     "1: unknown section [store x]: known are [host], [app NAME], [output APP.OUTPUT], [peer NAME]"},
    {"[]\n", "1: unknown section []: known are [host], [app NAME], [output APP.OUTPUT], [peer NAME]"},
    {OUTPUT "inner = a\nmode = pur\n", "5: mode = pur: unknown: did you mean 'pure'?"},
    {OUTPUT "mode = quantum\n", "4: mode = quantum: unknown: known are webhook, batch, pure"},
    {"[app counter]\nmodule = ./a\n[output countr.o]\ninner = counter\n",
     "3: [output countr.o]: there is no app 'countr': did you mean 'counter'?"},
    {"[app counter]\nmodule = ./a\n[output counter.o]\ninner = recorder\n",
     "4: [output counter.o]: there is no app 'recorder': add [app recorder]"},
    /* lines */
    {"\n\nhttp = 1\n", "3: 'http' stands before any section: write [host] above it"},
    {"[host\n", "1: a section without its closing ']', or longer than 256 bytes"},
    {"[host] http = 1\n", "1: text after the section's ']': begin a new line"},
    {"[host]\nhello\nhtpp = 1\n", "2: neither [SECTION] nor KEY = VALUE"},
    {"[host]\nhtpp = 1\nhello\n", "2: unknown key 'htpp' in [host]: did you mean 'http'?"},
    {"[host]\n= 5\n", "2: a value without a key: write KEY = VALUE"},
    {"", "1: no app: add [app NAME] with module = PATH"},
    {"[host]\n", "1: no app: add [app NAME] with module = PATH"},
    /* given twice */
    {"[host]\nowners = 1\n\nowners = 2\n", "4: 'owners' is given twice: it stands in line 2 already"},
    {"[host]\n[host]\n", "2: [host] is given twice: it stands in line 1 already"},
    {APP APP, "3: [app a] is given twice: it stands in line 1 already"},
    {OUTPUT "inner = a\n[output a.o]\n", "5: [output a.o] is given twice: it stands in line 3 already"},
    /* sections */
    {"[host x]\n", "1: [host] takes no name: write [host]"},
    {"[app]\n", "1: [app ]: an app's name is 1 to 63 letters, digits, '-' or '_'"},
    {"[app a.b]\n", "1: [app a.b]: an app's name is 1 to 63 letters, digits, '-' or '_'"},
    {"[output a]\n",
     "1: an output's section is [output APP.OUTPUT], both 1 to 63 letters, digits, '-' or '_'"},
    {"[output a.b.c]\n",
     "1: an output's section is [output APP.OUTPUT], both 1 to 63 letters, digits, '-' or '_'"},
    {"[app a]\narg = 1\n", "1: [app a] has no module: add module = PATH"},
    {"[app a]\n" APP, "1: [app a] has no module: add module = PATH"},
    {OUTPUT, "3: [output a.o] leads nowhere: add wire = URL, link = HOST:PORT or inner = APP"},
    /* values */
    {"[host]\nhttp = localhost:80\n",
     "2: http = localhost:80: needs an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070"},
    {"[host]\nhttp = 127.0.0.1:70700\n",
     "2: http = 127.0.0.1:70700: needs an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070"},
    {"[host]\nhttp = [::1]\n",
     "2: http = [::1]: needs an IP address and a port, such as 127.0.0.1:7070 or [::1]:7070"},
    {"[host]\nowners = 2\nhttp = 0.0.0.0:7070\n",
     "3: http is reached from other machines: add token = file:PATH to [host], or listen on 127.0.0.1"},
    {"[host]\nhttp = [::]:7070\n",
     "2: http is reached from other machines: add token = file:PATH to [host], or listen on 127.0.0.1"},
    {"[host]\ntoken =\n", "2: token: needs 1 to 1024 printable ASCII characters without spaces"},
    {"[host]\ntoken = env:TEST_CONFIG_NOT_SET\n",
     "2: token: env:TEST_CONFIG_NOT_SET: the variable is not set"},
    {"[host]\ntoken = file:/nonexistent/token\n",
     "2: token: file:/nonexistent/token cannot be read: No such file or directory"},
    {"[host]\ntoken = credential:x\n",
     "2: token: credential:x: $CREDENTIALS_DIRECTORY is not set: start the host as a systemd service with "
     "LoadCredential="},
    {"[host]\nstore =\n", "2: store: needs memory, or the path of a directory"},
    {"[host]\nstore = Memory\n",
     "2: store = Memory: did you mean 'memory'? If it is a directory, write it with a slash"},
    {"[host]\nstore = memmory\n",
     "2: store = memmory: did you mean 'memory'? If it is a directory, write it with a slash"},
    {"[host]\nsegment = 255K\n",
     "2: segment = 255K: needs a size from 256K to 1G, in bytes or with K, M, G or T"},
    {APP "durability = snyc\n", "3: durability = snyc: unknown: did you mean 'sync'?"},
    {APP "durability = always\n", "3: durability = always: unknown: known are sync, interval, memory"},
    {APP "interval = 0ms\n", "3: interval = 0ms: needs a time from 1ms to 1m, with ms, s, m, h or d"},
    {APP "interval = 2m\n", "3: interval = 2m: needs a time from 1ms to 1m, with ms, s, m, h or d"},
    {APP "keep = for ever\n", "3: keep = for ever: " KEEP},
    {APP "keep = 7d,\n", "3: keep = 7d,: " KEEP},
    {APP "keep = 7d, 7d\n", "3: keep = 7d, 7d: " KEEP},
    {APP "keep = 1G, 1G\n", "3: keep = 1G, 1G: " KEEP},
    {APP "keep = 1G, 1d, 1G\n", "3: keep = 1G, 1d, 1G: " KEEP},
    {APP "keep = 999ms\n", "3: keep = 999ms: " KEEP},
    {APP "keep = 3651d\n", "3: keep = 3651d: " KEEP},
    {APP "keep = 7\n", "3: keep = 7: " KEEP},
    {APP "keep = 1025G\n", "3: keep = 1025G: " KEEP},
    {OUTPUT "inner = a\nbacklog = 2T\n",
     "5: backlog = 2T: needs a size from 0 to 1T, in bytes or with K, M, G or T"},
    {OUTPUT "wire = http://h/\nattempts = -1\n", "5: attempts = -1: needs a whole number from 0 to 1000000"},
    {OUTPUT "wire = http://h/\ndead = 0\n", "5: dead = 0: needs a whole number from 1 to 1000000"},
    {"[host]\nloops = 2\n", "2: loops = 2: this version has one sending loop: write loops = 1"},
    {"[host]\nowners = 0\n", "2: owners = 0: needs a whole number from 1 to 64"},
    {"[host]\nowners = 65\n", "2: owners = 65: needs a whole number from 1 to 64"},
    {"[host]\nowners = -1\n", "2: owners = -1: needs a whole number from 1 to 64"},
    {"[host]\nowners = 0x2\n", "2: owners = 0x2: needs a whole number from 1 to 64"},
    {"[host]\nowners = 18446744073709551617\n",
     "2: owners = 18446744073709551617: needs a whole number from 1 to 64"},
    {"[host]\nmax_body = 1T\n",
     "2: max_body = 1T: needs a size from 1K to 256M, in bytes or with K, M, G or T"},
    {"[host]\nmax_body = 17179869184G\n",
     "2: max_body = 17179869184G: needs a size from 1K to 256M, in bytes or with K, M, G or T"},
    {"[host]\nidle_timeout = 10\n",
     "2: idle_timeout = 10: needs a time from 100ms to 1d, with ms, s, m, h or d"},
    {"[host]\nname = a b\n", "2: name = a b: needs 1 to 64 letters, digits, '-', '_' or '.'"},
    {OUTPUT "inner = a.b\n", "4: inner = a.b: needs 1 to 63 letters, digits, '-' or '_'"},
    {OUTPUT "wire = foo\n", "4: wire: the URL must begin with http://"},
    {"[host]\nhttp = 127.0.0.1:0\n", "2: http = 127.0.0.1:0: port 0 is none that clients could be given: "
                                     "write one from 1 to 65535, such as 7070"},
    {"[host]\nhttp = [::1]:0\n", "2: http = [::1]:0: port 0 is none that clients could be given: write one "
                                 "from 1 to 65535, such as 7070"},
    {"[app a]\nmodule =\n", "2: module: needs the path of a module, or the name of an installed one"},
    {OUTPUT "wire = https://h/\n",
     "4: wire: this version speaks http only: write an http URL, of a TLS proxy on this machine if need be"},
    {OUTPUT "wire = http://h/\ncontent_type = a\x01\n",
     "5: content_type: needs printable ASCII text, such as application/json"},
    /* what does not fit together */
    {OUTPUT "wire = http://h/\ninner = a\n",
     "5: inner: this output is a wire already (line 4): keep one of the two"},
    {OUTPUT "inner = a\nwire = http://h/\n",
     "5: wire: this output is an inner one already (line 4): keep one of the two"},
    {OUTPUT "inner = a\nmode = batch\n", "5: 'mode' is for wires only: remove it"},
    {OUTPUT "wire = http://h/\napp = a\n",
     "5: 'app' is for links and wires with mode = pure only: remove it"},
    {OUTPUT "wire = http://h/\nevent = e\n",
     "5: 'event' is for inner outputs, links and wires with mode = pure only: remove it"},
    {OUTPUT "wire = http://h/\nbatch_bytes = 1K\n",
     "5: 'batch_bytes' is for wires with mode = batch or pure only: remove it"},
    {OUTPUT "wire = http://h/\nmode = pure\napp = b\ncontent_type = a/b\n",
     "7: 'content_type' is for wires with mode = webhook only: remove it"},
    {OUTPUT "wire = http://h/\nmode = pure\n",
     "3: [output a.o] has mode = pure and names no receiving app: add app = NAME"},
    {OUTPUT "wire = http://h/?q\nmode = pure\napp = b\n",
     "4: wire: with mode = pure the URL has no query: remove all from the '?' on"},
    {OUTPUT "inner = a\nqueue = 4K\nmax_record = 4K\n",
     "6: max_record is larger than the queue: raise queue or lower max_record"},
    {"[host]\nsegment = 1M\n" APP, "2: segment is for a store on disk: add store = DIRECTORY, or remove it"},
    {STORE APP "durability = sync\ninterval = 5ms\n",
     "6: interval is for durability = interval: keep one of the two"},
    {STORE APP "interval = 5ms\ndurability = memory\n",
     "5: interval is for durability = interval: keep one of the two"},
    {STORE APP "durability = memory\nkeep = 7d\n",
     "6: keep: with durability = memory there is no history: keep one of the two"},
    {APP "durability = sync\n", "3: durability: nothing is on disk: add store = DIRECTORY to [host]"},
    {APP "durability = interval\n", "3: durability: nothing is on disk: add store = DIRECTORY to [host]"},
    {APP "interval = 5ms\n", "3: interval: nothing is on disk: add store = DIRECTORY to [host]"},
    {APP "keep = 7d\ninterval = 5ms\n", "3: keep: nothing is on disk: add store = DIRECTORY to [host]"},
    {OUTPUT "wire = http://h/\nattempts = 1\n",
     "5: attempts: nothing is on disk: add store = DIRECTORY to [host]"},
    {OUTPUT "wire = http://h/\ndead = 1\n", "5: dead: nothing is on disk: add store = DIRECTORY to [host]"},
    {OUTPUT "inner = a\nbacklog = 1\n", "5: backlog: nothing is on disk: add store = DIRECTORY to [host]"},
    {STORE APP "durability = memory\n[output a.o]\ninner = a\nbacklog = 1\n",
     "8: backlog: nothing of app 'a' is on disk: remove durability = memory from [app a]"},
    {OUTPUT "inner = a\nattempts = 1\n", "5: 'attempts' is for wires only: remove it"},
    {OUTPUT "inner = a\ndead = 1\n", "5: 'dead' is for wires only: remove it"},
    {OUTPUT "wire = http://h/\nbackoff_min = 2m\n", "5: backoff_max is shorter than backoff_min: raise it"},
};

static void each_broken_file_has_its_exact_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        struct config config;
        char wanted[1200];
        snprintf(wanted, sizeof(wanted), "dir/x.conf:%s", broken[i].error);
        assert_int_equal(load(&config, broken[i].text), PE_CONFIG);
        assert_string_equal(error, wanted);
    }
}

/* --- all problems of a file --- */

struct heard {
    char text[8000]; /* a line each */
    unsigned count;
};

static void hear(void *context, const char *problem)
{
    struct heard *heard = context;
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof(heard->text) - used, "%s\n", problem);
    heard->count++;
}

static void expect_all(const char *text, unsigned max, const char *wanted)
{
    struct heard heard = {"", 0};
    struct config config;
    const struct config_listener listener = {hear, &heard, max};
    assert_int_equal(config_load_text_all(&config, "x", span_text(text), &listener), PE_CONFIG);
    assert_string_equal(heard.text, wanted);
}

static void all_problems_of_a_file_are_told_in_its_order(void **state)
{
    (void)state;
    expect_all("[host]\n"
               "htpp = 127.0.0.1:1\n"
               "hello\n"
               "owners = 0\n"
               "= 5\n"
               "[app a]\n"
               "module = ./a\n"
               "[output a.o]\n"
               "inner = recorder\n"
               "[output relay.o]\n"
               "inner = a\n"
               "[output a.p]\n",
               20,
               "x:2: unknown key 'htpp' in [host]: did you mean 'http'?\n"
               "x:3: neither [SECTION] nor KEY = VALUE\n"
               "x:4: owners = 0: needs a whole number from 1 to 64\n"
               "x:5: a value without a key: write KEY = VALUE\n"
               "x:12: [output a.p] leads nowhere: add wire = URL, link = HOST:PORT or inner = APP\n"
               "x:9: [output a.o]: there is no app 'recorder': add [app recorder]\n"
               "x:10: [output relay.o]: there is no app 'relay': add [app relay]\n");
}

static void a_section_with_a_problem_is_not_said_to_lack_something(void **state)
{
    (void)state;
    expect_all("[app a]\nmodul = ./a\n[output a.o]\ninner = a b\n[host]\nhttp = 0.0.0.0:1\ntokn = x\n", 20,
               "x:2: unknown key 'modul' in [app]: did you mean 'module'?\n"
               "x:4: inner = a b: needs 1 to 63 letters, digits, '-' or '_'\n"
               "x:7: unknown key 'tokn' in [host]: did you mean 'token'?\n");
}

/* Its keys are nobody's, least of all the section's before; the apps that are not there may stand in it. */
static void a_section_that_cannot_be_begun_is_passed_over(void **state)
{
    (void)state;
    expect_all(
        "[app a]\nmodule = ./a\n[ap b]\nmodule = ./b\n[app a]\nmodule = ./c\n[app c\nmodule = ./d\n"
        "[host] x\nowners = 0\n[output a.o]\ninner = b\n[output b]\ninner = 1\n",
        20,
        "x:3: unknown section [ap b]: did you mean [app b]?\n"
        "x:5: [app a] is given twice: it stands in line 1 already\n"
        "x:7: a section without its closing ']', or longer than 256 bytes\n"
        "x:9: text after the section's ']': begin a new line\n"
        "x:13: an output's section is [output APP.OUTPUT], both 1 to 63 letters, digits, '-' or '_'\n");
    expect_all("[ap b]\nmodule = ./b\n", 20, "x:1: unknown section [ap b]: did you mean [app b]?\n");
}

/* Nobody hears that a store is missing which is misspelt. */
static void a_store_that_is_misspelt_is_not_said_to_be_missing(void **state)
{
    (void)state;
    expect_all("[host]\nstor = s\n" APP "durability = sync\n", 20,
               "x:2: unknown key 'stor' in [host]: did you mean 'store'?\n");
    expect_all("[hots]\nstore = s\n" APP "durability = sync\n", 20,
               "x:1: unknown section [hots]: did you mean [host]?\n");
}

static void reading_stops_after_as_many_problems_as_are_wanted(void **state)
{
    (void)state;
    expect_all("[host]\na = 1\nb\nowners = x\n", 2,
               "x:2: unknown key 'a' in [host]: known are " HOST_KEYS "\n"
               "x:3: neither [SECTION] nor KEY = VALUE\n");
}

static void a_url_that_is_wrong_is_an_error_with_its_line(void **state)
{
    (void)state;
    static const char *const urls[] = {"ftp://h/", "http://", "h", "http://user:pw@h/", "http://h:99999/"};
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        char text[200];
        struct config config;
        snprintf(text, sizeof(text), OUTPUT "wire = %s\n", urls[i]);
        assert_int_equal(load(&config, text), PE_CONFIG);
        assert_int_equal(strncmp(error, "dir/x.conf:4: wire: ", 20), 0);
        assert_true(strlen(error) > 22);
    }
}

static void a_nul_byte_is_an_error_with_its_line(void **state)
{
    (void)state;
    static const char text[] = "[host]\nowners = 1\0\n";
    struct config config;
    assert_int_equal(config_load_text(&config, "x", span_of(text, sizeof(text) - 1), error, sizeof(error)),
                     PE_CONFIG);
    assert_string_equal(error, "x:2: a NUL byte: is this a text file?");
}

/* inih's limit is up to how it was built: at some length the line is refused, and at any below it is whole.
 */
static void a_line_is_whole_or_refused_but_never_cut(void **state)
{
    (void)state;
    char text[20000];
    bool refused = false;
    for (size_t size = 1; size < 10000 && !refused; size += size < 300 ? 1 : 97) {
        struct config config;
        int used = snprintf(text, sizeof(text), APP "arg = ");
        memset(text + used, 'x', size);
        strcpy(text + used + size, "\n");
        refused = load(&config, text) < 0;
        if (!refused) {
            assert_int_equal(strlen(config.apps[0].arg), size);
            config_dispose(&config);
        }
    }
    assert_true(refused);
    assert_int_equal(strncmp(error, "dir/x.conf:3: the line is longer than ", 38), 0);
}

static void a_long_comment_is_no_error(void **state)
{
    (void)state;
    char text[20000] = APP ";";
    struct config config;
    memset(text + strlen(text), 'x', 15000);
    assert_int_equal(load(&config, text), 0);
    config_dispose(&config);
}

static void the_number_of_apps_is_limited(void **state)
{
    (void)state;
    size_t size = (CONFIG_APPS_MAX + 1) * 40, used = 0;
    char *text = malloc(size);
    for (unsigned i = 0; i <= CONFIG_APPS_MAX; i++) {
        struct config config;
        if (i == CONFIG_APPS_MAX) {
            assert_int_equal(load(&config, text), 0);
            assert_int_equal(config.app_count, CONFIG_APPS_MAX);
            config_dispose(&config);
        }
        used += (size_t)snprintf(text + used, size - used, "[app a%u]\nmodule = ./a\n", i);
    }
    struct config config;
    assert_int_equal(load(&config, text), PE_CONFIG);
    assert_string_equal(error, "dir/x.conf:2049: more than 1024 apps");
    free(text);
}

static void the_number_of_outputs_is_limited(void **state)
{
    (void)state;
    size_t size = (CONFIG_OUTPUTS_MAX + 2) * 40, used;
    char *text = malloc(size);
    used = (size_t)snprintf(text, size, APP);
    for (unsigned i = 0; i <= CONFIG_OUTPUTS_MAX; i++)
        used += (size_t)snprintf(text + used, size - used, "[output a.o%u]\ninner = a\n", i);
    struct config config;
    assert_int_equal(load(&config, text), PE_CONFIG);
    assert_string_equal(error, "dir/x.conf:8195: more than 4096 outputs");
    free(text);
}

static void a_file_that_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct config config;
    assert_true(config_load(&config, "/nonexistent/x.conf", error, sizeof(error)) < 0);
    assert_string_equal(error, "/nonexistent/x.conf: cannot be read: No such file or directory");
    assert_true(config_load(&config, "/", error, sizeof(error)) < 0);
    assert_string_equal(error, "/: cannot be read: Is a directory");
}

/* Every prefix of a file loads or fails, with a line that is in it; the sanitizers watch. */
static void every_prefix_is_loaded_or_refused(void **state)
{
    (void)state;
    static const char text[] =
        "[host]\nhttp = [::1]:1 ; x\ntoken = x\nstore = s\n[app a]\nmodule = ./a\narg = q\nkeep = 7d, 1G\n"
        "[output a.b]\nwire = http://h/\nmode = pure\napp = c\nqueue = 4M\n";
    for (size_t size = 0; size < sizeof(text); size++) {
        struct config config;
        char *copy = malloc(size + 1);
        memcpy(copy, text, size);
        error[0] = '\0';
        if (config_load_text(&config, "x", span_of(copy, size), error, sizeof(error)) == 0)
            config_dispose(&config);
        else
            assert_int_equal(strncmp(error, "x:", 2), 0);
        free(copy);
    }
}

/* --- single values --- */

static void sizes_and_times_are_shown_in_the_largest_unit(void **state)
{
    (void)state;
    char text[24];
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {{0, "0"},        {1, "1"},         {1023, "1023"},           {1024, "1K"},
                 {3 << 20, "3M"}, {1u << 30, "1G"}, {UINT64_C(1) << 40, "1T"}};
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        value_show_size(text, sizeof(text), sizes[i].bytes);
        assert_string_equal(text, sizes[i].text);
    }
    value_show_time(text, sizeof(text), 90 * NS_PER_S);
    assert_string_equal(text, "90s");
    value_show_time(text, sizeof(text), 7200 * NS_PER_S);
    assert_string_equal(text, "2h");
    value_show_time(text, sizeof(text), 48 * 3600 * NS_PER_S);
    assert_string_equal(text, "2d");
}

static void the_nearest_name_is_near(void **state)
{
    (void)state;
    static const char *const names[] = {"counter", "relay", "recorder"};
    assert_string_equal(nearest_name("conuter", names, 3), "counter");
    assert_string_equal(nearest_name("rely", names, 3), "relay");
    assert_string_equal(nearest_name("recordr", names, 3), "recorder");
    static const char *const exchanged[] = {"ap"};
    assert_string_equal(nearest_name("pa", exchanged, 1), "ap");
    assert_null(nearest_name("x", names, 3));
    assert_null(nearest_name("", names, 3));
    assert_null(nearest_name("dashboard", names, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_as_the_header_says),
        cmocka_unit_test(every_key_reaches_its_field),
        cmocka_unit_test(comments_blank_lines_indentation_and_crlf_change_nothing),
        cmocka_unit_test(modules_are_found_from_the_file_or_among_the_installed),
        cmocka_unit_test(a_pure_wire_leads_to_the_records_of_the_receiving_app),
        cmocka_unit_test(a_small_queue_lowers_the_largest_record),
        cmocka_unit_test(ipv6_and_other_loopback_addresses_need_no_token),
        cmocka_unit_test(where_the_store_is_decides_what_is_on_disk),
        cmocka_unit_test(a_history_is_limited_by_time_or_bytes_or_both_in_any_order),
        cmocka_unit_test(what_asks_for_nothing_on_disk_needs_no_store),
        cmocka_unit_test(values_come_from_files_variables_and_credentials),
        cmocka_unit_test(a_file_or_credential_that_cannot_be_used_is_named),
        cmocka_unit_test(no_error_holds_a_secret),
        cmocka_unit_test(each_broken_file_has_its_exact_error),
        cmocka_unit_test(all_problems_of_a_file_are_told_in_its_order),
        cmocka_unit_test(a_section_with_a_problem_is_not_said_to_lack_something),
        cmocka_unit_test(a_section_that_cannot_be_begun_is_passed_over),
        cmocka_unit_test(a_store_that_is_misspelt_is_not_said_to_be_missing),
        cmocka_unit_test(reading_stops_after_as_many_problems_as_are_wanted),
        cmocka_unit_test(a_url_that_is_wrong_is_an_error_with_its_line),
        cmocka_unit_test(a_nul_byte_is_an_error_with_its_line),
        cmocka_unit_test(a_line_is_whole_or_refused_but_never_cut),
        cmocka_unit_test(a_long_comment_is_no_error),
        cmocka_unit_test(the_number_of_apps_is_limited),
        cmocka_unit_test(the_number_of_outputs_is_limited),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(every_prefix_is_loaded_or_refused),
        cmocka_unit_test(sizes_and_times_are_shown_in_the_largest_unit),
        cmocka_unit_test(the_nearest_name_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
