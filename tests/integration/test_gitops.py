"""Files applied again and again, by kubectl: a HyperJob in the store is what its author wrote.

Argo CD compares by the same three-way merge patch as `kubectl apply`, and with server-side diff by
the same dry run as `kubectl diff --server-side`.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hyperjob_core.api.names import KIND
from tests.support.controlplane import ROOT, ControlPlane
from tests.support.webhookprocess import registered_webhook

pytestmark = pytest.mark.scenario

SMALL = {
    "apiVersion": "training.volcano.sh/v1alpha1",
    "kind": KIND,
    "metadata": {"name": "small", "annotations": {"note": "a"}},
    "spec": {
        "replicatedJobs": [
            {
                "name": "trainer",
                "templateSpec": {
                    "tasks": [
                        {
                            "name": name,
                            "replicas": 2,
                            "template": {
                                "spec": {
                                    "restartPolicy": "Never",
                                    "containers": [
                                        {
                                            "name": "main",
                                            "image": "train:v1",
                                            "resources": {"requests": {"nvidia.com/gpu": 1}},
                                        }
                                    ],
                                }
                            },
                        }
                        for name in ("master", "worker")
                    ]
                },
            }
        ],
    },
}


def hyperjobs() -> list[dict[str, Any]]:
    """Return the HyperJobs of the README, of the examples and of the pages about tasks, by name."""
    texts = [each.read_text() for each in sorted(ROOT.glob("examples/*.yaml"))]
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/tasks/*.md"))):
        texts += re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    found = {"small": SMALL}
    for each in (each for text in texts for each in yaml.safe_load_all(text)):
        if isinstance(each, dict) and each.get("kind") == KIND and "spec" in each:
            # A test chooses the namespace. After `apply --server-side`, kubectl's record of a file
            # without annotations differs once from the file, for any kind of object.
            metadata = {key: of for key, of in each["metadata"].items() if key != "namespace"}
            metadata["annotations"] = {"note": "a", **metadata.get("annotations", {})}
            found[metadata["name"]] = {**each, "metadata": metadata}
    return list(found.values())


@pytest.fixture(scope="module")
def webhook(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    with registered_webhook(control_plane.kubeconfig, tmp_path_factory.mktemp("webhook")):
        yield


class User:
    """Someone who applies files to one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane, self.namespace = plane, namespace

    def ask(self, *words: str, about: object, check: bool = True) -> tuple[int, str, str]:
        done = self.plane.kubectl(
            *(*words, "-n", self.namespace, "-f", "-"), stdin=json.dumps(about), check=check
        )
        return done.returncode, done.stdout, done.stderr

    def apply(self, about: object, *words: str) -> set[str]:
        """Apply a file and return what was done with its objects."""
        _, answer, _ = self.ask("apply", *words, about=about)
        return {line.split()[-1] for line in answer.splitlines()}

    def diff(self, about: object, *words: str) -> str:
        """Return what `kubectl diff` shows; nothing is empty."""
        code, shown, trouble = self.ask("diff", *words, about=about, check=False)
        assert code == bool(shown), trouble
        return shown

    def spec(self, name: str) -> dict[str, Any]:
        read = self.plane.kubectl("get", "hj", name, "-n", self.namespace, "-o", "json")
        return dict(json.loads(read.stdout)["spec"])


@pytest.fixture
def user(control_plane: ControlPlane, namespace: str, webhook: None) -> User:
    return User(control_plane, namespace)


def test_a_file_is_applied_once_and_then_changes_nothing(user: User) -> None:
    made = hyperjobs()
    assert len(made) > 20
    about = {"apiVersion": "v1", "kind": "List", "items": made}
    assert user.apply(about) == {"created"}
    for each in made:
        assert user.spec(each["metadata"]["name"]) == each["spec"]
    assert user.apply(about) == {"unchanged"}
    assert user.diff(about) == ""
    assert user.diff(about, "--server-side") == ""
    assert user.apply(about, "--server-side") == {"serverside-applied"}
    assert user.diff(about, "--server-side") == ""
    assert user.apply(about) == {"unchanged"}
    for each in made:
        assert user.spec(each["metadata"]["name"]) == each["spec"]


def test_one_applies_the_file_and_another_suspends(user: User) -> None:
    suspend = {key: SMALL[key] for key in ("apiVersion", "kind", "metadata")}
    operator = ("--server-side", "--field-manager=operator")
    for words in (("--server-side",), ()):
        user.apply(SMALL, *words)
        for value in (True, False):
            user.apply({**suspend, "spec": {"suspend": value}}, *operator)
            assert user.diff(SMALL, *words) == ""
            user.apply(SMALL, *words)
            assert user.spec("small") == {**SMALL["spec"], "suspend": value}
        assert user.diff({**suspend, "spec": {"suspend": False}}, *operator) == ""


def test_two_managers_own_two_tasks_of_one_template(user: User) -> None:
    """A task is an item by its name: one conflicts with whoever wrote the same field of it."""
    user.apply(SMALL, "--server-side")
    scale = json.loads(json.dumps(SMALL))
    (group,) = scale["spec"]["replicatedJobs"]
    group["templateSpec"] = {"tasks": [{"name": "worker", "replicas": 5}]}
    scaler = ("apply", "--server-side", "--field-manager=scaler")
    code, _, text = user.ask(*scaler, about=scale, check=False)
    assert code == 1
    assert '"kubectl": .spec.replicatedJobs[name="trainer"]' in text
    assert text.count("replicas") == 1, text
    user.ask(*scaler, "--force-conflicts", about=scale)
    mine = json.loads(json.dumps(SMALL))
    del mine["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"][1]["replicas"]
    user.apply(mine, "--server-side")
    tasks = user.spec("small")["replicatedJobs"][0]["templateSpec"]["tasks"]
    assert [(each["name"], each["replicas"]) for each in tasks] == [("master", 2), ("worker", 5)]


def test_a_task_without_a_name_can_be_created_but_not_merged(user: User) -> None:
    nameless = json.loads(json.dumps(SMALL))
    for task in nameless["spec"]["replicatedJobs"][0]["templateSpec"]["tasks"]:
        del task["name"]
    assert user.apply(nameless) == {"created"}
    tasks = user.spec("small")["replicatedJobs"][0]["templateSpec"]["tasks"]
    assert [each["name"] for each in tasks] == ["default0", "default1"]
    code, _, text = user.ask("apply", "--server-side", about=nameless, check=False)
    assert code == 1
    assert "tasks: element 0: associative list with keys has an element that omits all key" in text
