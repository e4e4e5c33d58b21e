"""The API server and the credentials, from a kubeconfig or the pod's ServiceAccount."""

import asyncio
import contextlib
import os
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from hyperjob_core.kube import credentials as kubeconfigs
from hyperjob_core.kube.credentials import (
    Authorize,
    Credentials,
    anonymous,
    asynchronous,
    content,
    credentials_of,
)
from hyperjob_core.kube.errors import ConfigError
from hyperjob_core.memoryfile import in_memory

REFRESH_SECONDS = 60.0
DEFAULT_NAMESPACE = "default"
_PLUGIN_SECONDS = 30.0
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


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
    return await _from_files(files, context, refresh_seconds, credentials=credentials)


async def _from_files(
    files: str, context: str | None, refresh_seconds: float, *, credentials: bool
) -> Connection:
    """Return the connection of a kubeconfig's context; raises ConfigError."""
    chosen = kubeconfigs.read(files, context)
    source, cluster = f"kubeconfig {files}", chosen.cluster
    server, scheme, host = _address(cluster.get("server"), source)
    own = Credentials()
    try:
        authority = content(cluster, "certificate-authority")
        if credentials:
            async with asyncio.timeout(_PLUGIN_SECONDS):
                own = await credentials_of(chosen.user, refresh_seconds=refresh_seconds)
    except TimeoutError as error:
        why = f"no credentials within {_PLUGIN_SECONDS:g}s"
        raise kubeconfigs.unusable(files, why) from error
    except (ConfigError, OSError, ValueError) as error:
        raise kubeconfigs.unusable(files, str(error)) from error
    tls = None
    if scheme == "https":
        insecure = bool(cluster.get("insecure-skip-tls-verify"))
        tls = _tls(authority, own, insecure=insecure, source=source)
    return Connection(
        server=server,
        tls=tls,
        authorize=own.authorize,
        server_hostname=cluster.get("tls-server-name"),
        proxy=cluster.get("proxy-url") or _environment_proxy(scheme, host),
        namespace=chosen.namespace or DEFAULT_NAMESPACE,
        authorities=f"certificate-authority of cluster {chosen.cluster_name!r} in {source}",
    )


def _in_cluster(*, credentials: bool) -> Connection:
    """Return the connection of a pod's ServiceAccount; raises ConfigError without one."""
    source = "in-cluster configuration"
    with asynchronous(source):
        from kubernetes.aio.client import Configuration
        from kubernetes.aio.config import ConfigException, load_incluster_config

    settings = Configuration()
    try:
        load_incluster_config(  # type: ignore[no-untyped-call]  # theirs has no types
            client_configuration=settings
        )
        authority = Path(str(settings.ssl_ca_cert)).read_bytes()
    except (ConfigException, OSError) as error:
        raise ConfigError(
            f"{source}: {error}; mount the service account token "
            "(automountServiceAccountToken) or give --kubeconfig"
        ) from error

    async def authorize() -> str | None:
        try:
            value = await settings.get_api_key_with_prefix("BearerToken")
        except (ConfigException, OSError) as error:
            raise ConfigError(f"{source}: {error}") from error
        return value.strip() if value else None

    server, scheme, host = _address(settings.host, source)
    try:
        namespace = _POD_NAMESPACE.read_text(encoding="utf-8").strip()
    except OSError:
        namespace = ""
    return Connection(
        server=server,
        tls=_tls(authority, Credentials(), insecure=False, source=source),
        authorize=authorize if credentials else anonymous,
        proxy=_environment_proxy(scheme, host),
        namespace=namespace or DEFAULT_NAMESPACE,
        authorities=f"ca.crt in {_POD_NAMESPACE.parent}",
    )


async def direct(url: str, *, token_file: Path | None, ca_file: Path | None) -> Connection:
    """Return the connection to a server that no kubeconfig names; raises ConfigError."""
    parts = urlsplit(url)
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(f"{parts.hostname}: give an address without a user, ? and #")
    server, scheme, host = _address(url, "the address")
    try:
        user = {} if token_file is None else {"tokenFile": str(token_file)}
        own = await credentials_of(user, refresh_seconds=REFRESH_SECONDS)
        authority = None if ca_file is None else ca_file.read_bytes()
    except (ConfigError, OSError, ValueError) as error:
        raise ConfigError(f"credentials of {host}: {error}") from error
    return Connection(
        server=server,
        tls=_tls(authority, own, insecure=False, source=host) if scheme == "https" else None,
        authorize=own.authorize,
        proxy=_environment_proxy(scheme, host),
        authorities="the authorities of this machine" if ca_file is None else str(ca_file),
    )


def _address(server: str | None, source: str) -> tuple[str, str, str]:
    """Return the server's address, its scheme and its host name."""
    address = (server or "").rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(f"{source}: server {address!r} is no http(s) address")
    return address, parts.scheme, parts.hostname or ""


def _tls(
    authority: bytes | None, own: Credentials, *, insecure: bool, source: str
) -> ssl.SSLContext:
    """Return the TLS of a client; raises ConfigError for unusable certificates or keys."""
    try:
        with _path(authority) as trusted, _path(own.certificate) as mine, _path(own.key) as key:
            context = ssl.create_default_context(cafile=trusted)
            if mine is not None:
                context.load_cert_chain(mine, keyfile=key)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source}: certificate authority or client certificate: {error}"
        ) from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    # Go's verifier does not ask for the strict profile, and CAs without key identifiers are common.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


@contextlib.contextmanager
def _path(content: bytes | None) -> Iterator[str | None]:
    """Yield a path of a file in memory with the content, because OpenSSL reads only files."""
    if content is None:
        yield None
        return
    with in_memory(content) as path:
        yield path


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
