/* What the configuration says of links: the host's key and listener, outputs that are links, peers. */
#include "host/config.h"
#include "host/config_values.h"
#include "noise/key.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY_A   "PHeMdsnWZDJDbb7qWMobcZRzbIG/L3IcSe79r0PyFhg="
#define KEY_B   "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
#define WEAK    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define PRIVATE HOST_KEY_PRIVATE_PREFIX "rP0ZnVoGHzzuA/Wt7L1+CGwKkUBGelO8eG58mbiCIe4="
#define SECRET  "rP0ZnVoGHz" /* of PRIVATE: no message may hold it */

static char error[1200];

static int load(struct config *config, const char *text)
{
    error[0] = '\0';
    return config_load_text(config, "dir/x.conf", span_text(text), error, sizeof(error));
}

static void assert_key(const uint8_t key[LINK_KEY_BYTES], const char *text)
{
    uint8_t wanted[LINK_KEY_BYTES];
    assert_int_equal(host_key_parse_public(span_text(text), wanted), 0);
    assert_memory_equal(key, wanted, sizeof(wanted));
}

/* --- files that are right --- */

#define HOST "[host]\nkey = host.key\n"
#define APP  "[app a]\nmodule = ./a\n"
#define LINK HOST APP "[output a.o]\n" /* 5 lines */

static void every_key_of_links_reaches_its_field(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, "[host]\n"
                                   "link = 0.0.0.0:7071\n"
                                   "key = host.key\n"
                                   "link_window = 64M\n"
                                   "[app a]\n"
                                   "module = ./a\n"
                                   "[app b]\n"
                                   "module = ./b\n"
                                   "[output a.next]\n"
                                   "link = Pi2.Local.:7071\n"
                                   "key = " KEY_A "\n"
                                   "app = dashboard\n"
                                   "event = seen\n"
                                   "queue = 1M\n"
                                   "max_record = 64K\n"
                                   "mtu = 1400\n"
                                   "[peer pi-2.local]\n"
                                   "key = " KEY_B "\n"
                                   "apps = b,a\n"),
                     0);
    const struct sockaddr_in *address = (const struct sockaddr_in *)&config.link_address;
    assert_string_equal(config.link, "0.0.0.0:7071");
    assert_int_equal(config.link_line, 2);
    assert_int_equal(config.link_address_len, sizeof(*address));
    assert_int_equal(address->sin_family, AF_INET);
    assert_int_equal(ntohs(address->sin_port), 7071);
    assert_string_equal(config.key_path, "dir/host.key");
    assert_null(config.key_text);
    assert_int_equal(config.key_line, 3);
    assert_int_equal(config.link_window, 64 << 20);
    const struct config_output *link = &config.outputs[0];
    assert_int_equal(link->kind, OUTPUT_LINK);
    assert_string_equal(link->link_text, "pi2.local:7071");
    assert_string_equal(link->link_host, "pi2.local");
    assert_int_equal(link->link_port, 7071);
    assert_false(link->link_literal);
    assert_int_equal(link->link_line, 10);
    assert_key(link->link_key, KEY_A);
    assert_int_equal(link->link_key_line, 11);
    assert_string_equal(link->target_app, "dashboard");
    assert_string_equal(link->event, "seen");
    assert_int_equal(link->queue_bytes, 1 << 20);
    assert_int_equal(link->max_record, 64 << 10);
    assert_int_equal(link->link_mtu, 1400);
    assert_int_equal(config.peer_count, 1);
    const struct config_peer *peer = &config.peers[0];
    assert_string_equal(peer->name, "pi-2.local");
    assert_int_equal(peer->line, 17);
    assert_key(peer->key, KEY_B);
    assert_int_equal(peer->key_line, 18);
    assert_int_equal(peer->app_count, 2);
    assert_string_equal(peer->apps[0], "b");
    assert_string_equal(peer->apps[1], "a");
    assert_int_equal(peer->apps_line, 19);
    config_dispose(&config);
}

