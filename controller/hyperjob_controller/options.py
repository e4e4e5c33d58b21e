"""The options of the controller process, each a flag."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.names import (
    CONTROLLER_SETTINGS,
    LEASE_NAME,
    LEASE_NAMESPACE,
    QUEUE_ADMISSION,
)
from hyperjob_core.api.wire import decoded, mapping, string
from hyperjob_core.serving.addresses import listen_address
from hyperjob_core.settings import (
    COMMON,
    DEFAULT_GATES,
    Setting,
    flag_of,
    read_gates,
    read_options,
    seconds,
    show_gates,
    whole_number,
)
from hyperjob_engine.model.observed import QueueAdmission
from hyperjob_engine.resources import parse_rows
from hyperjob_queueing.consumed import HALF_LIFE

AUTO: Final = "auto"
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "workers": (1, 1000),
    "cluster_status_lag": (0, 3600),
    "cluster_lost_timeout": (0, 86400),
    "gang_timeout": (1, 86400),
    "usage_half_life_time": (0, 31536000),
    "unschedulable_timeout": (0, 604800),
    "start_timeout": (0, 604800),
    "leader_elect_lease_duration": (5, 3600),
    "growth_interval": (0, 604800),
    "progress_interval": (0.1, 3600),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The settings of one controller process; times are in seconds.

    With `queue_admission` None the mode follows the installed webhooks.
    """

    kubeconfig: str | None = None
    namespace: str | None = None
    queue_admission: QueueAdmission | None = None
    workers: int = 8
    cluster_status_lag: float = 30.0
    cluster_lost_timeout: float = 300.0
    gang_timeout: float = 300.0
    usage_half_life_time: float = HALF_LIFE.total_seconds()
    unschedulable_timeout: float = 30.0
    start_timeout: float = 900.0
    splitter_url: str | None = None
    splitter_token_file: str | None = None
    splitter_ca_file: str | None = None
    members: MemberAccess = MemberAccess.NODES
    members_kubeconfig: str | None = None
    growth_interval: float = 600.0
    progress_interval: float = 30.0
    devices: str = ""
    leader_elect: bool = True
    leader_elect_lease_duration: int = 15
    metrics_bind_address: str = ":8080"
    metrics_cert_dir: Path | None = None
    health_probe_bind_address: str = ":8081"
    debug_bind_address: str = "0"
    tenant_messages: Literal["names", "counts"] = "names"
    log_format: Literal["text", "json"] = "json"
    log_level: str = "info"
    feature_gates: frozenset[str] = DEFAULT_GATES

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                unit = "" if name == "workers" else " seconds"
                raise ValueError(f"{flag_of(name)} must be between {low} and {high}{unit}")
        if self.splitter_url is not None and not is_web_address(self.splitter_url):
            raise ValueError(f"--splitter-url: {self.splitter_url!r} is no http or https URL")
        if self.splitter_url is not None and "ExternalSplitter" not in self.feature_gates:
            raise ValueError(
                "--splitter-url needs --feature-gates=ExternalSplitter=true: its protocol is alpha,"
                " and may change in any release"
            )
        try:
            parse_rows(self.devices)
        except ValueError as error:
            raise ValueError(f"--devices: {error}") from None
        others = (self.health_probe_bind_address, self.debug_bind_address)
        if self.metrics_cert_dir is not None and self.metrics_bind_address in others:
            raise ValueError("--metrics-cert-dir needs a --metrics-bind-address of its own")

    @property
    def lag(self) -> timedelta:
        """Return the longest time until a Cluster's status counts new pods."""
        return timedelta(seconds=self.cluster_status_lag)

    @property
    def half_life(self) -> timedelta | None:
        """Return the half-life of what queues have consumed; None: nothing is remembered."""
        return timedelta(seconds=self.usage_half_life_time) or None

    @property
    def lost_after(self) -> timedelta:
        """Return the time after which a cluster that is not Ready counts as lost."""
        return timedelta(seconds=self.cluster_lost_timeout)


