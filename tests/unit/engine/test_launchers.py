"""The cause of a launcher's failure: formats of the real tools, and of their documentation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.launchers import diagnosed, is_of_launcher
from hyperjob_core.api.status import ContainerFailure
from hyperjob_engine.reasons.pods import container_text

RAISED = """Traceback (most recent call last):
  File "/w/train.py", line 15, in <module>
    step()
  File "/w/train.py", line 10, in step
    raise ValueError("a batch has no labels")
ValueError: a batch has no labels
"""
LOST = """Traceback (most recent call last):
  File "/w/train.py", line 14, in step
    dist.all_reduce(t)
RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:38122
"""


def marked(prefix: str, text: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


def torchrun(exit_code: str) -> str:
    """Return the end of a log of torchrun 2.13."""
    return f"""W1128 14:27:12 14164 torch/api.py:1028] Sending process 14441 closing signal SIGTERM
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
    sys.exit(main())
             ^^^^^^
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
/w/train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-28_14:27:12
  host      : localhost
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 14441)  (SIGTERM)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 14441
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-28_14:27:12
  host      : localhost
  rank      : 2 (local_rank: 2)
  exitcode  : {exit_code}
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""  # noqa: W291


ACCELERATE = """Traceback (most recent call last):
  File "/usr/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/x/accelerate/commands/launch.py", line 999, in simple_launcher
    raise subprocess.CalledProcessError(returncode=process.returncode, cmd=cmd)
subprocess.CalledProcessError: Command '['/usr/bin/python', 'train.py']' {}.
"""
DEEPSPEED = (
    "[2026-11-28 14:00:00,1] [INFO] [launch.py:335:sigkill_handler] Killing subprocess 123\n"
    "[2026-11-28 14:00:00,2] [ERROR] [launch.py:341:sigkill_handler] ['/usr/bin/python', '-u',"
    " 'train.py', '--local_rank=1'] exits with return code = {}\n"
)
OPEN_MPI = """--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[28301,1],2]
  Exit code:    {}
--------------------------------------------------------------------------
"""
OPEN_MPI_5 = """--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-4242@1,2]
   Exit code:    {}
--------------------------------------------------------------------------
"""
OPEN_MPI_SIGNAL = (
    "mpirun noticed that process rank 2 with PID 0 on node vm exited on signal 9 (Killed).\n"
)
HYDRA = """
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   RANK 2 PID 15817 RUNNING AT vm
=   KILLED BY SIGNAL: 9 (Killed)
===================================================================================
"""
SPAWNED = f"""Traceback (most recent call last):
  File "/w/train.py", line 30, in <module>
    mp.spawn(main, nprocs=4)
torch.multiprocessing.spawn.ProcessRaisedException: 

-- Process 2 terminated with the following error:
{RAISED}"""  # noqa: W291
BAR = "\n  3%|#         | 3/100 [00:01<00:35,  2.7it/s]\n"

CAUSE = "ValueError: a batch has no labels"
NONE = "failed first, and the launcher's last lines have no exception of it"
CASES: dict[str, tuple[str, int | None, int, str]] = {
    "torchrun": (
        marked("[rank2]: ", RAISED) + marked("[rank1]: ", LOST) + torchrun("1 (pid: 14443) "),
        *(2, 1, CAUSE),
    ),
    "torchrun, whose first lines are of a rank that lost its peer": (
        marked("[rank1]: ", LOST) + marked("[rank2]: ", RAISED) + torchrun("1 (pid: 14443) "),
        *(2, 1, CAUSE),
    ),
    "torchrun with --tee": (
        marked("[default1]:[rank1]: ", LOST)
        + marked("[default2]:[rank2]: ", RAISED)
        + torchrun("1 (pid: 14443) "),
        *(2, 1, CAUSE),
    ),
    "torchrun and os._exit(3)": (
        marked("[rank1]: ", LOST) + torchrun("3 (pid: 14443) "),
        *(2, 3, f"rank 2 {NONE}"),
    ),
    "torchrun and SIGKILL": (
        marked("[rank1]: ", LOST) + torchrun("-9 (pid: 14443)  (SIGKILL)"),
        *(2, 137, f"rank 2 {NONE}"),
    ),
    "the Trainer of transformers, with a bar": (
        marked("[rank2]: ", RAISED) + BAR + torchrun("1 (pid: 14443) ") + BAR,
        *(2, 1, CAUSE),
    ),
    "accelerate": (
        RAISED + ACCELERATE.format("returned non-zero exit status 1"),
        *(None, 1, CAUSE),
    ),
    "accelerate and os._exit(3)": (
        ACCELERATE.format("returned non-zero exit status 3"),
        *(None, 3, f"a process {NONE}"),
    ),
    "accelerate and SIGKILL": (
        ACCELERATE.format("died with <Signals.SIGKILL: 9>"),
        *(None, 137, f"a process {NONE}"),
    ),
    "deepspeed": (
        marked("[rank2]: ", RAISED) + marked("[rank1]: ", LOST) + DEEPSPEED.format(1),
        *(2, 1, CAUSE),
    ),
    "deepspeed and os._exit(3)": (DEEPSPEED.format(3), None, 3, f"a process {NONE}"),
    "deepspeed and SIGKILL": (DEEPSPEED.format(-9), None, 137, f"a process {NONE}"),
    "Open MPI": (
        marked("[1,1]<stderr>:", LOST) + marked("[1,2]<stderr>:", RAISED) + OPEN_MPI.format(1),
        *(2, 1, CAUSE),
    ),
    "Open MPI 5 and os._exit(3)": (OPEN_MPI_5.format(3), 2, 3, f"rank 2 {NONE}"),
    "Open MPI and SIGKILL": (OPEN_MPI_SIGNAL, 2, 137, f"rank 2 {NONE}"),
    "MPICH and Intel MPI": (marked("[2] ", RAISED), 2, 1, CAUSE),
    "MPICH and SIGKILL": (HYDRA, 2, 137, f"rank 2 {NONE}"),
    "Lightning": (
        "💡 Tip\n" + marked("[rank1]: ", RAISED) + marked("[rank0]: ", LOST),
        *(1, 1, CAUSE),
    ),
    "Lightning, whose rank says nothing": (
        marked("[rank0]: ", LOST) + "[rank: 1] Child process with PID 5 terminated with code 3.\n",
        *(1, 3, f"rank 1 {NONE}"),
    ),
    "torch.multiprocessing.spawn": (SPAWNED, None, 1, CAUSE),
    "a program that has handled an exception before": (
        RAISED.replace("a batch", "an image") + "retries\n" + RAISED,
        *(None, 1, CAUSE),
    ),
    "an exception that is the cause of another": (
        marked(
            "[rank2]: ",
            RAISED.replace("a batch", "an image")
            + "\nDuring handling of the above exception, another exception occurred:\n\n"
            + RAISED,
        ),
        *(2, 1, CAUSE),
    ),
    "a lost peer alone": (LOST, None, 1, LOST.splitlines()[-1]),
    "no exception at all": ("out of data\n", None, 1, "out of data"),
}


@pytest.mark.parametrize(("log", "rank", "code", "cause"), CASES.values(), ids=list(CASES))
def test_the_cause_is_that_of_the_rank_that_failed_first(
    log: str, rank: int | None, code: int, cause: str
) -> None:
    failure = ContainerFailure(pod="p", container="main", exit_code=1, message=log[-2048:])
    found = diagnosed(failure, log)
    assert (found.rank, found.exit_code, found.last_line) == (rank, code, cause)
    assert container_text(found).endswith(cause[:150])


def test_a_message_that_is_too_short_for_the_cause_asks_for_the_log() -> None:
    log = marked("[rank2]: ", RAISED) + marked("[rank1]: ", LOST * 9) + torchrun("1 (pid: 1) ")
    short = ContainerFailure(pod="p", container="main", exit_code=1, message=log[-900:])
    before = diagnosed(short, short.message)
    assert (before.rank, before.last_line) == (2, f"rank 2 {NONE}")
    assert is_of_launcher(before)
    assert diagnosed(before, log).last_line == CAUSE
    assert not is_of_launcher(ContainerFailure(pod="p", exit_code=1, message=RAISED))


@given(st.lists(st.sampled_from([*"".join(log for log, *_ in CASES.values()).splitlines()])))
def test_any_order_of_such_lines_has_a_bounded_cause(lines: list[str]) -> None:
    log = "\n".join(lines)
    found = diagnosed(ContainerFailure(pod="p", exit_code=1, message=log), log)
    assert 0 < found.exit_code < 256
    assert len(container_text(found)) < 400
