"""A mistake in a parameter is refused before a request, in words that name parameter and remedy."""

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from hyperjob.sdk import (
    AsyncClient,
    Client,
    HyperJobWarning,
    SourceError,
    progress,
    trainer,
)
from hyperjob.sdk.errors import warn


def train(steps: int = 1) -> None:
    print(steps)


PARAMETERS = [
    ({"clusters": "east"}, r"clusters='east': expected a whole number or a list of texts.*\['east"),
    ({"clusters": {"a": 1}}, r"clusters=\{'a': 1\}: expected a whole number or a list of texts"),
    ({"clusters": None}, "clusters=None: expected"),
    ({"clusters": [1]}, r"clusters=\[1\]: expected"),
    ({"replicas": True}, "replicas=True: expected a whole number"),
    ({"gpus": "1"}, "gpus='1': expected a whole number"),
    ({"gpus": -1}, "gpus must be a whole number, at least 0; got -1"),
    ({"memory": 16}, "memory=16: expected a text, such as '16Gi'"),
    ({"memory": "16"}, "memory='16' would be 16 bytes: the unit is missing, as in memory='16Gi'"),
    ({"memory": "16GB"}, "memory='16GB': expected an amount as Kubernetes writes it, such as '16G"),
    ({"memory": "-1Gi"}, "memory='-1Gi': expected an amount"),
    ({"shared_memory": 8}, "shared_memory=8: expected a text, such as '8Gi'"),
    ({"shared_memory": "8"}, "shared_memory='8' would be 8 bytes"),
    ({"cpu": "two"}, "cpu='two': expected an amount as Kubernetes writes it, such as 2 or '500m'"),
    ({"cpu": 0}, "cpu=0: expected an amount"),
    ({"cpu": True}, "cpu=True: expected a text or a number"),
    ({"framework": "pytorch"}, "framework='pytorch': expected one of python, torchrun, jax"),
    ({"image": 5}, "image=5: expected a text"),
    ({"packages": [5]}, r"packages=\[5\]: expected a list of texts"),
    ({"include": "config.yaml"}, "include=.config.yaml.: expected a list of texts"),
    ({"packages": {"a": "1"}}, "packages=.*: expected a list of texts"),
    ({"env": {"A": 1}}, r"env=\{'A': 1\}: expected a dict of texts"),
    ({"env": {"A": None}}, "env=.*: expected a dict of texts"),
    ({"env": ["A=1"]}, r"env=\['A=1'\]: expected a dict of texts"),
    ({"env_from_secret": {"a": "b"}}, "env_from_secret=.*: expected a text or a list of texts"),
    ({"volumes": ["claim"]}, r"volumes=\['claim'\]: expected a dict"),
    ({"volumes": {"/d": 5}}, "volumes=.*: expected a dict"),
    ({"volumes": {"d": "claim"}}, "the mount path 'd' must be absolute"),
    ({"node_selector": "gpu=a100"}, "node_selector='gpu=a100': expected a dict of texts"),
    ({"node_selector": {"gpu": True}}, "node_selector=.*: expected a dict of texts"),
    ({"tolerations": "gpu"}, r"tolerations='gpu': expected a list, such as \['gpu'\]"),
    ({"tolerations": [5]}, r"tolerations=\[5\]: expected a list"),
    ({"labels": "a=b"}, "labels='a=b': expected a dict of texts"),
    ({"labels": {"a": 1}}, "labels=.*: expected a dict of texts"),
    ({"name": 5}, "name=5: expected a text"),
    ({"max_restarts": "3"}, "max_restarts='3': expected a whole number"),
    ({"max_restarts": -1}, "max_restarts must be a whole number, at least 0; got -1"),
    ({"quorum": 1.5}, "quorum=1.5: expected a whole number"),
    ({"memory": "0.5"}, "memory='0.5' would be 0.5 bytes"),
    ({"checkpoint": ""}, "checkpoint='': expected a directory such as '/checkpoints', a URL"),
    ({"checkpoint": {}}, "checkpoint={}: expected a directory"),
    ({"checkpoint": 5}, "checkpoint=5: expected a text or a dict"),
    ({"grace_seconds": "30s"}, "grace_seconds='30s': expected a whole number"),
    ({"grace_seconds": -5}, "grace_seconds must be a whole number, at least 0; got -5"),
    ({"time_limit": 2.5}, "time_limit=2.5: expected a whole number or a text, such as 3600 or"),
    ({"pod_template": "x"}, "pod_template='x': expected a dict"),
    ({"clusters": 2, "replicas": 3}, "multiple of the clusters"),
    ({"clusters": 0}, "clusters must be a whole number, at least 1; got 0"),
    ({"clusters": []}, "multiple of the clusters"),
    ({"replicas": 0}, "replicas must be a whole number, at least 1; got 0"),
    ({"replicas": 2.5}, "replicas=2.5: expected a whole number"),
    ({"framework": "torchrun"}, "needs torch, and the default image has only Python"),
    ({"framework": "jax", "image": "python:3.13"}, "needs jax, and image 'python:3.13' has"),
    ({"clusters": 2, "replicas": (3, 8)}, r"be multiples of the pods of a cluster \(4\)"),
    ({"replicas": (2, 1)}, r"replicas=\(2, 1\): the numbers must grow"),
    ({"replicas": (1, 2, 3, 4)}, r"expected a number of pods, \(least, wanted\)"),
    ({"clusters": 2, "replicas": (2, 4, 5)}, "the numbers must grow, and be multiples"),
    ({"accelerators": 4}, r"accelerators=4: .* multiples of the gpus of a pod \(0\)"),
    ({"accelerators": (8, 12), "gpus": 8}, r"accelerators=\(8, 12\): the numbers must grow"),
    ({"accelerators": 8, "gpus": 8, "replicas": 2}, "the controller decides it"),
    ({"alternatives": [{"gpus": 1}]}, "it has no name; an alternative has a name, and may"),
    ({"alternatives": [{"name": "a", "gpu": 1}]}, "it has gpu; an alternative has a name"),
    ({"alternatives": [{"name": "a", "clusters": 2}]}, "multiple of the clusters"),
    ({"alternatives": [{"name": "a", "gpus": "8"}]}, "gpus='8': expected a whole number"),
    ({"tolerations": ["a=b:Never"]}, "is not key, key=value or key=value:effect"),
    ({"pod_template": {"containers": []}}, "pod_template has containers: a pod template has only"),
]


