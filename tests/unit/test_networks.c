/* Egress rules: what a rule's text means, and which addresses may be connected to in whatever spelling. */
#include "core/error.h"
#include "core/networks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static int parse(const char *text, struct network *to, unsigned room)
{
    char *copy = malloc(strlen(text) + 1); /* of exactly its size, for a sanitizer to watch */
    assert_non_null(copy);
    memcpy(copy, text, strlen(text));
    int result = networks_parse(span_of(copy, strlen(text)), to, room);
    free(copy);
    return result;
}

static void allow(struct networks *n, const char *text)
{
    int count = parse(text, n->allow + n->allow_count, NETWORKS_MAX - n->allow_count);
    assert_true(count > 0);
    n->allow_count += (unsigned)count;
}

static void deny(struct networks *n, const char *text)
{
    int count = parse(text, n->deny + n->deny_count, NETWORKS_MAX - n->deny_count);
    assert_true(count > 0);
    n->deny_count += (unsigned)count;
}

static bool permits(const struct networks *n, const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return networks_permit(n, (struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return networks_permit(n, (struct sockaddr *)&v6);
}

static void check(const struct networks *n, const char *const *texts, size_t count, bool expected)
{
    for (size_t i = 0; i < count; i++) {
        if (permits(n, texts[i]) != expected)
            fail_msg("%s is %s", texts[i], expected ? "denied" : "permitted");
    }
}

static void addresses_and_networks_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *address;
        unsigned bits;
    } cases[] = {
        {"10.0.0.0/8", "::ffff:10.0.0.0", 104},
        {"192.168.7.1", "::ffff:192.168.7.1", 128},
        {"192.168.7.1/32", "::ffff:192.168.7.1", 128},
        {"0.0.0.0/0", "::ffff:0.0.0.0", 96},
        {"128.0.0.0/1", "::ffff:128.0.0.0", 97},
        {"::/0", "::", 0},
        {"::1", "::1", 128},
        {"2001:DB8::/32", "2001:db8::", 32},
        {"8000::/1", "8000::", 1},
        {"::ffff:10.0.0.0/104", "::ffff:10.0.0.0", 104},
        {"fd00::1/128", "fd00::1", 128},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct network n;
        uint8_t address[16];
        assert_int_equal(parse(cases[i].text, &n, 1), 1);
        assert_int_equal(inet_pton(AF_INET6, cases[i].address, address), 1);
        assert_memory_equal(n.address, address, sizeof address);
        assert_int_equal(n.bits, cases[i].bits);
    }
}

static void what_is_no_network_is_malformed(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "/",
        "/8",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/8 ",
        " 10.0.0.0/8",
        "10.0.0.0/+8",
        "10.0.0.0/08",
        "10.0.0.0/8/8",
        "10.0.0.0/0x8",
        "10.0.0.1/8",
        "10/8",
        "10.0.0/24",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "::/129",
        "::1/127",
        "fe80::1%eth0",
        "[::1]",
        "1::2::3",
        "example.com",
        "Any",
        "PRIVATE",
        "any/0",
        "::ffff:0:0/95",
        "10.0.0.0/999",
        "10.0.0.0/4294967304",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999/1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct network n = {.bits = 77};
        if (parse(texts[i], &n, 1) != PE_MALFORMED)
            fail_msg("\"%s\" is taken for a network", texts[i]);
        assert_int_equal(n.bits, 77);
    }
    struct network n;
    assert_int_equal(networks_parse(span_of("::1\0", 4), &n, 1), PE_MALFORMED);
}

static void a_list_that_has_no_room_is_refused_as_a_whole(void **state)
{
    (void)state;
    struct network n[NETWORKS_MAX] = {{.bits = 77}};
    int count = parse("private", n, NETWORKS_MAX);
    assert_in_range(count, 20, NETWORKS_MAX / 2);
    n[0].bits = 77;
    assert_int_equal(parse("private", n, (unsigned)count - 1), PE_FULL);
    assert_int_equal(parse("any", n, 1), PE_FULL);
    assert_int_equal(parse("::1", n, 0), PE_FULL);
    assert_int_equal(n[0].bits, 77);
    assert_int_equal(parse("private", n, (unsigned)count), count);
}

