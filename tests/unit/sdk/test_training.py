"""A function or a script becomes a HyperJob that admission accepts, or an error that says why."""

import functools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from hyperjob.sdk import SourceError, progress, trainer
from hyperjob.sdk.program import program_of
from hyperjob_core.api.names import ARGUMENTS
from hyperjob_core.api.overlay import applied
from hyperjob_rules.validation.create import validate_create

SCALE = 2


def trains(steps: int, name: str = "x") -> None:
    import math

    class Model:
        def loss(self, step: int) -> float:
            return math.exp(-step)

    model = Model()
    for step in range(steps):
        print(name, step, model.loss(step) <= 1)


def uses_a_global(steps: int) -> None:
    print(steps * SCALE)


def uses_a_module() -> None:
    print(json.dumps({}))


def has_a_default(steps: int = SCALE) -> None:
    print(steps)


async def waits() -> None:
    pass


def annotated(where: Path) -> "Path":
    return where


def test_the_program_calls_the_function_with_its_arguments() -> None:
    program = program_of(trains, {"steps": 2, "name": 'it\'s "quoted" $HOME'})
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == 'it\'s "quoted" $HOME 0 True\nit\'s "quoted" $HOME 1 True\n'


def test_annotations_are_not_evaluated_in_the_container() -> None:
    program = program_of(annotated, {"where": "x"})
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def fails() -> None:
    raise ValueError("here")


def test_a_traceback_has_the_numbers_of_the_lines_in_the_user_s_file() -> None:
    for function in (fails, nested(None)):
        program = program_of(function, {"value": 1} if function is not fails else {})
        (line,) = [
            number
            for number, text in enumerate(program.splitlines(), 1)
            if text.strip().startswith(f"def {function.__name__}(")
        ]
        assert line == function.__code__.co_firstlineno


