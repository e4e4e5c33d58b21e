"""Each command of the runbooks runs as it is printed, and shows what the runbook looks for."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hyperjob_controller.options import SETTINGS
from hyperjob_core.api.duration import utc_now
from hyperjob_core.kube.leaderelection import new_lease
from hyperjob_core.kube.resources import LEASES
from hyperjob_rules.configuration import configurations
from tests.support.controlplane import ControlPlane, control_plane
from tests.support.helm import one, template, unpack
from tests.support.hyperjobs import hyperjob
from tests.support.processes import ran

pytestmark = pytest.mark.scenario

PAGE = (Path(__file__).parents[2] / "docs/runbooks.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
TICKED = [" ".join(each.split()) for each in re.findall(r"`([^`]+)`", PROSE)]
PROGRAMS = ("kubectl ", "hyperjob ", "curl ", "karmadactl ")
COMMANDS = {each for each in TICKED if each.startswith(PROGRAMS)}
HOST = "kubectl --context host -n karmada-system"
# In this order: a command may change what the next one shows.
SHOWN = {
    f"{HOST} get pods -l app.kubernetes.io/component=webhook": "hyperjob-webhook-0",
    f"{HOST} get pods": "hyperjob-controller-0",
    f"{HOST} get jobs,pods -l app.kubernetes.io/component=renewal": "pod/hyperjob-renewal-0",
    f"{HOST} create job renew-now --from=cronjob/hyperjob-renewal": "job.batch/renew-now created",
    f"{HOST} get secret hyperjob-webhook-tls -o yaml": "tls.crt",
    "kubectl get pods -n volcano-global": "",
    "kubectl -n karmada-system get lease hyperjob-controller -o yaml": "holderIdentity: somebody",
    "kubectl get hj -A -o wide | grep InternalError": "llm",
    "kubectl get hj -A -o wide | grep Refused": "quota",
    "kubectl get hj -A | grep Degraded": "llm",
    "kubectl get hj -A --sort-by=.status.restarts": "quota",
    "kubectl get clusters": "east",
    "kubectl hyperjob why NAME": "incident 7",
    "kubectl hyperjob tree NAME": "llm-trainer-0",
    "kubectl hyperjob top": "CLUSTER",
    "kubectl hyperjob plan -f FILE": "llm",
    "hyperjob preflight": "vcjobs",
    "kubectl delete mutatingwebhookconfigurations,validatingwebhookconfigurations -l"
    " app.kubernetes.io/part-of=hyperjob": '"hyperjob-mutating" deleted',
}
# The webhook is not there, and `why` tells by its code what a HyperJob waits for.
CODES = {"hyperjob preflight": 1, "kubectl hyperjob why NAME": 4}
NOT_HERE = {
    f'{HOST} logs deploy/hyperjob-webhook | grep \'"level":"error"\'': "needs a kubelet",
    f"{HOST} top pod": "needs metrics-server",
    f"{HOST} describe certificate": "needs cert-manager",
    "curl http://POD:8081/readyz?verbose": "needs a pod; test_process.py reads /readyz?verbose",
    "hyperjob install": "needs a webhook that answers: test_install_again.py",
    "hyperjob install --service-accounts": "the same",
    "kubectl apply": "any file",
    "kubectl hyperjob logs NAME --previous": "needs a member: test_cli_following.py",
    "kubectl hyperjob restart NAME": "needs a controller: test_cli_changing.py",
    "kubectl hyperjob migrate NAME SUB-JOB": "the same",
    "kubectl hyperjob migrate": "the same",
    "karmadactl cordon": "a program of Karmada",
}
STATES: dict[str, dict[str, Any]] = {
    "llm": {"phase": "Degraded", "reason": "InternalError", "message": "incident 7: see the log"},
    "quota": {"phase": "Pending", "reason": "Refused", "message": "exceeded quota"},
}


def pods(rendered: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give each workload of the chart a pod with the labels of its template."""
    for each in rendered:
        spec = each.get("spec", {}).get("jobTemplate", each).get("spec", {})
        if each["kind"] in {"Deployment", "CronJob"}:
            labels = spec["template"]["metadata"]["labels"]
            metadata = {"name": f"{each['metadata']['name']}-0", "labels": labels}
            containers = [{"name": "main", "image": "i"}]
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata | {"namespace": "karmada-system"},
                "spec": {"containers": containers},
            }


