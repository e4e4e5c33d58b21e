"""In one room no two files have a name and a meaning in common."""

from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
REPEATED = {
    "core": {
        "logs.py": "the logs of containers, and the logs of our processes",
    },
    "engine": {
        "members.py": "the sub-jobs that exist, and the clusters as their API servers show them",
        "training.py": "the progress of one sub-job, and the section of the status",
    },
    "queueing": {},
    "rules": {},
    "controller": {"reader.py": "the reader of failed pods, and that of progress lines"},
    "webhook": {},
    "certs": {},
    "trainjobs": {},
}
"""Names that a room has twice, and what the files with it are about."""


@pytest.mark.parametrize("room", REPEATED)
def test_a_room_has_no_name_of_a_file_twice(room: str) -> None:
    found = defaultdict(list)
    for path in (ROOT / room / f"hyperjob_{room}").rglob("*.py"):
        if path.name != "__init__.py":
            found[path.name].append(path)
    assert {name for name, files in found.items() if len(files) > 1} == REPEATED[room].keys()
