"""The folder of `memlane security init`: keys, certificates, credentials.

| file                          | who needs it                                                                     |
|-------------------------------|----------------------------------------------------------------------------------|
| ca.crt                        | every client                                                                     |
| agents/PROJECT/NAME.creds     | that agent                                                                       |
| operator.creds                | whoever looks after the service: `memlane status`, every project                 |
| roles/ROLE.creds              | that role's processes                                                            |
| server.crt, server.key        | the NATS server                                                                  |
| operator.jwt, accounts/       | the NATS server                                                                  |
| ca.key, keys/                 | `memlane security` alone: whoever has these can make every other file            |
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from contracts import wire
from contracts.access import Access, read_claims
from contracts.errors import Conflict, ErrorCode, InvalidRequest, NotFound
from infra.security import claims, permissions
from infra.security.claims import Key

CORE, SYSTEM = "core", "system"
LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
DEFAULT_AGENT = "agent"


class Vault:
    """An existing folder."""

    def __init__(self, folder: Path) -> None:
        """Raises NotFound for a folder that `create` did not make."""
        if not (folder / "operator.jwt").is_file():
            raise NotFound(
                ErrorCode.INVALID_REQUEST, f"{folder} holds no keys: memlane security init --out {folder}", field="dir"
            )
        self.folder = folder.absolute()

    @classmethod
    def create(
        cls, folder: Path, projects: Iterable[str] = (), hosts: Sequence[str] = (), *, force: bool = False
    ) -> Vault:
        """Make everything. With `force` an existing folder is made anew, with the same projects and agents: every
        certificate and credential of before is worthless then, and the data stays what it was.

        Raises Conflict for a folder that is there, InvalidRequest for a name that no project can have.
        """
        projects = list(projects)
        for project in projects:
            wire.check_project(project)
        if folder.exists() and any(folder.iterdir()) and not force:
            raise Conflict(ErrorCode.INVALID_REQUEST, f"{folder} is not empty; --force makes it anew", field="out")
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))  # whole, or not there at all
        try:
            _make(made, folder, projects, hosts)
            if folder.exists():
                old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
                folder.rename(old)
                made.rename(folder)
                shutil.rmtree(old)
            else:
                made.rename(folder)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return cls(folder)

    @property
    def core(self) -> str:
        """The account in which the streams are."""
        return self._key(CORE, "account").public

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    def access(self, role: str) -> Access:
        """What a process of ours opens the bus with."""
        name = "operator.creds" if role == "operator" else f"roles/{role}.creds"
        return Access(creds=self.folder / name, tls_ca=self.ca)

    def environment(self, role: str) -> dict[str, str]:
        """The same, as settings of a child process."""
        access = self.access(role)
        return {"MEMLANE_NATS__CREDS": str(access.creds), "MEMLANE_NATS__TLS_CA": str(access.tls_ca)}

    def server_config(self) -> str:
        """The part of a NATS server's configuration that locks it. TLS comes before the first byte: a server that
        only offers it could be played by somebody in between who does not."""
        paths = {name: orjson.dumps(str(self.folder / name)).decode() for name in ("server.crt", "server.key",
                 "operator.jwt", "accounts")}  # fmt: skip
        return (
            f"tls {{ cert_file: {paths['server.crt']}, key_file: {paths['server.key']}, handshake_first: true }}\n"
            f"operator: {paths['operator.jwt']}\n"
            f"resolver {{ type: full, dir: {paths['accounts']}, allow_delete: false }}\n"
            f"system_account: {self._key(SYSTEM, 'account').public}\n"
        )

    def projects(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "keys" / "projects").glob("*"))

    def add_agent(self, project: str, name: str = DEFAULT_AGENT, expires: int | None = None) -> Path:
        """A credential for one agent of a project, until `expires` (seconds since 1970) or for good. The server learns
        of it from the credential itself.

        Raises Conflict when that agent has one, InvalidRequest for a bad name.
        """
        wire.check_project(project)
        check_name(name)
        file = self.folder / "agents" / project / f"{name}.creds"
        if file.exists():
            raise Conflict(ErrorCode.INVALID_REQUEST, f"{file} is there already; revoke it first", field="name")
        owner = f"projects/{project}"
        if not (self.folder / "keys" / owner).exists():
            _new_keys(self.folder, owner)
            self._write_account(project, {})
        _write_user(self.folder, owner, file, f"{project}/{name}", permissions.agent(project), expires)
        return file

    def revoke(self, project: str, name: str) -> str:
        """Take an agent's credential back. Returns the account's new claims, which a running server must be told.

        Raises NotFound.
        """
        check_name(name)
        wire.check_project(project)
        file = self.folder / "agents" / project / f"{name}.creds"
        if not file.exists():
            raise NotFound(ErrorCode.INVALID_REQUEST, f"no credential {project}/{name}", field="name")
        key = read_claims(file)["sub"]
        told = self.folder / "keys" / "projects" / project / "revoked.json"
        revoked = {**(orjson.loads(told.read_bytes()) if told.exists() else {}), key: int(time.time())}
        _write(told, orjson.dumps(revoked))
        file.unlink()
        return self._write_account(project, revoked)

    def system_access(self) -> Access:
        return Access(creds=self.folder / "keys" / SYSTEM / "push.creds", tls_ca=self.ca)

    def _write_account(self, project: str, revoked: dict[str, int]) -> str:
        return _write_account(self.folder, f"projects/{project}", imports=self._imports(project), revoked=revoked)

    def _imports(self, project: str) -> tuple[tuple[str, str], ...]:
        return tuple((self.core, subject) for subject in permissions.imports(project))

    def _key(self, owner: str, name: str) -> Key:
        return _key(self.folder, owner, name)


def check_name(name: str) -> None:
    """Raises InvalidRequest. An agent's name is a file's name."""
    try:
        wire.check_project(name)
    except InvalidRequest:
        raise InvalidRequest(
            ErrorCode.INVALID_REQUEST, "an agent's name is 1 to 64 letters, digits, - or _", field="name"
        ) from None


def _make(made: Path, old: Path, projects: list[str], hosts: Sequence[str]) -> None:
    from infra.security import certificates

    pems = certificates.make([*LOCAL_HOSTS, *hosts])
    for name, data in (("ca.crt", pems.ca), ("ca.key", pems.ca_key), ("server.crt", pems.server),
                       ("server.key", pems.server_key)):  # fmt: skip
        _write(made / name, data)
    _write(made / "keys" / "operator.seed", Key.new("operator").seed())
    for owner in (CORE, SYSTEM):
        _new_keys(made, owner, old)
    operator = _operator(made)
    _write(made / "operator.jwt", claims.operator(operator, _key(made, SYSTEM, "account").public).encode())
    _write_account(made, CORE, streams=True, exports=permissions.EXPORTS)
    _write_account(made, SYSTEM)
    for role, grant in permissions.ROLES.items():
        file = made / "operator.creds" if role == "operator" else made / "roles" / f"{role}.creds"
        _write_user(made, CORE, file, role, grant)
    _write_user(made, SYSTEM, made / "keys" / SYSTEM / "push.creds", "push", permissions.SYSTEM)
    vault = Vault(made)
    for path in sorted((old / "agents").glob("*/*.creds")):
        expires = read_claims(path).get("exp")
        if expires is None or expires > time.time():
            vault.add_agent(path.parent.name, path.stem, expires)
    for project in projects:
        if not (made / "agents" / project).exists():
            vault.add_agent(project)


def _operator(folder: Path) -> Key:
    return Key.load((folder / "keys" / "operator.seed").read_bytes())


def _key(folder: Path, owner: str, name: str) -> Key:
    return Key.load((folder / "keys" / owner / f"{name}.seed").read_bytes())


def _new_keys(folder: Path, owner: str, old: Path | None = None) -> None:
    """A new key that signs users. The account's own key is its name, which its data is bound to: it is kept."""
    kept = old / "keys" / owner / "account.seed" if old else None
    seed = kept.read_bytes() if kept and kept.exists() else Key.new("account").seed()
    _write(folder / "keys" / owner / "account.seed", seed)
    _write(folder / "keys" / owner / "signer.seed", Key.new("account").seed())