_PUBLISHED: Final = (
    "namespace",
    "cluster_status_lag",
    "cluster_lost_timeout",
    "gang_timeout",
    "usage_half_life_time",
    "unschedulable_timeout",
    "start_timeout",
    "tenant_messages",
    "members",
    "devices",
)
"""The settings on which decisions about HyperJobs depend, beside the queue admission."""


def annotations_of(options: Options, *, admission: QueueAdmission) -> dict[str, str]:
    """Return the annotations of the Lease, from which `hyperjob plan` reads the settings."""
    settings = {name: getattr(options, name) for name in _PUBLISHED}
    return {
        QUEUE_ADMISSION: str(admission),
        CONTROLLER_SETTINGS: json.dumps(settings, separators=(",", ":")),
    }


def published(annotations: object) -> Options:
    """Return the options that a Lease's annotations publish.

    Unknown settings, and values that this release does not take, have their defaults: the
    controller may be of another release.
    """
    found = mapping(annotations)
    try:
        settings = mapping(decoded(string(found.get(CONTROLLER_SETTINGS)) or "{}"))
    except ValueError:
        settings = {}
    given = {name: settings[name] for name in _PUBLISHED if name in settings}
    options = Options()
    for name, value in (given | {"queue_admission": found.get(QUEUE_ADMISSION)}).items():
        with suppress(ValueError, TypeError):
            known = _KINDS[name](value) if name in _KINDS and value is not None else value
            changed: dict[str, Any] = {name: known}
            options = replace(options, **changed)
    return options


_KINDS: Final[Mapping[str, Callable[[str], object]]] = {
    "devices": str,
    "members": MemberAccess,
    "queue_admission": QueueAdmission,
}


def _admission(text: str) -> QueueAdmission | None:
    return None if text == AUTO else QueueAdmission(text)


def _shown_admission(admission: QueueAdmission | None) -> str:
    return AUTO if admission is None else str(admission)


def _duration(help_text: str) -> Setting:
    return Setting(help_text, seconds, metavar="SECONDS")


