"""A training of one process that writes each executed step into a journal, and meets its FATE.

FATE is a list of [kind, step, seconds]: `crash` ends the process once at a step, `hang` makes no
step for so long, `pause` does so announced. SIGTERM saves a checkpoint and ends it.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ["PROGRESS_FOLDER"])
from progress import progress

folder = Path(os.environ["JOURNAL"])
last, journal, met = folder / "last.json", folder / "journal", folder / "met"
steps, pause, every = int(os.environ["STEPS"]), float(os.environ["PAUSE"]), int(os.environ["EVERY"])
fates = {step: (kind, seconds) for kind, step, seconds in json.loads(os.environ["FATE"])}
asked: list[bool] = []


def save(step: int) -> None:
    """Write a checkpoint atomically."""
    part = last.with_suffix(".part")
    part.write_text(json.dumps(step))
    part.replace(last)
    progress(step=step, steps=steps, saved=step)


def meet(step: int) -> float:
    """Meet the fate of a step, once; return the seconds of an announced pause."""
    kind, seconds = fates.get(step, ("", 0.0))
    mark = met.with_suffix(f".{step}")
    if not kind or mark.exists():
        return 0.0
    mark.touch()
    if kind == "crash":
        sys.exit(3)
    if kind == "pause":
        progress(phase="evaluate")
    time.sleep(seconds)
    return seconds if kind == "pause" else 0.0


signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
progress(phase="load")
time.sleep(float(os.environ["LOAD"]))
done = json.loads(last.read_text()) if last.exists() else 0
progress(step=done, steps=steps, saved=done or None)
with journal.open("a") as book:
    evaluated = 0.0
    for step in range(done + 1, steps + 1):
        began = time.time() - evaluated  # an evaluation is a part of the work
        time.sleep(pause)
        book.write(json.dumps([step, began, time.time(), os.getpid()]) + "\n")
        book.flush()
        if asked:
            save(step)
            sys.exit(0 if step == steps else 143)
        if step % every == 0 or step == steps:
            save(step)
        else:
            progress(step=step, steps=steps)
        evaluated = meet(step)