@pytest.mark.parametrize(("options", "message"), PARAMETERS, ids=lambda value: str(value)[:30])
def test_a_wrong_parameter_is_named_with_its_remedy(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trainer(train, **options)


def test_a_version_as_conda_writes_it_is_refused_with_the_right_one() -> None:
    with pytest.raises(SourceError, match=r"'torch=2.0' is no requirement of pip: .*'torch==2.0'"):
        trainer(train, packages=["torch=2.0"])
    trainer(train, packages=["a==1", "b[x]>=2,!=3", "c @ https://host/c.whl?sig=1", "d~=1.0", "e"])


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (
            "python {0} --lr 1",
            r"no such file: for a command line write train\('{0}', args=\[\"--lr",
        ),
        ("{0} --lr", r"no such file: for a command line write train\('{0}', args=\[\"--lr\"\]\)"),
        ("other.py", "no such file$"),
    ],
)
def test_a_command_line_in_place_of_a_script_is_taken_apart(
    written: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.py").touch()
    with pytest.raises(SourceError, match=message.format("t.py")):
        trainer(written.format("t.py"))


@pytest.mark.parametrize("name", ["train.ipynb", "train.sh"])
def test_a_file_of_another_language_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(SourceError, match="the containers run a Python script"):
        trainer(tmp_path / name)


def test_a_document_goes_to_submit() -> None:
    with pytest.raises(SourceError, match=r"client\.submit takes a document") as raised:
        trainer({"kind": "HyperJob", "spec": {"long": "x" * 5000}})
    assert len(str(raised.value)) < 300


OF_CLIENT: list[tuple[Callable[[AsyncClient], object], str]] = [
    (lambda c: c.train(train, gpu=8), r"train\(\) got .* 'gpu'; did you mean 'gpus'\?"),
    (lambda c: c.train(train, num_nodes=8), r"train\(\) got .* 'num_nodes'"),
    (lambda c: c.sweep(train, {"steps": 5}), r"grid\['steps'\]=5: .*such as \[5\]"),
    (lambda c: c.sweep(train, {"steps": "ab"}), r"grid\['steps'\]='ab': expected a list"),
    (lambda c: c.sweep(train, {"steps": []}), r"grid\['steps'\]=\[\]: expected a list"),
    (lambda c: c.sweep(train, {}), "the grid is empty"),
    (lambda c: c.sweep("python a.py", {"lr": [1]}), "a sweep calls a function"),
    (lambda c: c.sweep(train, {"steps": [1]}, args=[1]), "args are a dict"),
    (lambda c: c.sweep(train, {"steps": [1]}, parallel=0), "parallel must be .* at least 1; got 0"),
    (lambda c: c.sweep(train, {"steps": [1]}, args={"steps": 3}), "steps is in grid and in args"),
    (lambda c: c.sweep(train, {"steps": [1]}, name="x"), "a sweep names its HyperJobs itself"),
]


@pytest.mark.parametrize(("call", "message"), OF_CLIENT)
def test_a_wrong_call_of_the_client_sends_nothing(
    call: Callable[[AsyncClient], object], message: str
) -> None:
    async def act() -> None:
        await call(AsyncClient())  # is not open: a request would raise another error

    with pytest.raises((TypeError, ValueError, SourceError), match=message):
        asyncio.run(act())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clusters": "east"}, r"clusters='east': expected .* such as \['east'\]"),
        ({"gpus": -1}, "gpus must be a whole number, at least 0; got -1"),
        ({"gpus": 2.5}, "gpus=2.5: expected a whole number"),
        ({"cluster_lost_seconds": -1}, "cluster_lost_seconds=-1: expected a number, more than 0"),
    ],
)
def test_a_wrong_local_installation_starts_nothing(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Client.local(**options)


def test_a_folder_of_an_installation_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SourceError, match=r"directory='.*file/folder': Not a directory"):
        Client.local(directory=tmp_path / "file" / "folder")


