"""The SDK over a whole local installation, whose pods are processes."""

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from hyperjob.sdk import (
    Client,
    HyperJobWarning,
    Job,
    NeverReachedError,
    NotFoundError,
    NotReachedError,
    SourceError,
    UnreachableError,
    trainer,
)
from hyperjob_page.rows import failures, row_of
from tests.support.proxy import Relay
from tests.support.wheels import wheel

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with Client.local(clusters=["east", "west"]) as opened:
            yield opened


def counts(until: int, pause: float) -> None:
    import os
    import time

    for number in range(until):
        print(os.environ["HYPERJOB_CLUSTER"], number, flush=True)
        time.sleep(pause)


def pairs(until: int, pause: float) -> None:
    import os
    import time

    for number in range(0, until, 2):
        os.write(1, f"{number}\n{number + 1}\n".encode())  # both lines have one time
        time.sleep(pause)


def fails() -> None:
    raise RuntimeError("boom of this training")


def fails_three_times(number: int) -> None:
    import os

    attempt = int(os.environ["HYPERJOB_ATTEMPT"])
    if attempt < 3:
        for line in range(200):
            print(f"line {line} before boom {number} of attempt {attempt + 1}")
        raise RuntimeError(f"boom {number} of attempt {attempt + 1}")


def one_of_two_dies() -> None:
    import os
    import time

    if os.environ["HYPERJOB_ATTEMPT"] == "0":
        if os.environ["HYPERJOB_TASK_INDEX"] == "1":
            raise SystemExit(3)
        time.sleep(3600)


def ended(job: Job) -> None:
    job.delete(timeout=60)


def test_a_function_trains_in_two_clusters_and_its_logs_come_as_they_are_written(
    client: Client,
) -> None:
    job = client.train(counts, args={"until": 3, "pause": 0.01}, clusters=2, replicas=4)
    lines = list(job.logs(follow=True))
    assert job.phase == "Completed", "read again at the end of the logs"
    assert job.wait("Completed", timeout=60).phase == "Completed"
    assert sorted({line.cluster for line in lines}) == ["east", "west"]
    assert len({line.pod for line in lines}) == 4
    assert {line.rank for line in lines} == {0, 1, 2, 3}
    read = list(job.logs(tail=-1))
    assert sorted(read, key=lambda line: line.time) == read
    assert set(read) == set(lines)
    assert [line.text[-1] for line in job.logs(rank=3, tail=-1)] == ["0", "1", "2"]
    assert {line.rank for line in job.logs(rank=[0, 2])} == {0, 2}
    assert {line.text for line in job.logs(search=r" [12]$", cluster="east")} == {
        "east 1",
        "east 2",
    }
    assert list(job.logs(since=0.01, tail=-1, search="never")) == []
    assert sorted(line.text for line in lines if line.cluster == "east") == sorted(
        f"east {number}" for number in range(3) for _ in range(2)
    )
    assert {line.text for line in job.logs(tail=1)} == {"east 2", "west 2"}
    assert job.name in {each.name for each in client.list()}
    assert job.name in {each.name for each in client.list(queue="default")}
    assert client.list(queue="other") == []
    assert "Completed" in repr(job)
    assert "<td>east</td>" in job._repr_html_()
    assert {event["reason"] for event in job.events()} >= {"Completed"}
    ended(job)


