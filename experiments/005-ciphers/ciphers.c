/* What a DATA packet costs to seal and to open, in CPU time: through a session with either cipher, and by
 * libsodium's calls and OpenSSL's directly. The README beside it says why. */
#include "link/session.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZES = 4, ROUNDS = 11, BATCH = 65507, BYTES_A_ROUND = 8 << 20 };

static const size_t sizes[SIZES] = {100, 1400, 8900, 65507}; /* of datagrams, in bytes; 100: as with an ACK */

static struct session sealing, opening;
static uint8_t key[LINK_KEY_BYTES] = "32 bytes that are no secret here";
static crypto_aead_aes256gcm_state aes;
static EVP_CIPHER_CTX *context_seal, *context_open;

/* Packets as a segmentation batch has them: one behind the other, each head, frames, tag. */
static _Alignas(64) uint8_t batch[BATCH];
static uint64_t next_number;

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* --- the ways: each seals, or opens, a packet in place; `size` is of its frames --- */

static void nonce_of(uint8_t nonce[12], uint64_t number)
{
    memset(nonce, 0, 4);
    link_put64(nonce + 4, number);
}

static void session_begin(enum link_cipher cipher)
{
    session_init(&sealing, 0, next_number, 0);
    session_init(&opening, 0, 0, next_number);
    cipher_key_init(&sealing.seal, cipher, key);
    cipher_key_init(&opening.open, cipher, key);
}

static void begin_chacha(void)
{
    session_begin(LINK_CHACHA20_POLY1305);
}

static void begin_aes(void)
{
    session_begin(LINK_AES_256_GCM);
}

static void begin_nothing(void)
{
}

static void seal_session(uint8_t *packet, uint64_t number, size_t size)
{
    session_seal(&sealing, 0, number, packet, size);
}

static int open_session(uint8_t *packet, uint64_t number, size_t size)
{
    struct session_packet opened;
    (void)number; /* it is in the head */
    return session_open(&opening, 0, packet, size + LINK_DATA_OVERHEAD, &opened);
}

static void seal_chacha(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    crypto_aead_chacha20poly1305_ietf_encrypt(frames, NULL, frames, size, packet, LINK_DATA_HEAD, NULL, nonce,
                                              key);
}

static int open_chacha(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    return crypto_aead_chacha20poly1305_ietf_decrypt(frames, NULL, NULL, frames, size + LINK_TAG_BYTES,
                                                     packet, LINK_DATA_HEAD, nonce, key);
}

static void seal_chacha_detached(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    crypto_aead_chacha20poly1305_ietf_encrypt_detached(frames, frames + size, NULL, frames, size, packet,
                                                       LINK_DATA_HEAD, NULL, nonce, key);
}

static int open_chacha_detached(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(frames, NULL, frames, size, frames + size,
                                                              packet, LINK_DATA_HEAD, nonce, key);
}

static void seal_aes(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    crypto_aead_aes256gcm_encrypt_afternm(frames, NULL, frames, size, packet, LINK_DATA_HEAD, NULL, nonce,
                                          &aes);
}

static int open_aes(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    return crypto_aead_aes256gcm_decrypt_afternm(frames, NULL, NULL, frames, size + LINK_TAG_BYTES, packet,
                                                 LINK_DATA_HEAD, nonce, &aes);
}

static void seal_aes_detached(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    crypto_aead_aes256gcm_encrypt_detached_afternm(frames, frames + size, NULL, frames, size, packet,
                                                   LINK_DATA_HEAD, NULL, nonce, &aes);
}

static int open_aes_detached(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    return crypto_aead_aes256gcm_decrypt_detached_afternm(frames, NULL, frames, size, frames + size, packet,
                                                          LINK_DATA_HEAD, nonce, &aes);
}

/* The key's schedule anew for each packet. */
static void seal_aes_key(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    crypto_aead_aes256gcm_encrypt(frames, NULL, frames, size, packet, LINK_DATA_HEAD, NULL, nonce, key);
}

static int open_aes_key(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    return crypto_aead_aes256gcm_decrypt(frames, NULL, NULL, frames, size + LINK_TAG_BYTES, packet,
                                         LINK_DATA_HEAD, nonce, key);
}

