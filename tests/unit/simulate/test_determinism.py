"""The same arguments give the same bytes, whatever the process and its seed of hashes."""

import subprocess
import sys

PROGRAM = """
import sys
from hyperjob.cli.simulate import simulate
simulate.main(sys.argv[1:], standalone_mode=False)
"""
ARGUMENTS = (
    *("--jobs", "40", "--days", "0.3", "--load", "0.65", "--shape", "llm", "--urgent", "0.2"),
    *("--queue", "a=1", "--queue", "b=2", "--estimates", "0.8", "--estimate-error", "2"),
    *("--pod-mtbf", "200", "--node-mtbf", "300", "--compare", "hyperjob,static-weights"),
    *("--seed", "3", "-o", "json"),
)


def test_processes_with_other_seeds_of_hashes_write_the_same_bytes() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *ARGUMENTS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONHASHSEED": seed, "TZ": zone},
        )
        for seed, zone in (("1", "UTC"), ("4242", "Asia/Tokyo"))
    ]
    found = [each.communicate(timeout=300) for each in running]
    assert all(each.returncode in (0, 4) for each in running), found
    first, second = (out for out, _ in found)
    assert b'"completed"' in first
    assert first == second
