"""The options of the webhook process, each a flag.

Files and ports are opened later, at the start of the server.
"""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from hyperjob_core.serving.addresses import listen_address
from hyperjob_core.settings import COMMON, Setting, read_options, seconds, whole_number
from hyperjob_rules.validation.context import MAX_GRACE_SECONDS

TLS_VERSIONS: Final = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one webhook process; times are in seconds."""

    tls_cert_file: Path
    tls_private_key_file: Path
    kubeconfig: str | None = None
    controller_users: str = ""
    max_grace_period: int = MAX_GRACE_SECONDS
    bind_address: str = "::"
    secure_port: int = 9443
    tls_min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    health_probe_bind_address: str = ":8081"
    metrics_bind_address: str = ""
    metrics_cert_dir: Path | None = None
    client_ca_file: Path | None = None
    shutdown_delay: float = 1.0
    log_format: Literal["text", "json"] = "json"
    log_level: str = "info"

    @property
    def metrics_address(self) -> str:
        """The address of /metrics, with the default resolved."""
        return self.metrics_bind_address or self.health_probe_bind_address

    def __post_init__(self) -> None:
        if not 0 <= self.secure_port <= 65535:
            raise ValueError(f"--secure-port must be between 0 and 65535, got {self.secure_port}")
        if not 1 <= self.max_grace_period <= 604800:
            raise ValueError("--max-grace-period must be between 1 and 604800 seconds")
        if not 0 <= self.shutdown_delay <= 3600:
            raise ValueError("--shutdown-delay must be between 0 and 3600 seconds")
        if (
            self.metrics_cert_dir is not None
            and self.metrics_address == self.health_probe_bind_address
        ):
            raise ValueError("--metrics-cert-dir needs a --metrics-bind-address of its own")


def _tls_version(text: str) -> ssl.TLSVersion:
    if text not in TLS_VERSIONS:
        raise ValueError(f"expected one of {', '.join(TLS_VERSIONS)}, got {text!r}")
    return TLS_VERSIONS[text]


def _shown(version: ssl.TLSVersion) -> str:
    return next(text for text, known in TLS_VERSIONS.items() if known is version)


SETTINGS: Final[Mapping[str, Setting]] = {
    **COMMON,
    "kubeconfig": Setting(
        "kubeconfig of the Karmada API server, for warnings about Clusters, Queues,"
        " PriorityClasses and objects of pods that are missing or not ready; default: no warnings",
        metavar="FILE",
    ),
    "controller_users": Setting(
        "users, separated by commas, who may open the gate of a ResourceBinding that waits for its"
        " gang: the controller's user in the Karmada API server; empty: all users who may update"
        " ResourceBindings",
        metavar="NAMES",
    ),
    "max_grace_period": Setting(
        "longest terminationGracePeriodSeconds of pods, and gracePeriodSeconds of checkpoints: pods"
        " may hold accelerators for so long after their HyperJob is suspended or deleted",
        whole_number,
        metavar="SECONDS",
    ),
    "bind_address": Setting(
        "address of the HTTPS server; :: is every address, of IPv4 too", metavar="HOST"
    ),
    "secure_port": Setting("port of the HTTPS server; 0: a free one", whole_number, metavar="PORT"),
    "tls_cert_file": Setting("PEM chain to serve, leaf first", Path, metavar="FILE"),
    "tls_private_key_file": Setting("PEM key of that certificate", Path, metavar="FILE"),
    "client_ca_file": Setting(
        "PEM certificate authorities of clients: only clients with such a certificate get an"
        " answer; default: all clients; the webhook reads a changed file again",
        Path,
        metavar="FILE",
    ),
    "tls_min_version": Setting(
        f"lowest TLS version: {', '.join(TLS_VERSIONS)}",
        _tls_version,
        metavar="VERSION",
        show=_shown,
    ),
    "health_probe_bind_address": Setting(
        "address of /healthz and /readyz, plain HTTP; 0: not served",
        listen_address,
        metavar="HOST:PORT",
    ),
    "metrics_bind_address": Setting(
        "address of /metrics; default: that of /healthz; 0: not served",
        listen_address,
        metavar="HOST:PORT",
    ),
    "shutdown_delay": Setting(
        "time for which the webhook, not ready, serves on after SIGTERM until no review comes",
        seconds,
        metavar="SECONDS",
    ),
}


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the options; usage errors end the process with code 2, as argparse does."""
    return read_options(
        Options,
        SETTINGS,
        prog="hyperjob-webhook",
        description="Admit HyperJobs and gate their ResourceBindings.",
        arguments=arguments,
    )
