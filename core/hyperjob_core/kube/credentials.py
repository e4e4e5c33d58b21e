"""The reader of kubeconfigs, and the credentials of a kubeconfig's user."""

import asyncio
import base64
import contextlib
import json
import logging
import os
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import yaml

from hyperjob_core.api.wire import decoded
from hyperjob_core.kube.errors import ConfigError

Entry = Mapping[str, Any]

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_TEXTS: Final = (
    *(_PATHS + tuple(f"{path}-data" for path in _PATHS[:3])),
    "server",
    "tls-server-name",
    "proxy-url",
    "token",
    "username",
    "password",
    "namespace",
    "cluster",
    "user",
)
_FIX_FILE: Final = "give a kubeconfig that exists with --kubeconfig or in KUBECONFIG"
_CLUSTER_INFO: Final = "client.authentication.k8s.io/exec"
"""The extension of a kubeconfig's cluster that a plugin gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A context of a kubeconfig; the paths in `cluster` and `user` are absolute.

    Entries without a value are left out.
    """

    cluster_name: str
    cluster: Entry
    user: Entry
    namespace: str | None


def read(files: str, context: str | None = None) -> Context:
    """Return a context, by default the current one, of the files, which `os.pathsep` separates.

    Files that do not exist are left out. Raises ConfigError with the files and the next step.
    """
    found = [Path(each).expanduser() for each in files.split(os.pathsep) if each]
    readable = [path for path in found if path.is_file()]
    if not readable:
        raise ConfigError(f"kubeconfig {files}: no such file; {_FIX_FILE}")
    try:
        documents = [(path.parent.absolute(), _document(path)) for path in readable]
        return _context(documents, context)
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise unusable(files, str(error)) from error
    except _AbsentError as error:
        raise ConfigError(f"kubeconfig {files}: {error}") from error
    except (TypeError, KeyError, AttributeError) as error:
        raise unusable(files, "it lacks a cluster, a user or a context that it names") from error


def unusable(files: str, why: str) -> ConfigError:
    """Return the error of a kubeconfig that exists but cannot be used."""
    return ConfigError(f"kubeconfig {files}: {why.rstrip('.')}; {check_of(files)}")


def check_of(files: str) -> str:
    """Return the next step for a kubeconfig that cannot be used; kubectl's flag takes one file."""
    quoted = shlex.quote(files)
    several = f"KUBECONFIG={quoted} kubectl" if os.pathsep in files else None
    return f"check it with `{several or f'kubectl --kubeconfig {quoted}'} version`"


class _AbsentError(Exception):
    """The kubeconfig has no context of the wanted name."""


def _document(path: Path) -> Entry:
    """Return the content of a kubeconfig; raises AttributeError for one without keys."""
    content = yaml.load(path.read_bytes(), _LOADER)  # noqa: S506 - it is a safe one
    content.keys()  # AttributeError: the file is empty, or a list
    return dict(content)


def _context(documents: Sequence[tuple[Path, Entry]], wanted: str | None) -> Context:
    """Return a context with its cluster and user; raises _AbsentError, or KeyError."""
    name = wanted or next(
        (text for _, each in documents if (text := each.get("current-context"))), None
    )
    contexts = _named(documents, "context")
    if name not in contexts:
        has = ", ".join(contexts) or "none"
        what = f"no context {name!r}" if name else "no current-context"
        raise _AbsentError(f"{what}; it has {has}")
    chosen = contexts[name]
    user = _named(documents, "user")[chosen["user"]] if "user" in chosen else {}
    return Context(
        cluster_name=chosen["cluster"],
        cluster=_named(documents, "cluster")[chosen["cluster"]],
        user=user,
        namespace=chosen.get("namespace"),
    )


def _named(documents: Sequence[tuple[Path, Entry]], kind: str) -> dict[str, Entry]:
    """Return the entries of a kind by name; of equal names the first one counts."""
    found: dict[str, Entry] = {}
    for folder, document in documents:
        for entry in document.get(f"{kind}s") or ():
            found.setdefault(str(entry["name"]), _absolute(entry.get(kind) or {}, folder))
    return found


