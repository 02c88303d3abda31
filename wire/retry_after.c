#include "wire/retry_after.h"

#include "core/clock.h"

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
static const char *const days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                   "Friday", "Saturday", "Sunday"};

struct date {
    unsigned year, month, day, hour, minute, second; /* month from 1 */
};

/* A cursor that only moves over what is expected; once it fails it stays failed. */
struct cursor {
    const uint8_t *at, *end;
    bool failed;
};

static void take_text(struct cursor *c, const char *text)
{
    size_t size = strlen(text);
    if (c->failed || (size_t)(c->end - c->at) < size || memcmp(c->at, text, size) != 0)
        c->failed = true;
    else
        c->at += size;
}

static unsigned take_digits(struct cursor *c, unsigned count)
{
    unsigned value = 0;
    for (; count > 0 && !c->failed; count--) {
        if (c->at == c->end || *c->at < '0' || *c->at > '9')
            c->failed = true;
        else
            value = value * 10 + (unsigned)(*c->at++ - '0');
    }
    return value;
}

static unsigned take_month(struct cursor *c)
{
    for (unsigned m = 0; !c->failed && c->end - c->at >= 3 && m < 12; m++) {
        if (memcmp(c->at, months + 3 * m, 3) == 0) {
            c->at += 3;
            return m + 1;
        }
    }
    c->failed = true;
    return 0;
}

static void take_time(struct cursor *c, struct date *d)
{
    d->hour = take_digits(c, 2);
    take_text(c, ":");
    d->minute = take_digits(c, 2);
    take_text(c, ":");
    d->second = take_digits(c, 2);
}

/* Sun, 06 Nov 1994 08:49:37 GMT; behind the comma */
static void take_fixdate(struct cursor *c, struct date *d)
{
    d->day = take_digits(c, 2);
    take_text(c, " ");
    d->month = take_month(c);
    take_text(c, " ");
    d->year = take_digits(c, 4);
    take_text(c, " ");
    take_time(c, d);
    take_text(c, " GMT");
}

static bool leap(unsigned year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool exists(const struct date *d)
{
    static const uint8_t month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned last = month_days[d->month - 1] + (d->month == 2 && leap(d->year));
    return d->day >= 1 && d->day <= last && d->hour < 24 && d->minute < 60 && d->second <= 60;
}

/* Days since 1970 in the proleptic Gregorian calendar: whole years, their leap days, then the days before
 * the date. */
static int64_t days_since_1970(const struct date *d)
{
    static const uint16_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t y = (int64_t)d->year - 1;
    int64_t leaps = d->year == 0 ? -1 : y / 4 - y / 100 + y / 400;
    int64_t since_year_1 =
        y * 365 + leaps + before[d->month - 1] + (d->month > 2 && leap(d->year)) + d->day - 1;
    return since_year_1 - 719162;
}

static int64_t seconds_of(const struct date *d)
{
    return days_since_1970(d) * 86400 + d->hour * 3600 + d->minute * 60 + d->second;
}

static unsigned year_of(int64_t seconds)
{
    struct date d = {.year = 1970, .month = 1, .day = 1};
    while (d.year < 9999 && (d.year++, seconds_of(&d)) <= seconds)
        continue;
    return d.year - 1;
}

/* RFC 9110 section 5.6.7: more than 50 years ahead means the most recent such year in the past. */
static void give_century(struct date *d, int64_t base_s)
{
    unsigned present = year_of(base_s);
    d->year += present / 100 * 100;
    if (d->year > present + 50)
        d->year -= 100;
    else if (d->year + 50 < present)
        d->year += 100;
}

/* Sunday, 06-Nov-94 08:49:37 GMT; behind the comma */
static void take_rfc850(struct cursor *c, struct date *d, int64_t base_s)
{
    d->day = take_digits(c, 2);
    take_text(c, "-");
    d->month = take_month(c);
    take_text(c, "-");
    d->year = take_digits(c, 2);
    give_century(d, base_s);
    take_text(c, " ");
    take_time(c, d);
    take_text(c, " GMT");
}

/* Sun Nov  6 08:49:37 1994; behind the first space. A day of one digit is padded with a space. */
static void take_asctime(struct cursor *c, struct date *d)
{
    d->month = take_month(c);
    take_text(c, " ");
    if (!c->failed && c->at < c->end && *c->at == ' ') {
        c->at++;
        d->day = take_digits(c, 1);
    } else {
        d->day = take_digits(c, 2);
    }
    take_text(c, " ");
    take_time(c, d);
    take_text(c, " ");
    d->year = take_digits(c, 4);
}

/* The form shows in what follows the day's name: "Sunday, " or "Sun, " or "Sun ". */
static void take_date(struct cursor *c, struct date *d, int64_t base_s)
{
    for (size_t i = 0; i < ARRAY_SIZE(days); i++) {
        struct cursor full = *c, brief = *c;
        take_text(&full, days[i]);
        if (!full.failed) {
            *c = full;
            take_text(c, ", ");
            take_rfc850(c, d, base_s);
            return;
        }
        take_text(&brief, (const char[]){days[i][0], days[i][1], days[i][2], '\0'});
        if (brief.failed)
            continue;
        *c = brief;
        if (c->at < c->end && *c->at == ',') {
            take_text(c, ", ");
            take_fixdate(c, d);
        } else {
            take_text(c, " ");
            take_asctime(c, d);
        }
        return;
    }
    c->failed = true;
}

int http_date_parse(struct span text, int64_t base_s, int64_t *seconds)
{
    if (text.size == 0)
        return PE_MALFORMED;
    struct cursor c = {.at = text.data, .end = text.data + text.size};
    struct date d = {0};
    take_date(&c, &d, base_s);
    if (c.failed || c.at != c.end || !exists(&d))
        return PE_MALFORMED;
    *seconds = seconds_of(&d);
    return 0;
}

static uint64_t seconds_to_wait(uint64_t seconds)
{
    return seconds >= RETRY_AFTER_MAX_NS / NS_PER_S ? RETRY_AFTER_MAX_NS : seconds * NS_PER_S;
}

/* delay-seconds = 1*DIGIT, however many: what is too large for anything is only large. */
static bool take_seconds(struct span value, uint64_t *seconds)
{
    *seconds = 0;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return false;
        *seconds = min_u64(*seconds * 10 + (unsigned)(value.data[i] - '0'), UINT32_MAX);
    }
    return value.size > 0;
}

uint64_t retry_after_ns(struct span value, struct span date, uint64_t wall_ms)
{
    uint64_t seconds;
    if (take_seconds(value, &seconds))
        return seconds_to_wait(seconds);
    int64_t present = (int64_t)(wall_ms / 1000), at;
    if (http_date_parse(date, present, &at) == 0)
        present = at;
    if (http_date_parse(value, present, &at) < 0 || at <= present)
        return 0;
    return seconds_to_wait((uint64_t)(at - present));
}
