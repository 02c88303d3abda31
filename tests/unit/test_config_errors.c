/* The configuration: the exact errors of broken files, and what bounds a file. */
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

#define APP        "[app a]\nmodule = ./a\n"
#define OUTPUT     APP "[output a.o]\n"
#define STORE      "[host]\nstore = s\n"
#define TURN_LIMIT "needs a time from 1s to 1h, with ms, s, m, h or d, or none"
#define MEMORY     "needs a size from 1M to 1T, in bytes or with K, M, G or T, or none"
#define KEEP       "needs a time from 1s to 3650d, a size from 1M to 1T, or both, such as 7d, 1G"
#define HOST_KEYS                                                                                         \
    "name, http, token, store, segment, owners, loops, connections, max_body, body_memory, "              \
    "request_timeout, "                                                                                   \
    "idle_timeout, link, key, link_window, https, https_certificate, https_key, https_ca, proxy, allow, " \
    "deny, ca, without"
#define OUTPUT_KEYS                                                                                         \
    "inner, wire, link, event, queue, max_record, backlog, attempts, dead, mode, app, key, mtu, token, "    \
    "content_type, batch_bytes, "                                                                           \
    "batch_records, progress_timeout, reply_timeout, total_timeout, backoff_min, backoff_max, sign, "       \
    "header.NAME, gzip, success, refuse, disable, disable_after, on_disable, concurrency, order_by, rate, " \
    "batch_wait, connection_age, proxy, allow, deny, ca, certificate, certificate_key, pin"

static const struct {
    const char *text, *error;
} broken[] = {
    /* unknown names */
    {"[host]\nhtpp = 127.0.0.1:1\n", "2: unknown key 'htpp' in [host]: did you mean 'http'?"},
    {"[host]\nHTTP = 127.0.0.1:1\n", "2: unknown key 'HTTP' in [host]: known are " HOST_KEYS},
    {"[host]\n\x1b[31m = 1\n", "2: unknown key '?[31m' in [host]: known are " HOST_KEYS},
    {"[app a]\nmodul = x\n", "2: unknown key 'modul' in [app]: did you mean 'module'?"},
    {OUTPUT "sing = x\n", "4: unknown key 'sing' in [output]: did you mean 'sign'?"},
    {OUTPUT "purpose = x\n", "4: unknown key 'purpose' in [output]: known are " OUTPUT_KEYS},
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
    {APP "turn_limit = 999ms\n", "3: turn_limit = 999ms: " TURN_LIMIT},
    {APP "turn_limit = 61m\n", "3: turn_limit = 61m: " TURN_LIMIT},
    {APP "turn_limit = 10\n", "3: turn_limit = 10: " TURN_LIMIT},
    {APP "turn_limit = 1M\n", "3: turn_limit = 1M: " TURN_LIMIT},
    {APP "turn_limit = \n", "3: turn_limit = : " TURN_LIMIT},
    {APP "turnlimit = 1s\n", "3: unknown key 'turnlimit' in [app]: did you mean 'turn_limit'?"},
    {APP "memory = 1023K\n", "3: memory = 1023K: " MEMORY},
    {APP "memory = 2T\n", "3: memory = 2T: " MEMORY},
    {APP "memory = 10s\n", "3: memory = 10s: " MEMORY},
    {APP "memory = nothing\n", "3: memory = nothing: " MEMORY},
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
    {"[host]\nloops = 33\n", "2: loops = 33: needs a whole number from 1 to 32"},
    {"[host]\nwithout = quotas, hurry\n",
     "2: without = quotas, hurry: 'hurry' is unknown: known are none, quotas, early, feedback, share"},
    {"[host]\nwithout = early,\n",
     "2: without = early,: '' is unknown: known are none, quotas, early, feedback, share"},
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
    {OUTPUT "wire = foo\n", "4: wire: the URL must begin with http:// or https://"},
    {"[host]\nhttp = 127.0.0.1:0\n", "2: http = 127.0.0.1:0: port 0 is none that clients could be given: "
                                     "write one from 1 to 65535, such as 7070"},
    {"[host]\nhttp = [::1]:0\n", "2: http = [::1]:0: port 0 is none that clients could be given: write one "
                                 "from 1 to 65535, such as 7070"},
    {"[app a]\nmodule =\n", "2: module: needs the path of a module, or the name of an installed one"},
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

static void what_is_wrong_between_the_keys_of_an_output_is_told_at_once(void **state)
{
    (void)state;
    static const char text[] = APP "[output a.o]\nwire = http://h/\non_disable = o\norder_by = m\nca = c\n"
                                   "success = 200\nrefuse = 200\nbackoff_min = 60s\nbackoff_max = 1s\n"
                                   "[output a.p]\ninner = a\ngzip = 6\nrate = 1/s\n";
    expect_all(text, 20,
               "x:6: order_by is for wires with concurrency above 1: without, all records are in order\n"
               "x:5: on_disable: needs another output of the app, not this one\n"
               "x:7: 'ca' is for wires to https:// URLs only: remove it\n"
               "x:9: refuse: 200 is in success already (line 8): a status means one thing\n"
               "x:11: backoff_max is shorter than backoff_min: raise it\n"
               "x:14: 'gzip' is for wires with mode = webhook or batch only: remove it\n"
               "x:15: 'rate' is for wires with mode = webhook or batch only: remove it\n");
    expect_all(text, 2,
               "x:6: order_by is for wires with concurrency above 1: without, all records are in order\n"
               "x:5: on_disable: needs another output of the app, not this one\n");
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
    expect_all("[host]\nzzz = 1\nb\nowners = x\n", 2,
               "x:2: unknown key 'zzz' in [host]: known are " HOST_KEYS "\n"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_error_holds_a_secret),
        cmocka_unit_test(each_broken_file_has_its_exact_error),
        cmocka_unit_test(all_problems_of_a_file_are_told_in_its_order),
        cmocka_unit_test(what_is_wrong_between_the_keys_of_an_output_is_told_at_once),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
