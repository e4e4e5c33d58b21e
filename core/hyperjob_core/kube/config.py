"""The API server and the credentials, from a kubeconfig or the pod's ServiceAccount."""

import asyncio
import contextlib
import os
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from hyperjob_core.kube import credentials as kubeconfigs
from hyperjob_core.kube.credentials import (
    Authorize,
    Credentials,
    acting_as,
    anonymous,
    content,
    credentials_of,
)
from hyperjob_core.kube.errors import ConfigError
from hyperjob_core.memoryfile import in_memory

DEFAULT_NAMESPACE = "default"
_PLUGIN_SECONDS = 30.0
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod has its ServiceAccount."""
_FIX_POD = "mount the service account token (automountServiceAccountToken) or give --kubeconfig"


@dataclass(frozen=True, slots=True)
class Connection:
    """The server, TLS and credentials of a session.

    `authorize` returns the Authorization header of a request and may raise ConfigError.
    `namespace` is that of the kubeconfig's context, or the pod's own. `authorities` is the name of
    the setting with the certificate authorities that `tls` trusts. `headers` are those of each
    request by which the user acts as another one.
    """

    server: str
    tls: ssl.SSLContext | None = None
    authorize: Authorize = field(default=anonymous)
    server_hostname: str | None = None
    proxy: str | None = None
    namespace: str = DEFAULT_NAMESPACE
    authorities: str = "the authorities of this machine"
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def host(self) -> str:
        """Return host and port, the `host` label of client metrics."""
        return urlsplit(self.server).netloc


async def load(
    kubeconfig: str | Path | None = None,
    *,
    context: str | None = None,
    credentials: bool = True,
) -> Connection:
    """Return the connection from the given file, KUBECONFIG, the pod's account or ~/.kube/config.

    Tokens from files and plugins are read again after a minute, when a request needs them.
    Without `credentials` the connection has only the server and its authorities: an API server
    prefers a client certificate to a bearer token, and requests of other users must not have it.
    Raises ConfigError with the file and the next step.
    """
    given = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    if not given and os.environ.get("KUBERNETES_SERVICE_HOST"):
        chosen, source, remedy = _of_pod(), "in-cluster configuration", _FIX_POD
    else:
        files = given or str(Path.home() / ".kube" / "config")
        chosen, source = kubeconfigs.read(files, context), f"kubeconfig {files}"
        remedy = kubeconfigs.check_of(files)
    if not credentials:
        chosen = replace(chosen, user={})
    return await _connected(chosen, source, remedy)


async def direct(url: str, *, token_file: Path | None, ca_file: Path | None) -> Connection:
    """Return the connection to a server that no kubeconfig names; raises ConfigError."""
    parts = urlsplit(url)
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigError(f"{parts.hostname}: give an address without a user, ? and #")
    trusted = {} if ca_file is None else {"certificate-authority": str(ca_file)}
    chosen = kubeconfigs.Context(
        cluster_name="",
        cluster={"server": url, **trusted},
        user={} if token_file is None else {"tokenFile": str(token_file)},
        namespace=None,
    )
    found = await _connected(chosen, f"credentials of {parts.hostname}", "")
    authorities = "the authorities of this machine" if ca_file is None else str(ca_file)
    return replace(found, authorities=authorities)


def _of_pod() -> kubeconfigs.Context:
    """Return the API server and the ServiceAccount of a pod as its kubelet gives them."""
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
    namespace = ""
    with contextlib.suppress(OSError):
        namespace = (ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    return kubeconfigs.Context(
        cluster_name="kubernetes",
        cluster={
            "server": f"https://{f'[{host}]' if ':' in host else host}:{port or 443}",
            "certificate-authority": str(ACCOUNT / "ca.crt"),
        },
        user={"tokenFile": str(ACCOUNT / "token")},
        namespace=namespace,
    )


async def _connected(chosen: kubeconfigs.Context, source: str, remedy: str) -> Connection:
    """Return the connection to the cluster of a context; raises ConfigError with the remedy."""
    cluster, end = chosen.cluster, f"; {remedy}" if remedy else ""
    server, scheme, host = _address(cluster.get("server"), source)
    try:
        authority = content(cluster, "certificate-authority")
        async with asyncio.timeout(_PLUGIN_SECONDS):
            own = await credentials_of(chosen.user, cluster)
    except TimeoutError as error:
        raise ConfigError(f"{source}: no credentials within {_PLUGIN_SECONDS:g}s{end}") from error
    except (ConfigError, OSError, ValueError) as error:
        raise ConfigError(f"{source}: {str(error).rstrip('.')}{end}") from error
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
        headers=acting_as(chosen.user),
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
