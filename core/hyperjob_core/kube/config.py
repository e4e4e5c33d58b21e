"""The API server and the credentials, from a kubeconfig or the pod's ServiceAccount.

`plainkubeconfig` reads a kubeconfig with static credentials. `kubernetes.aio` reads all others:
exec plugins, token files, several files, the ServiceAccount. The result is a `Connection`. HyperJob
does not use the watch, leader election and typed models of `kubernetes.aio`: they lose data or
leaders.
"""

import asyncio
import contextlib
import importlib.util
import os
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

import yaml

from hyperjob_core.kube import plainkubeconfig
from hyperjob_core.kube.errors import ConfigError
from hyperjob_core.memoryfile import open_in_memory, path_of

REFRESH_SECONDS = 60.0
DEFAULT_NAMESPACE = "default"
_PLUGIN_SECONDS = 30.0
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_FIX_FILE = "give a kubeconfig that exists with --kubeconfig or in KUBECONFIG"
_FIX_CONTENT = "check it with `kubectl --kubeconfig {} version`"

Authorize = Callable[[], Awaitable[str | None]]


class _Settings(Protocol):
    """The used attributes of kubernetes.aio's Configuration."""

    host: str
    cert_file: str | None
    key_file: str | None
    api_key: dict[str, str]
    proxy: str | None
    tls_server_name: str | None
    disable_strict_ssl_verification: bool
    refresh_api_key_hook: "Callable[[_Settings], Awaitable[None]] | None"

    async def get_api_key_with_prefix(self, identifier: str) -> str | None: ...


class _Loader(Protocol):
    """The used attributes of kubernetes.aio's KubeConfigLoader."""

    token: str
    current_context: dict[str, Any]
    _config: Any

    async def load_from_exec_plugin(self) -> bool | None: ...


async def anonymous() -> str | None:
    """Return None: requests have no Authorization header."""
    return None


@dataclass(frozen=True, slots=True)
class Connection:
    """The server, TLS and credentials of a session.

    `authorize` returns the Authorization header of a request and may raise ConfigError.
    `namespace` is that of the kubeconfig's context, or the pod's own. `authorities` is the name of
    the setting with the certificate authorities that `tls` trusts.
    """

    server: str
    tls: ssl.SSLContext | None = None
    authorize: Authorize = field(default=anonymous)
    server_hostname: str | None = None
    proxy: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    authorities: str = "the authorities of this machine"

    @property
    def host(self) -> str:
        """Return host and port, the `host` label of client metrics."""
        return urlsplit(self.server).netloc


async def load(
    kubeconfig: str | Path | None = None,
    *,
    context: str | None = None,
    refresh_seconds: float = REFRESH_SECONDS,
    credentials: bool = True,
) -> Connection:
    """Return the connection from the given file, KUBECONFIG, the pod's account or ~/.kube/config.

    Tokens from files and plugins are read again after `refresh_seconds`, when a request needs them.
    Without `credentials` the connection has only the server and its authorities: an API server
    prefers a client certificate to a bearer token, and requests of other users must not have it.
    Raises ConfigError with the file and the next step.
    """
    given = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    if not given and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(credentials=credentials)
    files = given or str(Path.home() / ".kube" / "config")
    if plain := plainkubeconfig.read(Path(files).expanduser(), context, credentials=credentials):
        return _static(plain, source=f"kubeconfig {files}")
    _import_parts_only()
    with _keys_in_memory():
        return await _from_file(files, context, refresh_seconds, credentials=credentials)


def _import_parts_only() -> None:
    """Make modules of `kubernetes.aio` importable without its other modules.

    The `__init__` modules of the package import both clients with every dependency, which takes
    more than half of the time of a command.
    """
    for name in ("kubernetes", "kubernetes.aio"):
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is not None:
            sys.modules[name] = importlib.util.module_from_spec(spec)


_open_files: ContextVar[list[int] | None] = ContextVar("open_files", default=None)