static void what_is_not_of_the_public_internet_is_private(void **state)
{
    (void)state;
    static const char *const outside[] = {
        /* the first and the last of each range */
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255",
        "127.0.0.1", "127.255.255.255", "169.254.0.0", "169.254.169.254", "169.254.255.255", "172.16.0.0",
        "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.0", "192.0.2.255",
        "192.88.99.0", "192.88.99.255", "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255",
        "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255", "224.0.0.0", "239.255.255.255",
        "240.0.0.0", "255.255.255.255", "::", "::1", "::7f00:1", "::10.0.0.1", "::8.8.8.8",
        "64:ff9b:1::", "64:ff9b:1::808:808", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
        "100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::1", "2001:2::1",
        "2001:10::1", "2001:20::1", "2001:1ff:ffff::", "2001:db8::", "2001:db8:ffff:ffff::1",
        "3fff::", "3fff:fff:ffff::1", "4000::1", "5f00::1", "fc00::", "fd00:ec2::254", "fdff:ffff::1",
        "fe80::1", "febf::1", "fec0::1", "ff00::", "ff02::1", "ffff::",
        /* and IPv4 in IPv6 */
        "::ffff:0.0.0.0", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
        "::ffff:192.168.1.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::10.1.2.3",
        "64:ff9b::a9fe:a9fe", "64:ff9b::255.255.255.255", "2002:7f00:1::1", "2002:a9fe:a9fe::1",
        "2002:a00:1::", "2002:c0a8:101:5::9", "::ffff:0:169.254.169.254", "::ffff:0:8.8.8.8"};
    static const char *const inside[] = {
        /* the neighbours of each range */
        "1.0.0.0",          "9.255.255.255",    "11.0.0.0",        "100.63.255.255",
        "100.128.0.0",      "126.255.255.255",  "128.0.0.0",       "169.253.255.255",
        "169.255.0.0",      "172.15.255.255",   "172.32.0.0",      "191.255.255.255",
        "192.0.1.0",        "192.0.1.255",      "192.0.3.0",       "192.88.98.255",
        "192.88.100.0",     "192.167.255.255",  "192.169.0.0",     "198.17.255.255",
        "198.20.0.0",       "198.51.99.255",    "198.51.101.0",    "203.0.112.255",
        "203.0.114.0",      "223.255.255.255",  "8.8.8.8",         "2001:200::",
        "2001:db7:ffff::1", "2001:db9::",       "2000::1",         "2606:4700:4700::1111",
        "2a00:1450::1",     "3ffe:ffff::1",     "3fff:1000::1",    "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8", "64:ff9b::1.0.0.1", "2002:808:808::1", "2003::1"};
    struct networks n = {0};
    deny(&n, "private");
    check(&n, outside, ARRAY_SIZE(outside), false);
    check(&n, inside, ARRAY_SIZE(inside), true);
}

static void without_rules_every_address_may_be_connected_to(void **state)
{
    (void)state;
    static const struct networks none;
    static const char *const all[] = {"127.0.0.1", "8.8.8.8", "::1", "2001:200::1", "64:ff9b::10.0.0.1"};
    check(&none, all, ARRAY_SIZE(all), true);
    struct sockaddr other = {.sa_family = AF_UNIX};
    assert_false(networks_permit(&none, &other));
}

static void what_is_allowed_wins_over_what_is_denied(void **state)
{
    (void)state;
    static const char *const may[] = {"10.1.2.3", "::ffff:10.1.2.3",   "::1",    "fd12::7",
                                      "8.8.8.8",  "64:ff9b::10.1.2.3", "2606::1"};
    static const char *const may_not[] = {"10.2.0.1", "::ffff:10.2.0.1", "::2",
                                          "fd12::8",  "127.0.0.1",       "64:ff9b::10.2.0.1"};
    struct networks n = {0};
    deny(&n, "private");
    allow(&n, "10.1.0.0/16");
    allow(&n, "::1");
    allow(&n, "fd12::7");
    check(&n, may, ARRAY_SIZE(may), true);
    check(&n, may_not, ARRAY_SIZE(may_not), false);
}

