"""The pods of a vcjob with the environment that their processes see.

Volcano's part (names, labels, plugins) is the simulated member's; the kubelet's part, fields and
$(NAME) references, is here.
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
        """Its number among all pods, as the documentation says it is computed."""
        return int(self.env["HYPERJOB_RANK_OFFSET"]) + int(self.env["HYPERJOB_TASK_INDEX"])


def pods_of(job: Object) -> list[Pod]:
    """Build all pods of a vcjob, each with an address of its own."""
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
    """Replace $(NAME) by what is known; $$ is a dollar sign, and an unknown name stays."""
    return REFERENCE.sub(
        lambda found: "$" if found[0] == "$$" else known.get(found[1], found[0]), text
    )
