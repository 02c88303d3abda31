#include "wire/answer.h"

#define STORED_MAX VARINT_MAX /* far above what can be counted */

static void copy_text(char *to, size_t size, struct span text)
{
    size_t length = min_size(text.size, size - 1);
    for (size_t i = 0; i < length; i++)
        to[i] = text.data[i] >= 0x20 && text.data[i] < 0x7f ? (char)text.data[i] : '?';
    to[length] = '\0';
}

static void copy_field(char *to, size_t size, const struct http_head *head, const char *name)
{
    const struct http_field *field = http_field(head, name);
    copy_text(to, size, field ? field->value : span_of(NULL, 0));
}

static void copy_proof(struct answer *a, const struct http_head *head)
{
    const struct http_field *field = http_field(head, "pure-sealed");
    bool one = field && field->value.size == SEALED_REPLY_TEXT_BYTES;
    copy_text(a->proof, sizeof a->proof, one ? field->value : span_of(NULL, 0));
}

void answer_read(struct answer *a, const struct http_head *head)
{
    a->status = head->status;
    const struct http_field *stored = http_field(head, "pure-stored");
    a->has_stored = stored && http_number(stored->value, STORED_MAX, &a->stored) == 0;
    copy_proof(a, head);
    if (answer_success(a))
        return;
    copy_text(a->reason, sizeof a->reason, head->reason);
    copy_field(a->location, sizeof a->location, head, "location");
    copy_field(a->retry_after, sizeof a->retry_after, head, "retry-after");
    copy_field(a->date, sizeof a->date, head, "date");
    copy_field(a->pure_error, sizeof a->pure_error, head, "pure-error");
}
