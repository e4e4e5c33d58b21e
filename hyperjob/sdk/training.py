"""Build the HyperJob of a training from a function, a script or a module."""

import contextlib
import inspect
import secrets
import shlex
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar, get_type_hints

from hyperjob.sdk.folder import names_of, requirements_of
from hyperjob.sdk.parameters import require_types
from hyperjob.sdk.program import (
    Args,
    Framework,
    Machine,
    Train,
    image_of,
    program,
)
from hyperjob.sdk.template import (
    CONTAINER,
    KEYS,
    alternatives_of,
    checkpoint_of,
    env_from,
    require_template,
    require_whole,
    resources_of,
    seconds_of,
    size_of,
    toleration_of,
    volumes_of,
)
from hyperjob_core.api.merge import merged
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, ARGUMENTS, KIND
from hyperjob_core.text import printable, shortened

_C = TypeVar("_C", bound=Callable[..., Any])

_ARGUMENTS: Final = 500
_PORTS: Final = range(20_000, 30_000)
"""Ports of stores on one machine: Linux chooses none of them for a connection by itself."""
_PLUGINS: Final[Mapping[str, Mapping[str, list[str]]]] = {
    "python": {"env": [], "svc": []},
    "torchrun": {"env": [], "pytorch": []},
    "jax": {"env": [], "jax": []},
}


class TrainerOptions(TypedDict, total=False):
    """The parameters of `trainer` beside the training itself."""

    args: Args
    name: str | None
    namespace: str | None
    labels: Mapping[str, str] | None
    clusters: int | Sequence[str]
    replicas: int | Sequence[int]
    accelerators: int | Sequence[int] | None
    gpus: int
    accelerator: str
    cpu: str | float | None
    memory: str | None
    framework: Framework
    image: str | None
    packages: Sequence[str] | str | Path | None
    workdir: str | Path | None
    include: Sequence[str]
    env: Mapping[str, str] | None
    env_from_secret: str | Sequence[str] | None
    volumes: Mapping[str, str | Mapping[str, Any]] | None
    shared_memory: str | None
    node_selector: Mapping[str, str] | None
    tolerations: Sequence[str | Mapping[str, Any]]
    queue: str | None
    priority_class: str | None
    max_restarts: int
    quorum: int | None
    checkpoint: str | Mapping[str, Any] | None
    grace_seconds: int | None
    time_limit: int | str | None
    pod_template: Mapping[str, Any] | None
    alternatives: Sequence[Mapping[str, Any]]


_TYPES: Final = {key: kind for key, kind in get_type_hints(TrainerOptions).items() if key != "args"}
"""The types of the parameters; `program` checks `args`."""


