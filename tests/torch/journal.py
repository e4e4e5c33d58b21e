"""A program that also writes down, in the folder of its checkpoints, every step that it makes."""

from copy import deepcopy

from hyperjob_core.api.meta import Object

_READ = """if rank == 0:
    journal = os.path.join(os.environ["HYPERJOB_CHECKPOINT_DIR"], "journal")
    made = open(journal).read().split() if os.path.exists(journal) else []
    twice, attempt = len(made) - len(set(made)), os.environ["HYPERJOB_ATTEMPT"]
    print(f"attempt {attempt}: {len(made)} steps made, {twice} of them twice", flush=True)
"""
_WRITE = """    if rank == 0:
        open(journal, "a").write(f"{step}\\n")
"""
_STARTS = 'print(f"rank {rank} of'


def with_journal(documents: list[Object], *, makes_a_step: str) -> list[Object]:
    """Return a training with a journal; `makes_a_step` is the line of its program that does so."""
    made = deepcopy(documents)
    text = made[0]["data"]["train.py"]
    assert text.count(_STARTS) == text.count(makes_a_step) == 1
    text = text.replace(_STARTS, _READ + _STARTS)
    made[0]["data"]["train.py"] = text.replace(makes_a_step, f"{makes_a_step}{_WRITE}")
    return made
