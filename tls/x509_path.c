/* A depth-first search from the leaf up. An issuer is looked for among the anchors first, then among what the
 * peer sent: by name, those that the authority key identifier points to before the others. What can be said
 * of an issuer without arithmetic is said first; each signature is checked once, and remembered. */
#include "tls/x509_path.h"

#include "tls/x509_constraints.h"
#include "tls/x509_dn.h"
#include "tls/x509_names.h"
#include "tls/x509_profile.h"

#include <stdio.h>

/* How far a path came, lowest first; among equals, the longer one. */
enum progress { NOBODY, LINK, ANCHORED, BELIEVED };

enum memo { UNKNOWN, GOOD, BAD };

struct search {
    const struct x509_question *question;
    struct x509_answer *answer;
    struct x509 sent[X509_CHAIN_MAX];
    bool usable[X509_CHAIN_MAX];                       /* parsed, and not the same as one before */
    uint8_t signed_by[X509_CHAIN_MAX][X509_CHAIN_MAX]; /* enum memo, of sent by sent */
    const struct x509 *path[X509_CHAIN_MAX + 1];       /* [0, length): the leaf first */
    unsigned length;
    unsigned signatures_left, steps_left, names_left;
    int best; /* of the error in the answer: progress and length; -1: none yet */
};

/* --- errors --- */

static void note(struct search *s, enum progress progress, const struct x509 *x, int error, const char *why)
{
    int rank = (int)progress * 2 * X509_CHAIN_MAX + (int)s->length;
    if (rank <= s->best)
        return;
    char name[40];
    x509_dn_print(x->subject, name, sizeof name);
    s->best = rank;
    s->answer->error = error;
    snprintf(s->answer->detail, sizeof s->answer->detail, "%s \"%s\" %s",
             x == s->path[0] ? "the certificate of" : "the CA certificate of", name, why);
}

/* Whether an anchor has the organisation that issued `x`: then it is likely that what is missing lies between
 * them. */
static bool organization_is_trusted(const struct search *s, const struct x509 *x)
{
    const struct tls_trust *trust = s->question->trust;
    struct x509_dn_attribute wanted, found;
    if (!x509_dn_find(x->issuer, x509_dn_organization, &wanted))
        return false;
    for (unsigned i = 0; i < trust->count; i++) {
        if (x509_dn_find(trust->anchors[i].subject, x509_dn_organization, &found) &&
            span_equal(found.value, wanted.value))
            return true;
    }
    return false;
}

/* No issuer of the last one is here. A leaf that says where to get its issuer's certificate is one of a CA
 * below a root, whose certificate the server has to send. */
static void note_no_issuer(struct search *s, const struct x509 *x)
{
    char issuer[40], why[90];
    if (x509_dn_compare(x->subject, x->issuer) == 0) {
        note(s, NOBODY, x, s->length == 1 ? PE_CERT_SELF_SIGNED : PE_CERT_ISSUER,
             "is self-signed and not trusted here");
        return;
    }
    x509_dn_print(x->issuer, issuer, sizeof issuer);
    snprintf(why, sizeof why, "was issued by \"%s\", neither sent nor trusted here", issuer);
    bool between = s->length == 1 && (x->authority_published || organization_is_trusted(s, x));
    note(s, NOBODY, x, between ? PE_CERT_INCOMPLETE : PE_CERT_ISSUER, why);
}

/* --- links --- */

static bool is_self_issued(const struct x509 *x)
{
    return x509_dn_compare(x->subject, x->issuer) == 0;
}

/* Nobody else vouches for it: only as an anchor does it end a path. One that is self-issued with another key
 * is a link like others (a CA that changes its key). */
static bool is_self_signed(const struct x509 *x)
{
    return is_self_issued(x) &&
           (!x->authority_key_id.data || span_equal(x->authority_key_id, x->subject_key_id));
}

/* The same entity, whoever vouched for it: a path has it once. */
static bool is_in_path(const struct search *s, const struct x509 *x)
{
    for (unsigned i = 0; i < s->length; i++) {
        if (span_equal(s->path[i]->key_info, x->key_info) &&
            x509_dn_compare(s->path[i]->subject, x->subject) == 0)
            return true;
    }
    return false;
}

/* Intermediates below an issuer that is to come next, self-issued ones not counted (section 6.1.4 l, m). */
static int32_t intermediates(const struct search *s)
{
    int32_t count = 0;
    for (unsigned i = 1; i < s->length; i++)
        count += !is_self_issued(s->path[i]);
    return count;
}

/* Section 6.1.3 b, c: all below, without self-issued ones that are not the leaf. */
static int check_names(struct search *s, const struct x509 *issuer, const char **why)
{
    *why = "has name constraints that are malformed";
    for (unsigned i = 0; issuer->name_constraints.data && i < s->length; i++) {
        if (i > 0 && is_self_issued(s->path[i]))
            continue;
        int error = x509_constraints_check(issuer, s->path[i], &s->names_left);
        if (error == PE_CERT_CONSTRAINTS)
            *why = "may not speak for the names it was used for";
        if (error == PE_CERT_PATH)
            *why = "has too many name constraints to compare";
        if (error)
            return error;
    }
    return 0;
}

