/* What keeps a host useful when more comes than it can do (docs/decisions/0012-overload.md), each of which
 * may be left out. That is for experiments, which say what it is worth; a host that serves has them all. */
#ifndef PURE_HOST_OVERLOAD_H
#define PURE_HOST_OVERLOAD_H

#include <stdbool.h>
#include <stdio.h>

/* [host] without = … Fixed while a host runs. */
struct overload_without {
    bool quotas;   /* a visit takes all there is: a connection's requests (FRONT_VISIT), a peer's datagrams
                      (LINK_QUOTA), the completions of a wait (io.drains) */
    bool early;    /* a request is refused behind its body, not at its head; links are promised more credit
                      than there is room (link/inlets.h) */
    bool feedback; /* an inbox refuses what does not fit, and nothing else (inbox.h) */
    bool share;    /* the network's threads weigh as much as the apps' (host.h: lighten) */
};

/* Their names, as the configuration has them: "quotas, share"; "": none is left out. */
#define OVERLOAD_NAMES_MAX 40
static inline void overload_left_out(const struct overload_without *w, char names[OVERLOAD_NAMES_MAX])
{
    int size =
        snprintf(names, OVERLOAD_NAMES_MAX, "%s%s%s%s", w->quotas ? ", quotas" : "",
                 w->early ? ", early" : "", w->feedback ? ", feedback" : "", w->share ? ", share" : "");
    for (int i = 0; i < size; i++) /* the first has no comma in front */
        names[i] = i + 2 <= size ? names[i + 2] : '\0';
}

#endif
