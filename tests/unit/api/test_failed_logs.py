"""The ConfigMap with the logs of failed attempts: what it has, and what goes for lack of room."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.api.failedlogs import (
    MOST_BYTES,
    TOTAL_BYTES,
    FailedLog,
    change,
    config_map,
    read_logs,
)
from hyperjob_core.api.ownership import is_controlled

LOG = FailedLog(
    job="hj-t-0", attempt=2, cluster="east", pod="hj-t-0-worker-1", container="main",
    time="2026-01-02T03:04:05Z", text="one\ntwo\n",
)  # fmt: skip
OWNER = {"kind": "HyperJob", "name": "hj", "uid": "u", "controller": True}


def test_a_log_reads_back_with_its_source() -> None:
    key, value = LOG.entry(1024)
    made = config_map("hj", OWNER, {key: value})
    assert read_logs(made) == [replace(LOG, time="20260102030405")]
    assert LOG.entry(1024)[0] == key, "the same failure is stored once"
    assert (is_controlled(made, "u"), is_controlled(made, "another")) == (True, False)
    assert read_logs({"data": {"x": "no json\nline", "y": 3}}) == []


def test_the_end_of_a_log_is_kept_without_control_characters() -> None:
    _, value = replace(LOG, text="x" * 100 + "\x1b[0m é" + "y" * 10).entry(12)
    assert value.partition("\n")[2] == "é" + "y" * 10
    assert "\x1b" not in replace(LOG, text="\x1b[0m").entry(99)[1]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, MOST_BYTES)), max_size=20))
def test_the_newest_logs_stay_and_all_together_are_bounded(sizes: list[tuple[int, int]]) -> None:
    stored: dict[str, str] = {}
    for number, (second, size) in enumerate(sizes):
        log = replace(LOG, job=f"j{number}", time=f"{second:07d}", text="x" * size)
        key, value = log.entry(MOST_BYTES)
        for name, text in change(stored, key, value).items():
            stored.pop(name, None)
            if text is not None:
                stored[name] = text
        assert key in stored, "the log of the last failure is always there"
        assert sum(len(text.encode()) for text in stored.values()) <= TOTAL_BYTES


def test_a_log_that_is_stored_once_more_removes_no_other() -> None:
    stored = {f"{number}": "x" * (TOTAL_BYTES // 4) for number in range(4)}
    assert change(stored, "3", stored["3"]) == {"3": stored["3"]}