def _write_account(
    folder: Path,
    owner: str,
    *,
    streams: bool = False,
    exports: tuple[str, ...] = (),
    imports: tuple[tuple[str, str], ...] = (),
    revoked: dict[str, int] | None = None,
) -> str:
    key, signer = _key(folder, owner, "account").public, _key(folder, owner, "signer").public
    token = claims.account(
        _operator(folder), key, owner, signer, streams=streams, exports=exports, imports=imports, revoked=revoked
    )
    _write(folder / "accounts" / f"{key}.jwt", token.encode())
    return token


def _write_user(
    folder: Path, owner: str, file: Path, name: str, grant: permissions.Grant, expires: int | None = None
) -> None:
    key = Key.new("user")
    mine = grant.with_inbox(key.public)
    account, signer = _key(folder, owner, "account").public, _key(folder, owner, "signer")
    token = claims.user(signer, account, key.public, name, mine.publish, mine.subscribe, expires)
    _write(file, claims.credentials(token, key))


def _write(file: Path, data: bytes) -> None:
    """For the owner's eyes from its first byte on, and whole or not at all."""
    for parent in reversed(file.parents):
        parent.mkdir(mode=0o700, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent)  # of mode 0600
    with os.fdopen(handle, "wb") as out:
        out.write(data)
    os.replace(name, file)
