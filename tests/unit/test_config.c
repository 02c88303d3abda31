/* The configuration: what a good file becomes. The errors of broken ones: test_config_errors.c. */
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
    assert_true(config.apps[0].turn_limit_ns == 10 * NS_PER_S && config.apps[0].memory_bytes == 256 << 20);
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
                                   "loops = 3\n"
                                   "connections = 7\n"
                                   "max_body = 2K\n"
                                   "body_memory = 3M\n"
                                   "request_timeout = 250ms\n"
                                   "idle_timeout = 2h\n"
                                   "without = share, quotas\n"
                                   "[app a]\n"
                                   "module = /lib/a.so\n"
                                   "arg = step=1\n"
                                   "inbox = 1M\n"
                                   "durability = interval\n"
                                   "interval = 60s\n"
                                   "keep = 7d, 1G\n"
                                   "turn_limit = 2m\n"
                                   "memory = 1G\n"
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
    assert_int_equal(config.loops, 3);
    assert_int_equal(config.connections, 7);
    assert_int_equal(config.max_body, 2048);
    assert_int_equal(config.body_memory, 3 << 20);
    assert_true(config.request_ns == 250 * NS_PER_MS && config.idle_ns == 7200 * NS_PER_S);
    assert_true(config.without.share && config.without.quotas);
    assert_true(!config.without.early && !config.without.feedback);
    assert_int_equal(config.app_count, 1);
    assert_string_equal(config.apps[0].name, "a");
    assert_string_equal(config.apps[0].module, "/lib/a.so");
    assert_string_equal(config.apps[0].arg, "step=1");
    assert_int_equal(config.apps[0].inbox_bytes, 1 << 20);
    assert_int_equal(config.apps[0].durability, DURABILITY_INTERVAL);
    assert_true(config.apps[0].interval_ns == 60 * NS_PER_S);
    assert_true(config.apps[0].keep_ms == UINT64_C(7) * 24 * 3600 * 1000);
    assert_true(config.apps[0].keep_bytes == UINT64_C(1) << 30);
    assert_true(config.apps[0].turn_limit_ns == 120 * NS_PER_S);
    assert_true(config.apps[0].memory_bytes == UINT64_C(1) << 30);
    assert_string_equal(config.apps[0].disk_key, "durability");
    assert_int_equal(config.apps[0].disk_line, 19);
    assert_int_equal(config.output_count, 3);
    const struct config_output *wire = &config.outputs[0], *inner = &config.outputs[2];
    assert_int_equal(wire->line, 24);
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
    assert_int_equal(wire->disk_line, 28);
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

static void limits_of_an_app_may_be_none(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "[app a]\nmodule=./a\nturn_limit = none\nmemory = none\n"), 0);
    assert_true(config.apps[0].turn_limit_ns == NEVER && config.apps[0].memory_bytes == UINT64_MAX);
    config_dispose(&config);
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
        cmocka_unit_test(limits_of_an_app_may_be_none),
        cmocka_unit_test(what_asks_for_nothing_on_disk_needs_no_store),
        cmocka_unit_test(values_come_from_files_variables_and_credentials),
        cmocka_unit_test(a_file_or_credential_that_cannot_be_used_is_named),
        cmocka_unit_test(sizes_and_times_are_shown_in_the_largest_unit),
        cmocka_unit_test(the_nearest_name_is_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
