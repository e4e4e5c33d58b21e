"""Generate the page of all fields of a TrainJob and its runtime, from the tables that decide.

`python -m docs.generators.trainjob docs/reference/trainjob.md` writes the page; a test
compares it.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.generators.markdown import row, table
from hyperjob_trainjobs.fields import POD, RUNTIME, TRAINJOB, Field

INTRO: Final = """\
# Fields of TrainJobs

What becomes of each field of a TrainJob and of its runtime when the TrainJob
[runs as a HyperJob](../tasks/trainjob.md). A field that is not on this page is refused by name.
`python -m docs.generators.trainjob docs/reference/trainjob.md` generates this page; do
not edit it.
"""


def render() -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield INTRO
    yield from _section("`spec` of a TrainJob", TRAINJOB)
    yield from _section("`spec` of a TrainingRuntime or ClusterTrainingRuntime", RUNTIME)
    yield from _section("The pods of a runtime: fields that are refused", POD)


def _section(title: str, fields: Mapping[str, Field]) -> Iterator[str]:
    yield f"## {title}\n"
    yield from table("field", "decision", "meaning")
    for path, field in fields.items():
        yield row(f"`{path}`", _decision(field), field.text)
    yield ""


def _decision(field: Field) -> str:
    if field.carried:
        return "carried over"
    values = [f"`{_text(value)}`" for value in field.accepted if value not in (None, "")]
    return f"refused, except {', '.join(values)}" if values else "refused"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