static int check_issuer(struct search *s, const struct x509 *issuer, bool anchor, struct x509_key *key,
                        const char **why)
{
    int error = x509_check_ca(issuer, s->question->purpose, anchor, key, why);
    if (!error)
        error = x509_check_validity(issuer, s->question->now_s, why);
    if (error)
        return error;
    if (issuer->path_length >= 0 && issuer->path_length < intermediates(s)) {
        *why = "allows no path of this length below it";
        return PE_CERT_PATH;
    }
    return check_names(s, issuer, why);
}

static int check_signature(struct search *s, const struct x509_key *key, const char **why)
{
    const struct x509 *x = s->path[s->length - 1];
    *why = "did not sign what it is said to have signed";
    if (s->signatures_left == 0) {
        *why = "is one of too many to try";
        return PE_CERT_PATH;
    }
    s->signatures_left--;
    int error = x509_signature_check(x, key);
    if (error == PE_CERT_ALGORITHM)
        *why = "signed with an algorithm that is not safe";
    return error;
}

/* Whether the authority key identifier of `x` speaks against `issuer`: a hint only (RFC 4158 section 3.5.12).
 */
static bool is_other_key(const struct x509 *x, const struct x509 *issuer)
{
    return x->authority_key_id.data && issuer->subject_key_id.data &&
           !span_equal(x->authority_key_id, issuer->subject_key_id);
}

/* A wrong signature under another key than the one that was meant only says that the issuer is not here. */
static void note_issuer(struct search *s, enum progress progress, const struct x509 *issuer, int error,
                        const char *why)
{
    const struct x509 *x = s->path[s->length - 1];
    if (error == PE_CERT_SIGNATURE && is_other_key(x, issuer))
        note(s, NOBODY, x, PE_CERT_ISSUER, "was issued by another CA of a name that is known here");
    else
        note(s, progress, issuer, error, why);
}

/* --- the search --- */

static bool try_anchor(struct search *s, const struct x509 *anchor)
{
    struct x509_key key;
    const char *why;
    int error = check_issuer(s, anchor, true, &key, &why);
    if (!error)
        error = check_signature(s, &key, &why);
    if (error) {
        note_issuer(s, error == PE_CERT_SIGNATURE ? LINK : ANCHORED, anchor, error, why);
        return false;
    }
    s->path[s->length++] = anchor;
    return true;
}

static bool try_anchors(struct search *s, bool other_keys)
{
    const struct tls_trust *trust = s->question->trust;
    const struct x509 *x = s->path[s->length - 1];
    unsigned first, count = tls_trust_find(trust, x->issuer, &first);
    for (unsigned i = 0; i < count && s->steps_left > 0; i++) {
        const struct x509 *anchor = &trust->anchors[first + i];
        s->steps_left--;
        if (is_other_key(x, anchor) == other_keys && try_anchor(s, anchor))
            return true;
    }
    return false;
}

/* The place of the last of the path among what was sent; all but an anchor were. */
static unsigned last_sent(const struct search *s)
{
    return (unsigned)(s->path[s->length - 1] - s->sent);
}

static bool try_sent(struct search *s, unsigned issuer)
{
    const struct x509 *candidate = &s->sent[issuer];
    if (is_self_signed(candidate)) {
        note(s, NOBODY, candidate, PE_CERT_ISSUER, "is self-signed and not trusted here");
        return false;
    }
    uint8_t *memo = &s->signed_by[last_sent(s)][issuer];
    struct x509_key key;
    const char *why = "did not sign what it is said to have signed";
    int error = check_issuer(s, candidate, false, &key, &why);
    if (!error && *memo == UNKNOWN) {
        error = check_signature(s, &key, &why);
        if (error != PE_CERT_PATH)
            *memo = error ? BAD : GOOD;
    } else if (!error && *memo == BAD) {
        return false; /* noted when it was found out */
    }
    if (error) {
        note_issuer(s, LINK, candidate, error, why);
        return false;
    }
    s->path[s->length++] = candidate;
    return true;
}

static bool is_next_candidate(struct search *s, unsigned i, bool other_keys)
{
    const struct x509 *x = s->path[s->length - 1];
    if (!s->usable[i] || s->steps_left == 0)
        return false;
    s->steps_left--;
    return x509_dn_compare(s->sent[i].subject, x->issuer) == 0 &&
           is_other_key(x, &s->sent[i]) == other_keys && !is_in_path(s, &s->sent[i]);
}

/* Where the search stands at one length of the path: which candidate is next, of which kind. */
struct place {
    unsigned next;
    bool other_keys;
    bool anchors_tried;
    bool any; /* somebody had the issuer's name */
};

