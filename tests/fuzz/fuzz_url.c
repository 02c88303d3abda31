/* A URL: what is taken, written out again from its parts, is taken again with the same parts. */
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same(const struct url *a, const struct url *b)
{
    return a->tls == b->tls && a->literal == b->literal && a->port == b->port && !strcmp(a->host, b->host) &&
           !strcmp(a->authority, b->authority) && !strcmp(a->target, b->target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct url url, again;
    static char written[sizeof url + sizeof "https://"];
    const char *why = NULL;
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    int error = url_parse(&url, text, &why);
    if (error < 0 ? !why : why != NULL)
        abort();
    if (error == 0) {
        snprintf(written, sizeof written, "%s://%s%s", url.tls ? "https" : "http", url.authority, url.target);
        if (url.target[0] != '/' || url_parse(&again, written, &why) < 0 || !same(&url, &again))
            abort();
    }
    free(text);
    return 0;
}
