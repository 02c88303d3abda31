/* Drives cases of certificates from a file over live TLS, in a network namespace of its own:
 *
 *     build/tests/certs FILE.json
 *
 * The server is OpenSSL's and presents the chain with its key; the client is the product's, on io_uring, at
 * the time of the case. A case without a key, or for a client's certificate, is put to the check alone. So is
 * each of the others, and both have to say the same. docs/certificates.md has the format. */
#include "tests/runners/certs_client.h"
#include "tests/runners/certs_server.h"
#include "tls/der.h"
#include "tls/trust.h"
#include "tls/x509_names.h"
#include "tls/x509_path.h"

#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sodium.h>
#include <sys/ioctl.h>

struct run {
    struct cert_client client;
    unsigned passed, failed, skipped, unplayed; /* unplayed: of the passed and failed, those without TLS */
};

/* Only the loopback interface, and that only here. Its user stays who he is in a new user namespace. */
static void own_network(void)
{
    int flags = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
    struct ifreq up = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = unshare(flags) < 0 ? -1 : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &up) < 0)
        case_wrong("network namespace", "none can be made: %s", strerror(errno));
    close(fd);
}

/* A case that does not say for whom the certificate has to be asks for the first name in it. */
static void own_name(struct cert_case *c)
{
    struct x509 leaf;
    struct der list;
    struct span name;
    uint8_t tag;
    if (c->name[0] || x509_parse(&leaf, c->chain[0]) < 0 ||
        !der_only(leaf.subject_alt_names, DER_SEQUENCE, &list) || !der_any(&list, &tag, &name, NULL))
        return;
    if (tag == X509_IP_ADDRESS)
        inet_ntop(name.size == 4 ? AF_INET : AF_INET6, name.data, c->name, sizeof c->name);
    else if (tag == X509_DNS_NAME && name.size < sizeof c->name)
        memcpy(c->name, name.data, name.size);
    if (strncmp(c->name, "*.", 2) == 0)
        c->name[0] = 'w', c->name[1] = '.';
}

static int ask_check(const struct cert_case *c, const struct tls_trust *trust, char *detail, size_t size)
{
    struct x509_question question = {.trust = trust,
                                     .purpose = c->client ? X509_CLIENT : X509_SERVER,
                                     .name = c->client ? NULL : c->name,
                                     .now_s = c->now_s,
                                     .chain = c->chain,
                                     .count = c->count};
    struct x509_answer answer;
    int error = x509_verify(&question, &answer);
    snprintf(detail, size, "%s", answer.detail);
    return error;
}

/* What the wire gets; 1: it cannot be played. Cases may lie before this was built, when the wire takes the
 * clock for wrong: that is no matter of theirs. */
static int ask_wire(struct run *run, const struct cert_case *c, struct tls_trust *trust)
{
    struct cert_server server;
    if (!c->key || c->client || !c->name[0] || !server_start(&server, c))
        return 1;
    int error = client_ask(&run->client, c, trust, c->name, &server.address);
    server_stop(&server);
    return error == PE_CERT_CLOCK ? PE_CERT_NOT_YET_VALID : error;
}

static bool is_right(const struct cert_case *c, int got, int wanted)
{
    return c->accept ? got == 0 : got < 0 && (wanted == 0 || got == wanted);
}

static const char *verdict_text(int error)
{
    return error ? pure_error_text(error) : "accepted";
}

static void judge(struct run *run, const struct cert_case *c, int wire, int check, const char *detail)
{
    bool played = wire <= 0;
    run->unplayed += !played;
    if (is_right(c, check, c->error) && (!played || is_right(c, wire, c->error_tls))) {
        run->passed++;
        return;
    }
    run->failed++;
    printf("FAILED  %s: %s%s%s; ", c->id, verdict_text(check), detail[0] ? ": " : "", detail);
    if (played && wire != check)
        printf("over TLS: %s; ", verdict_text(wire));
    printf("has to be %s\n", c->accept ? "accepted" : c->error ? pure_error_text(c->error) : "refused");
}

static void run_case(struct run *run, struct cert_case *c)
{
    struct tls_trust *trust;
    char detail[200];
    unsigned passed_over;
    int error =
        tls_trust_of(&trust, span_text(c->roots ? c->roots : ""), &passed_over, detail, sizeof detail);
    if (error < 0) {
        judge(run, c, 1, PE_CERT_ISSUER, detail);
        return;
    }
    own_name(c);
    int check = ask_check(c, trust, detail, sizeof detail);
    judge(run, c, ask_wire(run, c, trust), check, detail);
    tls_trust_drop(trust);
}

static void run_file(struct run *run, const char *file)
{
    cJSON *root;
    const cJSON *json, *cases = cases_read(file, &root);
    cJSON_ArrayForEach(json, cases)
    {
        struct cert_case c;
        case_read(&c, json);
        if (c.lacks) {
            printf("skipped %s: asks for %s\n", c.id, c.lacks);
            run->skipped++;
        } else {
            run_case(run, &c);
        }
        case_dispose(&c);
    }
    cJSON_Delete(root);
}

int main(int argc, char **argv)
{
    static struct run run;
    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE.json\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (sodium_init() < 0)
        return 2;
    own_network();
    client_init(&run.client);
    run_file(&run, argv[1]);
    client_dispose(&run.client);
    if (run.unplayed > 0)
        printf("%u of them without TLS: no key, a client's certificate, or nothing that OpenSSL presents\n",
               run.unplayed);
    if (run.skipped > 0)
        printf("%u skipped\n", run.skipped);
    printf("%u passed, %u failed\n", run.passed, run.failed);
    return run.failed > 0;
}
