"""How a rank fails: FAILING_RANK, as HOW says."""

import os
import signal


def fail(rank: int, step: int) -> None:
    """Fail in the fourth step of one rank."""
    how = os.environ["HOW"]
    if step != 3 or rank != int(os.environ["FAILING_RANK"]):
        return
    if how == "raise":
        raise ValueError("a batch has no labels")
    if how == "lines":
        raise RuntimeError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA.\n")
    if how == "chained":
        try:
            {}["labels"]
        except KeyError as error:
            raise RuntimeError("cannot read a batch") from error
    if how == "exit":
        os._exit(3)
    os.kill(os.getpid(), signal.SIGKILL)