static void what_is_allowed_without_denials_is_all_there_is(void **state)
{
    (void)state;
    static const char *const may[] = {"10.1.2.3", "::ffff:10.1.2.3", "2a00::1", "64:ff9b::8.8.8.8"};
    static const char *const may_not[] = {"10.2.0.1", "8.8.8.8", "2a01::1", "::1", "64:ff9c::1"};
    struct networks n = {0};
    allow(&n, "10.1.0.0/16");
    allow(&n, "2a00::/16");
    allow(&n, "64:ff9b::/96");
    check(&n, may, ARRAY_SIZE(may), true);
    check(&n, may_not, ARRAY_SIZE(may_not), false);
}

/* Allowing all of NAT64 does not allow what IPv4 rules deny. */
static void an_allowed_ipv6_network_opens_no_denied_ipv4_address(void **state)
{
    (void)state;
    static const char *const may[] = {"64:ff9b::8.8.8.8", "2002:808:808::1"};
    static const char *const may_not[] = {"64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1",
                                          "::ffff:169.254.169.254", "169.254.169.254"};
    struct networks n = {0};
    deny(&n, "169.254.169.254");
    allow(&n, "::/0");
    check(&n, may, ARRAY_SIZE(may), true);
    check(&n, may_not, ARRAY_SIZE(may_not), false);
}

static void networks_of_ipv6_do_not_mean_ipv4(void **state)
{
    (void)state;
    static const char *const four[] = {"8.8.8.8", "::ffff:8.8.8.8"};
    static const char *const six[] = {"2606::1", "::1"};
    struct networks n = {0};
    deny(&n, "::/0");
    check(&n, four, ARRAY_SIZE(four), true);
    check(&n, six, ARRAY_SIZE(six), false);
    n = (struct networks){0};
    deny(&n, "0.0.0.0/0");
    check(&n, four, ARRAY_SIZE(four), false);
    check(&n, six, ARRAY_SIZE(six), true);
    n = (struct networks){0};
    deny(&n, "any");
    check(&n, four, ARRAY_SIZE(four), false);
    check(&n, six, ARRAY_SIZE(six), false);
}

static void assert_why(const struct networks *n, const char *address, const char *expected)
{
    char text[NETWORKS_WHY_MAX];
    struct sockaddr_storage s = {0};
    if (strchr(address, ':')) {
        s.ss_family = AF_INET6;
        inet_pton(AF_INET6, address, &((struct sockaddr_in6 *)&s)->sin6_addr);
    } else {
        s.ss_family = AF_INET;
        inet_pton(AF_INET, address, &((struct sockaddr_in *)&s)->sin_addr);
    }
    networks_why(n, (const struct sockaddr *)&s, text);
    assert_string_equal(text, expected);
}

static void the_rule_that_forbids_is_named(void **state)
{
    (void)state;
    struct networks n = {0};
    allow(&n, "2a00::/16");
    assert_why(&n, "10.0.0.1", "10.0.0.1 is in no network of allow");
    assert_why(&n, "2a00::1", "");
    deny(&n, "private");
    assert_why(&n, "10.0.0.1", "10.0.0.1 is in deny = 10.0.0.0/8");
    assert_why(&n, "::1", "::1 is in deny = ::/16");
    assert_why(&n, "64:ff9b::7f00:1", "64:ff9b::7f00:1 is in deny = 127.0.0.0/8");
    assert_why(&n, "8.8.8.8", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_and_networks_are_parsed),
        cmocka_unit_test(what_is_no_network_is_malformed),
        cmocka_unit_test(a_list_that_has_no_room_is_refused_as_a_whole),
        cmocka_unit_test(what_is_not_of_the_public_internet_is_private),
        cmocka_unit_test(without_rules_every_address_may_be_connected_to),
        cmocka_unit_test(what_is_allowed_wins_over_what_is_denied),
        cmocka_unit_test(what_is_allowed_without_denials_is_all_there_is),
        cmocka_unit_test(an_allowed_ipv6_network_opens_no_denied_ipv4_address),
        cmocka_unit_test(networks_of_ipv6_do_not_mean_ipv4),
        cmocka_unit_test(the_rule_that_forbids_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
