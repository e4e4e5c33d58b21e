"""Texts of manifests, and what kubectl and the API server make of each.

A line of the table has a text at a place of a HyperJob, and values that come in place of its `$`.
Each has the verdict of `kubectl apply` on a real API server with the CRD: `refused`, or what is
`stored` at the field that the text begins with; `same` values stand in that field as they are, as
`in` shows. What is `taken` is not compared: metadata has fields that the API server writes.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

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


_YAML = """\
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: a}
spec:
  replicatedJobs:
  - name: t
    templateSpec:
      tasks:
      - name: w
        replicas: 1
        template: {spec: {restartPolicy: Never, containers: [{name: main, image: b}]}}
"""
_JSON = json.dumps(yaml.safe_load(_YAML))


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
    """Return the table, a row for each value."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return [row for line in lines for row in _rows(json.loads(line))]


def _rows(line: dict[str, Any]) -> Iterator[Row]:
    at, text = line["at"], line["text"]
    for value in line.get("refused", ()):
        yield Row(at, _filled(text, value), refused=True)
    for value in line.get("taken", ()):
        yield Row(at, _filled(text, value))
    for value in line.get("same", ()):
        yield Row(
            at, _filled(text, value), stored=[{**item, "value": value} for item in line["in"]]
        )
    for value, stored in line.get("stored", ()):
        yield Row(at, _filled(text, value), stored=stored)


def _filled(text: str, value: str) -> str:
    """Put a value into a text; `$yaml`, `$json` and `$open` in it are whole HyperJobs."""
    for name, whole in {"$yaml": _YAML, "$json": _JSON, "$open": _JSON[:-1]}.items():
        value = value.replace(name, whole)
    return text.replace("$", value)