@contextlib.contextmanager
def _keys_in_memory() -> Iterator[None]:
    """Keep the keys and certificates of a kubeconfig in memory while it is loaded.

    kubernetes.aio 37 writes them into temporary files, which stay after a signal. Its option
    `temp_file_path` only sets the folder, and the output of an exec plugin is not in the
    kubeconfig: no public function of the library keeps both off the disk.
    """
    from kubernetes.aio.config import kube_config

    create = kube_config._create_temp_file_with_content  # noqa: SLF001 - no other way

    def create_in_memory(content: str | bytes, *where: object, **how: object) -> str:
        files = _open_files.get()
        if files is None:  # another user of the library in this process
            return str(create(content, *where, **how))  # type: ignore[no-untyped-call]  # theirs
        files.append(open_in_memory(content.encode() if isinstance(content, str) else content))
        return path_of(files[-1])

    if create.__name__ != create_in_memory.__name__:
        kube_config._create_temp_file_with_content = create_in_memory  # noqa: SLF001 - as above
    files: list[int] = []
    before = _open_files.set(files)
    try:
        yield
    finally:
        _open_files.reset(before)
        for descriptor in files:
            os.close(descriptor)


def _in_cluster(*, credentials: bool) -> Connection:
    _import_parts_only()
    from kubernetes.aio import config
    from kubernetes.aio.client import Configuration

    settings = cast("_Settings", Configuration())
    try:
        config.load_incluster_config(  # type: ignore[no-untyped-call]  # theirs has no types
            client_configuration=settings
        )
    except (config.ConfigException, OSError) as error:
        raise ConfigError(
            f"in-cluster configuration: {error}; mount the service account token "
            "(automountServiceAccountToken) or give --kubeconfig"
        ) from error
    try:
        namespace = _POD_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return _connection(
        settings,
        source="in-cluster configuration",
        namespace=namespace,
        credentials=credentials,
        authorities=f"ca.crt in {_POD_NAMESPACE.parent}",
    )


async def _from_file(
    files: str, context: str | None, refresh_seconds: float, *, credentials: bool
) -> Connection:
    from kubernetes.aio import config
    from kubernetes.aio.client import Configuration

    found = [Path(f).expanduser() for f in files.split(os.pathsep) if f]
    readable = [path for path in found if path.is_file()]
    if not readable:
        raise ConfigError(f"kubeconfig {files}: no such file; {_FIX_FILE}")
    settings = cast("_Settings", Configuration())
    try:
        async with asyncio.timeout(_PLUGIN_SECONDS):
            loader: _Loader = await config.load_kube_config(  # type: ignore[no-untyped-call]  # same
                config_file=os.pathsep.join(str(path) for path in readable),
                context=context,
                client_configuration=settings,
                persist_config=False,
            )
        user = _user(loader)
        namespace = str(loader.current_context["context"].get("namespace") or "")
    except TimeoutError as error:
        raise _unusable(files, f"no credentials within {_PLUGIN_SECONDS:g}s") from error
    except config.ConfigException as error:
        known = await asyncio.to_thread(_contexts, readable)
        if context is not None and context not in known:
            has = ", ".join(known) or "none"
            raise ConfigError(
                f"kubeconfig {files}: no context {context!r}; it has {has}"
            ) from error
        raise _unusable(files, str(error)) from error
    except (yaml.YAMLError, OSError, ValueError) as error:
        raise _unusable(files, str(error)) from error
    except (TypeError, KeyError, AttributeError) as error:
        raise _unusable(files, "it lacks a cluster, a user or a context that it names") from error
    if "exec" in user and not settings.api_key and not settings.cert_file:
        raise _unusable(files, f"the plugin {user['exec'].get('command')!r} gave no credentials")
    _refresh(settings, loader, user, folder=readable[0].parent, seconds=refresh_seconds)
    cluster = loader.current_context["context"].get("cluster")
    return _connection(
        settings,
        source=f"kubeconfig {files}",
        namespace=namespace,
        credentials=credentials,
        authorities=f"certificate-authority of cluster {cluster!r} in kubeconfig {files}",
    )


def _contexts(files: Sequence[Path]) -> list[str]:
    """Return the names of the contexts in kubeconfigs, as far as these are readable."""
    found: list[str] = []
    for path in files:
        with contextlib.suppress(OSError, yaml.YAMLError, AttributeError, TypeError, KeyError):
            entries = yaml.safe_load(path.read_text(encoding="utf-8"))["contexts"]
            found.extend(str(entry["name"]) for entry in entries)
    return found


