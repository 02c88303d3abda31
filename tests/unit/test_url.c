/* URLs of wires: what is taken and what becomes of it, what is refused and why. */
#include "wire/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct url url;

/* Parses a copy of exactly its size, so that a sanitizer sees a byte read beyond it. */
static int parse(const char *text, const char **why)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    *why = NULL;
    int error = url_parse(&url, copy, why);
    free(copy);
    return error;
}

static void urls_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool tls, literal;
        uint16_t port;
        const char *host, *authority, *target;
    } cases[] = {
        {"http://example.com", false, false, 80, "example.com", "example.com", "/"},
        {"https://example.com/", true, false, 443, "example.com", "example.com", "/"},
        {"HTTPS://Example.COM/Path", true, false, 443, "example.com", "example.com", "/Path"},
        {"http://h:8080/a/b?c=d&e", false, false, 8080, "h", "h:8080", "/a/b?c=d&e"},
        {"http://h:80/", false, false, 80, "h", "h", "/"},
        {"https://h:443", true, false, 443, "h", "h", "/"},
        {"http://h:443", false, false, 443, "h", "h:443", "/"},
        {"https://h:80", true, false, 80, "h", "h:80", "/"},
        {"http://h:00080", false, false, 80, "h", "h", "/"},
        {"http://h:65535", false, false, 65535, "h", "h:65535", "/"},
        {"http://h:1", false, false, 1, "h", "h:1", "/"},
        {"http://h?q", false, false, 80, "h", "h", "/?q"},
        {"http://h:81?q=/?", false, false, 81, "h", "h:81", "/?q=/?"},
        {"http://h#f", false, false, 80, "h", "h", "/"},
        {"http://h/a?b#c?d/e", false, false, 80, "h", "h", "/a?b"},
        {"http://h/?", false, false, 80, "h", "h", "/?"},
        {"http://h//a/../b/.", false, false, 80, "h", "h", "//a/../b/."},
        {"http://h/%C3%a4%20;a=b,c@d:e!$&'()*+~", false, false, 80, "h", "h",
         "/%C3%a4%20;a=b,c@d:e!$&'()*+~"},
        {"http://h/@", false, false, 80, "h", "h", "/@"},
        {"http://example.com./", false, false, 80, "example.com", "example.com", "/"},
        {"http://example.com.:81/", false, false, 81, "example.com", "example.com:81", "/"},
        {"http://xn--bcher-kva.example", false, false, 80, "xn--bcher-kva.example", "xn--bcher-kva.example",
         "/"},
        {"http://a_b.c-d.1e", false, false, 80, "a_b.c-d.1e", "a_b.c-d.1e", "/"},
        {"http://1.example", false, false, 80, "1.example", "1.example", "/"},
        {"http://127.0.0.1:7070/x", false, true, 7070, "127.0.0.1", "127.0.0.1:7070", "/x"},
        {"http://[::1]", false, true, 80, "::1", "[::1]", "/"},
        {"https://[2001:DB8::A]:8443/x", true, true, 8443, "2001:db8::a", "[2001:db8::a]:8443", "/x"},
        {"https://[::1]:443/x", true, true, 443, "::1", "[::1]", "/x"},
        {"http://[::ffff:10.0.0.1]/", false, true, 80, "::ffff:10.0.0.1", "[::ffff:10.0.0.1]", "/"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *why;
        int error = parse(cases[i].text, &why);
        if (error < 0)
            print_error("%s: %s\n", cases[i].text, why);
        assert_int_equal(error, 0);
        assert_int_equal(url.tls, cases[i].tls);
        assert_int_equal(url.literal, cases[i].literal);
        assert_int_equal(url.port, cases[i].port);
        assert_string_equal(url.host, cases[i].host);
        assert_string_equal(url.authority, cases[i].authority);
        assert_string_equal(url.target, cases[i].target);
    }
}

