#!/usr/bin/python3
"""Makes tests/vectors/certs.json, the cases of build/tests/certs: every kind of certificate that has to be
refused, with its error, and next to it valid ones. The format is in docs/certificates.md.

    python3 tests/runners/certs_make.py > tests/vectors/certs.json

Certificates are put together byte by byte, since no library makes wrong ones; keys and signatures are of
Debian's python3-cryptography. The keys are new in every run, so the committed file is the reference."""
import datetime
import hashlib
import ipaddress
import json
import sys

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa

# --- DER ---


def tlv(tag, *contents):
    content = b"".join(contents)
    if len(content) < 128:
        return bytes([tag, len(content)]) + content
    size = (len(content).bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + len(content).to_bytes(size, "big") + content


def sequence(*contents):
    return tlv(0x30, *contents)


def integer(value):
    return tlv(2, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def oid(text):
    arcs = [int(arc) for arc in text.split(".")]
    out = bytearray()
    for arc in [40 * arcs[0] + arcs[1]] + arcs[2:]:
        part = [arc & 0x7F]
        while arc := arc >> 7:
            part.insert(0, arc & 0x7F | 0x80)
        out += bytes(part)
    return tlv(6, bytes(out))


def octets(content):
    return tlv(4, content)


def bits(content, unused=0):
    return tlv(3, bytes([unused]), content)


NULL = tlv(5)
TRUE = tlv(1, b"\xff")
FALSE = tlv(1, b"\0")


def explicit(number, *contents):
    return tlv(0xA0 | number, *contents)


# --- names ---

CN, O, EMAIL = "2.5.4.3", "2.5.4.10", "1.2.840.113549.1.9.1"


def dn(*attributes, tag=0x0C):
    return sequence(*[tlv(0x31, sequence(oid(kind), tlv(tag, value.encode()))) for kind, value in attributes])


def dns(name):
    return tlv(0x82, name if isinstance(name, bytes) else name.encode())


def email(name):
    return tlv(0x81, name.encode())


def uri(name):
    return tlv(0x86, name.encode())


def address(text):
    return tlv(0x87, ipaddress.ip_address(text).packed)


def network(text):
    n = ipaddress.ip_network(text)
    return tlv(0x87, n.network_address.packed, n.netmask.packed)


def directory(name):
    return tlv(0xA4, name)


def other_name():
    return tlv(0xA0, oid("1.3.6.1.4.1.311.20.2.3"), explicit(0, tlv(0x0C, b"someone")))


# --- keys and algorithms ---

SHA = {"sha1": hashes.SHA1(), "sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
HASH_OID = {"sha256": "2.16.840.1.101.3.4.2.1", "sha384": "2.16.840.1.101.3.4.2.2", "sha512": "2.16.840.1.101.3.4.2.3"}
RSA_OID = {"md5": 4, "sha1": 5, "sha256": 11, "sha384": 12, "sha512": 13}
ECDSA_OID = {"sha1": "1.2.840.10045.4.1", "sha256": "1.2.840.10045.4.3.2", "sha384": "1.2.840.10045.4.3.3",
             "sha512": "1.2.840.10045.4.3.4"}


def pss_algorithm(name, salt=None):
    algorithm = sequence(oid(HASH_OID[name]), NULL)
    salt = SHA[name].digest_size if salt is None else salt
    return sequence(oid("1.2.840.113549.1.1.10"), sequence(
        explicit(0, algorithm), explicit(1, sequence(oid("1.2.840.113549.1.1.8"), algorithm)), explicit(2, integer(salt))))


def raw_rsa_md5(key, tbs):
    n = key.private_numbers()
    size = key.key_size // 8
    info = sequence(sequence(oid("1.2.840.113549.2.5"), NULL), octets(hashlib.md5(tbs).digest()))
    block = b"\0\1" + b"\xff" * (size - 3 - len(info)) + b"\0" + info
    return pow(int.from_bytes(block, "big"), n.d, n.public_numbers.n).to_bytes(size, "big")


def signer(key, how="sha256"):
    """The AlgorithmIdentifier and what signs bytes."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return sequence(oid("1.3.101.112")), key.sign
    if isinstance(key, dsa.DSAPrivateKey):
        return sequence(oid("2.16.840.1.101.3.4.3.2")), lambda tbs: key.sign(tbs, SHA["sha256"])
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return sequence(oid(ECDSA_OID[how])), lambda tbs: key.sign(tbs, ec.ECDSA(SHA[how]))
    if how.startswith("pss-"):
        name = how[4:]
        pss = padding.PSS(padding.MGF1(SHA[name]), SHA[name].digest_size)
        return pss_algorithm(name), lambda tbs: key.sign(tbs, pss, SHA[name])
    algorithm = sequence(oid("1.2.840.113549.1.1.%d" % RSA_OID[how]), NULL)
    if how == "md5":
        return algorithm, lambda tbs: raw_rsa_md5(key, tbs)
    return algorithm, lambda tbs: key.sign(tbs, padding.PKCS1v15(), SHA[how])


def key_info(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def key_id(key):
    return hashlib.sha1(key_info(key)).digest()


def key_pem(key):
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption()).decode()


def p256():
    return ec.generate_private_key(ec.SECP256R1())


# --- certificates ---

SERVER, CLIENT, CODE, ANY = "1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2", "1.3.6.1.5.5.7.3.3", "2.5.29.37.0"
SIGN_HANDSHAKES, SIGN_CERTIFICATES = bits(b"\x80", 7), bits(b"\x04", 2)
BASIC, USAGE, PURPOSE, SAN, NC = "2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.17", "2.5.29.30"
SKI, AKI, AIA, POLICIES = "2.5.29.14", "2.5.29.35", "1.3.6.1.5.5.7.1.1", "2.5.29.32"
POLICY_CONSTRAINTS, INHIBIT_ANY = "2.5.29.36", "2.5.29.54"


def extension(kind, value, critical=False):
    return sequence(oid(kind), TRUE if critical else b"", octets(value))


def basic(ca=True, length=None):
    return sequence(TRUE if ca else b"", b"" if length is None else integer(length))


def purposes(*kinds):
    return sequence(*[oid(kind) for kind in kinds])


def aki(key, *more):
    return sequence(tlv(0x80, key_id(key)), *more)


def constraints(permitted=(), excluded=()):
    return sequence(*[explicit(number, *[sequence(base) for base in bases])
                      for number, bases in ((0, permitted), (1, excluded)) if bases])


def moment(text):
    t = datetime.datetime.fromisoformat(text)
    if t.year < 2050:
        return tlv(0x17, t.strftime("%y%m%d%H%M%SZ").encode())
    return tlv(0x18, t.strftime("%Y%m%d%H%M%SZ").encode())


class Cert:
    """One certificate. `ext` replaces extensions by their OID (None takes one away); `more` come after them."""
    serial = 0x1000

    def __init__(self, name, issuer=None, key=None, ca=False, san=(dns("a.example"),), ext=None, more=(), version=3,
                 serial=None, begin="2026-01-01 00:00:00", end="2027-01-01 00:00:00", how="sha256", inner=None,
                 subject=None, issuer_name=None, length=None, validity=None, twist=None, tail=b""):
        Cert.serial += 1
        self.key = key or p256()
        self.issuer = issuer or self
        self.subject = dn((CN, name)) if subject is None else subject
        signing = self.issuer.key
        algorithm, sign = signer(signing, how)
        extensions = {BASIC: extension(BASIC, basic(length=length), True), USAGE: extension(USAGE, SIGN_CERTIFICATES, True)} \
            if ca else {USAGE: extension(USAGE, SIGN_HANDSHAKES, True), PURPOSE: extension(PURPOSE, purposes(SERVER)),
                        SAN: extension(SAN, sequence(*san))}
        extensions[SKI] = extension(SKI, octets(key_id(self.key)))
        if issuer:
            extensions[AKI] = extension(AKI, aki(signing))
        extensions.update(ext or {})
        listed = [e for e in extensions.values() if e] + list(more)
        tbs = sequence(
            explicit(0, integer(version - 1)) if version > 1 else b"",
            (integer(Cert.serial if serial is None else serial) if not isinstance(serial, bytes) else tlv(2, serial)),
            inner or algorithm, self.issuer.subject if issuer_name is None else issuer_name,
            validity or sequence(moment(begin), moment(end)), self.subject, key_info(self.key) if not twist else twist,
            explicit(3, sequence(*listed)) if version > 1 and listed else b"")
        signature = sign(tbs)
        self.der = sequence(tbs, algorithm, bits(signature)) + tail

    def pem(self):
        import base64
        text = base64.encodebytes(self.der).decode().replace("\n", "")
        lines = [text[i:i + 64] for i in range(0, len(text), 64)]
        return "-----BEGIN CERTIFICATE-----\n" + "\n".join(lines) + "\n-----END CERTIFICATE-----\n"

    def broken(self):
        """The same with the last bit of its signature turned."""
        self.der = self.der[:-1] + bytes([self.der[-1] ^ 1])
        return self


CASES = []


# What wolfSSL refuses before the check is asked: with which error, or None: of no name, so without TLS.
OVER_TLS = {"addresses/of-3-bytes": None, "addresses/with-mask": None, "crypto/leaf-secp256k1": "PE_TLS_VERSION",
            "crypto/dsa-leaf": "PE_TLS_VERSION", "constraints/too-many-to-compare": "PE_TLS_HANDSHAKE",
            "paths/too-many-sent": "PE_TLS_HANDSHAKE"}


def case(name, chain, roots, error=None, host="a.example", time="2026-06-01T00:00:00Z", key=None):
    entry = {"id": name, "chain": [c.pem() for c in chain], "key": key_pem(key or chain[0].key),
             "roots": [r.pem() for r in roots], "name": host, "time": time,
             "verdict": "reject" if error else "accept"}
    if error:
        entry["error"] = "PE_CERT_" + error
    if OVER_TLS.get(name):
        entry["error_tls"] = OVER_TLS[name]
    elif name in OVER_TLS:
        del entry["key"]
    CASES.append(entry)


ROOT = Cert("Root", ca=True, subject=dn((O, "Test Org"), (CN, "Root")))
CA = Cert("Issuing CA", ROOT, ca=True, subject=dn((O, "Test Org"), (CN, "Issuing CA")))
LEAF_KEY = p256()
RSA_KEY = rsa.generate_private_key(65537, 2048)


def leaf(name, error=None, host="a.example", issuer=None, between=(), roots=None, time="2026-06-01T00:00:00Z", **more):
    """A case of a leaf under CA, under ROOT."""
    more.setdefault("key", LEAF_KEY)
    x = Cert("leaf", issuer or CA, **more)
    chain = [x] + list(between or ([issuer] if issuer and issuer is not ROOT else [] if issuer else [CA]))
    case(name, chain, roots or [ROOT], error, host, time)


def under(name, error=None, san=(dns("a.example"),), host="a.example", leaf_options=None, **ca_options):
    """A case of a CA under ROOT, and a good leaf under that."""
    subject = ca_options.pop("subject", dn((O, "Test Org"), (CN, "Issuing CA of its own")))
    ca = Cert("CA", ROOT, ca=True, subject=subject, **ca_options)
    leaf(name, error, host, issuer=ca, san=san, **(leaf_options or {}))


def root(name, error=None, **root_options):
    """A case of a root, and a good leaf under that."""
    anchor = Cert("R", ca=True, subject=root_options.pop("subject", dn((CN, "Root of its own"))), **root_options)
    case(name, [Cert("leaf", anchor, key=LEAF_KEY)], [anchor], error)


# --- names ---

def names():
    leaf("names/exact")
    leaf("names/upper-case-in-certificate", san=(dns("A.ExAmPlE"),))
    leaf("names/several", san=(dns("x.example"), dns("b.example"), dns("a.example")))
    leaf("names/localhost", host="localhost", san=(dns("localhost"),))
    leaf("names/underscore", host="my_app.example", san=(dns("my_app.example"),))
    leaf("names/a-label", host="xn--bcher-kva.example", san=(dns("xn--bcher-kva.example"),))
    leaf("names/other", "NAME", san=(dns("b.example"),))
    leaf("names/subdomain-of-it", "NAME", host="x.a.example")
    leaf("names/parent-of-it", "NAME", san=(dns("x.a.example"),))
    leaf("names/suffix-of-it", "NAME", host="ba.example")
    leaf("names/none", "NAME", ext={SAN: None}, subject=dn((CN, "a.example")))
    leaf("names/common-name-only", "NAME", san=(dns("b.example"),), subject=dn((CN, "a.example")))
    leaf("names/common-name-among-them", subject=dn((CN, "a.example")))
    leaf("names/common-name-of-a-person", subject=dn((CN, "Some Service")))
    leaf("names/common-name-not-among-them", subject=dn((CN, "b.example")))
    leaf("names/common-name-in-other-case", subject=dn((CN, "A.example")))
    leaf("names/common-name-in-unicode", host="xn--bcher-kva.example", san=(dns("xn--bcher-kva.example"),),
         subject=dn((CN, "b\u00fccher.example")))
    leaf("names/common-name-address", host="192.0.2.1", san=(address("192.0.2.1"),), subject=dn((CN, "192.0.2.1")))
    leaf("names/common-name-other-address", host="192.0.2.1", san=(address("192.0.2.1"),),
         subject=dn((CN, "192.0.2.2")))
    leaf("names/common-name-address-spelt-otherwise", host="2001:db8::1", san=(address("2001:db8::1"),),
         subject=dn((CN, "2001:0DB8::1")))
    leaf("names/empty-subject-critical", subject=dn(), ext={SAN: extension(SAN, sequence(dns("a.example")), True)})
    leaf("names/empty-subject-not-critical", "MALFORMED", subject=dn())
    leaf("names/subject-and-critical", "MALFORMED", ext={SAN: extension(SAN, sequence(dns("a.example")), True)})
    leaf("names/malformed-not-a-sequence", "MALFORMED", ext={SAN: extension(SAN, dns("a.example"))})
    leaf("names/malformed-empty-list", "MALFORMED", san=())
    leaf("names/malformed-empty-name", "MALFORMED", san=(dns("a.example"), dns("")))
    leaf("names/malformed-nul", "MALFORMED", san=(dns(b"a.example\0.b.example"), dns("a.example")))
    leaf("names/malformed-unicode", "MALFORMED", san=(dns("b\u00fccher.example"), dns("a.example")))
    leaf("names/malformed-trailing-byte", "MALFORMED", ext={SAN: extension(SAN, sequence(dns("a.example")) + b"\0")})
    leaf("names/malformed-tag", "MALFORMED", san=(tlv(0x89, b"x"), dns("a.example")))
    leaf("names/trailing-dot-in-certificate", "NAME", san=(dns("a.example."),))
    leaf("names/trailing-dot-asked-for", host="a.example.")
    leaf("names/leading-dot", "NAME", host="x.a.example", san=(dns(".a.example"),))
    leaf("names/empty-label", "NAME", host="a..example", san=(dns("a..example"),))
    leaf("names/label-of-64", "NAME", host="x" * 64 + ".example", san=(dns("x" * 64 + ".example"),))
    leaf("names/label-of-63", host="x" * 63 + ".example", san=(dns("x" * 63 + ".example"),))
    leaf("names/mail-address-is-no-host", "NAME", san=(email("a@a.example"),))
    leaf("names/uri-is-no-host", "NAME", san=(uri("https://a.example/"),))
    leaf("names/with-other-kinds", san=(email("a@b.example"), uri("spiffe://x/y"), other_name(), dns("a.example")))


def wildcards():
    leaf("wildcards/one-label", host="x.a.example", san=(dns("*.a.example"),))
    leaf("wildcards/a-label", host="xn--bcher-kva.a.example", san=(dns("*.a.example"),))
    leaf("wildcards/below-a-label", host="x.xn--bcher-kva.example", san=(dns("*.xn--bcher-kva.example"),))
    leaf("wildcards/two-labels", "NAME", host="x.y.a.example", san=(dns("*.a.example"),))
    leaf("wildcards/apex", "NAME", san=(dns("*.a.example"),))
    leaf("wildcards/beside-apex", san=(dns("*.a.example"), dns("a.example")))
    leaf("wildcards/of-a-top-level", "NAME", host="a.example", san=(dns("*.example"),))
    leaf("wildcards/bare", "NAME", host="a.example", san=(dns("*"),))
    leaf("wildcards/bare-for-one-label", "NAME", host="localhost", san=(dns("*"),))
    leaf("wildcards/dot", "NAME", host="a.example", san=(dns("*."),))
    leaf("wildcards/two", "NAME", host="x.y.a.example", san=(dns("*.*.a.example"),))
    leaf("wildcards/second-label", "NAME", host="x.y.a.example", san=(dns("x.*.a.example"),))
    leaf("wildcards/last-label", "NAME", host="a.example", san=(dns("a.*"),))
    leaf("wildcards/prefix", "NAME", host="foobar.a.example", san=(dns("foo*.a.example"),))
    leaf("wildcards/suffix", "NAME", host="foobar.a.example", san=(dns("*bar.a.example"),))
    leaf("wildcards/middle", "NAME", host="foobar.a.example", san=(dns("f*r.a.example"),))
    leaf("wildcards/in-a-label", "NAME", host="xn--bcher-kva.a.example", san=(dns("xn--*-kva.a.example"),))
    leaf("wildcards/twice-in-label", "NAME", host="x.a.example", san=(dns("**.a.example"),))
    leaf("wildcards/address", "NAME", host="192.0.2.1", san=(dns("*.0.2.1"),))
    leaf("wildcards/literal", "NAME", host="*.a.example", san=(dns("*.a.example"),))


def addresses():
    leaf("addresses/v4", host="192.0.2.1", san=(address("192.0.2.1"),))
    leaf("addresses/v6", host="2001:db8::1", san=(address("2001:db8::1"),))
    leaf("addresses/loopback", host="127.0.0.1", san=(address("127.0.0.1"),))
    leaf("addresses/other-v4", "NAME", host="192.0.2.2", san=(address("192.0.2.1"),))
    leaf("addresses/other-v6", "NAME", host="2001:db8::2", san=(address("2001:db8::1"),))
    leaf("addresses/v4-as-dns-name", "NAME", host="192.0.2.1", san=(dns("192.0.2.1"),))
    leaf("addresses/v6-as-dns-name", "NAME", host="2001:db8::1", san=(dns("2001:db8::1"),))
    leaf("addresses/as-both", host="192.0.2.1", san=(dns("192.0.2.1"), address("192.0.2.1")))
    leaf("addresses/in-common-name", "NAME", host="192.0.2.1", san=(dns("a.example"),), subject=dn((CN, "192.0.2.1")))
    leaf("addresses/v4-in-v6", "NAME", host="192.0.2.1", san=(address("::ffff:192.0.2.1"),))
    leaf("addresses/of-3-bytes", "MALFORMED", san=(tlv(0x87, b"\xc0\0\2"), dns("a.example")))
    leaf("addresses/with-mask", "MALFORMED", host="192.0.2.1", san=(network("192.0.2.1/32"),))
    leaf("addresses/text", "NAME", host="192.0.2.1", san=(uri("192.0.2.1"),))


# --- time ---

def validity():
    leaf("validity/first-second", time="2026-01-01T00:00:00Z")
    leaf("validity/last-second", time="2027-01-01T00:00:00Z", begin="2026-06-01 00:00:00")
    leaf("validity/second-before", "NOT_YET_VALID", begin="2026-06-01 00:00:01")
    leaf("validity/second-after", "EXPIRED", end="2026-05-31 23:59:59")
    under("validity/ca-not-yet", "NOT_YET_VALID", begin="2026-06-02 00:00:00")
    under("validity/ca-expired", "EXPIRED", end="2026-05-01 00:00:00")
    root("validity/root-expired", "EXPIRED", end="2026-05-01 00:00:00")
    root("validity/root-not-yet", "NOT_YET_VALID", begin="2026-07-01 00:00:00")
    leaf("validity/after-2050", end="2051-01-01 00:00:00")
    leaf("validity/leap-day", time="2028-02-29T12:00:00Z", begin="2028-02-29 00:00:00", end="2028-03-01 00:00:00",
         issuer=LONG, between=[LONG], roots=[LONG_ROOT])
    utc, general = (lambda t: tlv(0x17, t)), (lambda t: tlv(0x18, t))
    good = moment("2026-01-01 00:00:00")
    leaf("validity/generalized-before-2050", validity=sequence(general(b"20260101000000Z"), general(b"20270101000000Z")))
    for name, late in (("no-seconds", utc(b"2701010000Z")), ("offset", utc(b"270101000000+0000")),
                       ("fraction", general(b"20270101000000.5Z")), ("no-zone", utc(b"270101000000")),
                       ("no-such-day", utc(b"270229000000Z")), ("no-such-month", utc(b"271301000000Z")),
                       ("second-60", utc(b"261231235960Z")), ("letters", utc(b"27010100000xZ")),
                       ("text", tlv(0x0C, b"270101000000Z"))):
        leaf("validity/malformed-" + name, "MALFORMED", validity=sequence(good, late))


# --- CAs and leaves ---

def authorities():
    leaf("authorities/ca-as-leaf", "IS_CA", ext={BASIC: extension(BASIC, basic(), True)})
    leaf("authorities/leaf-says-it-is-none", ext={BASIC: extension(BASIC, basic(False), True)})
    leaf("authorities/leaf-says-false-aloud", ext={BASIC: extension(BASIC, sequence(FALSE), True)})
    leaf("authorities/leaf-with-path-length", "MALFORMED", ext={BASIC: extension(BASIC, basic(False, 0), True)})
    leaf("authorities/leaf-signs-certificates", "MALFORMED", ext={USAGE: extension(USAGE, bits(b"\x84", 2), True)})
    under("authorities/no-basic-constraints", "NOT_CA", ext={BASIC: None})
    under("authorities/basic-constraints-false", "NOT_CA", ext={BASIC: extension(BASIC, basic(False), True)})
    under("authorities/basic-constraints-not-critical", "MALFORMED", ext={BASIC: extension(BASIC, basic())})
    under("authorities/no-certificate-signing", "NOT_CA", ext={USAGE: extension(USAGE, bits(b"\x02", 1), True)})
    under("authorities/no-key-usage", ext={USAGE: None})
    under("authorities/empty-key-usage", "MALFORMED", ext={USAGE: extension(USAGE, bits(b"\0", 7), True)})
    under("authorities/no-name", "MALFORMED", subject=dn())
    root("authorities/root-without-basic-constraints", "NOT_CA", ext={BASIC: None})
    root("authorities/root-that-is-none", "NOT_CA", ext={BASIC: extension(BASIC, basic(False), True)})
    root("authorities/root-basic-constraints-not-critical", ext={BASIC: extension(BASIC, basic())})
    root("authorities/root-without-certificate-signing", "NOT_CA", ext={USAGE: extension(USAGE, bits(b"\x02", 1), True)})
    leaf("authorities/leaf-signed-leaf", "NOT_CA", issuer=Cert("end", CA, subject=dn((CN, "end"))), roots=[CA])
    plain = Cert("v1", ROOT, ca=True, subject=dn((CN, "v1 CA")), version=1)
    leaf("authorities/version-1-ca", "NOT_CA", issuer=plain)
    leaf("authorities/version-1-leaf", "MALFORMED", version=1)
    leaf("authorities/version-2", "MALFORMED", version=2)
    leaf("authorities/version-4", "MALFORMED", version=4)
    self_signed = Cert("me", subject=dn((CN, "me")), key=LEAF_KEY)
    case("authorities/self-signed", [self_signed], [ROOT], "SELF_SIGNED")
    case("authorities/self-signed-trusted", [self_signed], [self_signed])
    mine = Cert("my ca", subject=dn((CN, "my ca")), key=LEAF_KEY, ext={BASIC: extension(BASIC, basic(), True)})
    case("authorities/self-signed-ca-trusted", [mine], [mine])
    case("authorities/self-signed-ca", [mine], [ROOT], "SELF_SIGNED")
    case("authorities/self-signed-trusted-other-name", [self_signed], [self_signed], "NAME", host="b.example")


def lengths():
    def path(name, *levels, error=None, leaf_options=None, root_length=None):
        """Each level is a path length, or ("self", length) for a self-issued one."""
        top = Cert("R", ca=True, subject=dn((CN, "Length Root")), length=root_length)
        chain = [top]
        for i, level in enumerate(levels):
            own, length = level if isinstance(level, tuple) else (None, level)
            subject = chain[0].subject if own else dn((CN, "Level %d" % i))
            chain.insert(0, Cert("L", chain[0], ca=True, subject=subject, length=length))
        x = Cert("leaf", chain[0], key=LEAF_KEY, **(leaf_options or {}))
        case("lengths/" + name, [x] + chain[:-1], [top], error)

    path("zero", 0)
    path("zero-violated", 0, None, error="PATH")
    path("one-with-one-below", 1, None)
    path("one-violated", 1, None, None, error="PATH")
    path("may-grow", 1, 5)
    path("shrinks", 2, 1, 0)
    path("shrinks-too-far", 2, 0, None, error="PATH")
    path("self-issued-not-counted", 0, ("self", None))
    path("self-issued-then-another", 0, ("self", None), None, error="PATH")
    path("of-the-root", None, error="PATH", root_length=0)
    path("of-the-root-kept", root_length=0)
    path("none-six-deep", None, None, None, None, None, None)
    under("lengths/negative", "MALFORMED", ext={BASIC: extension(BASIC, sequence(TRUE, integer(-1)), True)})
    under("lengths/huge", ext={BASIC: extension(BASIC, sequence(TRUE, integer(0x7FFFFFFF)), True)})


# --- extensions ---

def extensions():
    unknown = extension("1.3.6.1.4.1.55555.1", b"\x05\x00", True)
    leaf("extensions/unknown-critical", "CRITICAL", more=[unknown])
    under("extensions/unknown-critical-in-ca", "CRITICAL", more=[unknown])
    root("extensions/unknown-critical-in-root", "CRITICAL", more=[unknown])
    leaf("extensions/unknown", more=[extension("1.3.6.1.4.1.55555.1", b"\x05\x00")])
    leaf("extensions/precertificate", "CRITICAL", more=[extension("1.3.6.1.4.1.11129.2.4.3", NULL, True)])
    leaf("extensions/twice", "MALFORMED", more=[extension(PURPOSE, purposes(SERVER))])
    leaf("extensions/unknown-twice", "MALFORMED", more=2 * [extension("1.3.6.1.4.1.55555.1", b"\x05\x00")])
    leaf("extensions/empty-list", "MALFORMED", ext={kind: None for kind in (USAGE, PURPOSE, SAN, SKI)} | {
        AKI: sequence()})
    leaf("extensions/critical-not-false-nor-true", "MALFORMED",
         more=[sequence(oid("1.3.6.1.4.1.55555.1"), tlv(1, b"\1"), octets(NULL))])
    leaf("extensions/critical-false-aloud", more=[sequence(oid("1.3.6.1.4.1.55555.1"), FALSE, octets(NULL))])
    leaf("extensions/no-authority-key-id", "MALFORMED", ext={AKI: None})
    leaf("extensions/authority-key-id-without-key", "MALFORMED", ext={AKI: extension(AKI, sequence())})
    leaf("extensions/authority-key-id-critical", "MALFORMED", ext={AKI: extension(AKI, aki(CA.key), True)})
    leaf("extensions/authority-key-id-with-issuer",
         ext={AKI: extension(AKI, aki(CA.key, tlv(0xA1, directory(ROOT.subject)), tlv(0x82, b"\x10\x02")))})
    leaf("extensions/authority-key-id-with-issuer-alone", "MALFORMED",
         ext={AKI: extension(AKI, aki(CA.key, tlv(0xA1, directory(ROOT.subject))))})
    leaf("extensions/authority-key-id-of-another", ext={AKI: extension(AKI, aki(ROOT.key))})
    leaf("extensions/no-subject-key-id", ext={SKI: None})
    leaf("extensions/subject-key-id-critical", "MALFORMED", ext={SKI: extension(SKI, octets(b"12345"), True)})
    under("extensions/ca-without-authority-key-id", "MALFORMED", ext={AKI: None})
    under("extensions/ca-without-subject-key-id", "MALFORMED", ext={SKI: None})
    root("extensions/root-without-subject-key-id", ext={SKI: None})
    root("extensions/root-with-authority-key-id-of-another", "MALFORMED", ext={AKI: extension(AKI, aki(LEAF_KEY))})
    here = sequence(sequence(oid("1.3.6.1.5.5.7.48.2"), uri("http://ca.example/ca.der")))
    leaf("extensions/access", more=[extension(AIA, here)])
    leaf("extensions/access-critical", "MALFORMED", more=[extension(AIA, here, True)])
    leaf("extensions/access-malformed", "MALFORMED", more=[extension(AIA, b"\x05\x00")])
    policy = sequence(sequence(oid("2.23.140.1.2.1")))
    leaf("extensions/policies", more=[extension(POLICIES, policy)])
    leaf("extensions/policies-critical", more=[extension(POLICIES, policy, True)])
    leaf("extensions/policy-twice", "MALFORMED", more=[extension(POLICIES, sequence(2 * sequence(oid("2.23.140.1.2.1"))))])
    required = sequence(tlv(0x80, b"\0"))
    under("extensions/policy-constraints", "CRITICAL", more=[extension(POLICY_CONSTRAINTS, required, True)])
    under("extensions/policy-constraints-not-critical", "MALFORMED", more=[extension(POLICY_CONSTRAINTS, required)])
    under("extensions/inhibit-any-policy", more=[extension(INHIBIT_ANY, integer(0), True)])
    under("extensions/inhibit-any-policy-not-critical", "MALFORMED", more=[extension(INHIBIT_ANY, integer(0))])


def serials():
    leaf("serials/zero", "MALFORMED", serial=0)
    leaf("serials/negative", "MALFORMED", serial=-5)
    leaf("serials/of-20-bytes", serial=b"\x7f" + 19 * b"\xff")
    leaf("serials/of-21-bytes", "MALFORMED", serial=b"\x00\xff" + 19 * b"\xff")
    leaf("serials/empty", "MALFORMED", serial=b"")
    leaf("serials/padded", "MALFORMED", serial=b"\x00\x01")
    root("serials/zero-of-root", serial=0)
    leaf("serials/no-issuer", "ISSUER", issuer_name=dn())
    nobody = Cert("Nobody", ca=True, subject=dn())
    case("serials/issuer-without-name", [Cert("leaf", nobody, key=LEAF_KEY)], [nobody], "MALFORMED")


def usages():
    leaf("purposes/none", ext={PURPOSE: None})
    leaf("purposes/server-and-client", ext={PURPOSE: extension(PURPOSE, purposes(CLIENT, SERVER))})
    leaf("purposes/client", "PURPOSE", ext={PURPOSE: extension(PURPOSE, purposes(CLIENT))})
    leaf("purposes/code", "PURPOSE", ext={PURPOSE: extension(PURPOSE, purposes(CODE))})
    leaf("purposes/any", "PURPOSE", ext={PURPOSE: extension(PURPOSE, purposes(ANY))})
    leaf("purposes/any-and-server", ext={PURPOSE: extension(PURPOSE, purposes(ANY, SERVER))})
    leaf("purposes/empty", "MALFORMED", ext={PURPOSE: extension(PURPOSE, sequence())})
    leaf("purposes/critical", "MALFORMED", ext={PURPOSE: extension(PURPOSE, purposes(SERVER), True)})
    under("purposes/ca-server", ext={PURPOSE: extension(PURPOSE, purposes(SERVER))}, more=())
    under("purposes/ca-any", ext={PURPOSE: extension(PURPOSE, purposes(ANY))})
    under("purposes/ca-client", "PURPOSE", ext={PURPOSE: extension(PURPOSE, purposes(CLIENT))})
    root("purposes/root-with-one", "PURPOSE", ext={PURPOSE: extension(PURPOSE, purposes(SERVER))})
    leaf("purposes/key-usage-none", ext={USAGE: None})
    leaf("purposes/key-usage-encipherment", "PURPOSE", ext={USAGE: extension(USAGE, bits(b"\x20", 5), True)}, key=RSA_KEY)
    leaf("purposes/key-usage-both", ext={USAGE: extension(USAGE, bits(b"\xa0", 5), True)}, key=RSA_KEY)
    leaf("purposes/key-usage-malformed", "MALFORMED", ext={USAGE: extension(USAGE, bits(b"\x80", 9), True)})


# --- name constraints ---

def name_constraints():
    def nc(name, error=None, permitted=(), excluded=(), critical=True, value=None, **more):
        value = constraints(permitted, excluded) if value is None else value
        under("constraints/" + name, error, more=[extension(NC, value, critical)], **more)

    bad = "CONSTRAINTS"
    nc("dns-permitted", permitted=[dns("a.example")])
    nc("dns-permitted-parent", permitted=[dns("example")])
    nc("dns-permitted-among-several", permitted=[dns("b.example"), dns("a.example")])
    nc("dns-permitted-all", permitted=[dns("")])
    nc("dns-permitted-other-case", permitted=[dns("A.EXAMPLE")])
    nc("dns-not-permitted", bad, permitted=[dns("b.example")])
    nc("dns-suffix-is-no-parent", bad, permitted=[dns("a.example")], san=[dns("ba.example")], host="ba.example")
    nc("dns-one-of-two-not-permitted", bad, permitted=[dns("a.example")], san=[dns("a.example"), dns("b.example")])
    nc("dns-excluded", bad, excluded=[dns("a.example")])
    nc("dns-excluded-parent", bad, excluded=[dns("example")])
    nc("dns-excluded-child", excluded=[dns("x.a.example")])
    nc("dns-excluded-second", bad, excluded=[dns("b.example"), dns("a.example")])
    nc("dns-excluded-all", bad, excluded=[dns("")])
    nc("dns-permitted-and-excluded", bad, permitted=[dns("example")], excluded=[dns("a.example")])
    nc("dns-permitted-not-excluded", permitted=[dns("example")], excluded=[dns("b.example")])
    nc("dns-not-critical", permitted=[dns("a.example")], critical=False)
    nc("dns-not-critical-violated", bad, permitted=[dns("b.example")], critical=False)
    nc("dns-leading-dot", "MALFORMED", permitted=[dns(".example")])
    nc("dns-wildcard-constraint", "MALFORMED", permitted=[dns("*.example")])
    nc("dns-wildcard-permitted", permitted=[dns("a.example")], san=[dns("*.a.example")], host="x.a.example")
    nc("dns-wildcard-not-permitted", bad, permitted=[dns("x.a.example")], san=[dns("*.a.example")], host="x.a.example")
    nc("dns-wildcard-excluded", bad, excluded=[dns("y.a.example")], san=[dns("*.a.example")], host="x.a.example")
    nc("dns-name-that-is-none", bad, permitted=[dns("example")], san=[dns("a.example"), dns("a..example")])
    nc("dns-says-nothing-of-addresses", permitted=[dns("b.example")], san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-permitted", permitted=[network("192.0.2.0/24")], san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-not-permitted", bad, permitted=[network("198.51.100.0/24")], san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-excluded", bad, excluded=[network("192.0.2.0/24")], san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-not-excluded", excluded=[network("198.51.100.0/24")], san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-edge-of-network", bad, permitted=[network("192.0.2.0/25")], san=[address("192.0.2.128")], host="192.0.2.128")
    nc("address-v6-permitted", permitted=[network("2001:db8::/32")], san=[address("2001:db8::1")], host="2001:db8::1")
    nc("address-v6-excluded", bad, excluded=[network("2001:db8::/32")], san=[address("2001:db8::1")], host="2001:db8::1")
    nc("address-v6-where-v4-is", bad, permitted=[network("192.0.2.0/24")], san=[address("2001:db8::1")], host="2001:db8::1")
    nc("address-says-nothing-of-hosts", permitted=[network("192.0.2.0/24")])
    nc("address-beside-a-host", bad, permitted=[network("198.51.100.0/24")], san=[dns("a.example"), address("192.0.2.1")])
    nc("address-without-mask", "MALFORMED", permitted=[address("192.0.2.1")], san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-mask-with-holes", "MALFORMED", permitted=[tlv(0x87, b"\xc0\0\2\0\xff\0\xff\0")],
       san=[address("192.0.2.1")], host="192.0.2.1")
    nc("address-of-20-bytes", "MALFORMED", permitted=[tlv(0x87, bytes(20))])
    acme = dn((O, "Acme"))
    of_acme = {"subject": dn((O, "Acme"), (CN, "service"))}
    nc("directory-permitted", permitted=[directory(acme)], leaf_options=of_acme)
    nc("directory-not-permitted", bad, permitted=[directory(acme)], leaf_options={"subject": dn((O, "Other"), (CN, "service"))})
    nc("directory-excluded", bad, excluded=[directory(acme)], leaf_options=of_acme)
    nc("directory-not-excluded", excluded=[directory(acme)], leaf_options={"subject": dn((O, "Other"), (CN, "service"))})
    nc("directory-spaces-and-case", permitted=[directory(dn((O, " ACME  "), tag=0x13))], leaf_options=of_acme)
    nc("directory-among-the-names", bad, excluded=[directory(acme)], san=[dns("a.example"), directory(dn((O, "Acme")))])
    nc("mail-permitted-host", permitted=[email("a.example")], san=[dns("a.example"), email("x@a.example")])
    nc("mail-permitted-box", permitted=[email("x@a.example")], san=[dns("a.example"), email("x@A.example")])
    nc("mail-other-box", bad, permitted=[email("x@a.example")], san=[dns("a.example"), email("X@a.example")])
    nc("mail-host-is-not-below", bad, permitted=[email("a.example")], san=[dns("a.example"), email("x@b.a.example")])
    nc("mail-domain", permitted=[email(".a.example")], san=[dns("a.example"), email("x@b.a.example")])
    nc("mail-domain-is-not-host", bad, permitted=[email(".a.example")], san=[dns("a.example"), email("x@a.example")])
    nc("mail-excluded", bad, excluded=[email("a.example")], san=[dns("a.example"), email("x@a.example")])
    nc("mail-that-is-none", bad, excluded=[email("b.example")], san=[dns("a.example"), email("x.a.example")])
    nc("mail-malformed", "MALFORMED", permitted=[email("x@")])
    nc("uri-permitted", permitted=[uri("a.example")], san=[dns("a.example"), uri("https://u@a.example:8443/x")])
    nc("uri-domain", permitted=[uri(".example")], san=[dns("a.example"), uri("https://a.example/x")])
    nc("uri-excluded", bad, excluded=[uri("a.example")], san=[dns("a.example"), uri("https://a.example")])
    nc("uri-without-host", bad, permitted=[uri("a.example")], san=[dns("a.example"), uri("urn:x:y")])
    nc("uri-of-an-address", bad, excluded=[uri("b.example")], san=[dns("a.example"), uri("https://192.0.2.1/")])
    nc("other-kind-without-such-names", permitted=[other_name()])
    nc("other-kind-with-such-names", bad, permitted=[other_name()], san=[dns("a.example"), other_name()])
    nc("other-kind-excluded", bad, excluded=[other_name()], san=[dns("a.example"), other_name()])
    nc("empty", "MALFORMED", value=sequence())
    nc("empty-list", "MALFORMED", value=sequence(explicit(0)))
    nc("minimum-zero-aloud", "MALFORMED", value=sequence(explicit(0, sequence(dns("a.example"), tlv(0x80, b"\0")))))
    nc("maximum", "MALFORMED", value=sequence(explicit(0, sequence(dns("a.example"), tlv(0x81, b"\5")))))
    nc("not-a-sequence", "MALFORMED", value=NULL)
    leaf("constraints/in-a-leaf", "MALFORMED", more=[extension(NC, constraints([dns("a.example")]), True)])
    root("constraints/of-the-root-kept", more=[extension(NC, constraints([dns("a.example")]), True)])
    root("constraints/of-the-root-violated", bad, more=[extension(NC, constraints([dns("b.example")]), True)])
    strict = Cert("S", ROOT, ca=True, subject=dn((CN, "Strict")), more=[extension(NC, constraints([directory(acme)]), True)])
    again = Cert("S", strict, ca=True, subject=dn((CN, "Strict")))
    case("constraints/self-issued-ca-is-left-out", [Cert("leaf", again, key=LEAF_KEY, **of_acme), again, strict], [ROOT])
    below = Cert("B", strict, ca=True, subject=dn((CN, "Below")))
    case("constraints/of-a-ca-between", [Cert("leaf", below, key=LEAF_KEY, **of_acme), below, strict], [ROOT], bad)
    wide = Cert("W", ROOT, ca=True, subject=dn((CN, "Wide")), more=[extension(NC, constraints([dns("example")]), True)])
    narrow = Cert("N", wide, ca=True, subject=dn((CN, "Narrow")), more=[extension(NC, constraints([dns("a.example")]), True)])
    case("constraints/of-two-cas", [Cert("leaf", narrow, key=LEAF_KEY), narrow, wide], [ROOT])
    case("constraints/of-two-cas-violated", [Cert("leaf", narrow, key=LEAF_KEY, san=[dns("b.example")]), narrow, wide],
         [ROOT], bad, host="b.example")
    many = [dns("h%d.example" % i) for i in range(800)]
    nc("too-many-to-compare", "PATH", excluded=[dns("x%d.test" % i) for i in range(800)], san=many, host="h1.example")


# --- signatures and keys ---

def crypto():
    def signed(name, key, how="sha256", error=None, leaf_key=None):
        anchor = Cert("R", ca=True, key=key, subject=dn((CN, "Root of a kind")), how=how if how != "md5" else "sha256")
        case("crypto/" + name, [Cert("leaf", anchor, key=leaf_key or LEAF_KEY, how=how)], [anchor], error)

    for how in ("sha256", "sha384", "sha512", "pss-sha256", "pss-sha384", "pss-sha512"):
        signed("rsa-" + how, RSA_KEY, how)
    signed("rsa-sha1", RSA_KEY, "sha1", "ALGORITHM")
    signed("rsa-md5", RSA_KEY, "md5", "ALGORITHM")
    signed("rsa-3072", rsa.generate_private_key(65537, 3072))
    signed("rsa-4096", rsa.generate_private_key(65537, 4096))
    signed("rsa-exponent-3", rsa.generate_private_key(3, 2048))
    for how, error in (("sha1", None), ("md5", "ALGORITHM")):
        anchor = Cert("R", ca=True, key=RSA_KEY, subject=dn((CN, "Old Root")), how=how)
        case("crypto/root-signed-with-" + how, [Cert("leaf", anchor, key=LEAF_KEY)], [anchor], error)
    n = RSA_KEY.public_key().public_numbers().n
    for exponent, error in ((1, "WEAK_KEY"), (65536, "WEAK_KEY"), (0, "MALFORMED"), (-3, "MALFORMED")):
        numbers = sequence(sequence(oid("1.2.840.113549.1.1.1"), NULL), bits(sequence(integer(n), integer(exponent))))
        leaf("crypto/rsa-exponent-%d" % exponent, error, key=RSA_KEY, twist=numbers)
    small = rsa.generate_private_key(65537, 1024)
    signed("rsa-1024-root", small, error="WEAK_KEY")
    leaf("crypto/rsa-1024-leaf", "WEAK_KEY", key=small)
    under("crypto/rsa-1024-ca", "WEAK_KEY", key=small)
    odd = rsa.generate_private_key(65537, 2052)
    leaf("crypto/rsa-2052-leaf", "WEAK_KEY", key=odd)
    leaf("crypto/rsa-2048-leaf", key=RSA_KEY)
    for curve in (ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()):
        key = ec.generate_private_key(curve)
        for how in ("sha256", "sha384", "sha512"):
            signed("ecdsa-%s-%s" % (curve.name, how), key, how)
        leaf("crypto/leaf-" + curve.name, key=key)
    signed("ecdsa-sha1", p256(), "sha1", "ALGORITHM")
    other = ec.generate_private_key(ec.SECP256K1())
    signed("ecdsa-secp256k1-root", other, error="ALGORITHM")
    leaf("crypto/leaf-secp256k1", "ALGORITHM", key=other)
    signed("ed25519", ed25519.Ed25519PrivateKey.generate())
    old = dsa.generate_private_key(2048)
    signed("dsa-root", old, error="ALGORITHM")
    leaf("crypto/dsa-leaf", "ALGORITHM", key=old)
    tampered = Cert("leaf", CA, key=LEAF_KEY).broken()
    case("crypto/leaf-signature-wrong", [tampered, CA], [ROOT], "SIGNATURE")
    ca = Cert("CA", ROOT, ca=True, subject=dn((CN, "Tampered CA")))
    x = Cert("leaf", ca, key=LEAF_KEY)
    case("crypto/ca-signature-wrong", [x, ca.broken()], [ROOT], "SIGNATURE")
    leaf("crypto/algorithms-differ", "MALFORMED", inner=sequence(oid(ECDSA_OID["sha384"])))
    leaf("crypto/trailing-byte", "MALFORMED", tail=b"\0")
    point = key_info(LEAF_KEY)
    spelt = sequence(sequence(oid("1.2.840.10045.2.1"), sequence(integer(1))), point[point.index(b"\x03\x42\x00"):])
    leaf("crypto/curve-spelt-out", "ALGORITHM", twist=spelt)


# --- paths ---

def paths():
    x = Cert("leaf", CA, key=LEAF_KEY)
    stranger = Cert("Stranger", ca=True, subject=dn((CN, "Stranger")))
    case("paths/root-sent-too", [x, CA, ROOT], [ROOT])
    case("paths/with-a-stranger", [x, stranger, CA], [ROOT])
    case("paths/twice", [x, CA, CA, CA], [ROOT])
    case("paths/incomplete", [x], [ROOT], "INCOMPLETE")
    case("paths/intermediate-trusted", [x], [CA])
    case("paths/intermediate-trusted-and-sent", [x, CA], [CA])
    case("paths/other-root", [x, CA], [stranger], "ISSUER")
    case("paths/other-root-sent", [x, CA, ROOT], [stranger], "ISSUER")
    direct = Cert("leaf", ROOT, key=LEAF_KEY)
    case("paths/directly-below", [direct], [ROOT])
    case("paths/unknown-issuer", [Cert("leaf", stranger, key=LEAF_KEY)], [ROOT], "ISSUER")
    namesake = Cert("Root", ca=True, subject=ROOT.subject)
    case("paths/root-of-the-same-name", [x, CA], [namesake], "ISSUER")
    case("paths/two-roots-of-the-same-name", [x, CA], [namesake, ROOT])
    deep = [ROOT]
    for i in range(6):
        deep.insert(0, Cert("D", deep[0], ca=True, subject=dn((CN, "Deep %d" % i))))
    low = Cert("leaf", deep[0], key=LEAF_KEY)
    case("paths/out-of-order", [low] + [deep[i] for i in (3, 0, 5, 1, 4, 2)], [ROOT])
    # Two CA certificates of the same name and key, one of which leads nowhere.
    twin_key = p256()
    twin = dict(ca=True, key=twin_key, subject=dn((CN, "Twin")))
    good = Cert("T", ROOT, **twin)
    for name, bad in (("expired", Cert("T", ROOT, end="2026-02-01 00:00:00", **twin)),
                      ("unknown-root", Cert("T", stranger, **twin)),
                      ("constrained", Cert("T", ROOT, more=[extension(NC, constraints([dns("b.example")]), True)], **twin)),
                      ("other-purpose", Cert("T", ROOT, ext={PURPOSE: extension(PURPOSE, purposes(CLIENT))}, **twin)),
                      ("old-signature", Cert("T", Cert("R", ca=True, key=RSA_KEY, subject=dn((CN, "Old"))), how="sha1", **twin)),
                      ("no-ca", Cert("T", ROOT, **dict(twin, ca=False)))):
        x = Cert("leaf", good, key=LEAF_KEY)
        case("paths/twin-%s-first" % name, [x, bad, good], [ROOT])
        case("paths/twin-%s-last" % name, [x, good, bad], [ROOT])
    # The root was renewed with the same key; an old one is still among the anchors.
    renewed_key = p256()
    renewed = dict(ca=True, key=renewed_key, subject=dn((CN, "Renewed")))
    old, new = Cert("R", end="2026-02-01 00:00:00", **renewed), Cert("R", **renewed)
    x = Cert("leaf", new, key=LEAF_KEY)
    case("paths/expired-root-beside-new", [x], [old, new])
    case("paths/expired-root-sent-and-new-trusted", [x, old], [new])
    # Our root was cross-signed by one that nobody knows any more.
    crossed = Cert("Root", stranger, ca=True, key=ROOT.key, subject=ROOT.subject)
    case("paths/cross-signed-root-sent", [Cert("leaf", CA, key=LEAF_KEY), CA, crossed], [ROOT])
    case("paths/cross-signed-by-the-trusted", [Cert("leaf", CA, key=LEAF_KEY), CA, crossed], [stranger])
    # Each vouches for the other, and nobody for both.
    one_key, two_key = p256(), p256()
    base_one = Cert("One", ca=True, key=one_key, subject=dn((CN, "One")))
    base_two = Cert("Two", ca=True, key=two_key, subject=dn((CN, "Two")))
    one, two = Cert("One", base_two, ca=True, key=one_key, subject=dn((CN, "One"))), None
    two = Cert("Two", base_one, ca=True, key=two_key, subject=dn((CN, "Two")))
    case("paths/cycle", [Cert("leaf", one, key=LEAF_KEY), one, two], [ROOT], "ISSUER")
    out = Cert("Two", ROOT, ca=True, key=two_key, subject=dn((CN, "Two")))
    case("paths/cycle-with-a-way-out", [Cert("leaf", one, key=LEAF_KEY), one, two, out], [ROOT])
    # Many CAs of one name, each with a key of its own. Over TLS, Debian's wolfSSL looks at nine certificates.
    same = dn((CN, "Many"))
    crowd = [Cert("M", stranger, ca=True, subject=same) for _ in range(7)]
    right = Cert("M", ROOT, ca=True, subject=same)
    x = Cert("leaf", right, key=LEAF_KEY, ext={AKI: extension(AKI, sequence(tlv(0x80, b"of no use")))})
    case("paths/one-of-many-of-a-name", [x] + crowd + [right], [ROOT])
    case("paths/none-of-many-of-a-name", [Cert("leaf", stranger, key=LEAF_KEY, issuer_name=same)] + crowd, [ROOT], "ISSUER")
    # Each of the crowd was signed by all the others' key: more paths than anybody walks.
    shared = p256()
    knot = [Cert("K", Cert("K", ca=True, key=shared, subject=same), ca=True, key=shared, subject=same,
                 ext={SKI: extension(SKI, octets(b"%d" % i)), AKI: extension(AKI, sequence(tlv(0x80, b"x")))})
            for i in range(15)]
    case("paths/knot", [Cert("leaf", knot[0], key=LEAF_KEY)] + knot, [ROOT], "ISSUER")
    case("paths/too-many-sent", [Cert("leaf", CA, key=LEAF_KEY), CA] + 15 * [stranger], [ROOT], "PATH")
    spelt = Cert("CA", ROOT, ca=True, key=CA.key, subject=dn((O, "TEST  org"), (CN, "issuing ca "), tag=0x13))
    case("paths/issuer-spelt-otherwise", [Cert("leaf", CA, key=LEAF_KEY), spelt], [ROOT])
    garbage = Cert("CA", ROOT, ca=True, key=CA.key, subject=CA.subject, serial=-1)
    case("paths/malformed-ca", [Cert("leaf", CA, key=LEAF_KEY), garbage], [ROOT], "MALFORMED")
    case("paths/malformed-ca-beside-good", [Cert("leaf", CA, key=LEAF_KEY), garbage, CA], [ROOT])


LONG_ROOT = Cert("Long Root", ca=True, subject=dn((CN, "Long Root")), end="2049-12-31 23:59:59")
LONG = Cert("Long CA", LONG_ROOT, ca=True, subject=dn((CN, "Long CA")), end="2050-01-01 00:00:00")

for part in (names, wildcards, addresses, validity, authorities, lengths, extensions, serials, usages, name_constraints,
             crypto, paths):
    part()
json.dump({"cases": CASES}, sys.stdout, indent=0, ensure_ascii=True)
print()
