#include "journal/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* The polynomial 0x1edc6f41 with its bits reversed: bit 31 is the power 0. */
#define POLYNOMIAL 0x82f63b78u

/* One crc instruction has a latency of three cycles and starts every cycle: so three parts of a block are
 * summed side by side, and their sums put together. */
#define STREAMS     3
#define LONG_BYTES  4096 /* of a part; powers of two */
#define SHORT_BYTES 256

/* shift[i][v]: what the byte i of a CRC, if it is v, becomes by so many zero bytes behind it. */
typedef uint32_t shift_table[4][256];

/* Made once, constant from then on. */
static struct {
    uint32_t slice[8][256]; /* slice[i][v]: the CRC of the byte v and i zero bytes */
    shift_table long_shift, short_shift;
    uint32_t (*update)(uint32_t crc, const uint8_t *at, size_t size);
} made;

static pthread_once_t making = PTHREAD_ONCE_INIT;

/* --- tables --- */

static void make_slices(void)
{
    for (uint32_t value = 0; value < 256; value++) {
        uint32_t crc = value;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        made.slice[0][value] = crc;
    }
    for (unsigned i = 1; i < 8; i++) {
        for (unsigned value = 0; value < 256; value++) {
            uint32_t before = made.slice[i - 1][value];
            made.slice[i][value] = before >> 8 ^ made.slice[0][before & 0xff];
        }
    }
}

/* Appending zeros is linear: images[i] is what the bit i becomes. */
static uint32_t image_of(const uint32_t images[32], uint32_t crc)
{
    uint32_t image = 0;
    for (unsigned bit = 0; crc != 0; bit++, crc >>= 1)
        image ^= crc & 1 ? images[bit] : 0;
    return image;
}

static void make_shift(shift_table shift, size_t bytes)
{
    uint32_t images[32], twice[32];
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t crc = UINT32_C(1) << bit;
        images[bit] = crc >> 8 ^ made.slice[0][crc & 0xff];
    }
    for (size_t done = 1; done < bytes; done *= 2) {
        for (unsigned bit = 0; bit < 32; bit++)
            twice[bit] = image_of(images, images[bit]);
        memcpy(images, twice, sizeof images);
    }
    for (unsigned i = 0; i < 4; i++) {
        for (uint32_t value = 0; value < 256; value++)
            shift[i][value] = image_of(images, value << 8 * i);
    }
}

/* --- without instructions: eight bytes a step, a table for each --- */

static uint32_t update_portable(uint32_t crc, const uint8_t *at, size_t size)
{
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word = le64toh(word) ^ crc;
        crc = 0;
        for (unsigned i = 0; i < 8; i++)
            crc ^= made.slice[7 - i][word >> 8 * i & 0xff];
    }
    for (; size > 0; at++, size--)
        crc = crc >> 8 ^ made.slice[0][(crc ^ *at) & 0xff];
    return crc;
}

/* --- with them --- */

#if defined __x86_64__

#include <nmmintrin.h>

#define HARDWARE __attribute__((target("sse4.2")))

static bool hardware_there(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2");
}

static inline HARDWARE uint64_t step(uint64_t crc, const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return _mm_crc32_u64(crc, word);
}

static inline HARDWARE uint64_t step_byte(uint64_t crc, uint8_t byte)
{
    return _mm_crc32_u8((uint32_t)crc, byte);
}

#elif defined __aarch64__ && defined __AARCH64EL__

#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

/* ARM C language extensions, 8.8; the builtins, as arm_acle.h of some compilers wants the whole file built
 * for the extension. */
#if defined __clang__
#define HARDWARE           __attribute__((target("crc")))
#define CRC32CX(crc, word) __builtin_arm_crc32cd(crc, word)
#define CRC32CB(crc, byte) __builtin_arm_crc32cb(crc, byte)
#else
#define HARDWARE           __attribute__((target("+crc")))
#define CRC32CX(crc, word) __builtin_aarch64_crc32cx(crc, word)
#define CRC32CB(crc, byte) __builtin_aarch64_crc32cb(crc, byte)
#endif

static bool hardware_there(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

static inline HARDWARE uint64_t step(uint64_t crc, const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
    return CRC32CX((uint32_t)crc, word);
}

static inline HARDWARE uint64_t step_byte(uint64_t crc, uint8_t byte)
{
    return CRC32CB((uint32_t)crc, byte);
}

#endif

#ifdef HARDWARE

static inline uint32_t shifted(const shift_table shift, uint32_t crc)
{
    return shift[0][crc & 0xff] ^ shift[1][crc >> 8 & 0xff] ^ shift[2][crc >> 16 & 0xff] ^
           shift[3][crc >> 24];
}

/* STREAMS parts of `bytes` each. */
static inline HARDWARE uint64_t update_block(uint64_t crc, const uint8_t *at, size_t bytes,
                                             const shift_table shift)
{
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < bytes; i += 8) {
        crc = step(crc, at + i);
        second = step(second, at + bytes + i);
        third = step(third, at + 2 * bytes + i);
    }
    second ^= shifted(shift, (uint32_t)crc);
    return third ^ shifted(shift, (uint32_t)second);
}

static HARDWARE uint32_t update_hardware(uint32_t start, const uint8_t *at, size_t size)
{
    uint64_t crc = start;
    for (; size >= STREAMS * LONG_BYTES; at += STREAMS * LONG_BYTES, size -= STREAMS * LONG_BYTES)
        crc = update_block(crc, at, LONG_BYTES, made.long_shift);
    for (; size >= STREAMS * SHORT_BYTES; at += STREAMS * SHORT_BYTES, size -= STREAMS * SHORT_BYTES)
        crc = update_block(crc, at, SHORT_BYTES, made.short_shift);
    for (; size >= 8; at += 8, size -= 8)
        crc = step(crc, at);
    for (; size > 0; at++, size--)
        crc = step_byte(crc, *at);
    return (uint32_t)crc;
}

static void choose(void)
{
    made.update = hardware_there() ? update_hardware : update_portable;
}

#else

static void choose(void)
{
    made.update = update_portable;
}

#endif

static void make(void)
{
    make_slices();
    make_shift(made.long_shift, LONG_BYTES);
    make_shift(made.short_shift, SHORT_BYTES);
    choose();
}

uint32_t crc32c(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&making, make);
    return ~made.update(~crc, data, size);
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&making, make);
    return ~update_portable(~crc, data, size);
}
