// Receives webhooks and prints a line of JSON for each: who takes it. For tests/checks/webhooks.sh.
//
//     node webhooks.js new                 prints two HMAC secrets, a signing key and its public half
//     node webhooks.js OLD NEW PUBLIC      prints its port, then a line a request
//
// HMAC is verified by the npm package standardwebhooks, as any receiver would do it, which wants the body after
// its Content-Encoding; ed25519 by node itself. What no secret signs is answered with 401.
"use strict";
const crypto = require("crypto");
const http = require("http");
const zlib = require("zlib");

function makeSecrets() {
    const hmac = () => "whsec_" + crypto.randomBytes(32).toString("base64");
    const pair = crypto.generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
    const text = (prefix, part) => prefix + Buffer.from(part, "base64url").toString("base64");
    console.log([hmac(), hmac(), text("whsk_", pair.d), text("whpk_", pair.x)].join("\n"));
}

function takes(secret, body, headers) {
    const { Webhook } = require("standardwebhooks");
    try {
        new Webhook(secret).verify(body, headers);
        return true;
    } catch {
        return false;
    }
}

function verifyEd25519(publicKey, body, headers) {
    const x = Buffer.from(publicKey.slice("whpk_".length), "base64").toString("base64url");
    const key = crypto.createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const signed = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.`), body]);
    return (headers["webhook-signature"] || "").split(" ").some((signature) =>
        signature.startsWith("v1a,") && crypto.verify(null, signed, key, Buffer.from(signature.slice(4), "base64")));
}

function look(request, sent, [oldSecret, newSecret, publicKey]) {
    const headers = request.headers;
    const body = headers["content-encoding"] === "gzip" ? zlib.gunzipSync(sent) : sent;
    const tampered = Buffer.concat([body, Buffer.from(" ")]);
    return {
        to: request.url,
        old: takes(oldSecret, body, headers),
        new: takes(newSecret, body, headers),
        ed25519: verifyEd25519(publicKey, body, headers),
        tampered: takes(oldSecret, tampered, headers) || takes(newSecret, tampered, headers) ||
            verifyEd25519(publicKey, tampered, headers),
        encoding: headers["content-encoding"] || "none",
        thing: headers["x-thing"] || "",
        kind: headers["x-kind"] || "",
        bytes: body.length,
    };
}

function receive(secrets) {
    const server = http.createServer((request, response) => {
        const parts = [];
        request.on("data", (part) => parts.push(part));
        request.on("end", () => {
            const seen = look(request, Buffer.concat(parts), secrets);
            console.log(JSON.stringify(seen));
            response.writeHead(seen.old || seen.new || seen.ed25519 ? 204 : 401).end();
        });
    });
    server.listen(0, "127.0.0.1", () => console.log(server.address().port));
}

if (process.argv[2] === "new") makeSecrets();
else receive(process.argv.slice(2));
