"""Keys and the signed claims of NATS's decentralised authorisation: operator → account → user.

The server trusts the operator's public key alone. What an account is and what a user may do stands in claims that the
key above has signed, so a new project or agent needs no change of the server's configuration.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any, Literal

import nkeys
import orjson

Kind = Literal["operator", "account", "user"]
_PREFIXES: dict[Kind, int] = {
    "operator": nkeys.PREFIX_BYTE_OPERATOR,
    "account": nkeys.PREFIX_BYTE_ACCOUNT,
    "user": nkeys.PREFIX_BYTE_USER,
}
_HEADER = {"typ": "JWT", "alg": "ed25519-nkey"}
NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class Key:
    """A key pair; only its seed is a secret."""

    public: str
    _seed: bytes

    @classmethod
    def new(cls, kind: Kind) -> Key:
        return cls.load(nkeys.encode_seed(secrets.token_bytes(32), _PREFIXES[kind]))

    @classmethod
    def load(cls, seed: bytes) -> Key:
        pair = nkeys.from_seed(bytearray(seed.strip()))
        return cls(pair.public_key.decode(), seed.strip())

    def seed(self) -> bytes:
        return self._seed

    def sign(self, data: bytes) -> bytes:
        return bytes(nkeys.from_seed(bytearray(self._seed)).sign(data))

    def __repr__(self) -> str:  # the generated one would show the seed wherever a key is logged
        return f"Key({self.public})"


def sign(signer: Key, subject: str, name: str, body: dict[str, Any], expires: int | None = None) -> str:
    """Claims about `subject` as a token; `expires` in seconds since 1970."""
    claims: dict[str, Any] = {"iat": int(time.time()), "iss": signer.public, "name": name, "sub": subject, "nats": body}
    if expires is not None:
        claims["exp"] = expires
    digest = hashlib.new("sha512_256", orjson.dumps(claims)).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    unsigned = f"{_base64(orjson.dumps(_HEADER))}.{_base64(orjson.dumps(claims))}"
    return f"{unsigned}.{_base64(signer.sign(unsigned.encode()))}"


def operator(key: Key, system_account: str) -> str:
    return sign(key, key.public, "memlane", {"type": "operator", "version": 2, "system_account": system_account})


def account(
    operator: Key,
    key: str,
    name: str,
    signer: str,
    *,
    streams: bool = False,
    exports: tuple[str, ...] = (),
    imports: tuple[tuple[str, str], ...] = (),
    revoked: dict[str, int] | None = None,
) -> str:
    """`signer` is the public key that signs the account's users, so that all of them can be replaced and the account
    keeps its own, to which its streams are bound. `imports`: (account, subject) of services."""
    stored = NO_LIMIT if streams else 0
    limits = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), NO_LIMIT)
    limits |= dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), stored)
    body: dict[str, Any] = {
        "type": "account",
        "version": 2,
        "limits": {**limits, "wildcards": True},
        "signing_keys": [signer],
        "exports": [{"name": subject, "subject": subject, "type": "service"} for subject in exports],
        "imports": [
            {"name": subject, "subject": subject, "account": source, "type": "service"} for source, subject in imports
        ],
    }
    if revoked:
        body["revocations"] = revoked
    return sign(operator, key, name, body)


def user(
    signer: Key,
    account: str,
    key: str,
    name: str,
    publish: tuple[str, ...],
    subscribe: tuple[str, ...],
    expires: int | None = None,
) -> str:
    """What is not listed is denied. An empty list would mean the opposite to the server, hence the assertion."""
    assert publish
    assert subscribe
    body = {
        "type": "user",
        "version": 2,
        "issuer_account": account,
        "pub": {"allow": list(publish)},
        "sub": {"allow": list(subscribe)},
        **dict.fromkeys(("subs", "data", "payload"), NO_LIMIT),
    }
    return sign(signer, key, name, body, expires)


def credentials(token: str, key: Key) -> bytes:
    """A user's credentials file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{key.seed().decode()}\n------END USER NKEY SEED------\n"
    ).encode()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
