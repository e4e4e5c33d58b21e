"""The lines that `hyperjob plan` prints of a judgement."""

from dataclasses import replace

from hyperjob.cli.plan.planning import as_table
from hyperjob.client.plan.judge import Judgement, Piece, Verdict


def test_a_table_shows_a_sub_job_without_a_cluster_and_with_one_pod() -> None:
    waiting = Piece(
        name="llm-loader-0",
        group="loader",
        cluster="",
        accelerator="",
        accelerators=0,
        pods=1,
        fewest=1,
        phase="Unplaced",
        message="waits for the queue",
        elsewhere={"gpu-east": "is full"},
    )
    found = Judgement(
        namespace="ml", name="llm", line=1, verdict=Verdict.WAITS, message="waits", pieces=[waiting]
    )
    assert [line.plain.split() for line in as_table(found)] == [
        ["ml/llm", "Waits", "waits"],
        ["SUB-JOB", "CLUSTER", "ACCELERATORS", "PODS", "MESSAGE"],
        ["llm-loader-0", "<none>", "<none>", "1", "waits", "for", "the", "queue"],
        ["NOT", "ON", "SUB-JOBS", "WHY"],
        ["gpu-east", "llm-loader-0", "is", "full"],
    ]
    assert repr(found) == "<ml/llm Waits: waits>"
    placed = replace(waiting, cluster="gpu-west")
    fits = replace(found, verdict=Verdict.FITS, pieces=[placed], warnings=["no limit"])
    assert repr(fits) == "<ml/llm Fits on gpu-west: waits: no limit>"
