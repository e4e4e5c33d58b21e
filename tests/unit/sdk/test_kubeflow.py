"""TrainerClient's reads of pods, logs and Events go to the clusters of the TrainJob."""

from types import SimpleNamespace
from typing import Any

import pytest

from hyperjob.sdk.kubeflow import over_clusters

SELECTOR = "jobset.sigs.k8s.io/jobset-name=tj,jobset.sigs.k8s.io/replicatedjob-name in (node)"


class ApiClient:
    def __init__(self, configuration: Any) -> None:
        self.configuration = configuration
        answered = lambda ask: SimpleNamespace(get=lambda _seconds: ask())  # noqa: E731
        self.pool = SimpleNamespace(apply_async=answered)


class CoreV1Api:
    """The methods that TrainerClient calls; each server has one pod and one Event."""

    def __init__(self, api_client: ApiClient) -> None:
        self.api_client = api_client

    @property
    def place(self) -> str:
        return str(self.api_client.configuration.host).removesuffix("/proxy").split("/")[-1]

    def list_namespaced_pod(self, namespace: str, **_: Any) -> Any:
        inside = "clusters" in self.api_client.configuration.host
        pod = SimpleNamespace(metadata=SimpleNamespace(name=f"{namespace}-{self.place}"))
        return SimpleNamespace(items=[pod] if inside else [])

    def list_namespaced_event(self, namespace: str, **_: Any) -> Any:
        return SimpleNamespace(items=[SimpleNamespace(first_timestamp=None, event_time=self.place)])

    def read_namespaced_pod_log(self, name: str, namespace: str, **options: Any) -> str:
        """Read a log; `follow` streams."""
        return f"{self.place} {name} {options}"

    def other(self) -> str:
        return "other"


@pytest.fixture
def client() -> Any:
    jobs = [{"cluster": "east"}, {"cluster": "west"}, {"cluster": ""}]
    listed = {"items": [{"status": {"jobs": jobs}}]}
    custom = SimpleNamespace(list_namespaced_custom_object=lambda *_, **__: listed)
    core = CoreV1Api(ApiClient(SimpleNamespace(host="https://karmada")))
    made = SimpleNamespace(backend=SimpleNamespace(core_api=core, custom_api=custom))
    return over_clusters(made)


def test_pods_and_their_logs_come_from_every_cluster_of_the_trainjob(client: Any) -> None:
    core = client.backend.core_api
    found = core.list_namespaced_pod("ns", label_selector=SELECTOR, async_req=True).get(10)
    assert [pod.metadata.name for pod in found.items] == ["ns-east", "ns-west"]
    log = core.read_namespaced_pod_log(name="ns-west", namespace="ns", follow=True)
    assert log == "west ns-west {'follow': True}"
    assert core.read_namespaced_pod_log("other", "ns") == "karmada other {}"


def test_the_method_of_logs_keeps_its_docstring_which_tells_a_watch_how_to_call(
    client: Any,
) -> None:
    assert "follow" in (client.backend.core_api.read_namespaced_pod_log.__doc__ or "")


def test_events_have_the_time_that_the_client_asks_for(client: Any) -> None:
    core = client.backend.core_api
    assert [each.first_timestamp for each in core.list_namespaced_event("ns").items] == ["karmada"]
    core.list_namespaced_pod("ns", label_selector=SELECTOR)
    times = [each.first_timestamp for each in core.list_namespaced_event("ns").items]
    assert times == ["karmada", "east", "west"]


def test_everything_else_is_that_of_the_client(client: Any) -> None:
    assert client.backend.core_api.other() == "other"
    assert client.backend.core_api.list_namespaced_pod("ns").items == []


def test_another_backend_is_refused() -> None:
    with pytest.raises(TypeError, match="Kubernetes backend"):
        over_clusters(SimpleNamespace(backend=SimpleNamespace()))