/* The two halves of ChaCha20-Poly1305, the same thing for sealing and for opening. */
static void only_chacha20(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    nonce_of(nonce, number);
    crypto_stream_chacha20_ietf_xor_ic(frames, frames, size, nonce, 1, key);
}

static int only_chacha20_back(uint8_t *packet, uint64_t number, size_t size)
{
    only_chacha20(packet, number, size);
    return 0;
}

static void only_poly1305(uint8_t *packet, uint64_t number, size_t size)
{
    (void)number;
    crypto_onetimeauth(packet + LINK_DATA_HEAD + size, packet, LINK_DATA_HEAD + size, key);
}

static int only_poly1305_again(uint8_t *packet, uint64_t number, size_t size)
{
    (void)number;
    return crypto_onetimeauth_verify(packet + LINK_DATA_HEAD + size, packet, LINK_DATA_HEAD + size, key);
}

static void openssl_begin(const EVP_CIPHER *cipher)
{
    EVP_CIPHER_CTX_free(context_seal);
    EVP_CIPHER_CTX_free(context_open);
    context_seal = EVP_CIPHER_CTX_new();
    context_open = EVP_CIPHER_CTX_new();
    check(EVP_EncryptInit_ex(context_seal, cipher, NULL, key, NULL) == 1 &&
              EVP_DecryptInit_ex(context_open, cipher, NULL, key, NULL) == 1,
          "OpenSSL");
}

static void begin_openssl_chacha(void)
{
    openssl_begin(EVP_chacha20_poly1305());
}

static void begin_openssl_aes(void)
{
    openssl_begin(EVP_aes_256_gcm());
}

static void seal_openssl(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    int out;
    nonce_of(nonce, number);
    check(EVP_EncryptInit_ex(context_seal, NULL, NULL, NULL, nonce) == 1 &&
              EVP_EncryptUpdate(context_seal, NULL, &out, packet, LINK_DATA_HEAD) == 1 &&
              EVP_EncryptUpdate(context_seal, frames, &out, frames, (int)size) == 1 &&
              EVP_EncryptFinal_ex(context_seal, frames, &out) == 1 &&
              EVP_CIPHER_CTX_ctrl(context_seal, EVP_CTRL_AEAD_GET_TAG, 16, frames + size) == 1,
          "OpenSSL");
}

static int open_openssl(uint8_t *packet, uint64_t number, size_t size)
{
    uint8_t nonce[12], *frames = packet + LINK_DATA_HEAD;
    int out;
    nonce_of(nonce, number);
    return EVP_DecryptInit_ex(context_open, NULL, NULL, NULL, nonce) == 1 &&
                   EVP_CIPHER_CTX_ctrl(context_open, EVP_CTRL_AEAD_SET_TAG, 16, frames + size) == 1 &&
                   EVP_DecryptUpdate(context_open, NULL, &out, packet, LINK_DATA_HEAD) == 1 &&
                   EVP_DecryptUpdate(context_open, frames, &out, frames, (int)size) == 1 &&
                   EVP_DecryptFinal_ex(context_open, frames, &out) == 1
               ? 0
               : -1;
}

static struct way {
    const char *name;
    bool needs_aes;
    void (*begin)(void);
    void (*seal)(uint8_t *packet, uint64_t number, size_t size);
    int (*open)(uint8_t *packet, uint64_t number, size_t size);
    double seal_ns[SIZES][ROUNDS], open_ns[SIZES][ROUNDS], both_ns[SIZES][ROUNDS]; /* a packet */
} ways[] = {
    {.name = "session, ChaCha20-Poly1305", .begin = begin_chacha, .seal = seal_session, .open = open_session},
    {.name = "session, AES-256-GCM",
     .needs_aes = true,
     .begin = begin_aes,
     .seal = seal_session,
     .open = open_session},
    {.name = "ChaCha20-Poly1305, combined", .begin = begin_nothing, .seal = seal_chacha, .open = open_chacha},
    {.name = "ChaCha20-Poly1305, detached",
     .begin = begin_nothing,
     .seal = seal_chacha_detached,
     .open = open_chacha_detached},
    {.name = "  ChaCha20 alone", .begin = begin_nothing, .seal = only_chacha20, .open = only_chacha20_back},
    {.name = "  Poly1305 alone", .begin = begin_nothing, .seal = only_poly1305, .open = only_poly1305_again},
    {.name = "AES-256-GCM, combined",
     .needs_aes = true,
     .begin = begin_nothing,
     .seal = seal_aes,
     .open = open_aes},
    {.name = "AES-256-GCM, detached",
     .needs_aes = true,
     .begin = begin_nothing,
     .seal = seal_aes_detached,
     .open = open_aes_detached},
    {.name = "AES-256-GCM, schedule anew",
     .needs_aes = true,
     .begin = begin_nothing,
     .seal = seal_aes_key,
     .open = open_aes_key},
    {.name = "OpenSSL, ChaCha20-Poly1305",
     .begin = begin_openssl_chacha,
     .seal = seal_openssl,
     .open = open_openssl},
    {.name = "OpenSSL, AES-256-GCM", .begin = begin_openssl_aes, .seal = seal_openssl, .open = open_openssl},
};

