"""Texts of manifests, and what kubectl and the API server make of each.

A row of the table has a text, its place in a HyperJob, and the verdict of `kubectl apply` on a real
API server with the CRD: `refused`, or what is stored at the field that the text begins with
(not for metadata, which has fields that the API server writes).
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "unit" / "cli" / "data" / "kubectl-texts.jsonl"
ABSENT = "(absent)"

_HYPERJOB = """\
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata:
  name: a
  @meta
spec:
  @spec
  replicatedJobs:
  - name: t
    @group
    templateSpec:
      @job
      tasks:
      - name: w
        replicas: 1
        @task
        template:
          @template
          spec:
            restartPolicy: Never
            @pod
            containers:
            - name: main
              image: busybox:1.36
              @container
"""


@dataclass(frozen=True)
class Row:
    """A text at a place, and its verdict; `stored` is ABSENT where the field is not stored."""

    at: str
    text: str
    refused: bool = False
    stored: Any = None

    def __str__(self) -> str:
        return f"{self.at} {self.text[:60]!r}"

    def document(self) -> str:
        """Return the text of the file."""
        if self.at == "file":
            return self.text
        lines = []
        for line in _HYPERJOB.splitlines():
            indent, mark, place = line.partition("@")
            if not mark:
                lines.append(line)
            elif place == self.at:
                lines += [indent + each for each in self.text.split("\n")]
        return "\n".join(lines) + "\n"

    @property
    def is_stored(self) -> bool:
        """Return whether the row has the stored value."""
        return not self.refused and self.at not in {"file", "meta"}

    def field(self, hyperjob: Any) -> Any:
        """Return what a HyperJob has at the field with which the text begins."""
        group = hyperjob["spec"]["replicatedJobs"][0]
        job = group["templateSpec"]
        task = job["tasks"][0]
        places = {
            "spec": hyperjob["spec"],
            "group": group,
            "job": job,
            "task": task,
            "template": task["template"],
            "pod": task["template"]["spec"],
            "container": task["template"]["spec"]["containers"][0],
        }
        return places[self.at].get(self.text.partition(":")[0].strip(), ABSENT)


def rows() -> list[Row]:
    """Return the table."""
    return [Row(**json.loads(line)) for line in TABLE.read_text(encoding="utf-8").splitlines()]