def logged(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def call(**more: object) -> None:
            print(name)
            function(**more)

        return call

    return decorate


@logged("x")
def decorated(steps: int) -> None:
    print(steps)


@functools.lru_cache
def remembers() -> None:
    pass


def yields() -> Iterator[int]:
    yield 1


async def yields_later() -> AsyncIterator[int]:
    yield 1


def nested(value: object) -> Callable[..., None]:
    def inner(value: object) -> None:
        text = """a
  b
"""
        print(repr(text), repr(value))

    return inner


VALUES = {
    "a dict with numbers as keys": {1: "a", (2, 3): "b", None: True},
    "tuples in lists": [(1,), (), [2.5]],
    "sets": {frozenset(["x"]), 3},
    "bytes": b"\x00\xff",
    "numbers without JSON": [float("inf"), float("-inf"), 10**30],
    "a text with quotes and variables": 'it\'s "a" $HOME $(HOME) \\ \n',
}


@pytest.mark.parametrize("name", VALUES)
def test_arguments_keep_their_types(name: str) -> None:
    program = program_of(nested(None), {"value": VALUES[name]})
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    text, value = found.stdout.rstrip("\n").split("' ", 1)
    assert text == "'a\\n  b\\n", "the text of a nested function keeps its indentation"
    assert eval(value, {"inf": float("inf")}) == VALUES[name]


def test_a_nested_list_of_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(SourceError, match="nested deeper than 50"):
        program_of(nested(None), {"value": endless})


def closure():
    factor = 3

    def inner() -> None:
        print(factor)

    return inner


REFUSED = {
    "a global": (uses_a_global, {"steps": 1}, "uses SCALE from outside"),
    "an imported module": (uses_a_module, {}, "uses json from outside .* import modules inside"),
    "a default from outside": (has_a_default, {}, "uses SCALE from outside"),
    "a closure": (closure(), {}, "uses factor from outside"),
    "a lambda": (lambda: None, {}, "defined with def"),
    "a coroutine function": (waits, {}, "call asyncio.run inside"),
    "a builtin": (print, {}, "defined with def"),
    "a decorator": (decorated, {"steps": 1}, r"decorated has the decorator @logged\('x'\)"),
    "lru_cache": (remembers, {}, "remembers has the decorator @functools.lru_cache"),
    "a function wrapped by a call": (functools.lru_cache(trains), {}, "trains is wrapped by"),
    "a generator": (yields, {}, "yields is a generator function"),
    "an asynchronous generator": (yields_later, {}, "yields_later is a generator function"),
    "a partial function": (functools.partial(trains, 1), {}, "defined with def"),
    "keys that are no names": (trains, {1: 2}, "args has the key 1"),
    "an argument that is missing": (trains, {}, "args do not match its parameters.*steps"),
    "an argument without a literal": (
        trains,
        {"steps": [{"at": Path()}]},
        r"args\['steps'\]\[0\]\['at'\] is a pathlib.*: args are numbers",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_that_cannot_travel_says_why(name: str) -> None:
    function, args, message = REFUSED[name]
    with pytest.raises(SourceError, match=message):
        program_of(function, args)


OPTIONS = {
    "the least": {},
    "over clusters": {"clusters": 2, "replicas": 4, "gpus": 8},
    "named clusters": {"clusters": ["gpu-east", "gpu-west"], "replicas": 2},
    "torchrun": {"framework": "torchrun", "replicas": 2, "image": "training-image:v1"},
    "jax": {"framework": "jax", "replicas": 2, "packages": ["JAX[cuda13]>=0.8"]},
    "everything": {
        "queue": "research",
        "priority_class": "high",
        "max_restarts": 3,
        "cpu": 2,
        "memory": "4Gi",
        "env": {"A": "$(B) and $C"},
        "labels": {"team": "x"},
        "namespace": "team",
        "name": "mine",
        "grace_seconds": 60,
        "accelerator": "huawei.com/Ascend910",
        "gpus": 4,
        "env_from_secret": ["object-storage", "tokens"],
        "volumes": {"/data": "datasets", "/etc/training": {"configMap": {"name": "settings"}}},
        "shared_memory": "8Gi",
        "node_selector": {"pool": "h100"},
        "tolerations": ["gpu", "team=x:NoSchedule", {"operator": "Exists"}],
        "clusters": 2,
        "replicas": 4,
        "quorum": 1,
        "checkpoint": "s3://bucket/run",
        "pod_template": {
            "metadata": {"annotations": {"a": "b"}},
            "spec": {
                "restartPolicy": "OnFailure",
                "containers": [
                    {"name": "trainer", "env": [{"name": "A", "value": "x"}]},
                    {"name": "sidecar", "image": "busybox:1.36"},
                ],
            },
        },
    },
}


@pytest.mark.parametrize("name", OPTIONS)
def test_admission_accepts_what_the_trainer_builds(name: str) -> None:
    made = trainer(trains, args={"steps": 3}, **OPTIONS[name])
    made["metadata"].setdefault("namespace", "default")
    assert validate_create(made).errors == ()


@pytest.mark.parametrize("framework", ["python", "torchrun", "jax"])
@pytest.mark.parametrize("max_restarts", [0, 2])
def test_a_failed_pod_fails_its_sub_job_at_once(framework: str, max_restarts: int) -> None:
    made = trainer(
        trains,
        args={"steps": 1},
        image="training-image:v1",
        replicas=2,
        framework=framework,
        max_restarts=max_restarts,
    )
    (group,) = made["spec"]["replicatedJobs"]
    template = group["templateSpec"]
    assert template["policies"] == [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}]
    assert template["maxRetry"] == 1, "Volcano restarts nothing by itself"
    assert made["spec"]["failurePolicy"] == {"maxRestarts": max_restarts}, "ends all sub-jobs"


def built(**options: object) -> tuple[dict, dict]:
    """Return the spec that admission accepts, and its only replicatedJob."""
    made = trainer(trains, args={"steps": 1}, **options)
    assert validate_create(made).errors == ()
    (group,) = made["spec"]["replicatedJobs"]
    return made["spec"], group


def test_pods_are_spread_evenly_over_the_clusters() -> None:
    spec, group = built(clusters=["a", "b"], replicas=6)
    assert (group["replicas"], group["templateSpec"]["tasks"][0]["replicas"]) == (2, 3)
    assert (group["clusterNames"], spec["maxDomains"]) == (["a", "b"], 2)


def test_the_least_number_of_pods_is_that_of_whole_clusters() -> None:
    _, group = built(clusters=4, replicas=(4, 8, 12))
    assert (group["minReplicas"], group["replicas"], group["maxReplicas"]) == (2, 4, 6)
    assert group["templateSpec"]["tasks"][0]["replicas"] == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(16, {}, id="one number"),
        pytest.param((8, 16), {"minAccelerators": 8}, id="at least"),
        pytest.param((8, 16, 32), {"minAccelerators": 8, "maxAccelerators": 32}, id="at most"),
    ],
)
def test_the_controller_divides_a_number_of_accelerators(
    given: int | tuple[int, ...], expected: dict
) -> None:
    spec, group = built(clusters=3, accelerators=given, gpus=4)
    policy = {"mode": "auto", "accelerators": 16, "acceleratorType": "nvidia.com/gpu"}
    assert group["splitPolicy"] == policy | expected
    assert "replicas" not in group
    assert (spec["maxDomains"], group["templateSpec"]["tasks"][0]["replicas"]) == (3, 1)


