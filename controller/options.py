"""What the controller process can be told: flags, then environment, then defaults.

Every flag has an environment variable, `HYPERJOB_` and the flag's name in capitals. Only reads;
whether the API server answers is found out at start.
"""

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final, Literal

import hyperjob
from controller.model.observed import QueueAdmission
from controller.placement.capacity import Candidacy
from hyperjob.telemetry.endpoints import parse_address

ENVIRONMENT_PREFIX: Final = "HYPERJOB_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one controller process; times are in seconds."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    queue_admission: QueueAdmission = QueueAdmission.VOLCANO_GLOBAL
    workers: int = 8
    in_flight: int = 50
    cluster_status_lag: float = 30.0
    cluster_lost_timeout: float = 300.0
    gang_timeout: float = 300.0
    require_vcjob_api: bool = True
    require_resource_summary: bool = True
    leader_elect: bool = True
    leader_elect_namespace: str = "karmada-system"
    leader_elect_name: str = "hyperjob-controller"
    metrics_bind_address: str = ":8080"
    health_probe_bind_address: str = ":8081"
    log_format: Literal["text", "json"] = "json"
    log_level: str = "info"

    def __post_init__(self) -> None:
        for name in ("workers", "in_flight"):
            if not 1 <= getattr(self, name) <= 1000:
                raise ValueError(f"{_flag(name)} must be between 1 and 1000")
        if not 0 <= self.cluster_status_lag <= 3600:
            raise ValueError("--cluster-status-lag must be between 0 and 3600 seconds")
        if not 0 <= self.cluster_lost_timeout <= 86400:
            raise ValueError("--cluster-lost-timeout must be between 0 and 86400 seconds")
        if not 1 <= self.gang_timeout <= 86400:
            raise ValueError("--gang-timeout must be between 1 and 86400 seconds")
        for name in ("metrics_bind_address", "health_probe_bind_address"):
            parse_address(getattr(self, name))

    @property
    def lag(self) -> timedelta:
        """Give the longest time until a cluster's status shows new pods."""
        return timedelta(seconds=self.cluster_status_lag)

    @property
    def lost_after(self) -> timedelta:
        """Give how long a cluster is not Ready until it counts as lost."""
        return timedelta(seconds=self.cluster_lost_timeout)

    @property
    def candidacy(self) -> Candidacy:
        """Give what a cluster must have."""
        return Candidacy(
            require_vcjob_api=self.require_vcjob_api,
            require_resource_summary=self.require_resource_summary,
        )


@dataclass(frozen=True, slots=True)
class _Setting:
    help: str
    read: Callable[[str], object] = str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None


_SETTINGS: Final[Mapping[str, _Setting]] = {
    "kubeconfig": _Setting(
        "kubeconfig of the Karmada API server; without it $KUBECONFIG, the pod's own account,"
        " ~/.kube/config",
        metavar="FILE",
    ),
    "context": _Setting("context of that kubeconfig", metavar="NAME"),
    "namespace": _Setting("only this namespace; without it all", metavar="NAME"),
    "queue_admission": _Setting(
        "who admits sub-jobs: Volcano Global's dispatcher, or nobody",
        QueueAdmission,
        choices=(QueueAdmission.VOLCANO_GLOBAL, QueueAdmission.NONE),
    ),
    "workers": _Setting("HyperJobs worked on at a time", int, metavar="N"),
    "in_flight": _Setting("API writes on their way at a time", int, metavar="N"),
    "cluster_status_lag": _Setting(
        "longest time until a Cluster's resourceSummary shows new pods; above Karmada's"
        " --cluster-status-update-frequency",
        float,
        metavar="SECONDS",
    ),
    "cluster_lost_timeout": _Setting(
        "how long a cluster is not Ready until its sub-jobs count as lost",
        float,
        metavar="SECONDS",
    ),
    "gang_timeout": _Setting(
        "how long a gang that the queue admits only in part keeps its quota before it gives back"
        " and tries later",
        float,
        metavar="SECONDS",
    ),
    "require_vcjob_api": _Setting("place only on clusters whose apiEnablements list vcjobs"),
    "require_resource_summary": _Setting("place only on clusters that report a resourceSummary"),
    "leader_elect": _Setting("lead only while holding a Lease"),
    "leader_elect_namespace": _Setting("namespace of the Lease", metavar="NAME"),
    "leader_elect_name": _Setting("name of the Lease", metavar="NAME"),
    "metrics_bind_address": _Setting("where /metrics is; 0 for nowhere", metavar="HOST:PORT"),
    "health_probe_bind_address": _Setting(
        "where /healthz and /readyz are; 0 for nowhere", metavar="HOST:PORT"
    ),
    "log_format": _Setting("form of the log", choices=("text", "json")),
    "log_level": _Setting("least level to log", choices=("debug", "info", "warning", "error")),
}


def parse(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] | None = None
) -> Options:
    """Read the options; usage errors end the process with code 2, as argparse does."""
    environment = os.environ if environment is None else environment
    parser = argparse.ArgumentParser(
        prog="hyperjob-controller",
        description="Expand HyperJobs over member clusters and tell how they are.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"hyperjob {hyperjob.__version__}")
    for field in fields(Options):
        setting = _SETTINGS[field.name]
        variable = ENVIRONMENT_PREFIX + field.name.upper()
        given = environment.get(variable)
        if isinstance(field.default, bool):
            parser.add_argument(
                _flag(field.name),
                help=f"{setting.help} [{variable}]",
                action=argparse.BooleanOptionalAction,
                default=field.default if given is None else _truth(parser, variable, given),
            )
            continue
        parser.add_argument(
            _flag(field.name),
            help=f"{setting.help} [{variable}]",
            type=setting.read,
            choices=setting.choices,
            metavar=setting.metavar,
            default=given if given is not None else field.default,
        )
    values = vars(parser.parse_args(arguments))
    for name, setting in _SETTINGS.items():
        if setting.choices and values[name] not in setting.choices:  # argparse trusts defaults
            parser.error(f"{_flag(name)}: {values[name]!r} is none of {', '.join(setting.choices)}")
    try:
        return Options(**values)
    except ValueError as error:
        parser.error(str(error))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _truth(parser: argparse.ArgumentParser, variable: str, text: str) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        parser.error(f"{variable}: {text!r} is neither true nor false")
    return known[text.lower()]
