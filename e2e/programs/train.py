"""Data-parallel training in plain Python: processes fit a line and average their gradients.

The first process holds the others' connections, as rank 0 of an all-reduce, and the checkpoints.
"""

import json
import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

stopping = []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
rank = int(os.environ["HYPERJOB_RANK_OFFSET"]) + int(os.environ["HYPERJOB_TASK_INDEX"])
world = int(os.environ["HYPERJOB_WORLD_SIZE"])
host, port = os.environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
steps, pause = int(os.environ["STEPS"]), float(os.environ["PAUSE"])
last = Path(os.environ["HYPERJOB_CHECKPOINT_DIR"], "last.json")


def connect():
    """Connect to the first process, and retry until it has started."""
    while True:
        try:
            return socket.create_connection((host, int(port)))
        except OSError:
            time.sleep(0.05)


if rank == 0:
    server = socket.create_server((os.environ["POD_IP"], int(port)))
    peers = [server.accept()[0].makefile("rw") for _ in range(world - 1)]
else:
    peers = [connect().makefile("rw")]


def tell(peer, value):
    """Send one value."""
    peer.write(json.dumps(value) + "\n")
    peer.flush()


def hear(peer):
    """Receive one value; a peer that has ended ends this process as well."""
    return json.loads(peer.readline())


def average(value):
    """Return the mean of the values of all processes."""
    if rank:
        tell(peers[0], value)
        return hear(peers[0])
    every = [value, *(hear(peer) for peer in peers)]
    mean = [sum(part) / world for part in zip(*every, strict=True)]
    for peer in peers:
        tell(peer, mean)
    return mean


state = {"step": 0, "slope": 0.0, "offset": 0.0}
if last.exists():
    state = json.loads(last.read_text())
done, slope, offset = state["step"], state["slope"], state["offset"]
cluster = os.environ["HYPERJOB_CLUSTER"]
journal = last.with_name("journal")  # the journal of all executed steps, in order
if rank == 0:
    print(json.dumps({"hyperjob": {"step": done, "steps": steps}}), flush=True)
    made = journal.read_text().split() if journal.exists() else []
    twice = len(made) - len(set(made))
    attempt = os.environ["HYPERJOB_ATTEMPT"]
    print(f"attempt {attempt}: {len(made)} steps made, {twice} of them twice", flush=True)
print(f"rank {rank} of {world} in {cluster} starts after step {done}", flush=True)
random.seed(rank)
data = [(x, 3 * x + 1) for x in (random.uniform(-1, 1) for _ in range(50))]
for step in range(done + 1, steps + 1):
    errors = [(slope * x + offset - y, x) for x, y in data]
    ends = len(stopping)
    mean = average([sum(e * x for e, x in errors), sum(e for e, _ in errors), ends])
    slope -= 0.01 * mean[0]
    offset -= 0.01 * mean[1]
    time.sleep(pause)
    if rank == 0:
        with journal.open("a") as file:
            file.write(f"{step}\n")
    if rank == 0 and (step % 10 == 0 or step == steps or mean[2]):
        part = last.with_suffix(f".{os.environ['HYPERJOB_ATTEMPT']}")
        part.write_text(json.dumps({"step": step, "slope": slope, "offset": offset}))
        part.replace(last)
        loss = sum(e * e for e, _ in errors) / len(data)
        progress = {"step": step, "steps": steps, "saved": step, "metrics": {"loss": loss}}
        print(json.dumps({"hyperjob": progress}), flush=True)
    if mean[2]:  # all stop after the same step
        print(f"rank {rank} stops after step {step}", flush=True)
        while not stopping:  # a program that ends before SIGTERM would complete the training
            time.sleep(0.02)
        sys.exit(143)
