"""A training whose groups go on without each other, in plain Python: a stand-in for torchft.

Every group makes the steps that it can claim in a common folder, as long as enough groups are alive
by their heartbeats there. Each step is made once, by the group that claims it first.
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
    """Count the groups whose heartbeat is fresh, this one included."""
    (alive / name).touch()
    now = time.time()
    return sum(now - each.stat().st_mtime < silent for each in alive.iterdir())


def made():
    """Return the last step that any group made."""
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
        continue  # another group makes it
    with journal.open("a") as file:
        file.write(f"{step + 1} {name} {time.time()}\n")
    line = {"step": step + 1, "steps": steps, "saved": step + 1}
    print(json.dumps({"hyperjob": line}), flush=True)
print(f"{name} has ended at step {made()}", flush=True)
sys.exit(0)
