"""`python -m tests.unit.recorded` writes all files anew; names of sections write these alone."""

import logging
import sys

from tests.unit.recorded.recording import DATA, record
from tests.unit.recorded.sections import SECTIONS

if __name__ == "__main__":
    logging.disable()
    chosen = sys.argv[1:] or list(SECTIONS)
    for path in DATA.glob("*.txt"):
        if path.stem not in SECTIONS:
            path.unlink()
    for name in chosen:
        record(name, SECTIONS[name])
