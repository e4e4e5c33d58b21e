"""A rank of a real DDP training hangs or slows down: the HyperJob says which one, and where."""

from collections.abc import Iterator

import pytest

from hyperjob.sdk import Client

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(1200)]


def train(place: str, hanging: int) -> None:
    import os
    import time

    import torch
    import torch.distributed as dist

    from hyperjob.sdk import progress

    progress(phase="load")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def may_hang(here: str, step: int) -> None:
        if (here, step, dist.get_rank()) == (place, 12, hanging):
            time.sleep(100_000)

    for step in range(1000):
        may_hang("loader", step)
        loss = model(torch.randn(4, 8)).square().mean()
        may_hang("forward", step)
        loss.backward()
        if os.environ["PLACE"] == "collective":
            may_hang("collective", step)
            dist.all_reduce(torch.zeros(1))
        optimizer.step()
        may_hang("checkpoint", step)
        progress(step=step, steps=1000, loss=loss.item())
        time.sleep(0.2)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Give two clusters with a place for two processes each."""
    with Client.local(clusters=2, gpus=2) as opened:
        yield opened


@pytest.mark.parametrize(
    ("place", "hanging"), [("loader", 3), ("forward", 1), ("collective", 2), ("checkpoint", 0)]
)
def test_the_rank_for_which_the_others_wait_and_its_line_are_named(
    client: Client, place: str, hanging: int
) -> None:
    job = client.train(
        train,
        args={"place": place, "hanging": hanging},
        name=place,
        clusters=2,
        replicas=4,
        gpus=1,
        framework="torchrun",
        image="pytorch",
        env={"PLACE": place, "OMP_NUM_THREADS": "1"},
    )
    for status in job.watch():
        if "no step" in status.message:
            break
    assert f"; rank {hanging} in " in status.message
    assert "3 of 4 ranks are in " in status.message
    assert "time.sleep(100_000))" in status.message, "the line of the user's own file"
    job.delete()


def slow_train(slow: int) -> None:
    import time

    import torch
    import torch.distributed as dist

    from hyperjob.sdk import progress

    progress(phase="load")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    for step in range(100_000):
        time.sleep(0.1 if step < 300 or dist.get_rank() != slow else 0.8)  # its loader
        loss = model(torch.randn(4, 8)).square().mean()
        loss.backward()
        progress(step=step, steps=100_000, loss=loss.item())


@pytest.mark.parametrize("slow", [0, 3])
def test_a_rank_that_becomes_slow_is_named_though_the_program_measures_nothing(
    client: Client, slow: int
) -> None:
    job = client.train(
        slow_train,
        args={"slow": slow},
        name=f"slow-{slow}",
        clusters=2,
        replicas=4,
        gpus=1,
        framework="torchrun",
        image="pytorch",
        env={"OMP_NUM_THREADS": "1"},
    )
    for status in job.watch():
        if "the others wait for pod" in status.message:
            break
    assert status.reason == "SlowProgress"
    pod = status.message.rpartition("/")[2]
    assert pod.startswith(f"slow-{slow}-")
    assert pod.endswith(f"-{slow // 2}-worker-{slow % 2}")
    job.delete()
