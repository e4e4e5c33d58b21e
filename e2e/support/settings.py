"""The settings of the scenarios from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PREFIX = "HYPERJOB_E2E_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings; without a kubeconfig the tests start an embedded control plane."""

    kubeconfig: Path | None = None
    members: Mapping[str, Path] = field(default_factory=dict)
    local: bool = False
    address: str = "127.0.0.1"
    accelerator: str = "nvidia.com/gpu"
    image: str = "busybox:1.37"
    seconds_annotation: str = ""
    exit_annotation: str = ""
    lost_timeout: float = 300.0
    timeout: float = 180.0

    @property
    def embedded(self) -> bool:
        """Return whether the control plane is embedded."""
        return self.kubeconfig is None


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Read `HYPERJOB_E2E_*`; raises ValueError that names the variable.

    KUBECONFIG of any Karmada, MEMBERS as `name=kubeconfig,…`, LOCAL=1 to start webhook and
    controller here, ADDRESS under which the API server then reaches this machine, ACCELERATOR
    (resource name), IMAGE (any with `sh` and `sleep`), TIMEOUT in seconds, LOST_TIMEOUT (an
    installed release's --cluster-lost-timeout).
    For simulated kubelets, SECONDS_ANNOTATION and EXIT_ANNOTATION are the pod annotations for the
    run time and the exit code.
    """

    def read(name: str) -> str:
        return environment.get(_PREFIX + name, "")

    kubeconfig = read("KUBECONFIG")
    if not kubeconfig:
        return Settings(timeout=_seconds("TIMEOUT", environment, unset=Settings().timeout))
    members: dict[str, Path] = {}
    for entry in filter(None, read("MEMBERS").split(",")):
        name, equals, path = entry.partition("=")
        if not (name and equals and path):
            raise ValueError(f"{_PREFIX}MEMBERS: name=kubeconfig is expected, got {entry!r}")
        members[name.strip()] = Path(path.strip())
    if not members:
        raise ValueError(f"{_PREFIX}MEMBERS must name the members: name=kubeconfig,…")
    return Settings(
        kubeconfig=Path(kubeconfig),
        members=members,
        local=read("LOCAL") == "1",
        address=read("ADDRESS") or Settings().address,
        accelerator=read("ACCELERATOR") or Settings().accelerator,
        image=read("IMAGE") or Settings().image,
        seconds_annotation=read("SECONDS_ANNOTATION"),
        exit_annotation=read("EXIT_ANNOTATION"),
        lost_timeout=_seconds("LOST_TIMEOUT", environment, unset=Settings().lost_timeout),
        timeout=_seconds("TIMEOUT", environment, unset=Settings().timeout),
    )


def _seconds(name: str, environment: Mapping[str, str], *, unset: float) -> float:
    text = environment.get(_PREFIX + name, "")
    try:
        return float(text) if text else unset
    except ValueError:
        raise ValueError(f"{_PREFIX}{name}: seconds are expected, got {text!r}") from None
