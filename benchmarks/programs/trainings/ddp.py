"""A DDP training over gloo that meets a fault, or that pauses as healthy trainings do."""

import json
import sys


def train(
    fault: str = "",
    rank: int = 0,
    at: int = 0,
    pause: float = 0.2,
    steps: int = 100_000,
    pauses: list[tuple[int, float, str]] | None = None,
    journal: str = "",
) -> None:
    """Train; `fault` is what rank `rank` meets at step `at`.

    `pauses` has the step, the seconds and the announced phase of each pause of a healthy training.
    """
    import json
    import os
    import signal
    import threading
    import time
    from pathlib import Path

    import torch
    import torch.distributed as dist

    from hyperjob.sdk import progress

    progress(phase="load")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    me, world = dist.get_rank(), dist.get_world_size()
    planned = {step: (seconds, phase) for step, seconds, phase in pauses or ()}

    class Batches(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return steps

        def __getitem__(self, number: int) -> torch.Tensor:
            if (fault, rank, at) == ("loader", me, number):
                time.sleep(100_000)
            return torch.randn(4, 8)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 1)

        def forward(self, batch: torch.Tensor, *, hangs: bool) -> torch.Tensor:
            lock = threading.Lock()
            if hangs:
                lock.acquire()
                lock.acquire()
            return self.layer(batch)

    model = torch.nn.parallel.DistributedDataParallel(Model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    workers = 1 if fault == "loader" else 0
    batches = iter(torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=workers))
    for step in range(steps):
        meets = fault if (rank, at) == (me, step) else ""
        if meets:
            place = os.environ["HYPERJOB_JOB_NAME"], os.environ["HYPERJOB_TASK_INDEX"]
            Path(f"{journal}.pod").write_text("{}-worker-{}".format(*place))
            Path(f"{journal}.fault").write_text(str(time.time()))
        batch = next(batches)
        time.sleep(pause * (5 if fault == "slow" and rank == me and step >= at else 1))
        if meets == "raises":
            raise ValueError("a batch has no labels")
        if meets == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        loss = model(batch, hangs=meets == "forward").square().mean()
        loss.backward()
        if meets == "collective":
            dist.recv(torch.zeros(1), src=(me + 1) % world)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        optimizer.step()
        if step % 20 == 0 or meets in ("checkpoint", "native"):
            path = Path(f"{journal}.{me}.pt")
            if meets in ("checkpoint", "native"):
                path = Path(f"{journal}.pipe")
                os.mkfifo(path)
            if meets == "native":
                torch.save(model.state_dict(), path)
            with path.open("wb") as file:
                torch.save(model.state_dict(), file)
        if step in planned:
            seconds, phase = planned[step]
            if phase:
                progress(phase=phase)
            time.sleep(seconds)
        loss = mean.item() / world
        progress(step=step, steps=steps, loss=loss)
    if me == 0:
        Path(f"{journal}.end").write_text(json.dumps({"step": step, "loss": f"{loss:.6g}"}))


if __name__ == "__main__":
    train(**json.loads(sys.argv[1]))