def _unusable(files: str, why: str) -> ConfigError:
    return ConfigError(f"kubeconfig {files}: {why.rstrip('.')}; {_FIX_CONTENT.format(files)}")


def _user(loader: _Loader) -> dict[str, Any]:
    """Return the active context's user entry; empty if it has none."""
    chosen = loader.current_context["context"].get("user")
    users = loader._config.safe_get("users") or []  # noqa: SLF001 - no public way to the user
    for entry in users:
        entry = getattr(entry, "value", entry)
        if entry.get("name") == chosen:
            return dict(entry.get("user") or {})
    return {}


def _refresh(
    settings: _Settings, loader: _Loader, user: dict[str, Any], *, folder: Path, seconds: float
) -> None:
    """Renew tokens that expire: kubernetes.aio would keep the first one forever."""
    token_file = user.get("tokenFile")
    if "exec" not in user and (not token_file or user.get("token")):
        return
    lock = asyncio.Lock()
    renewed = time.monotonic()

    async def hook(target: _Settings) -> None:
        nonlocal renewed
        if time.monotonic() - renewed < seconds:
            return
        async with lock:
            if time.monotonic() - renewed < seconds:
                return
            if "exec" in user:
                with _keys_in_memory():
                    await loader.load_from_exec_plugin()
                target.api_key["BearerToken"] = loader.token
            elif token := await asyncio.to_thread(_read_token, folder / str(token_file)):
                target.api_key["BearerToken"] = f"Bearer {token}"
            renewed = time.monotonic()

    settings.refresh_api_key_hook = hook


def _read_token(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""  # the last token may still be valid; the API server refuses an invalid one


def _connection(
    settings: _Settings, *, source: str, namespace: str, credentials: bool, authorities: str
) -> Connection:
    from kubernetes.aio.client.rest import RESTClientObject
    from kubernetes.aio.config import ConfigException

    server = str(settings.host).rstrip("/")
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(f"{source}: server {server!r} is no http(s) address")
    # Go's verifier does not ask for the strict profile, and CAs without key identifiers are common.
    settings.disable_strict_ssl_verification = True
    if not credentials:
        settings.cert_file = settings.key_file = None
    try:
        tls = RESTClientObject(settings).ssl_context if parts.scheme == "https" else None
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source}: certificate authority or client certificate: {error}"
        ) from error

    async def authorize() -> str | None:
        try:
            value = await settings.get_api_key_with_prefix("BearerToken")
        except (ConfigException, OSError) as error:
            raise ConfigError(f"{source}: {error}") from error
        return value.strip() if value else None

    return Connection(
        server=server,
        tls=tls,
        authorize=authorize if settings.api_key and credentials else anonymous,
        server_hostname=settings.tls_server_name,
        proxy=settings.proxy or _environment_proxy(parts.scheme, parts.hostname or ""),
        namespace=namespace or DEFAULT_NAMESPACE,
        authorities=authorities,
    )


def _static(plain: plainkubeconfig.StaticKubeconfig, *, source: str) -> Connection:
    authorization = plain.authorization

    async def authorize() -> str | None:
        return authorization

    parts = urlsplit(plain.server)
    return Connection(
        server=plain.server,
        tls=plain.tls,
        authorize=authorize if authorization else anonymous,
        server_hostname=plain.server_name,
        proxy=plain.proxy or _environment_proxy(parts.scheme, parts.hostname or ""),
        namespace=plain.namespace or DEFAULT_NAMESPACE,
        authorities=f"certificate-authority of cluster {plain.cluster!r} in {source}",
    )


def _environment_proxy(scheme: str, host: str) -> str | None:
    """Return the proxy as Go chooses it: none for this machine itself."""
    of_system = sys.platform in ("darwin", "win32")
    if not of_system and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from ipaddress import ip_address
    from urllib.request import getproxies, proxy_bypass

    try:
        local = ip_address(host).is_loopback
    except ValueError:
        local = host == "localhost"
    return None if local or proxy_bypass(host) else getproxies().get(scheme)
