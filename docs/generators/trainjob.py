"""Generate the page of all fields of a TrainJob and its runtime: the tables that decide.

`python -m docs.generators.trainjob docs/reference/trainjob.md` writes the page; a test
compares it.
"""

import sys
from pathlib import Path
from typing import Final

from hyperjob_trainjobs.fields import tables

INTRO: Final = """\
# Fields of TrainJobs

What becomes of each field of a TrainJob and of its runtime when the TrainJob
[runs as a HyperJob](../tasks/trainjob.md). A field that is not on this page is refused by name.
`python -m docs.generators.trainjob docs/reference/trainjob.md` generates this page; do
not edit it.
"""


def render() -> str:
    """Return the page as Markdown."""
    return "".join([INTRO, *(f"\n## {table}" for table in tables())])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