static void what_is_wrong_with_an_url_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why; /* a part of the reason */
    } cases[] = {
        {"", "http://"},
        {"example.com", "http://"},
        {"ftp://h/", "http://"},
        {"http:/h", "http://"},
        {"http:h", "http://"},
        {" http://h", "http://"},
        {"http//h", "http://"},
        {"http://", "host is missing"},
        {"http:///a", "host is missing"},
        {"http://:80/", "host is missing"},
        {"http://?q", "host is missing"},
        {"http://.", "host is missing"},
        {"http://u@h/", "user information"},
        {"http://u:p@h/", "user information"},
        {"http://@h/", "user information"},
        {"http://b\xc3\xbc"
         "cher.example/",
         "xn--"},
        {"http://h:/", "port"},
        {"http://h:0/", "port"},
        {"http://h:65536/", "port"},
        {"http://h:99999/", "port"},
        {"http://h:4294967376/", "port"},
        {"http://h:-1/", "port"},
        {"http://h:+80/", "port"},
        {"http://h:8a/", "port"},
        {"http://h: 80/", "port"},
        {"http://h:80:80/", "port"},
        {"http://[::1]80/", "port"},
        {"http://[::1]:/", "port"},
        {"http://[::1/", "bracket"},
        {"http://[]/", "IPv6"},
        {"http://[::g]/", "IPv6"},
        {"http://[127.0.0.1]/", "IPv6"},
        {"http://[fe80::1%25eth0]/", "IPv6"},
        {"http://[v1.a]/", "IPv6"},
        {"http://::1/", "host is missing"},
        {"http://a..b/", "neither"},
        {"http://a../", "neither"},
        {"http://.a/", "neither"},
        {"http://-a/", "neither"},
        {"http://a-.b/", "neither"},
        {"http://a b/", "neither"},
        {"http://a%20b/", "neither"},
        {"http://a\tb/", "neither"},
        {"http://a\\b/", "neither"},
        {"http://a,b/", "neither"},
        {"http://127.1/", "IPv4"},
        {"http://2130706433/", "IPv4"},
        {"http://0x7f.1/", "IPv4"},
        {"http://127.0.0.0x1/", "IPv4"},
        {"http://0x/", "IPv4"},
        {"http://127.0.0.256/", "IPv4"},
        {"http://1.2.3.4.5/", "IPv4"},
        {"http://h/a b", "percent-encoded"},
        {"http://h/ ", "percent-encoded"},
        {"http://h/\x01", "percent-encoded"},
        {"http://h/\r\nHost: x", "percent-encoded"},
        {"http://h/\x7f", "percent-encoded"},
        {"http://h/\xc3\xa4", "percent-encoded"},
        {"http://h/?a=\"b\"", "percent-encoded"},
        {"http://h/?a[]=b", "percent-encoded"},
        {"http://h/\\", "percent-encoded"},
        {"http://h/%", "percent-encoded"},
        {"http://h/%4", "percent-encoded"},
        {"http://h/%4g", "percent-encoded"},
        {"http://h/#a b", "percent-encoded"},
        {"http://h/#a#b", "percent-encoded"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *why;
        memset(&url, 0x55, sizeof url);
        int error = parse(cases[i].text, &why);
        if (error != PE_MALFORMED || !strstr(why, cases[i].why))
            print_error("%s: %d, %s\n", cases[i].text, error, why);
        assert_int_equal(error, PE_MALFORMED);
        assert_non_null(strstr(why, cases[i].why));
        assert_int_equal(url.host[0], 0x55); /* as it was */
    }
}

/* `before`, `size` times 'a' with a dot in every `label` + 1st place, `after`. */
static int parse_long(const char *before, size_t size, size_t label, const char *after)
{
    static char text[8192];
    size_t at = strlen(before);
    assert_true(at + size + strlen(after) < sizeof text);
    memcpy(text, before, at);
    for (size_t i = 0; i < size; i++)
        text[at + i] = label > 0 && i % (label + 1) == label ? '.' : 'a';
    strcpy(text + at + size, after);
    const char *why;
    return parse(text, &why);
}

static void lengths_are_exact(void **state)
{
    (void)state;
    assert_int_equal(parse_long("http://", 63, 0, "/"), 0);
    assert_int_equal(parse_long("http://", 64, 0, "/"), PE_MALFORMED);
    assert_int_equal(parse_long("https://", RESOLVER_NAME_MAX, 60, ":65535/"), 0);
    assert_int_equal(strlen(url.authority), RESOLVER_NAME_MAX + 6);
    assert_int_equal(parse_long("https://", RESOLVER_NAME_MAX, 60, "./"), 0);
    assert_int_equal(parse_long("https://", RESOLVER_NAME_MAX + 1, 60, "/"), PE_TOO_LARGE);
    assert_int_equal(parse_long("http://[", 300, 0, "]/"), PE_TOO_LARGE);
    assert_int_equal(parse_long("http://h/", URL_TARGET_MAX - 1, 0, ""), 0);
    assert_int_equal(parse_long("http://h/", URL_TARGET_MAX - 1, 0, "#fragment"), 0);
    assert_int_equal(parse_long("http://h/", URL_TARGET_MAX, 0, ""), PE_TOO_LARGE);
    assert_int_equal(parse_long("http://h?", URL_TARGET_MAX - 2, 0, ""), 0);
    assert_int_equal(strlen(url.target), URL_TARGET_MAX);
    assert_int_equal(parse_long("http://h?", URL_TARGET_MAX - 1, 0, ""), PE_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(what_is_wrong_with_an_url_is_said),
        cmocka_unit_test(lengths_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
