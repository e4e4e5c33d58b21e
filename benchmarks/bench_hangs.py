"""Measure how soon and how well the status says what is wrong with real trainings of torch.

usage: python -m benchmarks.bench_hangs faults|trainers|healthy|failures [--first 0] [--count 20]
       [--at-once 8] [--seed 1] [--results FILE]

It needs the environment of `make test-torch`, for `trainers` and `failures` also transformers,
accelerate and lightning, and for `failures` deepspeed and openmpi from the package index. Each case
is a HyperJob of the SDK in two local clusters. The cases are those of the seed from FIRST on: a
long series runs in parts, which append to the file RESULTS; the report is of all that it has.

faults: DDP over gloo with torchrun, two pods of two ranks or four of one, from a function, a script
or a module. One rank meets a fault: its loader hangs, its forward pass, it waits in another
collective than the others, its checkpoint is never written (by Python, or by native code that has
Python's lock), it gets SIGSTOP, becomes slow, or raises. In time is a notice in 45 s or 5 median
steps; "rank" is the right one in the status, "line" the user's own line where it is. A fault that
no stack can show has no line.

trainers: a rank under Lightning, the Trainer of transformers or Accelerate hangs in its loader, its
forward pass, another collective or its checkpoint.

healthy: the same training with a compile-like first step, evaluations and checkpoints of up to 40
seconds, announced, and up to 12 not announced: notices are false. Its own journal
has the last step and loss that `status.training` must have.

failures: one of two ranks fails under torchrun, accelerate, deepspeed, mpirun, the Trainer of
transformers and Lightning: status and `job.wait()` must have its exception, or its exit code.
"""

import argparse
import asyncio
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.programs.trainings import ddp
from hyperjob.sdk import AsyncClient, AsyncJob
from hyperjob.sdk.errors import HyperJobError, NeverReachedError
from hyperjob_core.api.meta import Object

PROGRAMS = Path(__file__).parent / "programs"
FAULTS: Mapping[str, str] = {
    "loader": "batch = next(batches)",
    "forward": "lock.acquire()",
    "collective": "dist.recv(",
    "checkpoint": "with path.open(",
    "native": "",
    "stopped": "",
    "slow": "the others wait for ",
    "raises": "raise ValueError(",
}
"""The faults, and what the status says beside the rank: the line of the program where it is."""
WORLD = 4
LOOK = 1.0
LONGEST = 240.0
"""The seconds after its fault, or its begin, after which a case ends as it is."""
FORMS = ("function", "script", "module")
HOW: Mapping[str, str] = {
    "raise": "ValueError: a batch has no labels",
    "lines": "RuntimeError: CUDA error: out of memory",
    "chained": "RuntimeError: cannot read a batch",
    "exit": "exit code 3",
    "kill": "exit code 137",
}
"""How a rank fails under a launcher, and what must be said."""
TRAINERS = ("lightning", "transformers", "accelerate")
HANGS: Mapping[str, str] = {
    "loader": "time.sleep(100_000)  # the loader",
    "forward": "time.sleep(100_000)  # the forward pass",
    "collective": "dist.recv(",
    "checkpoint": "with path.open(",
}
"""Where a rank hangs under a trainer, and the line that is said."""
LAUNCHERS: Mapping[str, str] = {
    "torchrun": "python -m torch.distributed.run --master-port $PORT --nproc-per-node 2 plain.py",
    "accelerate": "echo localhost slots=2 > $HOSTS && accelerate launch --cpu --num_processes 2"
    " --num_machines 1 --mpirun_hostfile $HOSTS --main_process_ip 127.0.0.1"
    " --main_process_port $PORT --mixed_precision no --dynamo_backend no accelerated.py",
    "deepspeed": "deepspeed --master_port $PORT --num_gpus 2 plain.py",
    "mpirun": "mpirun --oversubscribe -np 2 python plain.py",
    "transformers": "python -m torch.distributed.run --master-port $PORT --nproc-per-node 2 hf.py",
    "lightning": "MASTER_PORT=$PORT python lit.py",
}


