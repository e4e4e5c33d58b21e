"""The page of the chart's values: `python -m charts.reference docs/reference/values.md`.

The page is generated from values.yaml: a line `# -- …` above a key, with the comment lines after
it, is the key's description.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from docs.generators.markdown import row, table

ROOT: Final = Path(__file__).resolve().parents[1]
_HEAD: Final = """# Values of the chart

Made from [`charts/hyperjob/values.yaml`](../../charts/hyperjob/values.yaml) by
`python -m charts.reference docs/reference/values.md`; do not edit it. Values that the schema does
not know are refused by Helm.
"""


@dataclass(frozen=True, slots=True)
class Value:
    """One documented value; `path` has dots between keys."""

    path: str
    default: object
    text: str


def values(text: str) -> Iterator[Value]:
    """Yield every leaf of values.yaml, with or without a description, in order."""
    described = _descriptions(text)
    for path, default in _leaves(yaml.safe_load(text), "", frozenset(described)):
        yield Value(path, default, described.get(path, ""))


def page(text: str) -> str:
    """Return the page for the text of a values.yaml."""
    rows = [
        row(f"`{value.path}`", f"`{json.dumps(value.default)}`", value.text)
        for value in values(text)
    ]
    return "\n".join([_HEAD, *table("value", "default", "meaning"), *rows, ""])


def _leaves(node: object, path: str, described: frozenset[str]) -> Iterator[tuple[str, object]]:
    """Yield each key with a description, and each leaf without one."""
    if isinstance(node, dict) and node and path not in described:
        for key, inner in node.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), described)
    else:
        yield path, node


def _descriptions(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    keys: list[tuple[int, str]] = []
    words: list[str] | None = None
    for line in text.splitlines():
        bare = line.strip()
        if bare.startswith("# -- "):
            words = [bare.removeprefix("# -- ")]
        elif bare.startswith("#") and words is not None:
            words.append(bare.removeprefix("#").strip())
        elif bare and not bare.startswith("#"):
            depth = len(line) - len(line.lstrip())
            keys = [(d, k) for d, k in keys if d < depth]
            keys.append((depth, bare.partition(":")[0]))
            if words is not None:
                found[".".join(key for _, key in keys)] = " ".join(words)
            words = None
        else:
            words = None
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page((ROOT / "charts/hyperjob/values.yaml").read_text()))
