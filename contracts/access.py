"""How a process shows who it is to NATS, and how it knows that NATS is who it says."""

from __future__ import annotations

import base64
import binascii
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from contracts.errors import ErrorCode, InvalidRequest

#: Arguments of `nats.connect` for a link that is there at once or not at all. Without a limit the library tries for two
#: minutes where the server refuses, allow_reconnect or not.
AT_ONCE: dict[str, Any] = {
    "allow_reconnect": False,
    "max_reconnect_attempts": 1,
    "reconnect_time_wait": 0.1,
    "connect_timeout": 3,
}
_JWT_BEGIN = "-----BEGIN NATS USER JWT-----"


@dataclass(frozen=True, slots=True)
class Access:
    """Files that open a secured NATS; all empty: an open one.

    A credential may read replies only under an inbox prefix of its own, `_INBOX.<its public key>`. It follows from the
    credential; `inbox_prefix` is for servers that were set up otherwise.
    """

    creds: Path | None = None  #: a credentials file: who we are, and the key that proves it
    nkey: Path | None = None  #: a seed file instead, for a server that lists public keys
    tls_ca: Path | None = None  #: whom the server's certificate must come from; given, nothing goes out unencrypted
    tls_first: bool = True  #: encrypt from the first byte; false lets whoever is in between ask for plain text
    inbox_prefix: str | None = None

    def options(self) -> dict[str, Any]:
        """Arguments of `nats.connect`. Raises InvalidRequest that names the file, never what is in it."""
        options: dict[str, Any] = {}
        prefix = self.inbox_prefix
        if self.creds is not None:
            options["user_credentials"] = str(self.creds)
            prefix = prefix or inbox_of(read_claims(self.creds)["sub"])
        elif self.nkey is not None:
            options["nkeys_seed"] = str(self.nkey)
            prefix = prefix or inbox_of(_public_key(self.nkey))
        if prefix:
            options["inbox_prefix"] = prefix
        if self.tls_ca is not None:
            try:
                options["tls"] = ssl.create_default_context(cafile=str(self.tls_ca))
            except (OSError, ssl.SSLError) as error:
                raise _unusable(self.tls_ca, "tls_ca", error) from None
            options["tls_handshake_first"] = self.tls_first
        return options


def inbox_of(public_key: str) -> str:
    return f"_INBOX.{public_key}"


def read_claims(creds: Path) -> dict[str, Any]:
    """What a credentials file claims to be: `sub` its public key, `exp` its end. Raises InvalidRequest."""
    try:
        lines = creds.read_text("ascii").splitlines()
        body = lines[lines.index(_JWT_BEGIN) + 1].split(".")[1]
        found: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        found["sub"] = str(found["sub"])
    except OSError as error:
        raise _unusable(creds, "creds", error) from None
    except (ValueError, IndexError, KeyError, TypeError):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{creds} is not a credentials file", field="creds") from None
    return found


def _public_key(seed: Path) -> str:
    import nkeys

    try:
        return str(nkeys.from_seed(bytearray(seed.read_bytes().strip())).public_key.decode())
    except OSError as error:
        raise _unusable(seed, "nkey", error) from None
    except (nkeys.NkeysError, ValueError, IndexError, binascii.Error):
        raise InvalidRequest(ErrorCode.INVALID_REQUEST, f"{seed} is not a seed file", field="nkey") from None


def _unusable(file: Path, field: str, error: Exception) -> InvalidRequest:
    why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return InvalidRequest(ErrorCode.INVALID_REQUEST, f"cannot use {file}: {why}", field=field)
