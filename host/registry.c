#include "host/registry.h"

#include <errno.h>

static bool is_suspended(const struct registry_app *app)
{
    return app->failure[0] != '\0' ||
           atomic_load_explicit(&app->report.condition, memory_order_acquire) == APP_SUSPENDED;
}

const char *registry_app_suspended(const struct registry_app *app)
{
    if (!is_suspended(app))
        return NULL;
    if (atomic_load_explicit(&app->resumed, memory_order_relaxed))
        return "it is resumed; the next start loads it";
    if (app->failure[0] != '\0')
        return app->failure;
    int error = atomic_load_explicit(&app->report.error, memory_order_relaxed);
    return app->reason[0] != '\0' ? app->reason : pure_error_text(error < 0 ? error : PE_APP_SUSPENDED);
}

static unsigned index_of(const struct registry *r, const struct registry_app *app)
{
    unsigned index = 0;
    while (r->apps[index] != app)
        index++;
    return index;
}

static const char *why_not(const struct registry *r, const struct registry_app *app)
{
    if (atomic_load_explicit(&app->resumed, memory_order_relaxed))
        return "the app is resumed already: restart the host to load it";
    if (is_suspended(app))
        return "the app is suspended for another reason than deaths (/status has it): once its cause is "
               "gone, "
               "restart the host";
    if (!r->store)
        return "this host counts no deaths: its store is memory";
    return "no deaths of the app are counted: there is nothing to resume";
}

int registry_resume(const struct registry *r, struct registry_app *app, struct log *log, const char **why)
{
    unsigned index = index_of(r, app);
    uint32_t deaths = registry_deaths(r, index);
    *why = deaths == 0 ? why_not(r, app) : NULL;
    if (deaths == 0)
        return -ENOENT;
    int error = mark_forget(&r->guard->mark, index);
    if (error < 0)
        return error;
    if (deaths >= MARK_DEATHS && app->guard && app->guard->died)
        atomic_store_explicit(&app->resumed, true, memory_order_relaxed);
    log_line(log, LOG_NOTICE, "app %s is resumed: its deaths, %u in a row, are forgotten%s", app->name,
             deaths, app->failure[0] != '\0' ? "; the next start loads it" : "");
    return 0;
}
