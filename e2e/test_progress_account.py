"""Read progress through Karmada's proxy with an account without other rights.

The pods print progress with a shell; simulated kubelets must serve such a log.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.support.manifests import group, hyperjob
from e2e.support.scenario import Scenario, clusters_of
from e2e.support.settings import from_environment
from e2e.support.world import World, open_world
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.kube.resources import HYPERJOBS
from hyperjob_install.objects import Component
from hyperjob_install.rbac import MEMBER_ROLE, MEMBERS
from hyperjob_install.settings import RECORD
from tests.support.processes import wait_for
from tests.support.stack import kubectl

NAMESPACE = "progress-account"
NAME = "reports"
STEPS = 5000
PRINTS = f"""
step=0
while true; do
  echo '{{"hyperjob": {{"step": '$step', "steps": {STEPS}, "saved": '$((step / 10 * 10))'}}}}'
  step=$((step + 1))
  sleep 1
done
"""
_PROXY = "/apis/cluster.karmada.io/v1alpha1/clusters/{member}/proxy"


def install(kubeconfig: Path, *arguments: str) -> None:
    """Install or delete only the account; an installation always records itself."""
    kept = (Component.MEMBERS, Component.RECORD)
    others = [f"--skip={part}" for part in Component if part not in kept]
    command = [sys.executable, "-m", "hyperjob", "install", f"--kubeconfig={kubeconfig}"]
    subprocess.run([*command, *others, *arguments], check=True, timeout=180)


def account(kubeconfig: Path, directory: Path) -> Path:
    """Create a service account; return a kubeconfig with its token only."""
    kubectl(kubeconfig, "create", "namespace", NAMESPACE)
    kubectl(kubeconfig, "--namespace", NAMESPACE, "create", "serviceaccount", MEMBERS)
    token = kubectl(
        kubeconfig, "--namespace", NAMESPACE, "create", "token", MEMBERS, "--duration=3h"
    ).stdout.strip()
    view = kubectl(kubeconfig, "config", "view", "--minify", "--raw", "--flatten", "-o", "json")
    config = json.loads(view.stdout)
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path = directory / "progress.kubeconfig"
    path.write_text(json.dumps(config))
    return path


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the kubeconfig of the account, once every member has its role."""
    settings = from_environment()
    kubeconfig = settings.kubeconfig
    if kubeconfig is None or not settings.local:
        pytest.skip("the embedded sandbox asks no role: it takes a Karmada, and a controller here")
    record = ("--namespace", LEASE_NAMESPACE, "get", "configmap", RECORD, "-o", "json")
    before = kubectl(kubeconfig, *record, check=False)
    try:
        path = account(kubeconfig, tmp_path_factory.mktemp("account"))
        user = f"system:serviceaccount:{NAMESPACE}:{MEMBERS}"
        install(kubeconfig, "--members=logs", f"--user-prefix={user.removesuffix('members')}")
        for member in settings.members.values():
            wait_for(
                lambda member=member: (  # type: ignore[misc]
                    not kubectl(
                        member, "get", "clusterrolebinding", MEMBER_ROLE, check=False
                    ).returncode
                ),
                what=f"the role of the account in {member.name}",
            )
        yield path
    finally:
        install(kubeconfig, "--members=off")
        if not before.returncode:  # the account, and what `hyperjob install` repeats, as before
            found = json.loads(before.stdout)
            data = found["data"]
            own = data["service-accounts"] == "true"
            whose = "--service-accounts" if own else f"--user-prefix={data['user-prefix']}"
            install(kubeconfig, f"--members={data['members']}", whose)
            del found["metadata"]["resourceVersion"]
            kubectl(kubeconfig, "replace", "-f", "-", stdin=json.dumps(found))
        kubectl(kubeconfig, "delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def world(narrow: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield the Karmada of the settings, and a controller that reads logs with the account only."""
    reading = ["--members=logs", f"--members-kubeconfig={narrow}", "--progress-interval=1"]
    directory = tmp_path_factory.mktemp("account-world")
    with open_world(from_environment(), directory, controller=reading) as opened:
        yield opened


async def test_progress_arrives_by_an_account_that_may_do_nothing_else(
    scenario: Scenario, narrow: Path
) -> None:
    parts = [
        group(scenario.world, part, accelerators=1, seconds=3600, only_on=[member])
        for part, member in zip(("left", "right"), scenario.world.pair, strict=True)
    ]
    for part in parts:
        for task in part["templateSpec"]["tasks"]:
            task["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", PRINTS]
    await scenario.apply(hyperjob(NAME, *parts))
    await scenario.until_phase(NAME, "Running")
    first = scenario.world.members[scenario.world.pair[0]]
    log = kubectl(
        first, "--namespace", scenario.namespace, "logs", f"{NAME}-left-0-worker-0", check=False
    )
    if log.returncode:
        pytest.skip(f"a kubelet serves no logs: {log.stderr.strip()}")
    found = await scenario.until(
        HYPERJOBS,
        NAME,
        lambda now: (
            now is not None
            and len(_steps(now)) == 2
            and min(_steps(now)) >= 20
            and now["status"]["training"].get("savedStep", 0) >= 10
        ),
        what="at step 20 in both clusters",
    )
    assert found["status"]["training"]["steps"] == STEPS
    assert set(clusters_of(found).values()) == set(scenario.world.pair)
    pod = f"{NAME}-left-0-worker-0"
    for member in scenario.world.pair:
        proxy = _PROXY.format(member=member)
        pods = f"{proxy}/api/v1/namespaces/{scenario.namespace}/pods"
        assert not refusal(narrow, f"{pods}?limit=1")
        assert "forbidden" in refusal(narrow, f"{pods}/{pod}")
        assert "forbidden" in refusal(narrow, f"{proxy}/api/v1/secrets")
        assert "forbidden" in refusal(narrow, f"{proxy}/api/v1/nodes")
    for path in (
        "/api/v1/secrets",
        f"{HYPERJOBS.path()}",
        "/apis/cluster.karmada.io/v1alpha1/clusters",
    ):
        assert "forbidden" in refusal(narrow, path)


def _steps(hyperjob: dict) -> list[int]:
    """Return the last reported steps of the sub-jobs."""
    jobs = (hyperjob.get("status") or {}).get("jobs") or ()
    return [job["training"]["step"] for job in jobs if "training" in job]


def refusal(kubeconfig: Path, path: str) -> str:
    """Get a path with the account; return the reason of the refusal, empty if allowed."""
    done = kubectl(kubeconfig, "get", "--raw", path, check=False)
    return done.stderr.lower() if done.returncode else ""
