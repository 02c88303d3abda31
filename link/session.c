#include "link/session.h"

#include "core/error.h"

void session_init(struct session *s, uint64_t now_ns, uint64_t next_number, uint64_t first_number)
{
    *s = (struct session){.live = true, .born_ns = now_ns, .next_number = next_number};
    window_init(&s->window, first_number);
}

void session_take_keys(struct session *s, enum link_cipher cipher, const struct noise *noise)
{
    uint8_t seal[LINK_KEY_BYTES], open[LINK_KEY_BYTES];
    noise_split(noise, seal, open);
    cipher_key_init(&s->seal, cipher, seal);
    cipher_key_init(&s->open, cipher, open);
    sodium_memzero(seal, sizeof seal);
    sodium_memzero(open, sizeof open);
}

void session_wipe(struct session *s)
{
    sodium_memzero(s, sizeof *s);
}

uint64_t session_rekey_ns(const struct session *s)
{
    if (!s->live)
        return NEVER;
    return s->sealed >= LINK_REKEY_BYTES ? 0 : s->born_ns + LINK_REKEY_NS;
}

uint64_t session_end_ns(const struct session *s)
{
    if (!s->live)
        return NEVER;
    return s->forgeries >= LINK_FORGERIES ? 0 : s->born_ns + LINK_OPEN_NS;
}

bool session_may_seal(const struct session *s, uint64_t now_ns)
{
    return s->live && now_ns < s->born_ns + LINK_SEAL_NS && s->sealed < LINK_SEAL_BYTES;
}

size_t session_seal(struct session *s, uint64_t now_ns, uint64_t number, uint8_t *packet, size_t size)
{
    struct link_data *data = (struct link_data *)packet;
    assert(session_may_seal(s, now_ns));
    assert(number >= s->next_number && number <= LINK_NUMBER_MAX);
    link_put_head(&data->head, LINK_DATA);
    link_put32(data->receiver, s->remote_index);
    link_put64(data->number, number);
    cipher_seal(&s->seal, data, size);
    s->next_number = number + 1;
    s->sealed += size + LINK_DATA_OVERHEAD;
    return size + LINK_DATA_OVERHEAD;
}

int session_open(struct session *s, uint64_t now_ns, uint8_t *packet, size_t size,
                 struct session_packet *opened)
{
    struct link_data *data = (struct link_data *)packet;
    assert(size >= LINK_DATA_MIN_BYTES);
    uint64_t number = link_get64(data->number);
    if (!s->live || now_ns >= session_end_ns(s))
        return PE_EXPIRED;
    if (number > LINK_NUMBER_MAX || !window_allows(&s->window, number))
        return PE_REPLAYED;
    int error = cipher_open(&s->open, data, size - LINK_DATA_HEAD);
    if (error < 0) {
        s->forgeries++;
        return error;
    }
    window_take(&s->window, number);
    *opened = (struct session_packet){number, data->frames, size - LINK_DATA_OVERHEAD};
    return 0;
}
