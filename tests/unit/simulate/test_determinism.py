"""The same arguments give the same bytes, whatever the process and its seed of hashes."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from hyperjob_sandbox_cli.simulate import simulate
simulate.main(sys.argv[1:], standalone_mode=False)
"""
ARGUMENTS = (
    *("--jobs", "40", "--days", "0.3", "--load", "0.65", "--policy", "hyperjob,fifo"),
    *("--seed", "3", "-o", "json"),
)
SCENARIO = """
shape: llm
urgent: 0.2
queues: {a: 1, b: 2}
estimates: {share: 0.8, error: 2}
failures: {pod: 200, node: 300}
"""


def test_processes_with_other_seeds_of_hashes_write_the_same_bytes(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(SCENARIO)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *ARGUMENTS, "--scenario", str(scenario)],
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