@dataclass(slots=True, kw_only=True)
class Result:
    """What was seen of one training; `seconds` is the time from the fault to the notice."""

    name: str
    kind: str
    form: str
    rank: int = 0
    seconds: float | None = None
    limit: float = 0.0
    in_time: bool = False
    named: bool = False
    line: bool = False
    right: bool = False
    notices: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def good(self) -> bool:
        """Return whether all is as it must be."""
        if self.kind in FAULTS:
            return self.in_time and self.named and (self.line or not FAULTS[self.kind])
        return self.right and not self.notices


class Bench:
    """Runs cases in two local clusters."""

    def __init__(self, client: AsyncClient, folder: Path, seed: int) -> None:
        self._client = client
        self._folder = folder
        self._seed = seed

    async def fault(self, number: int) -> Result:
        """Run a training until its fault is said."""
        chance = random.Random(f"{self._seed} fault {number}")
        kind = [*FAULTS][number % len(FAULTS)]
        pods = chance.choice([2, 4])
        pause = chance.choice([0.1, 0.2, 0.5, 1.0])
        made = Result(
            name=f"f{number}",
            kind=kind,
            form=FORMS[number % len(FORMS)],
            rank=chance.randrange(WORLD),
            limit=max(45.0, 5 * pause),
        )
        at = int(chance.uniform(20, 30) / pause)
        values = {"fault": kind, "rank": made.rank, "at": at, "pause": pause}
        await self._notice(made, await self._train(made, values, pods=pods), FAULTS[kind], pods)
        return made

    async def trainer(self, number: int) -> Result:
        """Run a training of a trainer until its hang is said."""
        chance = random.Random(f"{self._seed} trainer {number}")
        trainer = TRAINERS[number % len(TRAINERS)]
        hang = [*HANGS][number // len(TRAINERS) % len(HANGS)]
        rank = chance.randrange(WORLD)
        made = Result(name=f"t{number}", kind=trainer, form=hang, rank=rank, limit=45.0)
        values = {"trainer": trainer, "fault": hang, "rank": rank, "at": chance.randrange(30, 60)}
        job = await self._train(made, values, pods=2)
        await self._notice(made, job, HANGS[hang], 2)
        made.right = made.named and made.line
        return made

    async def _notice(self, made: Result, job: AsyncJob, line: str, pods: int) -> None:
        """Wait for the notice, and delete the HyperJob."""
        begin, when = time.monotonic(), self._folder / f"{made.name}.fault"
        while time.monotonic() - begin < LONGEST and made.seconds is None:
            await asyncio.sleep(LOOK)
            if not when.exists():  # ranks start slowly on a machine that others use
                begin = time.monotonic()
            await job.refresh()
            status = job.raw.get("status") or {}
            if (text := _said(made.kind, status)) is not None:
                self._judge(made, status, text, line, pods)
            elif job.status.has_ended:
                made.notices = [job.status.message]
                break
        await job.delete()

    def _judge(self, made: Result, status: Object, text: str, line: str, pods: int) -> None:
        """Compare the first notice with the fault; one before the fault is false."""
        when = self._folder / f"{made.name}.fault"
        if not when.exists():
            made.notices = [*made.notices, text][:1]
            return
        made.text, made.seconds = text, time.time() - float(when.read_text())
        made.in_time = made.seconds <= made.limit
        per = WORLD // pods
        pod = (self._folder / f"{made.name}.pod").read_text()
        made.line = line in text
        if made.kind == "raises":
            made.named = f"(rank {made.rank})" in text
        elif made.kind == "slow":
            last = (status.get("training") or {}).get("straggler") or {}
            first = made.rank % per == 0
            made.named = last.get("pod") == pod and (first or last.get("rank") == made.rank)
        else:
            suspects = {each["pod"] for each in status["stall"].get("suspects") or ()}
            words = (f"; rank {made.rank} in ", f"no stack from rank {made.rank}")
            made.named = suspects == {pod} and any(each in text for each in words)

    async def healthy(self, number: int) -> Result:
        """Run a healthy training to its end, and compare the status with its journal."""
        chance = random.Random(f"{self._seed} healthy {number}")
        pause = chance.choice([0.1, 0.2, 0.5])
        made = Result(name=f"h{number}", kind="healthy", form=FORMS[number % len(FORMS)])
        steps = int(chance.uniform(30, 45) / pause)
        pauses: list[tuple[int, float, str]] = [(0, chance.uniform(3, 15), "")]
        for at in sorted(chance.sample(range(int(6 / pause), steps), 3)):
            phase = chance.choice(["evaluate", "save", "compile", ""])
            pauses.append((at, chance.uniform(15, 40) if phase else chance.uniform(2, 12), phase))
        values = {"pause": pause, "steps": steps, "pauses": pauses}
        job = await self._train(made, values, pods=chance.choice([2, 4]))
        begin, ended = time.monotonic(), False
        while time.monotonic() - begin < 2 * LONGEST and not ended:
            await asyncio.sleep(LOOK)
            summary = await job.refresh()
            if (job.raw.get("status") or {}).get("stall") or summary.reason == "SlowProgress":
                made.notices = [*made.notices, summary.message][:1]
            ended = summary.has_ended
        journal = self._folder / f"{made.name}.end"
        truth = json.loads(journal.read_text()) if journal.exists() else {}
        training = job.raw["status"].get("training") or {}
        found = {"step": training.get("step"), "loss": (training.get("metrics") or {}).get("loss")}
        made.right = job.phase == "Completed" and found == truth
        made.text = f"{job.phase}: {found}, and the journal has {truth}"
        await job.delete()
        return made

    async def failure(self, number: int) -> Result:
        """Run a launcher one of whose ranks fails."""
        launcher = [*LAUNCHERS][number % len(LAUNCHERS)]
        how = [*HOW][number // len(LAUNCHERS) % len(HOW)]
        rank = number // len(LAUNCHERS) // len(HOW) % 2
        made = Result(name=f"l{number}", kind=launcher, form=how, rank=rank)
        env = {
            "HOW": how,
            "FAILING_RANK": str(rank),
            "PORT": str(29600 + 8 * number),
            "HOSTS": str(self._folder / f"{made.name}.hosts"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
        }
        job = await self._client.submit(_launched(made.name, LAUNCHERS[launcher], env))
        said = ""
        try:
            await job.wait("Completed", timeout=LONGEST)
        except NeverReachedError as error:
            said = str(error)
        message = (await job.refresh()).message
        made.right = HOW[how] in said and HOW[how] in message
        made.named = f"rank {rank}" in message
        made.text = message
        await job.delete()
        return made

    async def _train(self, made: Result, values: Mapping[str, Any], *, pods: int) -> AsyncJob:
        """Start a training of four ranks by the SDK."""
        args = {**values, "journal": str(self._folder / made.name)}
        programs: dict[str, Any] = {
            "function": {"train": ddp.train, "args": args},
            "script": {"train": PROGRAMS / "trainings/ddp.py", "args": [json.dumps(args)]},
            "module": {
                "train": "-m trainings.ddp", "workdir": PROGRAMS, "args": [json.dumps(args)],
            },
        }  # fmt: skip
        programs["trainers"] = {**programs["script"], "train": PROGRAMS / "trainings/trainers.py"}
        return await self._client.train(
            **programs[made.form if made.form in FORMS else "trainers"],
            name=made.name,
            clusters=2,
            replicas=pods,
            gpus=WORLD // pods,
            framework="torchrun",
            image="pytorch",
            env={"OMP_NUM_THREADS": "1"},
        )


def _said(kind: str, status: Object) -> str | None:
    """Return the notice of a fault of this kind in a status; None before it."""
    if kind == "raises":
        state = status.get("state") or {}
        if state.get("phase") != "Failed":
            return None
        failures = [each.get("failure") or {} for each in status.get("jobs") or ()]
        return "\n".join([state.get("message", ""), *(str(each) for each in failures)])
    if kind == "slow":
        state = status.get("state") or {}
        slow = (status.get("training") or {}).get("straggler")
        return state.get("message", "") if slow else None
    return (status.get("stall") or {}).get("message")


def _launched(name: str, command: str, env: Mapping[str, str]) -> Object:
    """Return the HyperJob of a launcher in one pod."""
    container = {
        "name": "main",
        "image": "pytorch",
        "command": ["bash", "-c", f"cd {PROGRAMS / 'launchers'} && {command}"],
        "env": [{"name": key, "value": value} for key, value in env.items()],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    template = {
        "tasks": [{"name": "worker", "replicas": 1, "template": {"spec": pod}}],
        "policies": [{"event": "PodFailed", "action": "AbortJob"}],
    }
    group = {"name": "trainer", "replicas": 1, "templateSpec": template}
    return {"metadata": {"name": name}, "spec": {"replicatedJobs": [group]}}


def report(results: Sequence[Result]) -> None:
    """Print the results by kind, and each that is not as it must be."""
    for kind in dict.fromkeys(each.kind for each in results):
        mine = [each for each in results if each.kind == kind]
        good = f"{kind}: {sum(each.good for each in mine)} of {len(mine)} right"
        if kind in FAULTS:
            took = [each.seconds for each in mine if each.seconds is not None]
            took = took or [math.nan]
            times = f", median {statistics.median(took):.0f} s, {max(took):.0f} s at most"
            print(
                f"{good}; in time {sum(each.in_time for each in mine)}, rank"
                f" {sum(each.named for each in mine)}, line {sum(each.line for each in mine)}"
                f"{times}"
            )
        elif kind == "healthy":
            print(f"{good}; false notices: {sum(bool(each.notices) for each in mine)}")
        else:
            print(f"{good}; rank {sum(each.named for each in mine)}")
    faults = [each for each in results if each.kind in FAULTS]
    if faults:
        known = sum(each.good for each in faults)
        early = sum(bool(each.notices) for each in faults)
        print(f"all faults: {known} of {len(faults)}; notices before the fault: {early}")
    for each in results:
        if not each.good or each.notices:
            print(f"  {each.name} {each.kind} {each.form} rank {each.rank} {each.seconds}:", end="")
            print(f" {' '.join([*each.notices, each.text])[:700]}")
    print(dict(Counter(each.form for each in results)))


async def run(options: argparse.Namespace, folder: Path) -> None:
    """Run the cases of a part, and append their results."""
    places = asyncio.Semaphore(options.at_once)
    async with AsyncClient.local(clusters=2, gpus=2 * options.at_once + 16) as client:
        bench = Bench(client, folder, options.seed)
        kinds: Mapping[str, Callable[[int], Awaitable[Result]]] = {
            "faults": bench.fault,
            "trainers": bench.trainer,
            "healthy": bench.healthy,
            "failures": bench.failure,
        }

        async def one(number: int) -> None:
            async with places:
                try:
                    async with asyncio.timeout(3 * LONGEST):
                        result = await kinds[options.kind](number)
                except (TimeoutError, HyperJobError) as error:
                    print(f"case {number} did not end: {error!r}", flush=True)
                    return
            with options.results.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
            print(result.name, "good" if result.good else "WRONG", result.seconds, flush=True)

        numbers = range(options.first, options.first + options.count)
        await asyncio.gather(*map(one, numbers))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["faults", "trainers", "healthy", "failures"])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hyperjob-bench-") as name:
        folder = Path(name)
        options.results = options.results or folder / "results"
        asyncio.run(run(options, folder))
        lines = options.results.read_text().splitlines()
        report([Result(**json.loads(line)) for line in lines])


if __name__ == "__main__":
    main()
