"""Report the progress of a training: one JSON line on standard output, at most one a second.

This file needs only Python's standard library: import it, or copy it into a training program.

    from hyperjob.sdk import progress

    progress(step=1200, steps=5000, saved=1000, loss=2.1)
"""

import json
import os
import sys
import time
from typing import Any

_SECONDS = 1.0
_last: dict[str, Any] = {"time": 0.0, "saved": None}


def progress(
    *, step: int, steps: int | None = None, saved: int | None = None, **metrics: float
) -> bool:
    """Print one progress line; return whether it was printed.

    The training has finished `step` of `steps`, and `saved` is the step of the last complete
    checkpoint. Other keywords are metrics. A call within a second after the last line prints
    nothing, unless it reports the last step or a new checkpoint. Call this function in one process
    of the training, for the first time before the first step, with the step from which the
    training resumes.
    """
    now = time.monotonic()
    new = saved is not None and saved != _last["saved"]
    if now - _last["time"] < _SECONDS and not new and step != steps:
        return False
    _last.update(time=now, saved=saved if new else _last["saved"])
    report: dict[str, Any] = {"step": step}
    if steps is not None:
        report["steps"] = steps
    if saved is not None:
        report["saved"] = saved
    if metrics:
        report["metrics"] = metrics
    line = json.dumps({"hyperjob": report}) + "\n"
    sys.stdout.flush()
    # A single write keeps the lines of processes that share a pipe separate.
    os.write(sys.stdout.fileno(), line.encode())
    return True