def _absolute(entry: Entry, folder: Path) -> Entry:
    """Return an entry without empty values, its paths relative to the folder of its file."""
    given = {key: value for key, value in entry.items() if value not in (None, "")}
    for key in _TEXTS:
        if not isinstance(given.get(key, ""), str):
            raise ValueError(f"{key} is no text")  # noqa: TRY004 - it is about the file
    paths: dict[str, Any] = {key: str(folder / given[key]) for key in _PATHS if key in given}
    plugin = given.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command")):
        paths["exec"] = {**plugin, "command": str(folder / str(plugin["command"]))}
    return {**given, **paths}


log = logging.getLogger(__name__)

Authorize = Callable[[], Awaitable[str | None]]

_EARLY: Final = timedelta(minutes=5)
REFRESH_SECONDS: Final = 60.0


@contextlib.contextmanager
def asynchronous(what: str) -> Iterator[None]:
    """Import `kubernetes.aio`, which `what` needs; raises ConfigError if the package lacks it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{what} needs the module kubernetes.aio, which the installed package kubernetes lacks:"
            ' run pip install "kubernetes>=37" in an environment without the package kubeflow'
        ) from error


async def anonymous() -> str | None:
    """Return None: requests have no Authorization header."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a client presents; `certificate` and `key` are PEM."""

    authorize: Authorize = anonymous
    certificate: bytes | None = None
    key: bytes | None = None


async def credentials_of(user: Entry, cluster: Entry) -> Credentials:
    """Return the credentials of a kubeconfig's user; a plugin or an identity provider runs once.

    Raises ConfigError, OSError or ValueError with the reason.
    """
    certificate, key = content(user, "client-certificate"), content(user, "client-key")
    authorize: Authorize = anonymous
    if "auth-provider" in user:
        provider = _Provider(user["auth-provider"])
        authorize = renewed(await provider.token(), provider.token)
    elif "exec" in user:
        plugin = _Plugin(user["exec"], cluster)
        token = await plugin.token()
        authorize = renewed(token, plugin.token) if token else anonymous
        certificate, key = plugin.certificate or (certificate, key)
    elif "token" in user:
        authorize = always(f"Bearer {user['token']}")
    elif "tokenFile" in user:
        read = partial(_token_of, Path(user["tokenFile"]))
        authorize = renewed(await read(), read)
    elif "username" in user and "password" in user:
        pair = f"{user['username']}:{user['password']}".encode()
        authorize = always(f"Basic {base64.b64encode(pair).decode('ascii')}")
    return Credentials(authorize=authorize, certificate=certificate, key=key)


