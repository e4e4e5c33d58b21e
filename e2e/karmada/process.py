"""What the processes of a Karmada have in common: binaries, source trees, folder, certificates."""

import base64
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

from tests.support.processes import running, wait_for
from tests.support.stack import Certificates, kubectl

_BINARIES = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "karmada-aggregated-apiserver",
    "karmada-controller-manager",
    "karmada-scheduler",
    "karmada-webhook",
    "volcano-controller-manager",
    "volcano-scheduler",
)
_OF_PULL = ("karmada-agent",)
_OF_VOLCANO_GLOBAL = ("vg-controller-manager", "vg-webhook-manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The releases that run, and where their files are."""

    binaries: Path
    karmada: Path
    """The source tree of Karmada, for its definitions and webhook configuration."""
    volcano: Path
    """The source tree of Volcano, for its definitions and the scheduler's configuration."""
    volcano_global: Path | None = None
    """The source tree of Volcano Global; None: it is not installed."""
    gates: str = ""
    pull: bool = False

    @property
    def volcano_definitions(self) -> Path:
        """Return the folder of Volcano's CRDs."""
        return self.volcano / "installer/helm/chart/volcano/crd/bases"

    def missing(self) -> list[Path]:
        """Return the binaries and folders that are needed and do not exist."""
        names = [*_BINARIES, *(_OF_PULL if self.pull else ())]
        names += _OF_VOLCANO_GLOBAL if self.volcano_global else ()
        folders = [self.karmada / "charts/karmada/_crds/bases", self.volcano_definitions]
        folders += [self.volcano_global / "docs/deploy"] if self.volcano_global else []
        return [
            path
            for path in (*(self.binaries / name for name in names), *folders)
            if not path.exists()
        ]


@dataclass(slots=True)
class Stack:
    """The processes that were started; they end in the reverse order, at the end of `exits`."""

    given: Given
    directory: Path
    certificates: Certificates
    exits: ExitStack
    processes: dict[str, Popen[bytes]] = field(default_factory=dict)

    @property
    def authority(self) -> str:
        """Return the authority of the webhooks' certificates as a caBundle."""
        return base64.b64encode(self.certificates.authority.read_bytes()).decode()

    @property
    def karmada(self) -> Path:
        """Return the kubeconfig of the Karmada API server."""
        return self.kubeconfig("karmada")

    def kubeconfig(self, name: str) -> Path:
        """Return the kubeconfig of an API server."""
        return self.directory / name / "kubeconfig"

    def log(self, name: str) -> Path:
        """Return the file with what a process printed."""
        return self.directory / f"{name}.log"

    def start(self, name: str, binary: str, *flags: str) -> None:
        """Start a binary, under a name by which its log is found."""
        command = [self.given.binaries / binary, *flags]
        self.processes[name] = self.exits.enter_context(running(command, log=self.log(name)))

    def apply(self, kubeconfig: Path, *files: Path) -> None:
        """Apply files or folders; wait until the definitions among them can be used."""
        words = [word for path in files for word in ("-f", str(path))]
        kubectl(kubeconfig, "apply", "--server-side", "--recursive", *words)

    def established(self, kubeconfig: Path) -> None:
        """Wait until every CustomResourceDefinition can be used."""
        waits = ("--for=condition=Established", "--all", "--timeout=30s")
        kubectl(kubeconfig, "wait", "crd", *waits)

    def until(self, kubeconfig: Path, *words: str, gives: str = "", process: str) -> None:
        """Wait until kubectl succeeds and prints `gives`; fails with the log of a process."""

        def holds() -> bool:
            done = kubectl(kubeconfig, *words, check=False)
            return not done.returncode and gives in done.stdout

        what = f"kubectl {' '.join(words)}"
        log = self.log(process)
        wait_for(holds, what=what, process=self.processes[process], log=log, timeout=90)

    def ended(self) -> list[str]:
        """Return the names of the processes that have ended by themselves."""
        return [name for name, process in self.processes.items() if process.poll() is not None]