static void defaults_of_links_are_as_the_header_says(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, APP), 0);
    assert_null(config.link);
    assert_int_equal(config.link_line, 0);
    assert_null(config.key_path);
    assert_null(config.key_text);
    assert_int_equal(config.link_window, 16 << 20);
    assert_int_equal(config.peer_count, 0);
    config_dispose(&config);
    assert_int_equal(load(&config, LINK "link = h:1\nkey = " KEY_A "\napp = b\n"), 0);
    assert_string_equal(config.outputs[0].event, "o");
    assert_int_equal(config.outputs[0].max_record, 1 << 20);
    assert_int_equal(config.outputs[0].link_mtu, 65507);
    config_dispose(&config);
}

static void a_link_leads_to_a_name_or_an_address(void **state)
{
    (void)state;
    static const struct {
        const char *written, *host, *text;
        uint16_t port;
        bool literal;
    } cases[] = {
        {"10.0.0.2:7071", "10.0.0.2", "10.0.0.2:7071", 7071, true},
        {"[FD00::2]:65535", "fd00::2", "[fd00::2]:65535", 65535, true},
        {"a:80", "a", "a:80", 80, false}, /* a URL's port could be left out here; a link's is always shown */
        {"pi_2.example.org:1", "pi_2.example.org", "pi_2.example.org:1", 1, false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct config config;
        char text[400];
        snprintf(text, sizeof(text), LINK "link = %s\nkey = " KEY_A "\napp = b\n", cases[i].written);
        assert_int_equal(load(&config, text), 0);
        assert_string_equal(config.outputs[0].link_host, cases[i].host);
        assert_string_equal(config.outputs[0].link_text, cases[i].text);
        assert_int_equal(config.outputs[0].link_port, cases[i].port);
        assert_int_equal(config.outputs[0].link_literal, cases[i].literal);
        config_dispose(&config);
    }
}

static void outputs_with_one_key_and_one_address_are_one_link(void **state)
{
    (void)state;
    struct config config;
    assert_int_equal(load(&config, LINK "link = PI:7\nkey = " KEY_A "\napp = b\n"
                                        "[output a.p]\nlink = pi:7\nkey = " KEY_A "\napp = c\n"
                                        "[output a.q]\nlink = pi:8\nkey = " KEY_B "\napp = c\n"),
                     0);
    config_dispose(&config);
}

/* Who may send is known before it listens, and outputs need no listener; sealed wires need peers alone. */
static void links_in_links_out_and_peers_may_each_be_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HOST APP "[peer p]\nkey = " KEY_A "\napps = a\n",
        APP "[peer p]\nkey = " KEY_A "\napps = a\n",
        HOST "link = [::]:7071\n" APP,
        HOST APP,
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct config config;
        assert_int_equal(load(&config, texts[i]), 0);
        config_dispose(&config);
    }
}

/* --- where the host's key is --- */

static void a_key_is_a_path_or_the_text_of_a_credential_or_a_variable(void **state)
{
    (void)state;
    char directory[] = "test-links-XXXXXX", path[64], text[200];
    struct config config;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/pi.key", directory);
    FILE *file = fopen(path, "w");
    fputs(PRIVATE "\n", file);
    fclose(file);
    setenv("CREDENTIALS_DIRECTORY", directory, 1);
    setenv("TEST_LINKS_KEY", PRIVATE, 1);
    assert_int_equal(load(&config, "[host]\nkey = credential:pi.key\n" APP), 0);
    assert_string_equal(config.key_text, PRIVATE);
    assert_null(config.key_path);
    config_dispose(&config);
    assert_int_equal(load(&config, "[host]\nkey = env:TEST_LINKS_KEY\n" APP), 0);
    assert_string_equal(config.key_text, PRIVATE);
    config_dispose(&config);
    /* file: is the path, so that the file's mode is looked at when it is read */
    char conf[100], wanted[100];
    snprintf(text, sizeof(text), "[host]\nkey = file:pi.key\n" APP);
    snprintf(conf, sizeof(conf), "%s/x.conf", directory);
    assert_int_equal(config_load_text(&config, conf, span_text(text), error, sizeof(error)), 0);
    snprintf(wanted, sizeof(wanted), "%s/pi.key", directory);
    assert_string_equal(config.key_path, wanted);
    assert_null(config.key_text);
    config_dispose(&config);
    assert_int_equal(load(&config, "[host]\nkey = /etc/pure/host.key\n" APP), 0);
    assert_string_equal(config.key_path, "/etc/pure/host.key");
    config_dispose(&config);
    unsetenv("CREDENTIALS_DIRECTORY");
    unsetenv("TEST_LINKS_KEY");
    unlink(path);
    assert_int_equal(rmdir(directory), 0);
}