def test_a_script_trains_with_its_folder(client: Client, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys, helper\nprint(helper.text, *sys.argv[1:])\n")
    (tmp_path / "helper.py").write_text("text = 'helped'\n")
    job = client.train(tmp_path / "train.py", args=["--epochs", "3"])
    assert [line.text for line in job.logs(follow=True)] == ["helped --epochs 3"]
    ended(job)


def descends(steps: int, rate: float) -> None:
    import os

    from hyperjob.sdk.progress import _last, progress

    if rate > 1:
        raise ValueError("diverges")
    for step in range(1, steps + 1):
        _last["time"] = 0.0  # every step counts
        if os.environ["HYPERJOB_RANK_OFFSET"] == "0":
            progress(step=step, steps=steps, loss=(1 - rate) ** step)


def test_metrics_are_rows_of_every_reported_step(client: Client) -> None:
    job = client.train(descends, args={"steps": 20, "rate": 0.5}, clusters=2, replicas=2)
    job.wait("Completed", timeout=60)
    rows = job.metrics()
    assert [row["step"] for row in rows] == list(range(1, 21))
    assert rows[1]["loss"] == 0.25
    assert {(row["rank"], row["steps"]) for row in rows} == {(0, 20)}
    assert sorted(rows, key=lambda row: row["time"]) == rows
    ended(job)


def test_a_sweep_has_a_row_for_each_combination(client: Client) -> None:
    rows = client.sweep(
        descends, {"rate": [0.5, 0.25, 2.0]}, args={"steps": 2}, labels={"team": "x"}, parallel=2
    )
    assert [(row["rate"], row["phase"], row.get("loss")) for row in rows] == [
        (0.5, "Completed", 0.25),
        (0.25, "Completed", 0.5625),
        (2.0, "Failed", None),
    ]
    jobs = client.list(labels="sweep,team=x")
    assert {job.name for job in jobs} == {row["job"] for row in rows}
    for job in jobs:
        ended(job)


def test_packages_are_installed_before_a_training_is_submitted(
    client: Client,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def train() -> None:
        import tiny

        print(tiny.text)

    wheel(tmp_path, "tiny", "text = 'installed'")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    for _ in range(2):
        job = client.train(train, packages=["tiny==1.0"], clusters=2, replicas=2)
        assert [line.text for line in job.logs(follow=True)] == ["installed", "installed"]
        ended(job)
    said = capsys.readouterr().err
    assert said.count("hyperjob: installs ") == 1, "one environment for each list"
    with pytest.raises(SourceError, match=r"pip cannot install[^$]*tiny==2\.0"):
        client.train(train, packages=["tiny==2.0"])
    assert client.list() == []


def test_torchrun_without_torch_is_refused_before_the_submission(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="needs torch, and the pods run in the environment of"):
        client.train(fails, framework="torchrun")


def test_a_training_that_fails_says_so(client: Client) -> None:
    job = client.train(fails)
    with pytest.raises(NeverReachedError, match=r"is Failed[^$]*boom of this training"):
        job.wait("Completed", timeout=60)
    assert len(repr(job.status)) < 400, repr(job.status)
    assert repr(job.why()).splitlines()[0] == job.why().headline
    assert job.phase == "Failed", "read again when the wait failed"
    assert job.why().headline
    ended(job)


def test_admission_warns_once_with_its_text(client: Client) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        jobs = [client.train(counts, args={"until": 1, "pause": 0}, clusters=["gone"])]
        jobs.append(client.train(counts, args={"until": 1, "pause": 0}, clusters=["gone"]))
    texts = [str(each.message) for each in found if each.category is HyperJobWarning]
    assert [text for text in texts if "gone" in text], texts
    assert len(set(texts)) == len(texts)
    for job in jobs:
        ended(job)


def test_a_dead_rank_restarts_all_ranks(client: Client) -> None:
    job = client.train(one_of_two_dies, clusters=2, replicas=4, max_restarts=1)
    job.wait("Completed", timeout=60)
    assert [each.number for each in job.status.jobs] == [2, 2]
    ended(job)


def test_it_is_suspended_resumed_restarted_and_deleted(client: Client) -> None:
    job = client.train(counts, args={"until": 10_000, "pause": 0.05}, clusters=2, replicas=2)
    seen: list[str] = []
    job.wait("Running", timeout=60, progress=seen.append)
    assert seen
    with pytest.raises(NotReachedError, match="timed out"):
        job.wait("Completed", timeout=0.2)
    assert job.suspend(timeout=60).phase == "Suspended"
    assert job.resume(timeout=60).phase == "Running"
    before = {each.name: each.attempt for each in job.status.jobs}
    after = {each.name: each.attempt for each in job.restart(timeout=60).jobs}
    assert all(after[name] > before[name] for name in before)
    job.delete(timeout=60)
    with pytest.raises(NotFoundError, match="not found"):
        job.refresh()


def test_a_plan_says_where_it_would_go_and_why_it_would_not(client: Client) -> None:
    fits = client.plan(trainer(counts, args={"until": 1, "pause": 0}, clusters=2, replicas=4))
    assert fits.verdict == "Fits"
    assert {piece.cluster for piece in fits.pieces} == {"east", "west"}
    large = client.plan(trainer(fails, gpus=1000))
    assert large.verdict == "CannotRun"
    assert "nvidia.com/gpu" in large.message
    unknown = client.plan(trainer(fails, queue="none"))
    assert "none" in unknown.message
    wrong = trainer(fails)
    wrong["spec"]["minAvailable"] = 5
    assert any("minAvailable" in error for error in client.plan(wrong).errors)
    assert client.list() == []


def test_without_an_api_server_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="no-such-file"):
        Client(kubeconfig=tmp_path / "no-such-file")


def test_waiting_and_following_survive_a_broken_connection(client: Client, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(str(client.kubeconfig)).read_text())
    cluster = config["clusters"][0]["cluster"]
    with Relay(urlsplit(cluster["server"]).port) as relay:
        cluster["server"] = f"https://127.0.0.1:{relay.port}"
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
        with Client(kubeconfig=tmp_path / "kubeconfig") as remote:
            job = remote.train(pairs, args={"until": 60, "pause": 0.05})
            numbers: list[int] = []
            for line in job.logs(follow=True):
                numbers.append(int(line.text))
                if numbers[-1] in (10, 31):
                    relay.cut()
                    relay.remedy()
            assert numbers == list(range(60))
            with ThreadPoolExecutor(1) as pool:
                seen = threading.Event()
                waiting = pool.submit(job.wait, "delete", timeout=60, progress=lambda _: seen.set())
                assert seen.wait(30)
                relay.cut()
                relay.remedy()
                client.get(job.name).delete(timeout=60)
                waiting.result()


def test_the_traceback_of_each_failed_attempt_is_there_after_three_restarts(
    client: Client,
) -> None:
    count = int(os.environ.get("HYPERJOB_FAILING", "1"))
    jobs = [
        client.train(fails_three_times, args={"number": number}, max_restarts=3)
        for number in range(count)
    ]
    read = 0
    for number, job in enumerate(jobs):
        assert job.wait("Completed", timeout=280).restarts == 3
        page = [run for _, run in failures(row_of(job.raw).summary)]
        for attempt in (1, 2, 3):
            said = f"RuntimeError: boom {number} of attempt {attempt}"
            python = [line.text for line in job.logs(attempt=attempt)]
            command = [
                sys.executable,
                "-m",
                "hyperjob",
                "logs",
                job.name,
                "--attempt",
                str(attempt),
            ]
            command += ["--kubeconfig", str(client.kubeconfig), "-n", job.namespace, "--no-prefix"]
            shell = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            (shown,) = [run.failure for run in page if run.attempt + 1 == attempt]
            for lines in (python, shell.splitlines(), list(shown.last_lines)):
                assert said in lines[-1], lines
                assert any("Traceback" in line for line in lines)
            read += 1
        ended(job)
    print(f"tracebacks of {read} failed attempts read by command, SDK and page")