def test_each_alternative_has_its_own_bounds() -> None:
    spec, group = built(
        clusters=2,
        replicas=(2, 4),
        gpus=8,
        alternatives=[
            {"name": "h100"},
            {"name": "a100", "clusters": 4, "replicas": (4, 8, 12)},
            {"name": "v100", "replicas": 4},
        ],
    )
    assert spec["maxDomains"] == 6
    assert (group["replicas"], group["minReplicas"]) == (2, 1)
    first, wide, rigid = (
        {key: each[key] for key in each if key.lower().endswith("replicas")}
        for each in group["alternatives"]
    )
    assert first == {}
    assert wide == {"minReplicas": 2, "replicas": 4, "maxReplicas": 6}
    assert rigid == {"minReplicas": 2}


def test_alternatives_of_a_split_have_their_numbers_of_accelerators() -> None:
    _, group = built(
        clusters=2,
        accelerators=(16, 32),
        gpus=8,
        alternatives=[{"name": "h100"}, {"name": "a100", "accelerators": (32, 64)}],
    )
    first, second = group["alternatives"]
    assert "splitPolicy" not in first
    assert second["splitPolicy"]["minAccelerators"] == 32


def test_an_alternative_has_the_parameters_that_it_does_not_change() -> None:
    spec, group = built(
        clusters=["a"],
        replicas=4,
        gpus=8,
        cpu=16,
        alternatives=[
            {"name": "fast", "estimate": "6h"},
            {
                "name": "wide",
                "clusters": ["b", "c"],
                "accelerator": "example.com/npu",
                "image": "training-image:npu",
                "env": {"BACKEND": "hccl"},
                "node_selector": {"pool": "npu"},
            },
        ],
    )
    assert spec["maxDomains"] == 2, "of the widest"
    assert (group["replicas"], group["clusterNames"]) == (1, ["a"])
    fast, wide = (applied(group, each) for each in group["alternatives"])
    assert fast["templateSpec"]["runningEstimate"] == "6h"
    del fast["templateSpec"]["runningEstimate"]
    assert fast == {key: each for key, each in group.items() if key != "alternatives"}
    assert (wide["replicas"], wide["clusterNames"]) == (2, ["b", "c"])
    (task,) = wide["templateSpec"]["tasks"]
    pod = task["template"]["spec"]
    (container,) = pod["containers"]
    assert (task["replicas"], pod["nodeSelector"]) == (2, {"pool": "npu"})
    assert container["image"] == "training-image:npu"
    assert container["resources"]["limits"] == {"cpu": "16", "example.com/npu": "8"}
    assert {"name": "BACKEND", "value": "hccl"} in container["env"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--lr 0.1 --name 'a b'", r'a list of words: args=\["--lr", "0.1", "--name", "a b"\]'),
        ({"lr": 0.1}, "a list of words, its command line"),
        (["--lr", None], "args has None"),
        (["--fast", True], "args has True"),
    ],
)
def test_a_command_line_is_a_list_of_words(args: object, message: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    with pytest.raises(SourceError, match=message):
        trainer(tmp_path / "train.py", args=args)
    with pytest.raises(SourceError, match="a dict of its keyword arguments"):
        trainer(trains, args="--lr 0.1")


def test_kubernetes_expands_nothing_in_the_program() -> None:
    made = trainer(trains, args={"steps": 1, "name": "$(HOME)"})
    (container,) = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"][
        "spec"
    ]["containers"]
    (program,) = [each["value"] for each in container["env"] if "PROGRAM" in each["name"]]
    assert "$$(HOME)" in program


