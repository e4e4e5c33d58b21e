"""The generator of docs/reference/api.md, from the schema of the CRD.

`python -m docs.generators.api docs/reference/api.md` writes the page; a test compares it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.generators.markdown import row, table
from hyperjob_core.api import names
from hyperjob_core.api.meta import Object
from hyperjob_core.api.schema import hyperjob_crd

INTRO: Final = f"""\
# HyperJob API

Group `{names.GROUP}`, version `{names.VERSION}`, kind `{names.KIND}`, short names `hyperjob`, `hj`.
This page is made from the CRD (`python -m docs.generators.api docs/reference/api.md`); do
not edit it. `kubectl explain hyperjob.spec` says the same in a terminal. What admission makes of
each field, and every message, is in [messages](../messages.md).

Upstream's fields keep their names, types and defaults, so manifests for Volcano Global's HyperJob
apply unchanged.
"""

# Kubernetes documents these itself, with hundreds of fields.
_FOREIGN: Final = {
    "template": "a Kubernetes PodTemplateSpec",
    "volumeClaim": "a Kubernetes PersistentVolumeClaimSpec",
}


def render() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    version = hyperjob_crd()["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    yield INTRO
    for part in ("spec", "status"):
        yield f"## {part}\n"
        yield from table("Field", "Type", "Default", "Meaning")
        for path, node, required in _fields(schema[part], part):
            meaning = str(node.get("description", ""))
            if required:
                meaning = f"**Required.** {meaning}"
            yield row(f"`{path}`", _type(path, node), _default(node), meaning.strip())
        yield ""
    yield "## Columns of `kubectl get hj`\n"
    yield from table("Column", "From", "Meaning")
    for column in version["additionalPrinterColumns"]:
        wide = " (`-o wide`)" if column.get("priority") else ""
        meaning = str(column.get("description", ""))
        yield row(f"{column['name']}{wide}", f"`{column['jsonPath']}`", meaning)
    yield "\n## Labels and annotations\n"
    yield from table("Name", "On", "Meaning")
    for cells in _NAMES:
        yield row(*cells)
    yield ""


_NAMES: Final = (
    (f"`{names.LABEL_HYPERJOB}`", "vcjob, policy", "Name of the HyperJob."),
    (f"`{names.LABEL_REPLICATED_JOB}`", "vcjob, policy", "Name of the replicatedJob."),
    (f"`{names.LABEL_INDEX}`", "vcjob, policy", "Index of the sub-job in its replicatedJob."),
    (
        f"`{names.LABEL_ATTEMPT}`",
        "vcjob, policy",
        "How often the controller has recreated the sub-job before.",
    ),
    (
        f"`{names.ASKED_AGAIN}`",
        "vcjob",
        "How often the controller has had Karmada apply the vcjob again.",
    ),
    (
        f"`{names.LABEL_BINDING}`",
        "ResourceBinding",
        "The ResourceBinding belongs to a HyperJob; set by the webhook.",
    ),
    (
        f"`{names.GATE}`",
        "PropagationPolicy, ResourceBinding",
        f"`{names.GATE_HELD}` until the gang is complete, `{names.GATE_OPEN}` from then on.",
    ),
    (
        f"`{names.RESTART_REQUEST}`",
        "HyperJob",
        "A token, then names of sub-jobs; without names: all. It requests one restart.",
    ),
    (
        f"`{names.MIGRATE_REQUEST}`",
        "HyperJob",
        "A token, then names of sub-jobs. It requests a move of them to other clusters.",
    ),
)


def _fields(node: Object, path: str) -> Iterator[tuple[str, Object, bool]]:
    """Yield path, node and whether it is required of each field, parents before children."""
    required = node.get("required") or ()
    for name, child in (node.get("properties") or {}).items():
        below = f"{path}.{name}"
        yield below, child, name in required
        if name in _FOREIGN:
            continue
        inner: Object = child
        while True:
            if inner.get("type") == "array":
                inner, below = inner["items"], f"{below}[]"
            elif isinstance(inner.get("additionalProperties"), dict):
                inner, below = inner["additionalProperties"], f"{below}[*]"
            else:
                break
        yield from _fields(inner, below)


def _type(path: str, node: Object) -> str:
    foreign = _FOREIGN.get(path.rsplit(".", 1)[-1])
    if foreign:
        return foreign
    if node.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    kind = str(node.get("type", "any"))
    if kind == "array":
        return f"list of {_type('', node['items'])}{_most(node.get('maxItems'))}"
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"map of {_type('', node['additionalProperties'])}{_most(node.get('maxProperties'))}"
    return kind + _bounds(node)


def _most(count: int | None) -> str:
    return "" if count is None else f", at most {count:,}"


def _bounds(node: Object) -> str:
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None and high < 2**31 - 1:
        return f" {low} to {high:,}"
    return f" ≥ {low}" if low is not None else ""


def _default(node: Object) -> str:
    if "default" not in node:
        return ""
    value = node["default"]
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def main() -> None:
    """Write the page to the file in the first argument."""
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
