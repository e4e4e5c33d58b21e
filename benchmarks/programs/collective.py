"""A training of plain Python whose ranks wait for each other in each step, and which may go wrong.

FAULT is deadlock, loader, stopped, slow, raises or empty; FAULT_RANK meets it at FAULT_STEP.
PAUSES has (step, seconds, announced phase) of pauses of a healthy program.
"""

import json
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.environ["PROGRESS_FOLDER"])
from progress import progress, waiting

rank = int(os.environ["HYPERJOB_RANK_OFFSET"]) + int(os.environ["HYPERJOB_TASK_INDEX"])
world = int(os.environ["HYPERJOB_WORLD_SIZE"])
os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
fault, fault_step = os.environ.get("FAULT", ""), int(os.environ.get("FAULT_STEP", "0"))
mine = fault and rank == int(os.environ.get("FAULT_RANK", "0"))
pause, steps = float(os.environ["PAUSE"]), int(os.environ["STEPS"])
pauses = {step: (seconds, phase) for step, seconds, phase in json.loads(os.environ["PAUSES"])}
address = f"{os.environ['MEETING']}.{os.environ['HYPERJOB_ATTEMPT']}"


def serve() -> None:
    """Answer a step after all ranks have sent it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(world)
    peers = [listener.accept()[0] for _ in range(world)]
    while all(peer.recv(1) for peer in peers):
        for peer in peers:
            peer.sendall(b"x")


def meet() -> socket.socket:
    """Return a connection to the server, which may start later."""
    connection = socket.socket(socket.AF_UNIX)
    while connection.connect_ex(address):
        time.sleep(0.1)
    return connection


def all_reduce(connection: socket.socket) -> None:
    """Wait for all other ranks."""
    connection.sendall(b"x")
    if not connection.recv(1):
        raise ConnectionError("a rank is gone")


def lock_twice() -> None:
    """Wait for a lock that this thread holds."""
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def load_batch() -> None:
    """Wait for a batch of a worker process that has died."""
    batches = multiprocessing.Queue()
    worker = multiprocessing.Process(target=os._exit, args=(1,))
    worker.start()
    worker.join()
    batches.get()


if rank == 0:
    threading.Thread(target=serve, daemon=True).start()
chance = random.Random(rank)
progress(phase="load")
connection = meet()
progress(step=0, steps=steps)
for step in range(1, steps + 1):
    slow = mine and fault == "slow" and step >= fault_step
    time.sleep(pause * (2.5 if slow else chance.uniform(0.8, 1.2)))
    if mine and step == fault_step:
        print("fault at", time.time(), flush=True)
        if fault == "deadlock":
            lock_twice()
        elif fault == "loader":
            load_batch()
        elif fault == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault == "raises":
            raise ValueError("a batch has no labels")
    if step in pauses:
        seconds, phase = pauses[step]
        if phase:
            progress(phase=phase)
        time.sleep(seconds)
    with waiting():
        all_reduce(connection)
    progress(step=step, steps=steps)
