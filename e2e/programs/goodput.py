"""A training of one process that records every executed step, beside its progress lines.

The program appends each step to a file that survives the process, and prints all steps at the end.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

folder = Path(os.environ["HYPERJOB_CHECKPOINT_DIR"])
last, truth = folder / "last.json", folder / "truth.jsonl"
steps, pause, every = int(os.environ["STEPS"]), float(os.environ["PAUSE"]), 40
told = []


def say(step, *, saved=None):
    """Print a progress line."""
    line = {"step": step, "steps": steps} | ({} if saved is None else {"saved": saved})
    print(json.dumps({"hyperjob": line}), flush=True)


def save(step):
    """Write a checkpoint atomically."""
    part = last.with_suffix(".part")
    part.write_text(json.dumps(step))
    part.replace(last)
    say(step, saved=step)


signal.signal(signal.SIGTERM, lambda *_: told.append(True))
time.sleep(float(os.environ["LOAD"]))
done = json.loads(last.read_text()) if last.exists() else 0
say(done, saved=done or None)
began = time.time()
with truth.open("a") as book:
    for step in range(done + 1, steps + 1):
        time.sleep(pause)
        ended = time.time()
        book.write(json.dumps([step, ended - began]) + "\n")
        book.flush()
        began = ended
        if told:
            save(step)
            sys.exit(0)
        if step % every == 0 or step == steps:
            save(step)
        elif step % 10 == 0:
            say(step)
        crash = folder / "crash"
        if crash.exists():
            crash.unlink()
            sys.exit(3)
print("truth " + truth.read_text().replace("\n", ";"), flush=True)
