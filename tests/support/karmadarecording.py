"""What a real Karmada and Volcano were recorded to make of a few sub-jobs, an object a line."""

import json
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "unit" / "sandbox" / "data" / "karmada.jsonl"


def _read() -> dict[str, Any]:
    """Return the objects by scene, kind and state."""
    recorded: dict[str, Any] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        node = recorded
        for step, _ in pairwise(row["at"]):
            node = node.setdefault(step, {})
        node[row["at"][-1]] = row["recorded"]
    return recorded


RECORDED = _read()


def without_server_fields(obj: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded object as its author wrote it."""
    obj = deepcopy(obj)
    for field in ("creationTimestamp", "generation", "resourceVersion", "uid"):
        obj["metadata"].pop(field, None)
    return obj