/* --- files that are wrong --- */

#define PUBLIC_NEEDED                                                                                        \
    "needs a public key, 44 characters of base64 as 'pure-host key show FILE' prints them, or file:PATH of " \
    "a file that holds them"
#define NOT_HERE                                                                                   \
    "a private key does not belong here: keep it in its file, name that as key = FILE in [host], " \
    "and give others the public half, which 'pure-host key show FILE' prints"
#define LOW_ORDER \
    "a key of low order, with which no secret can be agreed on: no host has made it: copy the right one"
#define PATH_NEEDED "needs the path of the host's key file: make one with 'pure-host key new FILE'"
#define NO_HOST_KEY \
    "link: this host has no key: make one with 'pure-host key new FILE' and add key = FILE to [host]"
#define PLACE_NEEDED "needs a host and a port, such as pi2.local:7071 or [fd00::2]:7071"
#define PEER         APP "[peer p]\n"

static const struct {
    const char *text, *error;
} broken[] = {
    /* [host] */
    {"[host]\nlink = pi.local:7071\n", "2: link = pi.local:7071: needs an IP address and a port, such as "
                                       "0.0.0.0:7071 or [::]:7071"},
    {"[host]\nlink = 0.0.0.0\n",
     "2: link = 0.0.0.0: needs an IP address and a port, such as 0.0.0.0:7071 or [::]:7071"},
    {"[host]\nlink = [::]:0\n",
     "2: link = [::]:0: port 0 is none that peers could be given: write one from 1 "
     "to 65535, such as 7071"},
    {"[host]\nlink_window = 1M\n",
     "2: link_window = 1M: needs a size from 2M to 1G, in bytes or with K, M, G or T"},
    {"[host]\nkey =\n", "2: key: " PATH_NEEDED},
    {"[host]\nkey = " KEY_A "\n", "2: key: " PATH_NEEDED},
    {"[host]\nkey = " PRIVATE "\n", "2: key: " NOT_HERE},
    {"[host]\nkey = env:TEST_LINKS_PUBLIC\n", "2: key: env:TEST_LINKS_PUBLIC holds a public key, not the "
                                              "host's private one: make one with 'pure-host key new FILE'"},
    {"[host]\nkey = env:TEST_LINKS_SHORT\n",
     "2: key: env:TEST_LINKS_SHORT holds no host key: make one with 'pure-host key new FILE'"},
    {"[host]\nowners = 1\nlink = 0.0.0.0:7071\n" APP, "3: " NO_HOST_KEY},
    {APP "[output a.o]\nlink = h:1\nkey = " KEY_A "\napp = b\n[host]\nlink = [::]:1\n", "4: " NO_HOST_KEY},
    /* an output's destination */
    {LINK "link = pi2.local\n", "6: link = pi2.local: " PLACE_NEEDED},
    {LINK "link = [::1]\n", "6: link = [::1]: " PLACE_NEEDED},
    {LINK "link = http://h:1\n", "6: link = http://h:1: " PLACE_NEEDED},
    {LINK "link = u@h:1\n", "6: link = u@h:1: " PLACE_NEEDED},
    {LINK "link = :1\n", "6: link = :1: the host is missing"},
    {LINK "link = h:0\n", "6: link = h:0: the port is not a number from 1 to 65535"},
    {LINK "link = fd00::2:7071\n", "6: link = fd00::2:7071: the port is not a number from 1 to 65535"},
    {LINK "link = a b:1\n", "6: link = a b:1: the host is neither a name nor an address"},
    {LINK "link = 10.1:7071\n",
     "6: link = 10.1:7071: the host is not an IPv4 address of four decimal numbers"},
    {LINK "link = h:1\nwire = http://h/\n",
     "7: wire: this output is a link already (line 6): keep one of the two"},
    {LINK "inner = a\nlink = h:1\n",
     "7: link: this output is an inner one already (line 6): keep one of the two"},
    {LINK "wire = http://h/\nlink = h:1\n",
     "7: link: this output is a wire already (line 6): keep one of the two"},
    /* its other keys */
    {LINK "link = h:1\napp = b\n",
     "5: [output a.o] is a link and has no key: add key = the public key of the "
     "other host, as 'pure-host key show' prints it there"},
    {LINK "link = h:1\nkey = " KEY_A "\n",
     "5: [output a.o] is a link and names no receiving app: add app = NAME"},
    {LINK "link = h:1\nkey = AAAA\n", "7: key: " PUBLIC_NEEDED},
    {LINK "link = h:1\nkey = " WEAK "\n", "7: key: " LOW_ORDER},
    {LINK "link = h:1\nkey = " PRIVATE "\n", "7: key: " NOT_HERE},
    {LINK "link = h:1\nmtu = 1199\n", "7: mtu = 1199: needs a whole number from 1200 to 65507"},
    {LINK "link = h:1\nmtu = 65508\n", "7: mtu = 65508: needs a whole number from 1200 to 65507"},
    {LINK "link = h:1\nkey = " KEY_A "\napp = b\nqueue = 64M\nmax_record = 2M\n",
     "10: max_record: links take records of up to 1M: lower it"},
    {LINK "link = h:1\nkey = " KEY_A "\napp = b\nmode = pure\n", "9: 'mode' is for wires only: remove it"},
    {LINK "link = h:1\nkey = " KEY_A "\napp = b\nbackoff_max = 1s\n",
     "9: 'backoff_max' is for wires only: remove it"},
    {LINK "inner = a\nkey = " KEY_A "\n", "7: 'key' is for links and wires with mode = pure only: remove it"},
    {LINK "wire = http://h/\nmtu = 1400\n", "7: 'mtu' is for links only: remove it"},
    /* one host, one key, one address */
    {LINK "link = h:1\nkey = " KEY_A "\napp = b\n[output a.p]\nkey = " KEY_A "\nlink = h:2\napp = b\n",
     "11: link = h:2: the host with this key is h:1 in line 6: outputs with one key lead to one address"},
    {LINK "link = h:1\nkey = " KEY_A "\napp = b\n[output a.p]\nkey = " KEY_B "\nlink = h:1\napp = b\n",
     "10: key: the host at h:1 has another key in line 7: outputs to one address have one key"},
    /* peers */
    {"[peer]\n", "1: [peer ]: a peer's name is 1 to 63 letters, digits, '-', '_' or '.'"},
    {"[peer a/b]\n", "1: [peer a/b]: a peer's name is 1 to 63 letters, digits, '-', '_' or '.'"},
    {PEER "apps = a\nkey = " KEY_A "\n[peer p]\n", "6: [peer p] is given twice: it stands in line 3 already"},
    {PEER "apps = a\nkey = " KEY_A "\n[peer q]\napps = a\nkey = " KEY_A "\n",
     "8: key: [peer p] has this key already (line 5)"},
    {PEER "apps = a\n", "3: [peer p] has no key: add key = its public key, as 'pure-host key show' prints it "
                        "there"},
    {PEER "key = " KEY_A "\n", "3: [peer p] may send to no app: add apps = those it may send to"},
    {PEER "key = " KEY_A "\napps =\n", "5: apps = : needs names of apps, separated by commas: each 1 to 63 "
                                       "letters, digits, '-' or '_'"},
    {PEER "key = " KEY_A "\napps = a, b c\n", "5: apps = a, b c: needs names of apps, separated by commas: "
                                              "each 1 to 63 letters, digits, '-' or '_'"},
    {PEER "key = " KEY_A "\napps = a,\n", "5: apps = a,: needs names of apps, separated by commas: each 1 to "
                                          "63 letters, digits, '-' or '_'"},
    {PEER "key = " KEY_A "\napps = a , a\n", "5: apps = a , a: an app is named twice"},
    {PEER "key = " WEAK "\n", "4: key: " LOW_ORDER},
    {PEER "key = " PRIVATE "\n", "4: key: " NOT_HERE},
    {PEER "key = x\n", "4: key: " PUBLIC_NEEDED},
    {PEER "app = a\n", "4: unknown key 'app' in [peer]: did you mean 'apps'?"},
    {PEER "link = a\n", "4: unknown key 'link' in [peer]: known are key, apps"},
    {"[app counter]\nmodule = ./a\n[peer p]\nkey = " KEY_A "\napps = counter, countr\n",
     "5: [peer p]: there is no app 'countr': did you mean 'counter'?"},
    {PEER "key = " KEY_A "\napps = a, recorder\n",
     "5: [peer p]: there is no app 'recorder': add [app recorder]"},
    {"[pear p]\n", "1: unknown section [pear p]: did you mean [peer p]?"},
    /* a private key anywhere else */
    {"[host]\ntoken = " PRIVATE "\n", "2: token: " NOT_HERE},
    {"[app a]\narg = --" PRIVATE "\n", "2: arg: " NOT_HERE},
    {LINK "link = " PRIVATE "\n", "6: link: " NOT_HERE},
    {PEER "apps = env:TEST_LINKS_PRIVATE\n", "4: apps: " NOT_HERE},
    {"[host]\n" PRIVATE "\n",
     "2: unknown key 'pure-host-private-key' in [host]: known are name, http, token, store, segment, owners, "
     "loops, "
     "connections, max_body, body_memory, request_timeout, idle_timeout, link, key, link_window, https, "
     "https_certificate, https_key, https_ca, proxy, allow, deny, ca, without"},
};

