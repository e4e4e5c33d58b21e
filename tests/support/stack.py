"""Webhook and controller as processes beside an API server, with the objects that they need.

The module installs the objects of a release in the API server, and deletes exactly these objects.
"""

import contextlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME, configurations
from tests.support.processes import free_port, ran, wait_for

ROOT = Path(__file__).resolve().parents[2]
KUBECTL = Path(sys.executable).parent / "kubectl"
HYPERJOB_CRD = ROOT / "crds/training.volcano.sh_hyperjobs.yaml"
LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_STOP_SECONDS = 15.0

# One webhook names the task, and the other refuses minAvailable: the answer shows both.
_PROBE = """
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: webhook-probe, namespace: default}
spec:
  replicatedJobs:
  - name: probe
    templateSpec:
      minAvailable: 2
      tasks:
      - {replicas: 1, template: {spec: {containers: [{name: a, image: a}]}}}
"""


def kubectl(
    kubeconfig: Path,
    *arguments: str | Path,
    stdin: str | None = None,
    check: bool = True,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run kubectl; with `check`, fail with its own error text."""
    done = ran(KUBECTL, f"--kubeconfig={kubeconfig}", *arguments, input=stdin, timeout=timeout)
    if check and done.returncode:
        words = " ".join(str(word) for word in arguments)
        raise AssertionError(f"kubectl {words}: {done.stderr}{done.stdout}")
    return done


class Service:
    """A process that can be stopped or killed, and started again on the same ports."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        probe_port: int | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [str(word) for word in command]
        self._probe_port = probe_port

    def start(self, *, until_ready: bool = True) -> None:
        """Start the process, and wait until it is ready."""
        assert self.process is None, f"{self.name} runs already"
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the tests handle Ctrl-C, and then stop the process
            )
        if until_ready:
            self.wait(self.is_ready, what="ready")

    def wait(
        self, condition: Callable[[], object], *, what: str, seconds: float = _START_SECONDS
    ) -> None:
        """Wait until a condition holds; fail at once, with its log, when the process ends."""
        wait_for(
            condition,
            what=f"{self.name} ({what})",
            process=self.process,
            log=self.log,
            timeout=seconds,
        )

    def is_ready(self) -> bool:
        """Return whether /readyz answers 200."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    @property
    def url(self) -> str:
        """Return the address of its probes."""
        return f"http://127.0.0.1:{self._probe_port}"

    def metrics(self) -> str:
        """Return the content of /metrics, at the address of /readyz."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def text(self) -> str:
        """Return the log so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def stop(self) -> int | None:
        """Stop the process by SIGTERM, and return its exit code; None when it did not run."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process by SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_SECONDS)
            raise AssertionError(
                f"{self.name} ignored {number.name}:\n{self.text()[-2000:]}"
            ) from None


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files of a serving certificate for this machine."""

    authority: Path
    certificate: Path
    key: Path


def issue_certificates(directory: Path, *, address: str = LOOPBACK) -> Certificates:
    """Issue a certificate with `hyperjob-certs`, as without cert-manager."""
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "hyperjob_certs",
        "issue",
        "--directory",
        directory,
    ]
    command += ["--name", address, "--name", "localhost"]
    done = ran(*command)
    assert done.returncode == 0, done.stderr
    return Certificates(directory / "ca.crt", directory / "tls.crt", directory / "tls.key")


def webhook_service(
    directory: Path,
    certificates: Certificates,
    *,
    port: int,
    address: str = LOOPBACK,
    more: Sequence[str] = (),
) -> Service:
    """Return the service of a webhook process on a port."""
    probe = free_port()
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "hyperjob_webhook",
        f"--bind-address={address}",
    ]
    command += [f"--secure-port={port}", f"--tls-cert-file={certificates.certificate}"]
    command += [f"--tls-private-key-file={certificates.key}", "--shutdown-delay=0"]
    command += [f"--health-probe-bind-address=127.0.0.1:{probe}", "--log-format=text", *more]
    return Service("webhook", command, log=directory / "webhook.log", probe_port=probe)


def controller_service(
    directory: Path,
    kubeconfig: Path,
    *,
    queue_admission: str,
    gang_timeout: float = 300,
    cluster_lost_timeout: float = 300,
    more: Sequence[str] = (),
) -> Service:
    """Return the service of a controller process, with metrics at the health address."""
    probe = free_port()
    address = f"127.0.0.1:{probe}"
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "hyperjob_controller",
        f"--kubeconfig={kubeconfig}",
    ]
    command += [f"--queue-admission={queue_admission}", "--no-leader-elect", "--log-format=text"]
    command += [f"--gang-timeout={gang_timeout:g}"]
    command += [f"--cluster-lost-timeout={cluster_lost_timeout:g}"]
    command += [f"--metrics-bind-address={address}", f"--health-probe-bind-address={address}"]
    command += more
    return Service("controller", command, log=directory / "controller.log", probe_port=probe)


@dataclass(frozen=True, slots=True)
class Stack:
    """Webhook, controller and their API server."""

    kubeconfig: Path
    webhook: Service
    controller: Service


@contextlib.contextmanager
def our_stack(
    directory: Path,
    kubeconfig: Path,
    *,
    queue_admission: str,
    gang_timeout: float = 300,
    cluster_lost_timeout: float = 300,
    address: str = LOOPBACK,
    controller: Sequence[str] = (),
    webhook: Sequence[str] = (),
    controller_kubeconfig: Path | None = None,
    trainjobs: bool = False,
) -> Iterator[Stack]:
    """Run webhook and controller, with the webhook registered at a local address.

    `controller` and `webhook` are more arguments of each; the controller uses
    `controller_kubeconfig`, by default `kubeconfig`. With `trainjobs` the webhook judges TrainJobs.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        stack.enter_context(installed(kubeconfig, [HYPERJOB_CRD]))
        certificates = issue_certificates(directory / "tls", address=address)
        port = free_port()
        admission = webhook_service(
            directory,
            certificates,
            port=port,
            address=address,
            more=[*webhook, f"--kubeconfig={kubeconfig}"],  # as the chart starts it
        )
        stack.callback(admission.stop)
        admission.start()
        stack.enter_context(
            registered(kubeconfig, certificates, port=port, address=address, trainjobs=trainjobs)
        )
        ours = controller_service(
            directory,
            controller_kubeconfig or kubeconfig,
            queue_admission=queue_admission,
            gang_timeout=gang_timeout,
            cluster_lost_timeout=cluster_lost_timeout,
            more=controller,
        )
        stack.callback(ours.stop)
        ours.start()
        yield Stack(kubeconfig, admission, ours)