def test_progress_is_one_line_a_second_but_for_checkpoints_and_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = [progress(step=step, steps=100, loss=1.5) for step in range(1, 100)]
    assert sum(told) == 1
    assert progress(step=50, steps=100, saved=50)
    assert not progress(step=51, steps=100, saved=50)
    assert progress(step=100, steps=100)
    lines = [json.loads(line)["hyperjob"] for line in capfd.readouterr().out.splitlines()]
    for line in lines:
        line.pop("sampled", None)  # only a line after a second or so has it
    assert lines == [
        {"step": 1, "steps": 100, "metrics": {"loss": 1.5}},
        {"step": 50, "steps": 100, "saved": 50},
        {"step": 100, "steps": 100},
    ]


def test_the_arguments_of_a_program_are_one_line_of_an_annotation(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    given = [
        (trains, {"steps": 3, "name": "a b"}),
        (script, ["--name", "a\nb" * 400]),
        (script, None),
    ]
    shown = [trainer(each, args=args)["metadata"].get("annotations", {}) for each, args in given]
    assert shown[0] == {ARGUMENTS: "steps=3 name='a b'"}
    assert "\n" not in shown[1][ARGUMENTS]
    assert len(shown[1][ARGUMENTS]) == 500
    assert shown[2] == {}


def test_the_template_has_every_parameter() -> None:
    made = trainer(trains, args={"steps": 1}, **OPTIONS["everything"])
    assert (made["spec"]["quorum"], made["spec"]["checkpoint"]) == (
        1,
        {"directory": "s3://bucket/run"},
    )
    template = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]["template"]
    assert template["metadata"] == {"annotations": {"a": "b"}}
    pod = template["spec"]
    assert pod["volumes"] == [
        {"name": "volume-0", "persistentVolumeClaim": {"claimName": "datasets"}},
        {"name": "volume-1", "configMap": {"name": "settings"}},
        {"name": "volume-2", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
    ]
    container, sidecar = pod["containers"]
    assert [each["mountPath"] for each in container["volumeMounts"]] == [
        "/data",
        "/etc/training",
        "/dev/shm",
    ]
    assert container["envFrom"] == [
        {"secretRef": {"name": "object-storage"}},
        {"secretRef": {"name": "tokens"}},
    ]
    assert {"name": "A", "value": "x"} in container["env"], "of the pod template"
    assert len([each for each in container["env"] if each["name"] == "A"]) == 1
    assert (sidecar["name"], pod["restartPolicy"]) == ("sidecar", "OnFailure")
    assert pod["nodeSelector"] == {"pool": "h100"}
    assert pod["tolerations"] == [
        {"key": "gpu", "operator": "Exists"},
        {"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ]


def test_a_pod_has_the_variables_of_the_user_in_place_of_its_own() -> None:
    made = trainer(trains, args={"steps": 1}, env={"POD_IP": "10.0.0.1"})
    task = made["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][0]
    variables = task["template"]["spec"]["containers"][0]["env"]
    assert {"name": "POD_IP", "value": "10.0.0.1"} in variables


@pytest.mark.parametrize(("given", "seconds"), [(90, 90), ("2h30m", 9000), ("1.5s", 1)])
def test_a_time_limit_is_the_deadline_of_the_hyperjob(given: int | str, seconds: int) -> None:
    assert built(time_limit=given)[0]["activeDeadlineSeconds"] == seconds


@pytest.mark.parametrize("given", [0, -1, "soon", "0s", "5"])
def test_a_time_limit_that_is_no_duration_is_refused(given: int | str) -> None:
    with pytest.raises(ValueError, match="expected seconds, or a duration as in '2h30m'"):
        trainer(trains, args={"steps": 1}, time_limit=given)
