/* The macs of an INIT, the receiver's secrets, and COOKIE at both ends. */
#include "tests/unit/link_world.h"

struct cookies {
    struct random seed;
    struct noise_random random;
    struct cookie_keys keys;
    struct cookie_jar jar;
    struct cookie_held held;
    struct cookie_source source;
    struct link_init init;
    uint64_t now_ns;
};

static void start(struct cookies *c)
{
    *c = (struct cookies){.seed = {1}, .now_ns = LINK_WORLD_START};
    c->random = link_world_random(&c->seed);
    uint8_t public[LINK_KEY_BYTES] = {9};
    cookie_keys_derive(&c->keys, public);
    cookie_jar_init(&c->jar, c->now_ns, &c->random);
    c->source = link_world_source(0x7f000001, 4000);
    link_world_fill(&c->seed, &c->init, sizeof c->init);
    cookie_sign(&c->held, &c->keys, c->now_ns, &c->init);
}

static int take(struct cookies *c, const struct link_cookie *message)
{
    return cookie_take(&c->held, &c->keys, c->now_ns, c->init.mac1, message);
}

/* A COOKIE that went across. */
static void get_cookie(struct cookies *c)
{
    struct link_cookie message;
    cookie_answer(&c->jar, &c->keys, c->now_ns, &c->source, &c->init, &message);
    assert_int_equal(link_type_of((const uint8_t *)&message, sizeof message), LINK_COOKIE);
    assert_int_equal(link_index_of(LINK_COOKIE, (const uint8_t *)&message), link_get32(c->init.sender));
    assert_int_equal(take(c, &message), 0);
}

static enum cookie_mac2 check(struct cookies *c)
{
    return cookie_mac2_check(&c->jar, c->now_ns, &c->source, &c->init);
}

static void mac1_covers_every_byte_before_it(void **state)
{
    (void)state;
    struct cookies c;
    start(&c);
    assert_true(cookie_mac1_right(&c.keys, &c.init));
    for (size_t at = 0; at < offsetof(struct link_init, mac2); at++) {
        ((uint8_t *)&c.init)[at] ^= 0x10;
        assert_false(cookie_mac1_right(&c.keys, &c.init));
        ((uint8_t *)&c.init)[at] ^= 0x10;
    }
    struct cookie_keys other;
    cookie_keys_derive(&other, (const uint8_t[LINK_KEY_BYTES]){8});
    assert_false(cookie_mac1_right(&other, &c.init));
}

/* As docs/link-protocol.md section 3 has them. */
static void the_macs_are_what_the_protocol_page_says(void **state)
{
    (void)state;
    struct cookies c;
    start(&c);
    get_cookie(&c);
    cookie_sign(&c.held, &c.keys, c.now_ns, &c.init);
    uint8_t label[14 + LINK_KEY_BYTES] = "pure-link mac1\x09", key[32], mac[16];
    crypto_generichash(key, 32, label, sizeof label, NULL, 0);
    crypto_generichash(mac, 16, (const uint8_t *)&c.init, 1168, key, 32);
    assert_memory_equal((const uint8_t *)&c.init + 1168, mac, 16);
    crypto_generichash(mac, 16, (const uint8_t *)&c.init, 1184, c.held.cookie, 16);
    assert_memory_equal((const uint8_t *)&c.init + 1184, mac, 16);
}

static void a_cookie_proves_its_address_and_no_other(void **state)
{
    (void)state;
    struct cookies c;
    start(&c);
    assert_int_equal(check(&c), COOKIE_NONE);
    get_cookie(&c);
    assert_int_equal(check(&c), COOKIE_NONE);
    cookie_sign(&c.held, &c.keys, c.now_ns, &c.init);
    assert_int_equal(check(&c), COOKIE_RIGHT);
    c.source = link_world_source(0x7f000001, 4001);
    assert_int_equal(check(&c), COOKIE_WRONG);
    c.source = link_world_source(0x7f000002, 4000);
    assert_int_equal(check(&c), COOKIE_WRONG);
}

static void mac2_covers_every_byte_before_it(void **state)
{
    (void)state;
    struct cookies c;
    start(&c);
    get_cookie(&c);
    cookie_sign(&c.held, &c.keys, c.now_ns, &c.init);
    for (size_t at = 0; at < sizeof c.init; at++) {
        ((uint8_t *)&c.init)[at] ^= 1;
        assert_int_equal(check(&c), COOKIE_WRONG);
        ((uint8_t *)&c.init)[at] ^= 1;
    }
}