def webhook_secret(rendered: list[dict[str, Any]]) -> dict[str, Any]:
    """Make the Secret that the chart's webhook mounts."""
    spec = one(rendered, "Deployment", "webhook")["spec"]["template"]["spec"]
    (name,) = (each["secret"]["secretName"] for each in spec["volumes"] if each["name"] == "tls")
    metadata = {"name": name, "namespace": "karmada-system"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"tls.crt": "certificate", "tls.key": "key"},
    }


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with the chart's objects, which is the host cluster too."""
    folder = tmp_path_factory.mktemp("plane")
    with control_plane(folder) as plane:
        rendered = template(unpack("helm4", folder), {"webhook": {"url": "https://h:1"}})
        lease = LEASES.head | new_lease(
            *("karmada-system", "hyperjob-controller", "somebody"), seconds=3600, now=utc_now()
        )
        cluster = {
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {"name": "east"},
            "spec": {"syncMode": "Push"},
        }
        made = [webhook_secret(rendered)]
        made += [each for each in rendered if each["kind"] in {"Deployment", "CronJob"}]
        made += [
            *pods(rendered),
            *map(hyperjob, STATES),
            *configurations(url="https://h:1"),
            cluster,
        ]
        plane.kubectl("create", "namespace", "karmada-system")
        for each in (*made, lease):
            plane.kubectl("create", "-f", "-", stdin=json.dumps(each))
        for name, state in STATES.items():
            jobs = [{"name": f"{name}-trainer-0", "replicatedJob": "trainer", "cluster": "east"}]
            status = {"observedGeneration": 1, "state": state, "jobs": jobs, "restarts": 1}
            patch = json.dumps({"status": status})
            plane.kubectl("patch", "hj", name, "--subresource=status", "--type=merge", "-p", patch)
        text = yaml.safe_load(plane.kubeconfig.read_text())
        text["contexts"].append({**text["contexts"][0], "name": "host"})
        plane.kubeconfig.write_text(yaml.safe_dump(text))
        (folder / "llm.yaml").write_text(json.dumps(hyperjob("llm")))
        yield plane


def test_each_command_is_walked_here_or_says_why_not() -> None:
    assert SHOWN.keys() | NOT_HERE.keys() == COMMANDS


def test_the_commands_show_what_the_runbooks_look_for(plane: ControlPlane) -> None:
    folder, programs = plane.kubeconfig.parent, Path(sys.executable).parent
    meant = {"NAME": "llm", "SUB-JOB": "llm-trainer-0", "FILE": str(folder / "llm.yaml")}

    def name(placeholder: re.Match[str]) -> str:
        return meant[placeholder[0]]

    env = os.environ | {
        "KUBECONFIG": str(plane.kubeconfig),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    found = {}
    for printed, shown in SHOWN.items():
        if "create job" in printed and not plane.real:
            continue  # kubectl sends it as protobuf, which the embedded API server does not read
        script = re.sub(r"\b(SUB-JOB|NAME|FILE)\b", name, printed)
        done = ran("bash", "-o", "pipefail", "-c", script, env=env)
        if done.returncode != CODES.get(printed, 0) or shown not in done.stdout:
            found[printed] = (done.returncode, done.stdout + done.stderr)
    assert found == {}, found


def test_options_and_objects_of_the_host_cluster_have_the_names_of_the_runbooks(
    tmp_path: Path,
) -> None:
    options = {
        each.lstrip("-").replace("-", "_") for each in TICKED if re.fullmatch(r"--[\w-]+", each)
    }
    assert options <= {*SETTINGS, "all_containers"}
    names = {
        each["metadata"]["name"]
        for each in template(unpack("helm4", tmp_path), {"webhook": {"url": "https://h:1"}})
        if each["kind"] in {"Deployment", "CronJob"}
    }
    words = [word for text in (*TICKED, *BLOCKS) for word in text.split()]
    named = {
        word.partition("/")[2] for word in words if re.match(r"(deploy|--from=cronjob)/", word)
    }
    assert named <= names
