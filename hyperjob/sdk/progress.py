"""Report the progress of a training: one JSON line on standard output, at most one a second.

This file needs nothing but Python: import it, or copy it into a training program.

    from hyperjob.sdk import progress

    progress(step=1200, steps=5000, saved=1000, loss=2.1)
"""

import json
import os
import sys
import time
from typing import Any

_SECONDS = 1.0
_last = [0.0]


def progress(
    *, step: int, steps: int | None = None, saved: int | None = None, **metrics: float
) -> bool:
    """Print one progress line; return whether it was printed.

    `step` of `steps` is done, and `saved` is the last step of a complete checkpoint. Further
    keywords are metrics. A call within a second of the last line prints nothing, unless it reports
    the last step or a checkpoint. Call it in one process of the training.
    """
    now = time.monotonic()
    if now - _last[0] < _SECONDS and saved is None and step != steps:
        return False
    _last[0] = now
    told: dict[str, Any] = {"step": step}
    if steps is not None:
        told["steps"] = steps
    if saved is not None:
        told["saved"] = saved
    if metrics:
        told["metrics"] = metrics
    line = json.dumps({"hyperjob": told}) + "\n"
    sys.stdout.flush()
    # One write, so that lines of processes that share a pipe are never mixed.
    os.write(sys.stdout.fileno(), line.encode())
    return True