SETTINGS: Final[Mapping[str, Setting]] = {
    **COMMON,
    "kubeconfig": Setting(
        "kubeconfig of the Karmada API server; the default is $KUBECONFIG, the pod's"
        " ServiceAccount or ~/.kube/config, in this order",
        metavar="FILE",
    ),
    "namespace": Setting("the only namespace of HyperJobs; default: all", metavar="NAME"),
    "queue_admission": Setting(
        "the component that admits a gang to its queue: Volcano Global's dispatcher, this"
        " controller by Volcano's Queues, or none; auto is volcano-global while Volcano Global's"
        " webhook is installed, else builtin",
        _admission,
        choices=(AUTO, *QueueAdmission),
        show=_shown_admission,
    ),
    "workers": Setting(
        "number of HyperJobs that are reconciled concurrently", whole_number, metavar="N"
    ),
    "cluster_status_lag": _duration(
        "longest time until a Cluster's resourceSummary counts new pods; more than Karmada's"
        " --cluster-status-update-frequency"
    ),
    "cluster_lost_timeout": _duration(
        "time after which the sub-jobs on a cluster that is not Ready count as lost"
    ),
    "gang_timeout": _duration(
        "time for which a gang that is admitted only in part keeps its quota; the controller then"
        " deletes its sub-jobs and tries again later"
    ),
    "usage_half_life_time": _duration(
        "time after which what a queue has consumed counts half: queues alternate"
        " where HyperJobs are larger than a share; 0: only the present use counts"
    ),
    "unschedulable_timeout": _duration(
        "time for which a sub-job stays in a cluster whose Volcano calls it Unschedulable although"
        " pods of others do not keep it from the nodes; 0 is no limit beside --start-timeout"
    ),
    "start_timeout": _duration(
        "time for which a sub-job may be in its cluster without a pod that has run or has a node;"
        " it then loses its share of the queue and tries other clusters; 0 is no limit"
    ),
    "splitter_url": Setting(
        "http or https URL of an external splitter, which replaces the built-in one for"
        " splitPolicy.mode auto",
        metavar="URL",
    ),
    "splitter_token_file": Setting(
        "file with a bearer token for the splitter, read for each call", metavar="FILE"
    ),
    "splitter_ca_file": Setting(
        "certificate authorities of the splitter; default: the system's", metavar="FILE"
    ),
    "members": Setting(
        "what the controller reads in the clusters, through Karmada's cluster proxy: pods, so that"
        " a sub-job has ended when its pods have; nodes, also nodes and HyperNodes, for placement;"
        " logs, also the progress of trainings. It needs the rights of docs/tasks/members.md",
        MemberAccess,
        choices=tuple(MemberAccess),
    ),
    "members_kubeconfig": Setting(
        "kubeconfig of the account that reads the clusters, best an account without other rights;"
        " default: the controller's own",
        metavar="FILE",
    ),
    "growth_interval": _duration(
        "time after which a HyperJob with minReplicas or maxReplicas may take more sub-jobs, from"
        " its start or last change on where all start again for that, else from the time when it"
        " made way for another HyperJob"
    ),
    "progress_interval": _duration(
        "interval between two reads of a program's log, and between two status writes for the"
        " progress alone"
    ),
    "devices": Setting(
        "resources that count accelerators beside the known ones, with the companions that say how"
        " much of each a pod gets, as example.com/npu:example.com/npu-memory+example.com/npu-cores;"
        " commas separate them",
        metavar="NAME[:COMPANION+...]",
    ),
    "tenant_messages": Setting(
        "names: messages of a HyperJob may name HyperJobs of other namespaces; counts: messages"
        " only have their number",
        choices=("names", "counts"),
    ),
    "leader_elect": Setting(
        f"lead only while holding the Lease {LEASE_NAMESPACE}/{LEASE_NAME}, with --namespace NAME"
        f" {LEASE_NAME}-NAME"
    ),
    "leader_elect_lease_duration": Setting(
        "time after which another replica takes over from a leader that does not renew the Lease;"
        " such a leader exits after two thirds of it",
        whole_number,
        metavar="SECONDS",
    ),
    "metrics_bind_address": Setting(
        "address of /metrics; 0: not served", listen_address, metavar="HOST:PORT"
    ),
    "health_probe_bind_address": Setting(
        "address of /healthz and /readyz; 0: not served", listen_address, metavar="HOST:PORT"
    ),
    "debug_bind_address": Setting(
        "address of /debug/memory and /debug/members, which show every client what the controller"
        " remembers, best 127.0.0.1:6060; 0: not served",
        listen_address,
        metavar="HOST:PORT",
    ),
    "feature_gates": Setting(
        "features that are not settled, on or off: docs/stability.md",
        read_gates,
        metavar="NAME=true|false,...",
        show=show_gates,
    ),
}


def is_web_address(text: str) -> bool:
    """Return whether a text is a whole http or https URL."""
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the options; usage errors end the process with code 2, as argparse does."""
    return read_options(
        Options,
        SETTINGS,
        prog="hyperjob-controller",
        description="Expand HyperJobs over member clusters and keep their status.",
        arguments=arguments,
    )


LOGS_PER_SECOND: Final = 40.0
"""The logs of trainings that the controller reads per second, over all HyperJobs."""
SPLITTER_SECONDS: Final = 10.0
"""The time limit of a call of the external splitter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The values that tests change: concurrent writes, and the Lease's namespace, among others.

    After `silence` without a report of a sub-job from its cluster the controller has Karmada apply
    the sub-job again. `failure_causes` reads the failed pods of a failed sub-job, where the
    controller has the right.
    """

    writes: int = 50
    silence: timedelta = timedelta(seconds=30)
    failure_causes: bool = True
    lease_namespace: str = LEASE_NAMESPACE