/* Sealing and opening take turns, a batch each. */
static void measure(struct way *way, unsigned size, unsigned round)
{
    unsigned packets = (unsigned)(BATCH / sizes[size]), batches = BYTES_A_ROUND / BATCH;
    size_t frames = sizes[size] - LINK_DATA_OVERHEAD;
    double sealing_ns = 0, opening_ns = 0;
    way->begin();
    for (unsigned i = 0; i < batches; i++, next_number += packets) {
        double start_ns = cpu_ns();
        for (unsigned j = 0; j < packets; j++)
            way->seal(batch + j * sizes[size], next_number + j, frames);
        double middle_ns = cpu_ns();
        for (unsigned j = 0; j < packets; j++)
            check(way->open(batch + j * sizes[size], next_number + j, frames) == 0, "opening");
        opening_ns += cpu_ns() - middle_ns;
        sealing_ns += middle_ns - start_ns;
    }
    way->seal_ns[size][round] = sealing_ns / (batches * packets);
    way->open_ns[size][round] = opening_ns / (batches * packets);
    way->both_ns[size][round] = (sealing_ns + opening_ns) / (batches * packets);
}

static void measure_sizes(struct way *way, bool with_aes, unsigned round)
{
    if (way->needs_aes && !with_aes)
        return;
    for (unsigned size = 0; size < SIZES; size++)
        measure(way, size, round);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

/* The ratio is to `first_ns`; GB/s are of one end. */
static void print(struct way *way, unsigned size, double first_ns)
{
    double both_ns = median(way->both_ns[size]);
    printf("%5zu  %-27s  %8.0f  %8.0f  %8.0f  %5.2f  %6.2f\n", sizes[size], way->name,
           median(way->seal_ns[size]), median(way->open_ns[size]), both_ns, both_ns / first_ns,
           2.0 * (double)sizes[size] / both_ns);
}

/* What ChaCha20 costs by the size of what is left over behind its blocks of 512 and 256 bytes. */
static void print_tails(void)
{
    static const size_t tails[] = {1, 64, 256, 512, 1024, 1280, 1344, 1368, 1408, 1536};
    enum { CALLS = 3000 };
    printf("\nbytes  ns   (ChaCha20 alone, a call)\n");
    for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
        double ns[ROUNDS];
        for (unsigned round = 0; round < ROUNDS; round++) {
            double start_ns = cpu_ns();
            for (unsigned j = 0; j < CALLS; j++)
                only_chacha20(batch, j, tails[i]);
            ns[round] = (cpu_ns() - start_ns) / CALLS;
        }
        printf("%5zu  %4.0f\n", tails[i], median(ns));
    }
}

int main(void)
{
    check(sodium_init() >= 0, "libsodium");
    bool with_aes = crypto_aead_aes256gcm_is_available();
    if (with_aes)
        crypto_aead_aes256gcm_beforenm(&aes, key);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
            measure_sizes(&ways[(i + round) % ARRAY_SIZE(ways)], with_aes, round);
    }
    printf("bytes  way                           seal ns   open ns   both ns  ratio    GB/s\n");
    for (unsigned size = 0; size < SIZES; size++) {
        double first_ns = median(ways[0].both_ns[size]);
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
            if (with_aes || !ways[i].needs_aes)
                print(&ways[i], size, first_ns);
        }
    }
    print_tails();
    return 0;
}
