"""What the webhook process can be told: flags, then environment, then defaults.

Every flag has an environment variable, `HYPERJOB_` and the flag's name in capitals; `--help` shows
both. Only reads; whether files and ports are usable is found out at start.
"""

import argparse
import math
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Final, Literal

import hyperjob
from hyperjob.telemetry.endpoints import parse_address

ENVIRONMENT_PREFIX: Final = "HYPERJOB_"

TLS_VERSIONS: Final = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one webhook process; times are in seconds."""

    tls_cert_file: Path
    tls_private_key_file: Path
    bind_address: str = "0.0.0.0"  # noqa: S104 - a pod's address is not known beforehand
    secure_port: int = 9443
    tls_min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    tls_reload_interval: float = 10.0
    health_probe_bind_address: str = ":8081"
    metrics_bind_address: str = ""
    request_timeout: float = 4.0
    max_requests_inflight: int = 128
    max_connections: int = 1024
    shutdown_delay: float = 1.0
    shutdown_grace_period: float = 10.0
    log_format: Literal["text", "json"] = "json"
    log_level: str = "info"

    @property
    def metrics_address(self) -> str:
        """Where /metrics is served, once the default is resolved."""
        return self.metrics_bind_address or self.health_probe_bind_address

    def __post_init__(self) -> None:
        if not 0 < self.request_timeout < 30:
            raise ValueError("--request-timeout must be above 0 and below 30 seconds")
        if not 0 <= self.secure_port <= 65535:
            raise ValueError(f"--secure-port must be between 0 and 65535, got {self.secure_port}")
        for name in ("max_requests_inflight", "max_connections"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name.replace('_', '-')} must be at least 1")
        for name in ("shutdown_delay", "shutdown_grace_period", "tls_reload_interval"):
            if not 0 <= getattr(self, name) <= 3600:
                raise ValueError(f"--{name.replace('_', '-')} must be between 0 and 3600 seconds")


@dataclass(frozen=True, slots=True)
class _Flag:
    help: str
    read: Callable[[str], object] = str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"expected a whole number, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ValueError(f"expected a number of seconds, got {text!r}")
    return seconds


def _address(text: str) -> str:
    parse_address(text)
    return text


def _tls_version(text: str) -> ssl.TLSVersion:
    if text not in TLS_VERSIONS:
        raise ValueError(f"expected one of {', '.join(TLS_VERSIONS)}, got {text!r}")
    return TLS_VERSIONS[text]


_FLAGS: Final[Mapping[str, _Flag]] = {
    "bind_address": _Flag("address to serve reviews on", metavar="HOST"),
    "secure_port": _Flag("port to serve reviews on; 0 takes a free one", _whole, metavar="PORT"),
    "tls_cert_file": _Flag("PEM chain to serve, leaf first", Path, metavar="FILE"),
    "tls_private_key_file": _Flag("PEM key of that certificate", Path, metavar="FILE"),
    "tls_min_version": _Flag(
        f"lowest TLS version: {', '.join(TLS_VERSIONS)}", _tls_version, metavar="VERSION"
    ),
    "tls_reload_interval": _Flag(
        "how often to look for a changed pair", _seconds, metavar="SECONDS"
    ),
    "health_probe_bind_address": _Flag(
        "where /healthz and /readyz are served, plain HTTP; 0 for nowhere",
        _address,
        metavar="HOST:PORT",
    ),
    "metrics_bind_address": _Flag(
        "where /metrics is served, plain HTTP; empty for where /healthz is, 0 for nowhere",
        _address,
        metavar="HOST:PORT",
    ),
    "request_timeout": _Flag(
        "time limit of one review, to be below the configured timeoutSeconds",
        _seconds,
        metavar="SECONDS",
    ),
    "max_requests_inflight": _Flag("reviews read and answered at a time", _whole, metavar="N"),
    "max_connections": _Flag("open connections; further ones are closed", _whole, metavar="N"),
    "shutdown_delay": _Flag(
        "how long to serve on after SIGTERM, unready, until nobody sends any more",
        _seconds,
        metavar="SECONDS",
    ),
    "shutdown_grace_period": _Flag(
        "how long reviews in flight may take after that", _seconds, metavar="SECONDS"
    ),
    "log_format": _Flag("form of the log", choices=("text", "json")),
    "log_level": _Flag("least level to log", choices=("debug", "info", "warning", "error")),
}


def parse(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> Options:
    """Read the options; usage errors end the process with code 2, as argparse does."""
    environment = os.environ if environment is None else environment
    defaults = {field.name: field.default for field in fields(Options)}
    parser = argparse.ArgumentParser(
        prog="hyperjob-webhook",
        description="Admit HyperJobs and gate their ResourceBindings.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hyperjob {hyperjob.__version__}")
    for name, flag in _FLAGS.items():
        variable = ENVIRONMENT_PREFIX + name.upper()
        given = environment.get(variable)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            help=f"{flag.help} [{variable}]",
            type=_reader(flag.read),
            choices=flag.choices,
            metavar=flag.metavar,
            default=_shown(defaults[name]) if given is None else given,
            required=defaults[name] is MISSING and given is None,
        )
    values = vars(parser.parse_args(arguments))
    for name, flag in _FLAGS.items():
        if flag.choices and values[name] not in flag.choices:  # argparse trusts its defaults
            parser.error(f"--{name.replace('_', '-')}: {values[name]!r} is none of {flag.choices}")
    try:
        return Options(**values)
    except ValueError as error:
        parser.error(str(error))


def _shown(default: object) -> str:
    """Write a default as one would type it, so that --help is right and argparse reads it."""
    if default is MISSING:
        return argparse.SUPPRESS
    if isinstance(default, ssl.TLSVersion):
        return next(text for text, version in TLS_VERSIONS.items() if version is default)
    return str(default)


def _reader(read: Callable[[str], object]) -> Callable[[str], object]:
    """Let argparse show the text of a ValueError, which it otherwise hides."""

    def convert(text: str) -> object:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert
