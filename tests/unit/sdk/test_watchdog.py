"""The watchdog of hyperjob.sdk.progress, in processes of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from hyperjob.sdk import progress
from hyperjob_core.api.launchers import diagnosed
from hyperjob_core.api.status import ContainerFailure

pytestmark = pytest.mark.long

FILE = Path(sys.modules[progress.__module__].__file__ or "")

PROGRAM = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
import progress
progress._LEAST_SECONDS = 0.2

def all_reduce():
    threading.Event().wait()

def train(steps):
    for step in range(steps):
        progress.progress(step=step, steps=9)
        time.sleep(0.001)
"""


@contextmanager
def program(folder: Path, end: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "progress.py").write_text(FILE.read_text())
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + end, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | env,
    )
    with process:
        yield process
        process.kill()


def stacks(output: IO[str] | None) -> dict:
    """Wait for the next stacks."""
    assert output is not None
    for line in output:
        found = json.loads(line)["hyperjob"].get("stacks")
        if found is not None:
            return found
    raise AssertionError("the program ended without stacks")


def test_a_program_whose_steps_stop_prints_what_its_main_thread_waits_for(tmp_path: Path) -> None:
    with program(tmp_path, "train(5)\nall_reduce()", RANK="3", WORLD_SIZE="8") as process:
        found = stacks(process.stdout)
        again = stacks(process.stdout)
    assert (found["rank"], found["of"], found["step"]) == (3, 8, 4)
    assert found["seconds"] >= 0.2
    assert "all_reduce" in [function for function, _, _ in found["threads"][0]]
    assert again["seconds"] >= found["seconds"], "it reports again, each time after twice as long"


def test_a_signal_asks_for_the_stacks_at_any_time(tmp_path: Path) -> None:
    with program(tmp_path, "train(1)\nall_reduce()") as process:
        assert process.stdout is not None
        assert "step" in process.stdout.readline()
        process.send_signal(signal.SIGUSR1)
        found = stacks(process.stdout)
    assert "rank" not in found
    assert found["threads"][0][-1][0] == "<module>"


def test_a_stack_has_the_text_of_the_program_s_own_lines(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "progress.py").write_text(FILE.read_text())
    script = tmp_path / "ddp.py"
    script.write_text(PROGRAM + "train(5)\nall_reduce()  # waits\n")
    with subprocess.Popen(
        [sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, text=True
    ) as process:
        calls = stacks(process.stdout)["threads"][0]
        process.kill()
    assert [call[3] for call in calls if len(call) > 3] == [
        "threading.Event().wait()",
        "all_reduce()  # waits",
    ]


def test_a_phase_without_steps_is_no_hang(tmp_path: Path) -> None:
    end = """
train(5)
assert progress.progress(phase="evaluate"), "its line is printed"
time.sleep(1.0)
train(1)
progress.progress(step=9, steps=9)
"""
    with program(tmp_path, end) as process:
        lines = [json.loads(line)["hyperjob"] for line in process.stdout or ()]
    assert not [line for line in lines if "stacks" in line]
    assert [line["phase"] for line in lines if "phase" in line] == ["evaluate"]
    assert lines[-1]["step"] == 9


def test_other_processes_of_a_pod_print_no_progress_and_are_watched(tmp_path: Path) -> None:
    with program(tmp_path, "train(5)\nall_reduce()", LOCAL_RANK="1") as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())["hyperjob"]
    assert list(first) == ["stacks"]


def test_other_processes_of_a_slow_training_print_how_long_they_wait(tmp_path: Path) -> None:
    end = """
progress._LEAST_SECONDS = 60.0
for step in range(60):
    progress.progress(step=step)
    (lambda seconds: time.sleep(seconds))(0.1) if step < 20 else allreduce()
"""
    waits = "\ndef allreduce():\n    time.sleep(0.5)\n"
    with program(tmp_path, waits + end, LOCAL_RANK="1", RANK="3") as process:
        lines = (json.loads(line)["hyperjob"] for line in process.stdout or ())
        found = next(line for line in lines if "sampled" in line)
    assert found.keys() == {"rank", "sampled"}
    assert found["sampled"] > 0.5, "what it did before it became slow does not count"
    assert found["rank"] == 3


def test_a_callback_reports_what_a_trainer_does(tmp_path: Path) -> None:
    end = """
from types import SimpleNamespace as Space
callback = progress.ProgressCallback()
lightning = Space(
    estimated_stepping_batches=9, global_step=9, callback_metrics={"loss": 2, "step": 1, "x": "y"}
)
callback.on_train_batch_end(lightning, None, None, None, 8)
callback.on_validation_start(lightning)
state = Space(global_step=5, max_steps=8, log_history=[{"loss": "1.5"}, {"lr": 1}])
callback.on_step_end(None, state, None)
callback.on_save(None, state, None, model=None)
assert callback.on_exception(lightning, None, ValueError()) is None
assert callback.state_dict() == {}
"""
    with program(tmp_path, end) as process:
        lines = [json.loads(line)["hyperjob"] for line in process.stdout or ()]
    assert process.returncode == 0
    assert lines == [
        {"step": 9, "steps": 9, "metrics": {"loss": 2}},
        {"phase": "evaluate"},
        {"step": 5, "steps": 8, "saved": 5},
    ]


