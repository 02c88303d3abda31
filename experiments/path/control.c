#include "experiments/path/control.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CHANCE(field) #field, 0, 100, PATH_CERTAIN / 100.0, offsetof(struct path_terms, field)

static const struct setting {
    const char *word;
    double least, most; /* of the value as it is written */
    double scale;       /* from there to the field's unit */
    size_t field;
} settings[] = {
    {CHANCE(loss)},
    {CHANCE(duplicate)},
    {CHANCE(reorder)},
    {"delay", 0, 10000, 1e6, offsetof(struct path_terms, delay_ns)},
    {"rate", 0.001, 10000, 1e6, offsetof(struct path_terms, bits_s)},
    {"queue", PATH_PACKET_MAX, 1e9, 1, offsetof(struct path_terms, queue_bytes)},
    {"mtu", PATH_MTU_LEAST, PATH_PACKET_MAX, 1, offsetof(struct path_terms, mtu)},
};

static bool onoff(const char *text, bool *flag)
{
    *flag = strcmp(text, "on") == 0;
    return *flag || strcmp(text, "off") == 0;
}

static bool set_number(struct path_terms *terms, const char *word, const char *text)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *s = &settings[i];
        if (strcmp(word, s->word) != 0)
            continue;
        char *end;
        double value = strtod(text, &end);
        if (end == text || *end != '\0' || !(value >= s->least && value <= s->most))
            return false;
        *(uint64_t *)((char *)terms + s->field) = (uint64_t)(value * s->scale + 0.5);
        return true;
    }
    return false;
}

bool control_set(struct control *control, char way, const char *word, const char *value)
{
    for (int i = 0; i < CONTROL_WAYS; i++) {
        if (way != 0 && way != 'a' + i)
            continue;
        struct path_terms terms = *control->terms[i];
        bool icmp = control->icmp[i];
        bool right = strcmp(word, "icmp") == 0        ? onoff(value, &icmp)
                     : strcmp(word, "blackhole") == 0 ? onoff(value, &terms.blackhole)
                                                      : set_number(&terms, word, value);
        if (!right)
            return false;
        *control->terms[i] = terms;
        control->icmp[i] = icmp;
    }
    return true;
}

bool control_line(struct control *control, char *line)
{
    char *rest, *word = strtok_r(line, " \t\r", &rest), *value = strtok_r(NULL, " \t\r", &rest);
    char way = 0;
    if (word && (strcmp(word, "a") == 0 || strcmp(word, "b") == 0)) {
        way = *word;
        word = value;
        value = strtok_r(NULL, " \t\r", &rest);
    }
    return word && value && !strtok_r(NULL, " \t\r", &rest) && control_set(control, way, word, value);
}
