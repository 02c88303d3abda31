#include "core/error.h"

#include <string.h>

static const char *const texts[] = {
#define X(name, text) [name - PE_FIRST] = text,
    PURE_ERRORS(X)
#undef X
};

const char *pure_error_text(int error)
{
    if (error == 0)
        return "no error";
    if (error > PE_FIRST && error < PE_LAST)
        return texts[error - PE_FIRST];
    const char *text = error < 0 ? strerrordesc_np(-error) : NULL;
    return text ? text : "unknown error";
}
