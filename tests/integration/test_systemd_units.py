"""The systemd units of docs/install.md: a restart of one of two webhooks refuses no HyperJob."""

import asyncio
import re
import shlex
import shutil
import signal
from pathlib import Path

import pytest
import yaml

from hyperjob_controller.options import parse as parse_controller
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
)
from hyperjob_rules.configuration import configurations
from hyperjob_sandbox.apiserver.server import ApiServer
from hyperjob_webhook.options import parse as parse_webhook
from tests.support.embedded import crd_files
from tests.support.hyperjobs import hyperjob
from tests.support.processes import free_port
from tests.support.rolling import Pod, Service
from tests.support.stack import issue_certificates

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(120)]

PAGE = Path(__file__).parents[2] / "docs/install.md"
UNIT = re.compile(r"# /etc/systemd/system/hyperjob-(\w+)\.service\n(.*?)```", re.DOTALL)


def command(name: str, etc: Path) -> list[str]:
    """Return the command of a unit as `python -m` runs it, with its files in a folder."""
    units = dict(UNIT.findall(PAGE.read_text()))
    text = units[name].replace("\\\n", " ").replace("/etc/hyperjob", str(etc))
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, *options = shlex.split(line)
    assert program == f"/opt/hyperjob/bin/hyperjob-{name}"
    return [f"hyperjob_{name}", *options]


def test_both_processes_find_their_ports_free_on_one_machine() -> None:
    of_webhook = parse_webhook(command("webhook", Path("/etc/hyperjob"))[1:])
    of_controller = parse_controller(command("controller", Path("/etc/hyperjob"))[1:])
    webhook = {of_webhook.health_probe_bind_address, of_webhook.metrics_address}
    controller = {of_controller.health_probe_bind_address, of_controller.metrics_bind_address}
    ports = [address.rpartition(":")[2] for address in (*webhook, *controller)]
    assert len({*ports, str(of_webhook.secure_port)}) == len(ports) + 1, ports


def files(etc: Path, server: ApiServer) -> bytes:
    """Write the files that the units read; return the authority of the certificate."""
    for name in ("webhook", "controller", "members", "tls"):
        (etc / name).mkdir(parents=True)
    issued = issue_certificates(etc)
    shutil.copy(issued.certificate, etc / "tls/tls.crt")
    shutil.copy(issued.key, etc / "tls/tls.key")
    for name in ("webhook", "controller", "members"):
        shutil.copy(server.kubeconfig(etc / "kubeconfig"), etc / name / "kubeconfig")
    return issued.authority.read_bytes()


def webhook(etc: Path) -> Pod:
    """Return a webhook on a port of its own: in the page each has a machine of its own."""
    port = free_port()
    options = ["--bind-address=127.0.0.1", f"--secure-port={port}"]
    return Pod([*command("webhook", etc), *options], log=etc / "webhook.log", port=port)


async def submit(kube: Kube, names: list[str], done: asyncio.Event) -> None:
    """Create HyperJobs until `done`; a refusal ends the test."""
    while not done.is_set():
        names.append(f"hj-{len(names)}")
        await kube.create(HYPERJOBS, hyperjob(names[-1]))
        await asyncio.sleep(0.05)  # about 20 a second


async def test_a_restart_of_one_of_two_webhooks_refuses_no_hyperjob(tmp_path: Path) -> None:
    etc, names, done, service = tmp_path / "etc", list[str](), asyncio.Event(), Service()
    crds = [yaml.safe_load(path.read_text()) for path in crd_files()]
    async with ApiServer(crds=crds) as server, service.listening():
        authority = files(etc, server)
        controller = Pod(command("controller", etc), log=etc / "controller.log")
        pods = [webhook(etc), webhook(etc), controller]
        async with Kube.connect(kubeconfig=etc / "webhook/kubeconfig") as kube:
            try:
                await kube.create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})
                await asyncio.gather(*(pod.start() for pod in pods))
                service.endpoints += pods[:2]
                hooks = configurations(url=f"https://127.0.0.1:{service.port}", ca_bundle=authority)
                for resource, each in zip(
                    (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), hooks, strict=True
                ):
                    await kube.create(resource, each)
                async with asyncio.TaskGroup() as group:
                    group.create_task(submit(kube, names, done))
                    pods[0].tell()
                    await pods[0].until(ready=False)
                    service.endpoints.remove(pods[0])
                    assert await pods[0].end() == 0
                    await pods[0].start()
                    service.endpoints.append(pods[0])
                    done.set()
            finally:
                await asyncio.gather(*(pod.end(signal.SIGKILL) for pod in pods if pod.process))
    assert len(names) > 1, "there was traffic"
