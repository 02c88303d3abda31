/* The Noise vectors of the cacophony project, as it and snow (both public, MIT or Unlicense) carry them:
 * those with 25519, ChaChaPoly and BLAKE2b of the patterns that are here. Data only, in hexadecimal; NULL is
 * none.
 *
 * The first messages are the handshake's, the others transport messages, alternating where the pattern has
 * both directions. */
#ifndef PURE_TESTS_VECTORS_NOISE_H
#define PURE_TESTS_VECTORS_NOISE_H

#include "noise/noise.h"

#define NOISE_VECTOR_MESSAGES 6

struct noise_vector_side {
    const char *prologue, *s, *e, *rs, *psk; /* s and e: private keys */
};

struct noise_vector {
    enum noise_pattern pattern;
    struct noise_vector_side init, resp;
    const char *handshake_hash;
    struct {
        const char *payload, *ciphertext;
    } messages[NOISE_VECTOR_MESSAGES];
};

/* clang-format off */
static const struct noise_vector noise_vectors[] = {
    {
        .pattern = NOISE_KK,
        .init = {.prologue = "4a6f686e2047616c74",
                 .s = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
                 .e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
                 .rs = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
                 .psk = NULL},
        .resp = {.prologue = "4a6f686e2047616c74",
                 .s = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
                 .e = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
                 .rs = "6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a",
                 .psk = NULL},
        .handshake_hash = "76dbc866183c8ee7363dbf0ebab8d6355010245f9817aa78359818a03a052586"
                          "d7e8b4bb2ae5622a1a61212df90af04bb2b2cc189ce0e819ba0c4970c9f71805",
        .messages = {
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944f79a1d4b21fc3ea4"
             "a0c87213b8b4f0599d758682c26a3ae5e09195a3e742bc74"},
            {"4d757272617920526f746862617264",
             "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843e20b1bf85731f75d"
             "7e21b5d54baaa66341de4292c3d42571c1bd7e7f1abe38"},
            {"462e20412e20486179656b",
             "25bfaa58833b07cdd6af7c07f2c51daac681a8ac0a02dd373259bd"},
            {"4361726c204d656e676572",
             "ef586cff556dec8ef0053871ff0d4bf3f2c72e842487ec6d1da69f"},
            {"4a65616e2d426170746973746520536179",
             "3265d50513550a354425d0218ba1e5f25d4994ce8990e6964398dba5982dbcbd85"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "f11c02d5c3223d7b9281b52e1b134962b91bc3bfbd1646354dab9fc19b66bf6c1e0a6f431e"},
        },
    },
    {
        .pattern = NOISE_IK,
        .init = {.prologue = "4a6f686e2047616c74",
                 .s = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
                 .e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
                 .rs = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
                 .psk = NULL},
        .resp = {.prologue = "4a6f686e2047616c74",
                 .s = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
                 .e = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
                 .rs = NULL,
                 .psk = NULL},
        .handshake_hash = "1c8fa891cb414fedba6daa7c6f4ae0a6d98e5f9768cc9cecd27e805614943ee9"
                          "c8a1b27fbfb76dc197255c8aa69f6b4285c423840b8bedf45e652ca64f797d81",
        .messages = {
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944ba83a447b38c83e3"
             "27ad936929812f624884847b7831e95e197b2f797088efdd2f88f1db7e1fb0e99c64419097af91ce"
             "e64e470f4b6fcd9298ce0b56fe20f86e13bf70439c538e3602a7127af71a29cc"},
            {"4d757272617920526f746862617264",
             "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088439f069b267a06b3de"
             "3ecb1043bcb098e9af91d9c64748d998c7b47890871571"},
            {"462e20412e20486179656b",
             "cd54383060e7a28434cca27fb1cc524cfbabeb18181589df219d07"},
            {"4361726c204d656e676572",
             "a856d3bf0246bfc476c655009cd1ed677b8dcc5b349ae8ef2a05f2"},
            {"4a65616e2d426170746973746520536179",
             "49063084b2c51f098337cb8a13739ac848f907e67cfb2cc8a8b60586467aa02fc7"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "8b9709d23b47e4639df7678d7a21741eba4ef1e9c60383001c7435549c20f9d56f30e935d3"},
        },
    },
    {
        .pattern = NOISE_N,
        .init = {.prologue = "4a6f686e2047616c74",
                 .s = NULL,
                 .e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
                 .rs = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
                 .psk = NULL},
        .resp = {.prologue = "4a6f686e2047616c74",
                 .s = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
                 .e = NULL,
                 .rs = NULL,
                 .psk = NULL},
        .handshake_hash = "3d5785437634d9059ed8db74288f0fa2729a7366d75f74ef498c66e85a1d2d97"
                          "35a10664d61896d1885367b5a4dedb4c9c7228d647d887b6a671f32760db8c4d",
        .messages = {
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c794493e145393e742220"
             "f7d46ee2d19db28f99f56c13e4b434adf2403530d61f2d4d"},
            {"4d757272617920526f746862617264",
             "6e2d9ea31cf9daa4a98c0bb691c51c94ada9e61422ddf6c852d6292c3b78ed"},
            {"462e20412e20486179656b",
             "e9bd8264cea01a9967e56bbb7c305bbedb6440427ee113716aa010"},
            {"4361726c204d656e676572",
             "70f12312f1ba4e3b8fba71fd6db55698d7014fb15be35d76a45922"},
            {"4a65616e2d426170746973746520536179",
             "2553c4c4196e0a1a86115e74073a6a0b4e70e1df7a84de6056b0f5992760e38026"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "08cfdd4c4eb84b32ccca6281a56f43ae4ba8e420eda369d9ad14cfad966e4cf6d4f5f0fd20"},
        },
    },
    {
        .pattern = NOISE_K,
        .init = {.prologue = "4a6f686e2047616c74",
                 .s = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
                 .e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
                 .rs = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
                 .psk = NULL},
        .resp = {.prologue = "4a6f686e2047616c74",
                 .s = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
                 .e = NULL,
                 .rs = "6bc3822a2aa7f4e6981d6538692b3cdf3e6df9eea6ed269eb41d93c22757b75a",
                 .psk = NULL},
        .handshake_hash = "d53e8c3b8573bce6f9643c85f2e29997b0e2de65b19105458522af2b125dcd49"
                          "fc4f8c71455186214d8b809eeb11c67935dfc3ef3b3e9acd336054961bd98e19",
        .messages = {
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944885229f6a2df09fa"
             "34da59d165241538a858b5e34393676ab4e646c771db0e0a"},
            {"4d757272617920526f746862617264",
             "faa4ad33acfc9d16c636ebf587c425dc9a0a0fabb5b975b8e3cc15350b77da"},
            {"462e20412e20486179656b",
             "fd34fab878317f67192e27ef2d58baa3d41c13bd55e27d7ee1b6aa"},
            {"4361726c204d656e676572",
             "09dc13b2f7cdecdce30b8059b02e24c609768fc054a2051228b146"},
            {"4a65616e2d426170746973746520536179",
             "8e42d678033ae8b60cde5cbce291df6eaefec3e26cd173883987639acfe0a0c76f"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "748eb0219e14970038bb79154e2c915fcfefe369994c84a8a3d9678b491a40e684925f0c44"},
        },
    },
    {
        .pattern = NOISE_X,
        .init = {.prologue = "4a6f686e2047616c74",
                 .s = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
                 .e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
                 .rs = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
                 .psk = NULL},
        .resp = {.prologue = "4a6f686e2047616c74",
                 .s = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
                 .e = NULL,
                 .rs = NULL,
                 .psk = NULL},
        .handshake_hash = "7a08e025835287d37f81c295a0a86f0431e206e5032632d06110df590aa69b08"
                          "c0f5e6909f199ccfa044c1516366b974f3f28102f977d0fac845c6563c7d5314",
        .messages = {
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c79446c81e52f35c193f5"
             "40f853e38ee3ddd5d5ffe3cfa8b0c5b93c9498bd737ca396ca4dfa63e3f4878fa875a480bddfa3c0"
             "673aa4ec7600b7ea42a1f444512e3c2524c19acd86468bde6b0aaa7dc2fc5069"},
            {"4d757272617920526f746862617264",
             "b4e352f51eecbb9552dd7ab7240619d18aea21752d866e8687ac0181c3177a"},
            {"462e20412e20486179656b",
             "3bd6fa95f3f6eed5f01e0c02df392a7fd96ff9416c36f7311f947e"},
            {"4361726c204d656e676572",
             "8bce3062e9348896691a45e74563a5d57866e0ab39fa8bde2bcfca"},
            {"4a65616e2d426170746973746520536179",
             "cc7610aad99dedc9fe14db2ab59dd09c380bb5f2b5999dcc340739f597817b7c67"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "8b6dcbd77c157bc7ada2f28966068d18529725b2d34571415f507e92a6fcd9843a8cccb63b"},
        },
    },
    {
        .pattern = NOISE_IKPSK2,
        .init = {.prologue = "4a6f686e2047616c74",
                 .s = "e61ef9919cde45dd5f82166404bd08e38bceb5dfdfded0a34c8df7ed542214d1",
                 .e = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a",
                 .rs = "31e0303fd6418d2f8c0e78b91f22e8caed0fbe48656dcf4767e4834f701b8f62",
                 .psk = "54686973206973206d7920417573747269616e20706572737065637469766521"},
        .resp = {.prologue = "4a6f686e2047616c74",
                 .s = "4a3acbfdb163dec651dfa3194dece676d437029c62a408b4c5ea9114246e4893",
                 .e = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b",
                 .rs = NULL,
                 .psk = "54686973206973206d7920417573747269616e20706572737065637469766521"},
        .handshake_hash = "ed837c9084f2f0333a7ec60b9bcacd9921394858de8ced118b5966d1147ba390"
                          "084dab42326c565a309c29317a6079be30aa1d790d25a517b43287426cb1d36a",
        .messages = {
            {"4c756477696720766f6e204d69736573",
             "ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944b6fe0240b839afac"
             "809de1630eaf99d8f9b941394f0512c0554633bbb021d15176135c0a20e7fdb9a9ed066f22f054b4"
             "7625b1d5061cb27d6a17f053273db7c25216a5addc506ee321bc0618feb5849d"},
            {"4d757272617920526f746862617264",
             "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f1448088438f627e69fc120006"
             "f746b9d420bf4056cf8481ab32d9e904ffaeeaa56a5290"},
            {"462e20412e20486179656b",
             "07fc0034398a5f1010322be193d62f94bebf2948a20b3e15d681fe"},
            {"4361726c204d656e676572",
             "2ea5400f5b8a16971c8b67bde75aeb7987d454b1c0beeb2566932d"},
            {"4a65616e2d426170746973746520536179",
             "96eef918ef51639fc0e156da1823c4f71b33fac5af983f5da9384f7da20d86ed91"},
            {"457567656e2042f6686d20766f6e2042617765726b",
             "f02766a56496e1fbf32e05274baebf6d693c8f3e4c6e0dc7ebdc5ac170f15dae433b92f469"},
        },
    },
};
/* clang-format on */

#endif
