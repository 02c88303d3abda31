/* A sealed request and its reply, as docs/records-protocol.md has them, for who writes the other end: made
 * with a program of its own (Python: hashlib for BLAKE2b, X25519 and ChaCha20-Poly1305 by the letter of RFC
 * 7748 and RFC 8439). Data only. */
#ifndef PURE_TESTS_VECTORS_SEALED_H
#define PURE_TESTS_VECTORS_SEALED_H

/* clang-format off */
/* Private keys: 32 bytes that count up from these. */
enum { SEALED_VECTOR_SENDER = 0x01, SEALED_VECTOR_RECEIVER = 0x21, SEALED_VECTOR_E = 0x41 };
static const char sealed_vector_head[] =
    "ZLEBsdC+WocEvQePmJUAH8A+jp+VIvGI3RKNmEbUhGYnRnAO56370gF8bzmwsOTY2Em3OnlqVOMpSv/fXrHa6uhQJz"
    "4Zt6i7uEDRoSmtBeylW9WXQxIEKKWmt1Gz9oiIx7m5HdUQg66IdKPUSzLg+Foqy2gykg6Ig89VCU4/+tbWWHf+zEmH"
    "7++YbLb7CwlMRXXc5V0jjIs8mWpqg7d+iVhy3oeFJcpNuCScmAxpaOQsQmco1OgUgiaBMReSKrIpi/cKNFCnNxejyK"
    "8Nt0maNU3Ry6rwr1nERAxg0DDDhnPBGQGaP6disL0J3owCRDYFpePP+GuU+V65bMvtVGmdldTn0sSM+eX4BnxeuH5n"
    "tOcHZq3Do7CsDy9Tiwoa7GjKoPBfcqEW6O20jaEtaogJzbo4HEctFyRoKLcpK8RzNQ5F3oT23js0+uBUvRpCWYyffC"
    "vHFQoTq5ZqDfr0RdxOepZABQxj1Np/5w6itprKDHmMC66G6pr1ZHGFwVAnfHMcJP/JAlaR4h1JPN+ygKzsrcOFSrPg"
    "3g7s/GKfi9luQiKROQ4fq7Zuty/iMfiE1B5ON+I8jdKv9KvPBFoFu7AJ1MpM";
static const char sealed_vector_body[] =
    "a79cc7f744bfa7064ec5bf7beb482b3abe8d0d259912";
static const char sealed_vector_reply[] =
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXl5BxnJWII/HbY2m4ZwNR9WIypjZBSe93wXIpd+v5t2z9GYZt1eUpWncDgs"
    "lLIh+xTGX53rhtFkiH0QkQKpawi3NDslClS+yKTiMqYOcT5g+7DTMN0ZMQsGH7RCJwuxjx4azjNltUq3m2rSQdbGTU"
    "+saMEBMx9EMciove+GCr7xvR9BrzZwsgA/xqx4scaw/6";

#endif