def test_a_warning_of_the_api_server_is_its_text() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn("POST /apis", r'299 - "there is no Queue \"research\" now"')
        warn("POST /apis", "not quoted")
    assert [str(each.message) for each in found] == [
        'there is no Queue "research" now',
        "not quoted",
    ]
    assert {each.category for each in found} == {HyperJobWarning}
    assert {each.filename for each in found} == {"hyperjob"}


class Scalar:
    """A number as numpy and torch have them."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value

    def __index__(self) -> int:
        return int(self.value)


def test_progress_takes_numbers_of_other_libraries_and_leaves_out_nan(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(progress.__globals__, "_last", {**progress.__globals__["_last"], "time": 0})
    monkeypatch.setitem(progress.__globals__, "_samples", [0, 0])
    assert progress(
        step=Scalar(7), steps=7, loss=Scalar(0.5), best=float("nan"), worst=float("inf"), lr=3
    )
    assert capfd.readouterr().out == (
        '{"hyperjob": {"step": 7, "steps": 7, "metrics": {"loss": 0.5, "lr": 3}}}\n'
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"step": "3"}, "step='3' is no whole number"),
        ({"step": 1.5}, "step=1.5 is no whole number"),
        ({"step": -1}, "step=-1 is less than 0"),
        ({"step": 1, "loss": "0.1"}, "loss='0.1' is a text"),
        ({"step": 1, "loss": object()}, "loss is a object, and no single number"),
        ({"step": 1, **{f"m{n}": n for n in range(17)}}, "17 metrics, and a line has at most 16"),
    ],
)
def test_progress_refuses_what_no_line_can_have(given: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        progress(**given)