def trainer(
    train: Train,
    *,
    args: Args = None,
    name: str | None = None,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    clusters: int | Sequence[str] = 1,
    replicas: int | Sequence[int] = 1,
    accelerators: int | Sequence[int] | None = None,
    gpus: int = 0,
    accelerator: str = "nvidia.com/gpu",
    cpu: str | float | None = None,
    memory: str | None = None,
    framework: Framework = "python",
    image: str | None = None,
    packages: Sequence[str] | str | Path | None = None,
    workdir: str | Path | None = None,
    include: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    env_from_secret: str | Sequence[str] | None = None,
    volumes: Mapping[str, str | Mapping[str, Any]] | None = None,
    shared_memory: str | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[str | Mapping[str, Any]] = (),
    queue: str | None = None,
    priority_class: str | None = None,
    max_restarts: int = 0,
    quorum: int | None = None,
    checkpoint: str | Mapping[str, Any] | None = None,
    grace_seconds: int | None = None,
    time_limit: int | str | None = None,
    pod_template: Mapping[str, Any] | None = None,
    alternatives: Sequence[Mapping[str, Any]] = (),
    _machine: Machine | None = None,
) -> Object:
    """Return the HyperJob of a training, without a request to an API server.

    `train` is a function, whose source is in the HyperJob; the path of a script, whose folder is
    in the HyperJob; or a module such as "-m package.train".

    - `args`: keyword arguments of the function, or the command line of the script as a list.
    - `name`, `namespace`, `labels`: metadata of the HyperJob; the default name is that of the
      program with six random digits.
    - `clusters`: a number of clusters, or the names of the clusters that the HyperJob may use.
    - `replicas`: pods in all clusters together, the same number in each. (4, 16): it runs with
      as many as have room, at least 4. (4, 16, 32): also with more, where no
      other HyperJob can start.
    - `accelerators`: instead of `replicas`, all accelerators together, which the controller divides
      over at most `clusters` clusters in pods of `gpus`; (8, 16, 32) are the least, the wanted and
      the most.
    - `gpus`, `accelerator`, `cpu`, `memory`: requests and limits of each pod, as in memory="16Gi".
    - `framework`: how the processes find each other: "python" (variables HYPERJOB_*), "torchrun"
      or "jax".
    - `image`: the image of the containers, which has Python; the default is python:3.12-slim.
    - `packages`: requirements such as ["transformers==4.57"], or the path of a requirements.txt or
      a pyproject.toml. Each pod installs them with pip before the program starts, into a virtual
      environment in ~/.cache/hyperjob, beside the packages of the image.
    - `workdir`: the folder whose Python files the pods get, in which the program starts. The
      default is the folder of a script, and the current folder for a module.
    - `include`: other files of that folder for the pods, such as ["config.yaml", "data/*.json"].
    - `env`: variables; `env_from_secret`: names of Secrets whose keys become variables.
    - `volumes`: for each mount path the name of a PersistentVolumeClaim, or a volume source such as
      {"configMap": {"name": "settings"}}.
    - `shared_memory`: size of /dev/shm, as in "8Gi", for the workers of a data loader.
    - `node_selector`, `tolerations`: as in a pod; a toleration may be "key=value:NoSchedule".
    - `queue`, `priority_class`: the queue and the PriorityClass of the sub-jobs.
    - `max_restarts`: how often all sub-jobs start again after a failure. A failed or evicted pod
      fails its sub-job at once.
    - `quorum`: the least number of clusters that train on while the others are restarted.
    - `checkpoint`: directory or URL of the checkpoints, or the fields of spec.checkpoint.
    - `grace_seconds`: time from SIGTERM to SIGKILL of each pod; 30 by default.
    - `time_limit`: run time after which the HyperJob stops and fails, in seconds or as in "2h".
    - `pod_template`: a pod template in Kubernetes' form, whose values replace those above; the
      container of the training is `trainer`.
    - `alternatives`: shapes in order of preference, of which the controller takes one, as in
      [{"name": "h100"}, {"name": "a100", "clusters": ["east", "west"], "replicas": 4}]; each may
      change clusters, replicas, accelerators, gpus, accelerator, cpu, memory, image, env and
      node_selector, and may have an `estimate` of its running time such as "8h".

    Raise SourceError where the program cannot be put into a HyperJob, and ValueError for a value
    that cannot work, such as `replicas` that are no multiple of the clusters.
    """
    require_types(_TYPES, locals())
    usual: Object = {"clusters": clusters, "replicas": replicas, "gpus": gpus, "cpu": cpu}
    usual |= {"accelerator": accelerator, "memory": memory, "accelerators": accelerators}
    size, pods, most = size_of(usual)
    require_template(pod_template)
    if grace_seconds is not None:
        require_whole("grace_seconds", grace_seconds, least=0)
    require_whole("max_restarts", max_restarts, least=0)
    requirements = requirements_of(packages)
    image = image_of(image, framework, names_of(requirements), _machine)
    made = program(
        train,
        args,
        framework,
        requirements=requirements,
        workdir=workdir,
        include=include,
        machine=_machine,
    )
    pod_volumes, mounts = volumes_of(volumes, shared_memory)
    requests = resources_of(cpu=cpu, memory=memory, gpus=gpus, accelerator=accelerator)
    container: Object = {
        "name": CONTAINER,
        "image": image,
        "command": list(made.command),
        "env": _variables({**made.variables, **(env or {})}),
        **_given(envFrom=env_from(env_from_secret), volumeMounts=mounts),
        **_given(resources=requests and {"requests": requests, "limits": requests}),
    }
    optional = _given(
        volumes=pod_volumes,
        nodeSelector=dict(node_selector or {}),
        tolerations=[toleration_of(each) for each in tolerations],
        terminationGracePeriodSeconds=grace_seconds,
    )
    pod: Object = {"restartPolicy": "Never", "containers": [container], **optional}
    workers = merged({"spec": pod}, pod_template or {}, keys=KEYS)
    template = _sub_job(workers, pods, queue=queue, priority_class=priority_class)
    shapes, wide = alternatives_of(alternatives, usual)
    spec: Object = {
        "maxDomains": wide or most,
        "plugins": _plugins(framework, _machine),
        "failurePolicy": {"maxRestarts": max_restarts},
        "replicatedJobs": [_group(template, size, clusters, shapes)],
        **_given(quorum=quorum),
        **({} if checkpoint is None else {"checkpoint": checkpoint_of(checkpoint)}),
        **({} if time_limit is None else {"activeDeadlineSeconds": seconds_of(time_limit)}),
    }
    metadata = _metadata(name or f"{made.title}-{secrets.token_hex(3)}", namespace, labels, args)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _metadata(
    name: str, namespace: str | None, labels: Mapping[str, str] | None, args: Args
) -> Object:
    notes = _given(**{ARGUMENTS: _arguments(args)})
    given = _given(namespace=namespace, labels=dict(labels or {}), annotations=notes)
    return {"name": name, **given}


