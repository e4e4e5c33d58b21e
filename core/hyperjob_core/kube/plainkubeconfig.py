"""The fast reader of a plain kubeconfig: one file, with token or certificate in it or beside it.

Most kubeconfigs are plain, and a command then starts in half the time. `read` returns None for
every other kubeconfig and for every error: the full loader then reads it again and reports the
error.
"""

import base64
import contextlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from hyperjob_core.memoryfile import in_memory

_CLUSTER: Final = {
    "server": str,
    "certificate-authority": str,
    "certificate-authority-data": str,
    "insecure-skip-tls-verify": bool,
    "tls-server-name": str,
    "proxy-url": str,
    "extensions": list,
}
_USER: Final = {
    "client-certificate": str,
    "client-certificate-data": str,
    "client-key": str,
    "client-key-data": str,
    "token": str,
}
_CONTEXT: Final = {"cluster": str, "user": str, "namespace": str, "extensions": list}
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticKubeconfig:
    """The content of a plain kubeconfig; `authorization` is the header, None without a token."""

    server: str
    tls: ssl.SSLContext | None
    authorization: str | None
    server_name: str | None
    proxy: str | None
    namespace: str | None
    cluster: str


class _UnusualError(Exception):
    """The file has more than this module reads."""


def read(
    path: Path, context: str | None = None, *, credentials: bool = True
) -> StaticKubeconfig | None:
    """Return a context, by default the current one; None unless all of it is plain and correct.

    Without `credentials` the result has neither certificate nor token.
    """
    try:
        content = yaml.load(path.read_bytes(), _LOADER)  # noqa: S506 - it is a safe one
        chosen = _named(content, "context", context or content["current-context"], _CONTEXT)
        cluster = _named(content, "cluster", chosen["cluster"], _CLUSTER)
        user = _named(content, "user", chosen["user"], _USER)
        server = cluster["server"].rstrip("/")
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            return None
        secure = parts.scheme == "https"
        return StaticKubeconfig(
            server=server,
            tls=_tls(cluster, user if credentials else {}, path.parent) if secure else None,
            authorization=f"Bearer {user['token']}" if credentials and "token" in user else None,
            server_name=cluster.get("tls-server-name"),
            proxy=cluster.get("proxy-url"),
            namespace=chosen.get("namespace"),
            cluster=chosen["cluster"],
        )
    except (_UnusualError, OSError, ValueError, yaml.YAMLError, TypeError, KeyError):
        return None


def _named(content: Entry, kind: str, name: str, known: Mapping[str, type]) -> Entry:
    """Return the only entry of a name, if all its fields are known and set."""
    found = [entry[kind] for entry in content[f"{kind}s"] if entry["name"] == name]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise _UnusualError
    for key, value in found[0].items():
        if not isinstance(value, known.get(key, ())) or value == "":
            raise _UnusualError
    return dict(found[0])


def _tls(cluster: Entry, user: Entry, folder: Path) -> ssl.SSLContext:
    authorities = _content(cluster, "certificate-authority", folder)
    certificate, key = (_content(user, f"client-{part}", folder) for part in ("certificate", "key"))
    with _path(authorities) as trusted, _path(certificate) as own, _path(key) as secret:
        context = ssl.create_default_context(cafile=trusted)
        if own is not None:
            context.load_cert_chain(own, keyfile=secret)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # Go's verifier does not ask for the strict profile, and CAs without key identifiers are common.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _content(entry: Entry, key: str, folder: Path) -> bytes | None:
    """Return the bytes of an entry: its data, or the file that it names."""
    if f"{key}-data" in entry:
        return base64.standard_b64decode(entry[f"{key}-data"])
    return (folder / entry[key]).read_bytes() if key in entry else None


@contextlib.contextmanager
def _path(content: bytes | None) -> Iterator[str | None]:
    """Yield a path of a file with the content, because OpenSSL reads only files."""
    if content is None:
        yield None
        return
    with in_memory(content) as path:
        yield path