static void a_cookie_message_altered_anywhere_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct cookies c;
    struct link_cookie message;
    start(&c);
    cookie_answer(&c.jar, &c.keys, c.now_ns, &c.source, &c.init, &message);
    struct cookie_held before = c.held;
    for (size_t at = offsetof(struct link_cookie, nonce); at < sizeof message; at++) {
        ((uint8_t *)&message)[at] ^= 0x40;
        assert_int_equal(take(&c, &message), PE_NOT_AUTHENTIC);
        assert_memory_equal(&c.held, &before, sizeof before);
        ((uint8_t *)&message)[at] ^= 0x40;
    }
    c.init.mac1[0] ^= 1; /* another INIT's */
    assert_int_equal(take(&c, &message), PE_NOT_AUTHENTIC);
    c.init.mac1[0] ^= 1;
    assert_int_equal(take(&c, &message), 0);
}

/* A cookie is used for LINK_COOKIE_NS, and right for no less, whenever the secret changes. */
static void a_cookie_is_good_for_as_long_as_it_is_used(void **state)
{
    (void)state;
    for (uint64_t start_s = 0; start_s < 300; start_s += 7) {
        struct cookies c;
        start(&c);
        c.now_ns += start_s * NS_PER_S;
        get_cookie(&c);
        c.now_ns += LINK_COOKIE_NS - 1;
        cookie_sign(&c.held, &c.keys, c.now_ns, &c.init);
        assert_int_equal(check(&c), COOKIE_RIGHT);
        struct link_init late = c.init;
        c.now_ns += 1;
        cookie_sign(&c.held, &c.keys, c.now_ns, &c.init);
        assert_int_equal(check(&c), COOKIE_NONE);
        c.init = late;
        c.now_ns += LINK_COOKIE_NS + NS_PER_S;
        assert_int_equal(check(&c), COOKIE_WRONG);
    }
}

static void secrets_change_and_are_wiped(void **state)
{
    (void)state;
    struct cookies c;
    uint8_t first[LINK_KEY_BYTES];
    start(&c);
    get_cookie(&c);
    cookie_sign(&c.held, &c.keys, c.now_ns, &c.init);
    memcpy(first, c.jar.secrets[0], sizeof first);
    c.now_ns += LINK_COOKIE_NS;
    check(&c);
    assert_memory_not_equal(c.jar.secrets[0], first, sizeof first);
    assert_memory_equal(c.jar.secrets[1], first, sizeof first);
    c.now_ns += 2 * LINK_COOKIE_NS;
    check(&c);
    assert_memory_not_equal(c.jar.secrets[0], first, sizeof first);
    assert_memory_not_equal(c.jar.secrets[1], first, sizeof first);
    cookie_jar_wipe(&c.jar);
    assert_true(sodium_is_zero((const uint8_t *)&c.jar, sizeof c.jar));
}

static struct cookie_source source6(const char *tail, uint32_t scope, uint32_t flow)
{
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(4000)};
    memcpy(&in6.sin6_addr, tail, 16);
    in6.sin6_scope_id = scope;
    in6.sin6_flowinfo = flow;
    return cookie_source_of((const struct sockaddr *)&in6);
}

static void a_source_is_its_address_and_port(void **state)
{
    (void)state;
    struct cookie_source v4 = link_world_source(0x7f000001, 4000);
    struct cookie_source mapped = source6("\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\0\0\1", 0, 0);
    assert_memory_equal(&v4, &mapped, sizeof v4);
    struct cookie_source global = source6("\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 3, 0);
    struct cookie_source flow = source6("\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 4, 5);
    assert_memory_equal(&global, &flow, sizeof global);
    struct cookie_source local = source6("\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 3, 0);
    struct cookie_source elsewhere = source6("\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 4, 0);
    assert_memory_not_equal(&local, &elsewhere, sizeof local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mac1_covers_every_byte_before_it),
        cmocka_unit_test(the_macs_are_what_the_protocol_page_says),
        cmocka_unit_test(a_cookie_proves_its_address_and_no_other),
        cmocka_unit_test(mac2_covers_every_byte_before_it),
        cmocka_unit_test(a_cookie_message_altered_anywhere_is_refused_and_changes_nothing),
        cmocka_unit_test(a_cookie_is_good_for_as_long_as_it_is_used),
        cmocka_unit_test(secrets_change_and_are_wiped),
        cmocka_unit_test(a_source_is_its_address_and_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
