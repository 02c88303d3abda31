#include "host/registry.h"

const char *registry_app_suspended(const struct registry_app *app)
{
    if (app->failure[0] != '\0')
        return app->failure;
    if (atomic_load_explicit(&app->report.condition, memory_order_acquire) != APP_SUSPENDED)
        return NULL;
    int error = atomic_load_explicit(&app->report.error, memory_order_relaxed);
    return app->reason[0] != '\0' ? app->reason : pure_error_text(error < 0 ? error : PE_APP_SUSPENDED);
}