def test_the_callback_names_the_process_that_lightning_has_lost(tmp_path: Path) -> None:
    end = """
import subprocess
sys.stderr = sys.stdout
from types import SimpleNamespace as Space
children = [subprocess.Popen([sys.executable, "-c", each]) for each in (
    "import time; time.sleep(100)", "import os; os._exit(3)"
)]
trainer = Space(strategy=Space(launcher=Space(procs=children)), global_rank=4)
progress.ProgressCallback().on_exception(trainer, None, RuntimeError())
children[0].kill()
"""
    with program(tmp_path, end) as process:
        said = process.communicate(timeout=60)[0]
    found = diagnosed(ContainerFailure(pod="p", exit_code=1), said)
    assert (found.rank, found.exit_code) == (6, 3)


def test_stacks_of_any_depth_stay_below_the_longest_line(tmp_path: Path) -> None:
    deep = """
def dive(n):
    dive(n - 1) if n else all_reduce()

for _ in range(20):
    threading.Thread(target=dive, args=(90,), daemon=True).start()
train(5)
dive(90)
"""
    with program(tmp_path, deep) as process:
        found = stacks(process.stdout)
    assert len(json.dumps(found)) < 16 * 1024
    assert found["threads"]


def test_a_program_with_a_handler_of_its_own_for_the_signal_keeps_it(tmp_path: Path) -> None:
    end = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: print('{"hyperjob": {"stacks": "mine"}}', flush=True))
train(1)
import os
os.kill(os.getpid(), signal.SIGUSR1)
"""
    with program(tmp_path, end) as process:
        assert stacks(process.stdout) == "mine"


@pytest.mark.parametrize("call", ["progress(step=1)", "progress(phase='save')"])
def test_a_call_ends_with_its_program(tmp_path: Path, call: str) -> None:
    with program(tmp_path, f"progress.{call}") as process:
        assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("instead", "steps"),
    [
        ("sys.stdout = io.StringIO()", [0]),
        ("sys.stdout = None", [0]),
        ("sys.stdout.close()", [0]),
        ("os.close(1)", []),
    ],
)
def test_a_replaced_or_closed_output_does_not_end_a_training(
    tmp_path: Path, instead: str, steps: list[int]
) -> None:
    end = f"import io, os\n{instead}\ntrain(1)\nos._exit(0)"
    with program(tmp_path, end) as process:
        assert process.stdout is not None
        found = [json.loads(line)["hyperjob"]["step"] for line in process.stdout]
        assert found == steps
        assert process.wait(30) == 0


JOURNAL = """
def journaled(steps):
    for step in range(steps):
        progress.progress(step=step, steps=steps, loss=1 / (step + 1))
"""
ENDS = {
    "the last step of range(n) is n - 1": "journaled(30)",
    "an exception": "journaled(30)\nraise ValueError('diverges')",
    "sys.exit": "journaled(30)\nsys.exit(3)",
    "a process that multiprocessing forks": """
import multiprocessing
child = multiprocessing.get_context("fork").Process(target=journaled, args=(30,))
child.start()
child.join()
""",
    "a worker that is forked between two lines": """
import os
journaled(30)
if not os.fork():
    sys.exit()
os.wait()
""",
    "a phase after the last step": """
import os
journaled(30)
progress.progress(phase="save")
os._exit(0)
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_last_step_and_its_metrics_are_printed(tmp_path: Path, end: str) -> None:
    with program(tmp_path, JOURNAL + ENDS[end]) as process:
        lines = [json.loads(line)["hyperjob"] for line in process.stdout or ()]
    told = [line for line in lines if "step" in line]
    assert told[-1] == {"step": 29, "steps": 30, "metrics": {"loss": 1 / 30}}
    assert [line["step"] for line in told] == sorted({line["step"] for line in told})
    assert [line["phase"] for line in lines if "phase" in line] == ["save"] * end.startswith(
        "a phase"
    )


def test_the_last_step_is_printed_while_the_program_does_something_else(tmp_path: Path) -> None:
    with program(tmp_path, JOURNAL + "journaled(30)\nall_reduce()") as process:
        steps = (json.loads(line)["hyperjob"].get("step") for line in process.stdout or ())
        assert 29 in steps


def test_a_line_has_the_part_of_the_time_in_functions_that_wait_for_others(tmp_path: Path) -> None:
    end = """
def step(wait, number):
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline:
        wait()
    progress.progress(step=number, steps=number)  # the last step is always printed

def all_reduce():
    time.sleep(0.01)

progress.progress(step=0, steps=0)
step(all_reduce, 1)
step(lambda: time.sleep(0.01), 2)
with progress.waiting():
    step(all_reduce, 3)
step(all_reduce, 4)
"""
    with program(tmp_path, end) as process:
        lines = [json.loads(line)["hyperjob"] for line in process.stdout or ()]
    waited, worked, *measured = [line for line in lines if line.get("step")]
    assert waited["sampled"] > 0.5 > worked["sampled"]
    assert "sampled" not in measured[-1], "what the program measures itself counts"
    assert "waited" in measured[-1]
