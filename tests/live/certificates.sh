# shellcheck shell=bash disable=SC2154
# Certificates for tests/checks/wires.sh, by the `openssl` program; bash, to be sourced. Set by whoever sources it: work (a
# directory). What is made lies in $pki, NAME.pem and NAME.key.
#
#     make_pki        all of them
#     pin_of NAME     prints what `pin` wants of that certificate

pki=$work/pki
p256=ec_paramgen_curve:P-256

# make_key NAME ALGORITHM [OPTION]
make_key() {
    openssl genpkey -algorithm "$2" ${3:+-pkeyopt "$3"} -out "$pki/$1.key" 2>>"$pki/log"
}

# ca NAME ALGORITHM OPTION
ca() {
    make_key "$@"
    openssl req -x509 -new -config "$pki/openssl.conf" -extensions ca -key "$pki/$1.key" -subj "/CN=$1" -days 30 \
        -out "$pki/$1.pem" 2>>"$pki/log"
}

# certify NAME CA ALTERNATIVE_NAMES [OPTION…]: a certificate for NAME.key
certify() {
    local name=$1 ca=$2 names=$3
    shift 3
    openssl req -new -config "$pki/openssl.conf" -key "$pki/$name.key" -subj "/CN=$name" 2>>"$pki/log" |
        openssl x509 -req -CA "$pki/$ca.pem" -CAkey "$pki/$ca.key" -days 30 -out "$pki/$name.pem" "$@" -extfile <(
            printf 'subjectAltName = %s\nextendedKeyUsage = serverAuth, clientAuth\n' "$names"
        ) 2>>"$pki/log"
}

# years_off YEARS COMMAND…: the clock of COMMAND is so far off
years_off() {
    local years=$1
    shift
    LD_PRELOAD=$pki/clock.so LIVE_CLOCK_S=$((years * 31557600)) "$@"
}

make_cas() {
    ca ca EC $p256
    ca other EC $p256
    ca ca_rsa RSA rsa_keygen_bits:2048
    cat "$pki/ca.pem" "$pki/ca_rsa.pem" >"$pki/trusted.pem"
}

# One for localhost by a key of each kind, and one that is signed in another way.
make_kinds() {
    local name
    make_key rsa RSA rsa_keygen_bits:2048
    make_key pss_only RSA-PSS rsa_keygen_bits:2048
    make_key p256 EC $p256
    make_key p384 EC ec_paramgen_curve:P-384
    make_key ed25519 ED25519
    for name in rsa pss_only p256 p384 ed25519; do
        certify $name ca DNS:localhost
    done
    cp "$pki/rsa.key" "$pki/pss.key"
    certify pss ca_rsa DNS:localhost -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
}

# Those whose key does not matter.
make_others() {
    local name
    for name in network elsewhere stranger past future client renewed self; do
        cp "$pki/p256.key" "$pki/$name.key"
    done
    certify network ca DNS:hook.test
    certify elsewhere ca DNS:elsewhere.test
    certify stranger other DNS:localhost
    certify client ca DNS:client.test
    certify renewed ca DNS:renewed.test
    years_off -1 certify past ca DNS:localhost
    years_off 1 certify future ca DNS:localhost
    openssl req -x509 -new -config "$pki/openssl.conf" -extensions self -key "$pki/self.key" -subj /CN=self -days 30 \
        -out "$pki/self.pem" 2>>"$pki/log"
}

make_pki() {
    mkdir "$pki"
    cat >"$pki/openssl.conf" <<'END'
[req]
distinguished_name = dn
[dn]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = keyCertSign
[self]
subjectAltName = DNS:localhost
END
    # the sanitizers' runtimes want to be loaded first: what changes clocks is of no variant here
    gcc -D_GNU_SOURCE -shared -fPIC -o "$pki/clock.so" tests/live/preload.c
    make_cas
    make_kinds
    make_others
}

# Prints the SHA-256 of its SubjectPublicKeyInfo.
pin_of() {
    openssl x509 -in "$pki/$1.pem" -noout -pubkey | openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64
}
