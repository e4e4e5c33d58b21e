"""A training of plain Python that saves a checkpoint now and then, and at SIGTERM.

The file SAVED has the step of each checkpoint that its pod has saved. PRINTS has the numbers of the
pods that print progress lines; CHATTER is how many other lines each step prints.
"""

import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, os.environ["PROGRESS_FOLDER"])
from progress import progress

stopping: list[int] = []
signal.signal(signal.SIGTERM, lambda number, _frame: stopping.append(number))
rank = int(os.environ["HYPERJOB_RANK_OFFSET"]) + int(os.environ["HYPERJOB_TASK_INDEX"])
prints = str(rank) in os.environ["PRINTS"].split()
saved_file, chatter = Path(f"{os.environ['SAVED']}.{rank}"), int(os.environ["CHATTER"])
saved_file.touch()
pause, every = float(os.environ["PAUSE"]), int(os.environ["EVERY"])


def save(step: int) -> None:
    """Save a checkpoint, and report it."""
    with saved_file.open("a") as file:
        file.write(f"{step} {time.time()}\n")
    if prints:
        progress(step=step, steps=100_000, saved=step)


if prints:
    progress(step=0, steps=100_000)
for step in range(1, 100_000):
    time.sleep(pause)
    for number in range(chatter):
        print("batch", step, number, "x" * 40)
    if stopping:
        save(step)
        sys.exit(143)
    if step % every == 0:
        save(step)
    elif prints:
        progress(step=step, steps=100_000)