def _arguments(args: Args) -> str:
    """Return the arguments of a program as one line for people."""
    if isinstance(args, Mapping):
        words = [f"{name}={value!r}" for name, value in args.items()]
    else:
        words = [shlex.quote(str(word)) for word in args or ()]
    return shortened(printable(" ".join(words)).replace("\n", " "), _ARGUMENTS)


def _plugins(framework: Framework, machine: Machine | None) -> Object:
    """Return the plugins of a framework.

    On one machine torchrun gets a free port: its store listens on all addresses of the machine.
    """
    plugins = {key: list(value) for key, value in _PLUGINS[framework].items()}
    while machine is not None and plugins.get("pytorch") == []:
        port = secrets.choice(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("", port))
            plugins["pytorch"].append(f"--port={port}")
    return plugins


def _group(
    template: Object,
    size: Object,
    clusters: int | Sequence[str],
    alternatives: list[Object],
) -> Object:
    """Return the replicatedJob with a sub-job for each cluster, on named clusters alone if any."""
    group: Object = {"name": "trainer", **size, "templateSpec": template}
    if not isinstance(clusters, int):
        group |= {"clusterNames": list(clusters), "clusterPolicy": "Required"}
    return group | _given(alternatives=alternatives)


def _sub_job(
    template: Object, pods: int, *, queue: str | None, priority_class: str | None
) -> Object:
    """Return the templateSpec of a training: its workers, and no restart by Volcano alone."""
    return {
        # Volcano fails the sub-job at its first failed pod; the failurePolicy alone restarts it.
        "policies": [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}],
        "maxRetry": 1,
        "tasks": [{"name": "worker", "replicas": pods, "template": template}],
        **_given(queue=queue, priorityClassName=priority_class),
    }


def with_its_parameters(method: _C) -> _C:
    """Give a method the parameters and their descriptions of `trainer`."""
    own = inspect.signature(method)
    first, *_ = own.parameters.values()
    public = [
        each
        for each in inspect.signature(trainer).parameters.values()
        if not each.name.startswith("_")
    ]
    described = (trainer.__doc__ or "").partition("\n")[2]
    method.__signature__ = own.replace(parameters=[first, *public])  # type: ignore[attr-defined]
    method.__doc__ = f"{(method.__doc__ or '').rstrip()}\n{described}"
    return method


def _variables(variables: Mapping[str, str | Object]) -> list[Object]:
    """Return the variables of the container, with the address of its pod unless one has it."""
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return [
        {"name": key, "value" if isinstance(value, str) else "valueFrom": value}
        for key, value in {"POD_IP": address, **variables}.items()
    ]


def _given(**fields: object) -> Object:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}
