/* What status and metrics say of links: the exact text, of a registry of the test's. */
#include "host/metrics.h"
#include "host/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct world {
    struct config config;
    struct registry registry;
    struct registry_link links[2];
    struct link_report reports[2];
    struct link_listener_report listener;
    struct loop loop;
    struct front front;
};

static void make_world(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->config.name = (char *)"pi";
    w->config.link = (char *)"0.0.0.0:7071";
    w->config.peer_count = 3;
    w->links[0] = (struct registry_link){"pi2.local:7071", &w->reports[0]};
    w->links[1] = (struct registry_link){"[fd00::2]:7071", &w->reports[1]};
    _Atomic uint64_t *numbers = &w->reports[0].packets;
    for (size_t i = 0; i < sizeof(struct link_report) / sizeof(*numbers); i++)
        numbers[i] = 101 + i;
    w->reports[0].rtt_ns = 1234567890;
    w->reports[0].segmentation = 1;
    numbers = &w->listener.datagrams;
    for (size_t i = 0; i < sizeof(w->listener) / sizeof(*numbers); i++)
        numbers[i] = 201 + i;
    w->registry =
        (struct registry){.config = &w->config, .link_count = 2, .links = w->links, .listener = &w->listener};
    w->loop.now_ns = 1;
    w->front = (struct front){.registry = &w->registry, .loop = &w->loop, .wall_ms = 1, .wall_at_ns = 1};
}

static const char *written(struct text *t)
{
    text_add(t, "", 1);
    assert_false(t->failed);
    return t->data;
}

static void a_status_has_each_link_and_the_listener(void **state)
{
    (void)state;
    struct world w;
    struct text t = {0};
    make_world(&w);
    status_write(&w.front, &t);
    assert_string_equal(
        strstr(written(&t), "\"outlets\""),
        "\"outlets\":[],\"links\":[{\"name\":\"pi2.local:7071\",\"rtt_ns\":1234567890,\"packets\":101,"
        "\"bytes\":102,\"lost\":105,\"received\":104,\"dropped\":106,\"handshakes\":107,\"ports\":108,"
        "\"send_errors\":110,\"window_bytes\":112,\"datagram_bytes\":113,\"segmentation\":true},"
        "{\"name\":\"[fd00::2]:7071\",\"rtt_ns\":0,\"packets\":0,\"bytes\":0,\"lost\":0,\"received\":0,"
        "\"dropped\":0,\"handshakes\":0,\"ports\":0,\"send_errors\":0,\"window_bytes\":0,"
        "\"datagram_bytes\":0,\"segmentation\":false}],"
        "\"listener\":{\"address\":\"0.0.0.0:7071\",\"peers\":3,\"datagrams\":201,\"bytes\":202,"
        "\"dropped\":203,\"unopened\":204,\"sent\":205,\"answers\":206,\"send_errors\":207}}\n");
    text_dispose(&t);
}

static void a_host_without_links_says_so(void **state)
{
    (void)state;
    struct world w;
    struct text t = {0};
    make_world(&w);
    w.registry.link_count = 0;
    w.registry.listener = NULL;
    status_write(&w.front, &t);
    assert_string_equal(strstr(written(&t), "\"outlets\""), "\"outlets\":[],\"links\":[]}\n");
    text_dispose(&t);
    metrics_write(&w.front, &t);
    assert_null(strstr(written(&t), "pure_link_packets_total{"));
    assert_null(strstr(t.data, "pure_listen_"));
    text_dispose(&t);
}

static void metrics_have_each_number_of_a_link_and_the_listener(void **state)
{
    (void)state;
    static const char *const samples[] = {
        "# TYPE pure_link_packets_total counter\npure_link_packets_total{link=\"pi2.local:7071\"} 101\n",
        "\npure_link_packets_total{link=\"[fd00::2]:7071\"} 0\n",
        "\npure_link_bytes_total{link=\"pi2.local:7071\"} 102\n",
        "\npure_link_sends_total{link=\"pi2.local:7071\"} 103\n",
        "\npure_link_received_total{link=\"pi2.local:7071\"} 104\n",
        "\npure_link_lost_total{link=\"pi2.local:7071\"} 105\n",
        "\npure_link_dropped_total{link=\"pi2.local:7071\"} 106\n",
        "\npure_link_handshakes_total{link=\"pi2.local:7071\"} 107\n",
        "\npure_link_ports_total{link=\"pi2.local:7071\"} 108\n",
        "\npure_link_lookups_total{link=\"pi2.local:7071\"} 109\n",
        "\npure_link_send_errors_total{link=\"pi2.local:7071\"} 110\n",
        "# TYPE pure_link_rtt_seconds gauge\npure_link_rtt_seconds{link=\"pi2.local:7071\"} 1.234567890\n",
        "\npure_link_rtt_seconds{link=\"[fd00::2]:7071\"} 0.000000000\n",
        "# TYPE pure_link_window_bytes gauge\npure_link_window_bytes{link=\"pi2.local:7071\"} 112\n",
        "\npure_link_datagram_bytes{link=\"pi2.local:7071\"} 113\n",
        "\npure_link_segmentation{link=\"pi2.local:7071\"} 1\n",
        "# TYPE pure_listen_datagrams_total counter\npure_listen_datagrams_total 201\n",
        "\npure_listen_bytes_total 202\n",
        "\npure_listen_dropped_total 203\n",
        "\npure_listen_unopened_total 204\n",
        "\npure_listen_sent_total 205\n",
        "\npure_listen_answers_total 206\n",
        "\npure_listen_send_errors_total 207\n",
    };
    struct world w;
    struct text t = {0};
    make_world(&w);
    metrics_write(&w.front, &t);
    const char *text = written(&t);
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        assert_non_null(strstr(text, samples[i]));
    text_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_has_each_link_and_the_listener),
        cmocka_unit_test(a_host_without_links_says_so),
        cmocka_unit_test(metrics_have_each_number_of_a_link_and_the_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
