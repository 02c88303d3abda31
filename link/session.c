#include "link/session.h"

#include "core/error.h"

#include <sodium.h>

#define NONCE_BYTES crypto_aead_chacha20poly1305_ietf_NPUBBYTES

_Static_assert(LINK_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "key");
_Static_assert(LINK_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "tag");

void session_init(struct session *s, uint64_t now_ns, uint64_t next_number, uint64_t first_number)
{
    *s = (struct session){.live = true, .born_ns = now_ns, .next_number = next_number};
    window_init(&s->window, first_number);
}

void session_wipe(struct session *s)
{
    sodium_memzero(s, sizeof *s);
}

uint64_t session_rekey_ns(const struct session *s)
{
    if (!s->live)
        return NEVER;
    return s->sealed >= LINK_REKEY_PACKETS ? 0 : s->born_ns + LINK_REKEY_NS;
}

uint64_t session_end_ns(const struct session *s)
{
    return s->live ? s->born_ns + LINK_OPEN_NS : NEVER;
}

bool session_may_seal(const struct session *s, uint64_t now_ns)
{
    return s->live && now_ns < s->born_ns + LINK_SEAL_NS && s->sealed < LINK_SEAL_PACKETS;
}

/* The same nonce that Noise makes of its n: four zero bytes, then the number as the head has it. */
static void nonce_of(const struct link_data *data, uint8_t nonce[NONCE_BYTES])
{
    memset(nonce, 0, 4);
    memcpy(nonce + 4, data->number, sizeof data->number);
}

size_t session_seal(struct session *s, uint64_t now_ns, uint64_t number, uint8_t *packet, size_t size)
{
    struct link_data *data = (struct link_data *)packet;
    uint8_t nonce[NONCE_BYTES];
    assert(session_may_seal(s, now_ns));
    assert(number >= s->next_number && number <= LINK_NUMBER_MAX);
    link_put_head(&data->head, LINK_DATA);
    link_put32(data->receiver, s->remote_index);
    link_put64(data->number, number);
    nonce_of(data, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(data->frames, NULL, data->frames, size, packet, LINK_DATA_HEAD,
                                              NULL, nonce, s->seal_key);
    s->next_number = number + 1;
    s->sealed++;
    return size + LINK_DATA_OVERHEAD;
}

int session_open(struct session *s, uint64_t now_ns, uint8_t *packet, size_t size,
                 struct session_packet *opened)
{
    struct link_data *data = (struct link_data *)packet;
    uint8_t nonce[NONCE_BYTES];
    assert(size >= LINK_DATA_MIN_BYTES);
    uint64_t number = link_get64(data->number);
    if (!s->live || now_ns >= session_end_ns(s))
        return PE_EXPIRED;
    if (number > LINK_NUMBER_MAX || !window_allows(&s->window, number))
        return PE_REPLAYED;
    nonce_of(data, nonce);
    if (crypto_aead_chacha20poly1305_ietf_decrypt(data->frames, NULL, NULL, data->frames,
                                                  size - LINK_DATA_HEAD, packet, LINK_DATA_HEAD, nonce,
                                                  s->open_key) != 0)
        return PE_NOT_AUTHENTIC;
    window_take(&s->window, number);
    *opened = (struct session_packet){number, data->frames, size - LINK_DATA_OVERHEAD};
    return 0;
}