/* One more issuer on the path, from this place on; false: none is left. */
static bool climb(struct search *s, struct place *place)
{
    for (; place->next < s->question->count; place->next++) {
        if (!is_next_candidate(s, place->next, place->other_keys))
            continue;
        place->any = true;
        if (try_sent(s, place->next)) {
            place->next++;
            return true;
        }
    }
    if (place->other_keys)
        return false;
    place->other_keys = true;
    place->next = 0;
    return climb(s, place);
}

static bool names_anchor(const struct search *s)
{
    unsigned first;
    return tls_trust_find(s->question->trust, s->path[s->length - 1]->issuer, &first) > 0;
}

/* What is left when no issuer of the last one led to an anchor. */
static void note_end(struct search *s, const struct place *place)
{
    const struct x509 *x = s->path[s->length - 1];
    if (s->steps_left == 0 || s->length == X509_CHAIN_MAX)
        note(s, LINK, x, PE_CERT_PATH, "is one of too many to try");
    else if (!place->any && !names_anchor(s))
        note_no_issuer(s, x);
}

/* Paths grow to an anchor, or shrink when the last one has no issuer left; true: the path is whole. */
static bool search(struct search *s)
{
    struct place places[X509_CHAIN_MAX + 1] = {{0}};
    while (s->length > 0) {
        struct place *place = &places[s->length];
        if (!place->anchors_tried) {
            place->anchors_tried = true;
            if (try_anchors(s, false) || try_anchors(s, true))
                return true;
        }
        if (s->length < X509_CHAIN_MAX && climb(s, place)) {
            places[s->length] = (struct place){0};
            continue;
        }
        note_end(s, place);
        s->length--;
    }
    return false;
}

/* --- the question --- */

static bool is_repeated(const struct search *s, unsigned i)
{
    for (unsigned j = 0; j < i; j++) {
        if (s->usable[j] && span_equal(s->sent[j].der, s->sent[i].der))
            return true;
    }
    return false;
}

/* What cannot be parsed is as if it had not been sent, but for the leaf. How many could not be. */
static unsigned parse_sent(struct search *s)
{
    unsigned malformed = 0;
    for (unsigned i = 0; i < s->question->count; i++) {
        bool good = x509_parse(&s->sent[i], s->question->chain[i]) == 0;
        malformed += !good;
        s->usable[i] = good && !is_repeated(s, i);
    }
    return malformed;
}

static bool is_anchor(const struct tls_trust *trust, const struct x509 *x)
{
    unsigned first, count = tls_trust_find(trust, x->subject, &first);
    for (unsigned i = 0; i < count; i++) {
        if (span_equal(trust->anchors[first + i].der, x->der))
            return true;
    }
    return false;
}

static int check_leaf(struct search *s, bool trusted, const char **why)
{
    const struct x509_question *question = s->question;
    const struct x509 *x = &s->sent[0];
    int error = x509_check_leaf(x, question->purpose, trusted, why);
    if (!error)
        error = x509_check_validity(x, question->now_s, why);
    if (error || question->purpose == X509_CLIENT)
        return error;
    *why = "is for other names";
    return question->name && x509_names_match(x, question->name) ? 0 : PE_CERT_NAME;
}

static void believe(struct search *s)
{
    s->answer->error = 0;
    s->answer->detail[0] = 0;
    s->answer->length = s->length;
    for (unsigned i = 0; i < s->length; i++)
        s->answer->path[i] = s->path[i]->key_info;
}

static int refuse(struct x509_answer *answer, int error, const char *detail)
{
    answer->error = error;
    snprintf(answer->detail, sizeof answer->detail, "%s", detail);
    return error;
}

int x509_verify(const struct x509_question *question, struct x509_answer *answer)
{
    *answer = (struct x509_answer){0};
    if (question->count == 0)
        return refuse(answer, PE_CERT_MALFORMED, "the peer sends no certificate");
    if (question->count > X509_CHAIN_MAX)
        return refuse(answer, PE_CERT_PATH, "the peer sends more than 16 certificates");
    struct search s = {.question = question,
                       .answer = answer,
                       .length = 1,
                       .signatures_left = X509_SIGNATURES_MAX,
                       .steps_left = X509_STEPS_MAX,
                       .names_left = X509_NAMES_MAX,
                       .best = -1};
    unsigned malformed = parse_sent(&s);
    if (!s.usable[0])
        return refuse(answer, PE_CERT_MALFORMED, "the peer's own certificate cannot be parsed");
    s.path[0] = &s.sent[0];
    bool trusted = is_anchor(question->trust, &s.sent[0]);
    if (!trusted && !search(&s)) {
        assert(answer->error);
        if (s.best < 2 * X509_CHAIN_MAX && malformed > 0)
            return refuse(answer, PE_CERT_MALFORMED, "a CA certificate that the peer sends cannot be parsed");
        return answer->error;
    }
    const char *why;
    int error = check_leaf(&s, trusted, &why);
    if (error)
        note(&s, BELIEVED, &s.sent[0], error, why);
    else
        believe(&s);
    return answer->error;
}
