/* Errors: zero or a negative code. A system error is its negated errno; ours lie below -4096, where no errno
 * is. */
#ifndef PURE_CORE_ERROR_H
#define PURE_CORE_ERROR_H

#include <stddef.h>

/* name, text: one list, so that no code is without its text. */
#define PURE_ERRORS(X)                                                                                  \
    X(PE_FULL, "the queue is full")                                                                     \
    X(PE_TOO_LARGE, "larger than its limit")                                                            \
    X(PE_TOO_MUCH, "more than one event may send")                                                      \
    X(PE_MALFORMED, "malformed")                                                                        \
    X(PE_INCOMPLETE, "incomplete")                                                                      \
    X(PE_NO_OUTPUT, "no such output")                                                                   \
    X(PE_CLOSED, "closed by the peer")                                                                  \
    X(PE_CLOSED_EARLY, "closed by the peer before the reply was complete")                              \
    X(PE_CONNECT_TIMEOUT, "no progress while connecting")                                               \
    X(PE_SEND_TIMEOUT, "no progress while sending")                                                     \
    X(PE_REPLY_TIMEOUT, "no reply in time")                                                             \
    X(PE_TOTAL_TIMEOUT, "the whole exchange took too long")                                             \
    X(PE_HTTP_STATUS, "the peer answered with a failure status")                                        \
    X(PE_HTTP_REDIRECT, "the peer answered with a redirect, which is not followed")                     \
    X(PE_HTTP_REPLY, "the reply is not valid HTTP/1.1")                                                 \
    X(PE_HTTP_GONE, "the peer answered 410 Gone: the output is disabled")                               \
    X(PE_HTTP_STORED, "the reply states a stored number that cannot be")                                \
    X(PE_HTTP_UNSTORED, "the reply does not say what is stored")                                        \
    X(PE_STORED_NUMBER, "the receiver says it has stored what it was not sent")                         \
    X(PE_NO_APP, "the receiver has no such app")                                                        \
    X(PE_NOT_ALLOWED, "this host may not send to that app")                                             \
    X(PE_NO_ROOM, "the receiver has no room for it at the moment")                                      \
    X(PE_STREAM_GAP, "records are missing before these")                                                \
    X(PE_STREAM_RETIRED, "the stream's epoch has been replaced by a newer one")                         \
    X(PE_STREAM_ROLLED_BACK, "the sender's store is older than what it has sent")                       \
    X(PE_NOT_AUTHENTIC, "not authentic")                                                                \
    X(PE_UNPROVEN, "the reply is not proven to be the receiver's")                                      \
    X(PE_STREAM_STALE, "the ticket is not of this life of the receiver, or older than the epoch")       \
    X(PE_REPLAYED, "seen before, or too old to tell")                                                   \
    X(PE_EXPIRED, "the session is too old")                                                             \
    X(PE_UNKNOWN_KEY, "the key is not let in")                                                          \
    X(PE_LINK_VERSION, "the peer speaks another version of the link protocol")                          \
    X(PE_LINK_SILENT, "the receiver does not answer")                                                   \
    X(PE_LINK_BUSY, "too many handshakes")                                                              \
    X(PE_LINK_QUOTA, "more of a peer than one round takes")                                             \
    X(PE_KEY, "not a key: 44 characters of base64 are")                                                 \
    X(PE_KEY_IS_PRIVATE, "a private key where a public one belongs")                                    \
    X(PE_KEY_IS_PUBLIC, "a public key where a private one belongs")                                     \
    X(PE_KEY_WEAK, "the key is of low order: no secret can be agreed on with it")                       \
    X(PE_NAME_NOT_FOUND, "the name has no address")                                                     \
    X(PE_NAME_FAILED, "the name lookup failed")                                                         \
    X(PE_NAME_BUSY, "too many name lookups are under way")                                              \
    X(PE_NAME_DENIED, "no address of the name may be connected to")                                     \
    X(PE_PROXY, "the proxy refuses to connect")                                                         \
    X(PE_TLS_HANDSHAKE, "the TLS handshake failed")                                                     \
    X(PE_TLS_VERSION, "no TLS version or cipher in common")                                             \
    X(PE_TLS_PEER, "the peer ended TLS with an alert")                                                  \
    X(PE_TLS_NEEDS_CERTIFICATE, "the peer wants a certificate of ours")                                 \
    X(PE_TLS_RECORD, "what came is not valid TLS")                                                      \
    X(PE_TLS_CUT, "the connection ended without TLS saying so")                                         \
    X(PE_TLS_FILES, "certificate, key or CA files cannot be used")                                      \
    X(PE_CERT_MALFORMED, "the certificate is malformed")                                                \
    X(PE_CERT_EXPIRED, "the certificate has expired")                                                   \
    X(PE_CERT_NOT_YET_VALID, "the certificate is not yet valid")                                        \
    X(PE_CERT_CLOCK, "the certificate is not yet valid, and our clock looks wrong")                     \
    X(PE_CERT_NAME, "the certificate is for other names")                                               \
    X(PE_CERT_SELF_SIGNED, "the certificate is self-signed and not trusted")                            \
    X(PE_CERT_ISSUER, "the certificate's issuer is not known")                                          \
    X(PE_CERT_INCOMPLETE, "the server does not send the certificates between its own and the issuer's") \
    X(PE_CERT_SIGNATURE, "a signature in the certificate chain is wrong")                               \
    X(PE_CERT_ALGORITHM, "a signature in the certificate chain is of an algorithm that is not safe")    \
    X(PE_CERT_WEAK_KEY, "a key in the certificate chain is too weak")                                   \
    X(PE_CERT_CRITICAL, "a certificate has a critical extension that is not understood")                \
    X(PE_CERT_IS_CA, "the certificate is a CA's, not a server's")                                       \
    X(PE_CERT_NOT_CA, "a certificate in the chain was issued by one that is no CA")                     \
    X(PE_CERT_PURPOSE, "the certificate is not for this purpose")                                       \
    X(PE_CERT_CONSTRAINTS, "the certificate is for names that its issuer may not speak for")            \
    X(PE_CERT_PATH, "the certificate chain is longer than it may be")                                   \
    X(PE_CERT_PIN, "no key in the certificate chain is one that is pinned")                             \
    X(PE_OUTPUT_DISABLED, "the output is disabled: it was for too long without success")                \
    X(PE_OUTPUT_OFF, "disabled by command")                                                             \
    X(PE_MODULE, "the module cannot be used")                                                           \
    X(PE_APP_FAILED, "the app failed the event")                                                        \
    X(PE_APP_OVERRAN, "the app did not return from a call within its turn_limit")                       \
    X(PE_APP_DIED, "the app has ended the process too often")                                           \
    X(PE_APP_SUSPENDED, "the app is suspended")                                                         \
    X(PE_CONFIG, "the configuration is wrong")                                                          \
    X(PE_KERNEL, "the kernel refuses io_uring")                                                         \
    X(PE_STOPPING, "the host is stopping")                                                              \
    X(PE_JOURNAL, "the journal is damaged there")                                                       \
    X(PE_JOURNAL_VERSION, "written by a newer version of pure-host")                                    \
    X(PE_JOURNAL_LOCKED, "another process uses the store")                                              \
    X(PE_JOURNAL_FAILED, "the store has failed: what is not stored cannot be")

enum pure_error {
    PE_FIRST = -8192,
#define X(name, text) name,
    PURE_ERRORS(X)
#undef X
        PE_LAST
};

/* A short text without a full stop, for any code above or any negated errno. Never NULL; static storage. */
const char *pure_error_text(int error);

#endif