static void each_broken_file_has_its_exact_error_and_no_private_key_in_it(void **state)
{
    (void)state;
    setenv("TEST_LINKS_PUBLIC", KEY_A, 1);
    setenv("TEST_LINKS_SHORT", HOST_KEY_PRIVATE_PREFIX SECRET, 1);
    setenv("TEST_LINKS_PRIVATE", PRIVATE, 1);
    for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
        struct config config;
        char wanted[1200];
        snprintf(wanted, sizeof(wanted), "dir/x.conf:%s", broken[i].error);
        assert_int_equal(load(&config, broken[i].text), PE_CONFIG);
        assert_string_equal(error, wanted);
        assert_null(strstr(error, SECRET));
    }
    unsetenv("TEST_LINKS_PUBLIC");
    unsetenv("TEST_LINKS_SHORT");
    unsetenv("TEST_LINKS_PRIVATE");
}

struct heard {
    char text[4000]; /* a line each */
};

static void hear(void *context, const char *problem)
{
    struct heard *heard = context;
    size_t used = strlen(heard->text);
    snprintf(heard->text + used, sizeof(heard->text) - used, "%s\n", problem);
}

static void expect_all(const char *text, const char *wanted)
{
    struct heard heard = {""};
    struct config config;
    const struct config_listener listener = {hear, &heard, 20};
    assert_int_equal(config_load_text_all(&config, "x", span_text(text), &listener), PE_CONFIG);
    assert_string_equal(heard.text, wanted);
}

