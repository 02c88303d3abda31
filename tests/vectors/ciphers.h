/* AES-256-GCM as published: test cases 13 to 16 of McGrew and Viega, "The Galois/Counter Mode of Operation
 * (GCM)", 2005, appendix B. And DATA packets as docs/link-protocol.md says they are, made with OpenSSL 3.0
 * (the AEADs) and Python's hashlib (the derived key), for who writes the other end.
 *
 * Data only, in hexadecimal. */
#ifndef PURE_TESTS_VECTORS_CIPHERS_H
#define PURE_TESTS_VECTORS_CIPHERS_H

#include "link/messages.h"

struct gcm_vector {
    const char *key, *nonce, *additional, *plain, *sealed; /* sealed: with the tag */
};

struct packet_vector {
    enum link_cipher cipher;
    const char *sealed; /* frames and tag */
};

/* clang-format off */
static const struct gcm_vector gcm_vectors[] = {
    {
        .key = "0000000000000000000000000000000000000000000000000000000000000000",
        .nonce = "000000000000000000000000",
        .additional = "",
        .plain = "",
        .sealed = "530f8afbc74536b9a963b4f1c4cb738b",
    },
    {
        .key = "0000000000000000000000000000000000000000000000000000000000000000",
        .nonce = "000000000000000000000000",
        .additional = "",
        .plain = "00000000000000000000000000000000",
        .sealed = "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
    },
    {
        .key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        .nonce = "cafebabefacedbaddecaf888",
        .additional = "",
        .plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                 "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
        .sealed = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                  "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad"
                  "b094dac5d93471bdec1a502270e3cc6c",
    },
    {
        .key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        .nonce = "cafebabefacedbaddecaf888",
        .additional = "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        .plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                 "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        .sealed = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                  "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
                  "76fc6ece0f4e1768cddf8853bb2d551b",
    },
};

/* Both under the same key of Split()'s, from the same head and bytes of frames. */
#define PACKET_VECTOR_KEY    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define PACKET_VECTOR_HEAD   "040000000d0c0b0a0807060504030201"
#define PACKET_VECTOR_FRAMES "010000206672616d6573206f662061207061636b6574"

/* The AES key that is derived there is 5a95664b2a491c5a7830000077838f756d6a3068b344680360b52c354ad2a888. */
static const struct packet_vector packet_vectors[] = {
    {
        .cipher = LINK_CHACHA20_POLY1305,
        .sealed = "f149adc4cd4b8b7501d80aa315580098906791afed300e16c02abacd7a5e732ab14bb4bd6e42",
    },
    {
        .cipher = LINK_AES_256_GCM,
        .sealed = "b1467b93fef6da69eb1cf866fec094d5e735695bf997f7d76f9c92e6fb231a17a574e666add3",
    },
};
/* clang-format on */

#endif