@contextlib.contextmanager
def installed(kubeconfig: Path, definitions: Sequence[Path]) -> Iterator[None]:
    """Create CRDs and wait until they are established; delete the new CRDs at the end."""
    fresh = [path for path in definitions if not _exists(kubeconfig, path)]
    try:
        for path in fresh:
            kubectl(kubeconfig, "apply", "--server-side", "-f", path)
        for path in definitions:
            wait_for(partial(_is_established, kubeconfig, path), what=path.name)
        yield
    finally:
        for path in reversed(fresh):
            kubectl(kubeconfig, "delete", "--ignore-not-found", "-f", path)


def _exists(kubeconfig: Path, definition: Path) -> bool:
    return not kubectl(kubeconfig, "get", "-f", definition, check=False).returncode


def _is_established(kubeconfig: Path, definition: Path) -> bool:
    """Return whether a CRD is served; `kubectl wait` fails while there is no status at all."""
    condition = '{.status.conditions[?(@.type=="Established")].status}'
    found = kubectl(kubeconfig, "get", "-f", definition, "-o", f"jsonpath={condition}", check=False)
    return found.stdout == "True"


@contextlib.contextmanager
def registered(
    kubeconfig: Path,
    certificates: Certificates,
    *,
    port: int,
    address: str = LOOPBACK,
    trainjobs: bool = False,
) -> Iterator[None]:
    """Register the webhook on a port of this machine in the API server."""
    hooks = configurations(
        url=f"https://{address}:{port}",
        ca_bundle=certificates.authority.read_bytes(),
        trainjobs=trainjobs,
    )
    try:
        text = yaml.safe_dump_all(hooks)
        kubectl(kubeconfig, "apply", "--server-side", "-f", "-", stdin=text)
        wait_for(lambda: _is_called(kubeconfig), what="call of the webhook by the API server")
        yield
    finally:
        for kind, name in (
            ("mutatingwebhookconfiguration", MUTATING_NAME),
            ("validatingwebhookconfiguration", VALIDATING_NAME),
        ):
            kubectl(kubeconfig, "delete", kind, name, "--ignore-not-found")


def _is_called(kubeconfig: Path) -> bool:
    """Return whether both configurations are in force: the API server sees them with a delay."""
    tried = kubectl(kubeconfig, "create", "--dry-run=server", "-f", "-", stdin=_PROBE, check=False)
    if "minAvailable: Invalid value: 2" not in tried.stderr:
        return False
    good = _PROBE.replace("minAvailable: 2", "minAvailable: 1")
    tried = kubectl(
        kubeconfig, "create", "--dry-run=server", "-o", "yaml", "-f", "-", stdin=good, check=False
    )
    return "name: default0" in tried.stdout


def sandbox_service(
    directory: Path, clusters: Path, *, kubeconfig: Path | None = None, port: int = 0
) -> Service:
    """Return the service of `hyperjob sandbox up`, on its own or another API server."""
    command: list[str | Path] = [sys.executable, "-m", "hyperjob", "sandbox", "up", "--bare"]
    command += ["--clusters", clusters, "--directory", directory, "--port", str(port)]
    if kubeconfig is not None:
        command += ["--kubeconfig", kubeconfig]
    return Service("sandbox", command, log=directory / "sandbox.log")


@contextlib.contextmanager
def sandbox(
    directory: Path, clusters: Path, *, kubeconfig: Path | None = None
) -> Iterator[tuple[Path, dict[str, Path]]]:
    """Run the sandbox; yield the kubeconfig of its Karmada, and those of its members by name."""
    directory.mkdir(parents=True, exist_ok=True)
    service = sandbox_service(directory, clusters, kubeconfig=kubeconfig)
    try:
        service.start(until_ready=False)
        service.wait((directory / "ready").exists, what="ready")
        names = [each["name"] for each in yaml.safe_load(clusters.read_text())["clusters"]]
        members = {name: directory / f"{name}.kubeconfig" for name in names}
        yield directory / "karmada.kubeconfig", members
    finally:
        service.stop()