static void all_problems_with_links_are_told(void **state)
{
    (void)state;
    expect_all("[host]\nlink = [::]:1\n" APP "[output a.o]\nlink = h:1\nkey = " KEY_A "\napp = b\n"
               "[output a.p]\nlink = h:2\nkey = " KEY_A "\napp = b\n[output a.q]\nlink = h\n"
               "[peer p]\nkey = " KEY_A "\napps = recorder\n",
               "x:14: link = h: " PLACE_NEEDED "\n"
               "x:17: [peer p]: there is no app 'recorder': add [app recorder]\n"
               "x:10: link = h:2: the host with this key is h:1 in line 6: outputs with one key lead to one "
               "address\n"
               "x:2: " NO_HOST_KEY "\n");
}

/* It may be misspelt, or stand in the section that was passed over. */
static void a_host_key_is_not_missed_where_host_has_a_problem(void **state)
{
    (void)state;
    expect_all("[host]\nkye = host.key\nlink = [::]:1\n" APP,
               "x:2: unknown key 'kye' in [host]: did you mean 'key'?\n");
    expect_all("[hots]\nkey = host.key\n" APP "[output a.o]\nlink = h:1\nkey = " KEY_A "\napp = b\n",
               "x:1: unknown section [hots]: did you mean [host]?\n");
}