def acting_as(user: Entry) -> tuple[tuple[str, str], ...]:
    """Return the headers by which a kubeconfig's user acts as another one (`as`, `as-groups`)."""
    headers = [("Impersonate-User", user.get("as")), ("Impersonate-Uid", user.get("as-uid"))]
    headers += [("Impersonate-Group", group) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        name = f"Impersonate-Extra-{quote(str(key), safe='')}"
        headers += [(name, value) for value in values or ()]
    return tuple((name, str(value)) for name, value in headers if value)


def content(entry: Entry, key: str) -> bytes | None:
    """Return the bytes of an entry: its data, or the file that it names; None if it has neither."""
    if f"{key}-data" in entry:
        return base64.standard_b64decode(entry[f"{key}-data"])
    return Path(entry[key]).read_bytes() if key in entry else None


def renewed(first: str, renew: Callable[[], Awaitable[str]]) -> Authorize:
    """Return the header of a token that `renew` replaces once it is older than a minute.

    After a failure the last token stays, because it may still be valid; the API server refuses an
    invalid one.
    """
    lock = asyncio.Lock()
    last, at = first, time.monotonic()

    async def authorize() -> str:
        nonlocal last, at
        if time.monotonic() - at >= REFRESH_SECONDS:
            async with lock:
                if time.monotonic() - at >= REFRESH_SECONDS:
                    try:
                        last = await renew()
                    except (ConfigError, OSError, ValueError) as error:
                        log.warning("Cannot renew the token, using the last one: %s", error)
                    at = time.monotonic()
        return last

    return authorize


def always(header: str) -> Authorize:
    """Return the credentials of a header that stays."""

    async def authorize() -> str:
        return header

    return authorize


async def _token_of(path: Path) -> str:
    """Return the header of the token in a file; raises OSError and ValueError."""
    text = await asyncio.to_thread(path.read_text, encoding="ascii")
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return f"Bearer {text.strip()}"


class _Plugin:
    """An exec plugin of client-go's credential protocol.

    `certificate` is set after a run that printed a certificate and its key.
    """

    def __init__(self, entry: Entry, cluster: Entry) -> None:
        self._entry = entry
        self._cluster = cluster
        self._token = ""
        self._ends: datetime | None = None
        self.certificate: tuple[bytes, bytes] | None = None

    async def token(self) -> str:
        """Return the header of the plugin's token, empty if it gives a certificate only.

        The plugin runs again 5 minutes before the token expires; without an expiry, at each call.
        """
        if self._ends is not None and datetime.now(UTC) < self._ends - _EARLY:
            return self._token
        try:
            status = await self._run()
            token, certificate = status.get("token"), status.get("clientCertificateData")
            if certificate and status.get("clientKeyData"):
                self.certificate = str(certificate).encode(), str(status["clientKeyData"]).encode()
            end = status.get("expirationTimestamp")
            self._ends = datetime.fromisoformat(end).astimezone(UTC) if end else None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            command, hint = self._entry.get("command"), self._entry.get("installHint")
            more = f"; {str(hint).strip()}" if hint and isinstance(error, FileNotFoundError) else ""
            raise ConfigError(
                f"the plugin {command!r} gave no credentials: {error}{more}"
            ) from error
        self._token = f"Bearer {token}" if token else ""
        return self._token

    async def _run(self) -> Entry:
        """Run the plugin and return the status of its ExecCredential; a terminal is its own."""
        entry = self._entry
        asks = entry.get("interactiveMode") != "Never" and sys.stdin is not None
        asks = asks and sys.stdin.isatty()
        version, spec = entry["apiVersion"], {"interactive": asks, **self._told()}
        told = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        given = {str(each["name"]): str(each["value"]) for each in entry.get("env") or ()}
        process = await asyncio.create_subprocess_exec(
            *(str(entry["command"]), *(str(each) for each in entry.get("args") or ())),
            env={**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(told)},
            stdin=None if asks else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if asks else asyncio.subprocess.PIPE,
        )
        try:
            printed, words = await process.communicate()
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if process.returncode:
            said = (words or b"").decode(errors="replace").strip()
            raise ValueError(f"exit code {process.returncode}{said and f': {said}'}")
        credential: Any = decoded(printed)
        if credential["apiVersion"] != version:
            raise ValueError(f"it speaks {credential['apiVersion']}, not {version}")
        status = dict(credential["status"])
        certified = status.get("clientCertificateData") and status.get("clientKeyData")
        if not (status.get("token") or certified):
            raise ValueError("it printed neither a token nor a certificate")
        return status

    def _told(self) -> Entry:
        """Return what the kubeconfig lets the plugin know of the cluster."""
        if not self._entry.get("provideClusterInfo"):
            return {}
        cluster = self._cluster
        keys = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
        told = {key: cluster[key] for key in keys if key in cluster}
        authority = content(cluster, "certificate-authority")
        if authority is not None:
            told["certificate-authority-data"] = base64.b64encode(authority).decode("ascii")
        for each in cluster.get("extensions") or ():
            if each["name"] == _CLUSTER_INFO:
                told["config"] = each.get("extension")
        return {"cluster": told}


class _Provider:
    """An identity provider (`auth-provider`), asked by `kubernetes.aio`."""

    def __init__(self, entry: Entry) -> None:
        # Only the user is of interest: kubernetes.aio keeps its new tokens in this document.
        self._document = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
            "clusters": [{"name": "here", "cluster": {"server": "http://unused"}}],
            "users": [{"name": "here", "user": {"auth-provider": entry}}],
        }
        self._name = entry.get("name")

    async def token(self) -> str:
        """Return the header of a token that has not expired; the provider renews an old one."""
        with asynchronous(f"the auth-provider {self._name!r}"):
            from kubernetes.aio.client import Configuration
            from kubernetes.aio.config import ConfigException, load_kube_config_from_dict

        settings = Configuration()
        try:
            await load_kube_config_from_dict(  # type: ignore[no-untyped-call]  # theirs has no types
                self._document, client_configuration=settings
            )
        except (ConfigException, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"the auth-provider {self._name!r}: {error}") from error
        if not (token := settings.api_key.get("BearerToken")):
            raise ConfigError(f"the auth-provider {self._name!r} gave no token")
        return str(token)
