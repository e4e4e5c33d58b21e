"""The pods of a vcjob with the environment of their processes.

The simulated member does Volcano's part (names, labels, plugins); this module does the kubelet's
part, fields and $(NAME) references.
"""

import re
from dataclasses import dataclass
from typing import Any

from hyperjob_sandbox.member.jobpods import build_pod

Object = dict[str, Any]
REFERENCE = re.compile(r"\$(?:\$|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")
LABEL = re.compile(r"metadata\.labels\['(.+)'\]")


@dataclass(frozen=True)
class Pod:
    """One pod: its name, its address, and the environment of its first container."""

    name: str
    address: str
    env: dict[str, str]

    @property
    def rank(self) -> int:
        """The rank of the pod in the world of processes, computed as in the documentation."""
        return int(self.env["HYPERJOB_RANK_OFFSET"]) + int(self.env["HYPERJOB_TASK_INDEX"])


def pods_of(job: Object) -> list[Pod]:
    """Return all pods of a vcjob, each with its own address."""
    pods = []
    for task in job["spec"]["tasks"]:
        for index in range(task["replicas"]):
            pod = build_pod(job, task, index)
            where = f"10.0.0.{len(pods) + 1}"
            container = pod["spec"]["containers"][0]
            env = environment(container.get("env") or [], pod, where)
            pods.append(Pod(name=pod["metadata"]["name"], address=where, env=env))
    return pods


def environment(variables: list[Object], pod: Object, address: str) -> dict[str, str]:
    """Evaluate variables in their order, as a kubelet does: each may refer to those before it."""
    found: dict[str, str] = {}
    for each in variables:
        if "valueFrom" in each:
            found[each["name"]] = field(each["valueFrom"]["fieldRef"]["fieldPath"], pod, address)
        else:
            found[each["name"]] = expand(each.get("value", ""), found)
    return found


def field(path: str, pod: Object, address: str) -> str:
    if path == "status.podIP":
        return address
    match = LABEL.fullmatch(path)
    assert match, f"no pod has {path}"
    return str(pod["metadata"]["labels"][match[1]])


def expand(text: str, known: dict[str, str]) -> str:
    """Return the text with $(NAME) replaced by known values; $$ is a dollar sign."""
    return REFERENCE.sub(
        lambda found: "$" if found[0] == "$$" else known.get(found[1], found[0]), text
    )