static void the_number_of_peers_is_limited(void **state)
{
    (void)state;
    size_t size = (CONFIG_PEERS_MAX + 1) * 120, used;
    char *text = malloc(size);
    struct config config;
    used = (size_t)snprintf(text, size, APP);
    for (unsigned i = 0; i <= CONFIG_PEERS_MAX; i++) {
        struct host_key key = {.private = {0, (uint8_t)i, (uint8_t)(i >> 8)}}; /* byte 0 is clamped */
        char public[HOST_KEY_PUBLIC_TEXT];
        crypto_scalarmult_curve25519_base(key.public, key.private);
        host_key_public_text(key.public, public);
        if (i == CONFIG_PEERS_MAX) {
            assert_int_equal(load(&config, text), 0);
            assert_int_equal(config.peer_count, CONFIG_PEERS_MAX);
            config_dispose(&config);
        }
        used += (size_t)snprintf(text + used, size - used, "[peer p%u]\nkey = %s\napps = a\n", i, public);
    }
    assert_int_equal(load(&config, text), PE_CONFIG);
    assert_string_equal(error, "dir/x.conf:3075: more than 1024 peers");
    free(text);
}

/* --- places --- */

static void a_place_is_as_long_as_a_name_may_be(void **state)
{
    (void)state;
    char name[400] = "";
    struct value_place place;
    const char *why;
    for (unsigned i = 0; i < 126; i++)
        strcat(name, "a.");
    strcat(name, "b:65535"); /* 253 bytes and the port */
    assert_int_equal(value_place(&place, name, &why), 0);
    assert_string_equal(place.text, name);
    assert_int_equal(strlen(place.host), RESOLVER_NAME_MAX);
    memmove(name + 2, name, strlen(name) + 1);
    assert_int_equal(value_place(&place, name, &why), PE_CONFIG);
    assert_string_equal(why, "the host is longer than 253 bytes");
    memset(name, 'a', sizeof(name) - 3);
    strcpy(name + sizeof(name) - 3, ":1");
    assert_int_equal(value_place(&place, name, &why), PE_CONFIG);
    assert_string_equal(why, "the host is longer than 253 bytes");
}

static int start_sodium(void **state)
{
    (void)state;
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_of_links_reaches_its_field),
        cmocka_unit_test(defaults_of_links_are_as_the_header_says),
        cmocka_unit_test(a_link_leads_to_a_name_or_an_address),
        cmocka_unit_test(outputs_with_one_key_and_one_address_are_one_link),
        cmocka_unit_test(links_in_links_out_and_peers_may_each_be_alone),
        cmocka_unit_test(a_key_is_a_path_or_the_text_of_a_credential_or_a_variable),
        cmocka_unit_test(each_broken_file_has_its_exact_error_and_no_private_key_in_it),
        cmocka_unit_test(all_problems_with_links_are_told),
        cmocka_unit_test(a_host_key_is_not_missed_where_host_has_a_problem),
        cmocka_unit_test(the_number_of_peers_is_limited),
        cmocka_unit_test(a_place_is_as_long_as_a_name_may_be),
    };
    return cmocka_run_group_tests(tests, start_sodium, NULL);
}
