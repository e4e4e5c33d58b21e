"""A training in plain Python whose groups continue without each other, in place of torchft.

Every group claims steps in a common folder while enough groups have fresh heartbeats there. Each
step is executed once, by the group that claims it first.
"""

import json
import os
import sys
import time
from pathlib import Path

folder = Path(os.environ["HYPERJOB_CHECKPOINT_DIR"])
name, quorum = os.environ["HYPERJOB_JOB_NAME"], int(os.environ["QUORUM"])
steps, pause = int(os.environ["STEPS"]), float(os.environ["PAUSE"])
silent = float(os.environ.get("SILENT", "1"))
alive, journal = folder / "alive", folder / "journal"
alive.mkdir(exist_ok=True)


def groups():
    """Return the number of groups with a fresh heartbeat, including this group."""
    (alive / name).touch()
    now = time.time()
    return sum(now - each.stat().st_mtime < silent for each in alive.iterdir())


def made():
    """Return the last step of any group."""
    return len(journal.read_text().splitlines()) if journal.exists() else 0


print(f"{name} starts in {os.environ['HYPERJOB_CLUSTER']} after step {made()}", flush=True)
waits = False
while (step := made()) < steps:
    if groups() < quorum:
        if not waits:
            print(f"{name} waits for {quorum} groups at step {step}", flush=True)
        waits = True
        time.sleep(0.05)
        continue
    waits = False
    time.sleep(pause)
    claim = folder / f"step-{step + 1}"
    try:
        os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        continue  # another group has claimed the step
    with journal.open("a") as file:
        file.write(f"{step + 1} {name} {time.time()}\n")
    line = {"step": step + 1, "steps": steps, "saved": step + 1}
    print(json.dumps({"hyperjob": line}), flush=True)
print(f"{name} has ended at step {made()}", flush=True)
sys.exit(0)
