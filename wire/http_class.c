#include "wire/http_class.h"

#define K CLASS_KEPT
#define X (CLASS_TEXT | K)
#define T (CLASS_TOKEN | X)
#define P (CLASS_TARGET | X)
#define U (CLASS_TARGET | CLASS_HOST)
#define L (CLASS_LABEL | U | T)

const uint8_t http_class[256] = {
    [0x01 ... 0x08] = K,
    ['\t'] = X,
    [0x0b ... 0x0c] = K,
    [0x0e ... 0x1f] = K,
    [' '] = X,
    ['!'] = T | U,
    ['"'] = X,
    ['#'] = T,
    ['$' ... '\''] = T | U,
    ['(' ... ')'] = X | U,
    ['*' ... '+'] = T | U,
    [','] = X | U,
    ['-'] = L,
    ['.'] = T | U,
    ['/'] = P,
    ['0' ... '9'] = L | CLASS_HEX | CLASS_DIGIT,
    [':' ... ';'] = X | U,
    ['<'] = X,
    ['='] = X | U,
    ['>'] = X,
    ['?' ... '@'] = P,
    ['A' ... 'F'] = L | CLASS_HEX,
    ['G' ... 'Z'] = L,
    ['['] = X | CLASS_HOST,
    ['\\'] = X,
    [']'] = X | CLASS_HOST,
    ['^'] = T,
    ['_'] = L,
    ['`'] = T,
    ['a' ... 'f'] = L | CLASS_HEX,
    ['g' ... 'z'] = L,
    ['{'] = X,
    ['|'] = T,
    ['}'] = X,
    ['~'] = T | U,
    [0x7f] = K,
    [0x80 ... 0xff] = X,
};

bool http_target_valid(struct span text)
{
    const uint8_t *end = text.data + text.size;
    for (const uint8_t *at = text.data; at < end; at++) {
        if (!http_class_is(*at, CLASS_TARGET))
            return false;
        if (*at == '%' &&
            (end - at < 3 || !http_class_is(at[1], CLASS_HEX) || !http_class_is(at[2], CLASS_HEX)))
            return false;
    }
    return true;
}
