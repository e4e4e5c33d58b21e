"""Build the HyperJob of a training from a function or a script."""

import json
import re
import secrets
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.folder import LONGEST_BYTES, folder_of
from hyperjob.sdk.source import program_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND

Framework = Literal["python", "torchrun", "jax"]

_PLUGINS: Final[Mapping[str, Mapping[str, list[str]]]] = {
    "python": {"env": [], "svc": []},
    "torchrun": {"env": [], "pytorch": []},
    "jax": {"env": [], "jax": []},
}
_PROGRAM: Final = "HYPERJOB_SDK_PROGRAM"
_FOLDER: Final = "HYPERJOB_SDK_FOLDER"
_START_PROGRAM: Final = (
    "import os, sys, tempfile\n"
    "folder = tempfile.mkdtemp()\n"
    f"open(folder + '/main.py', 'w').write(os.environ.pop('{_PROGRAM}'))\n"
    "os.chdir(folder)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)
_START_FOLDER: Final = (
    "import base64, io, os, sys, tempfile, zipfile\n"
    "folder = tempfile.mkdtemp()\n"
    f"data = base64.b64decode(os.environ.pop('{_FOLDER}'))\n"
    "zipfile.ZipFile(io.BytesIO(data)).extractall(folder)\n"
    "os.chdir(folder)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


class TrainerOptions(TypedDict, total=False):
    """The parameters of `trainer` beside the training itself."""

    name: str | None
    namespace: str | None
    args: Mapping[str, Any] | Sequence[str] | None
    clusters: int | Sequence[str]
    replicas: int
    gpus: int
    accelerator: str
    cpu: str | int | None
    memory: str | None
    image: str
    framework: Framework
    queue: str | None
    priority_class: str | None
    max_restarts: int
    env: Mapping[str, str] | None
    labels: Mapping[str, str] | None
    grace_seconds: int | None


def trainer(
    train: Callable[..., Any] | str | Path,
    *,
    name: str | None = None,
    namespace: str | None = None,
    args: Mapping[str, Any] | Sequence[str] | None = None,
    clusters: int | Sequence[str] = 1,
    replicas: int = 1,
    gpus: int = 0,
    accelerator: str = "nvidia.com/gpu",
    cpu: str | int | None = None,
    memory: str | None = None,
    image: str = "python:3.12-slim",
    framework: Framework = "python",
    queue: str | None = None,
    priority_class: str | None = None,
    max_restarts: int = 0,
    env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    grace_seconds: int | None = None,
) -> Object:
    """Return a HyperJob for a training, without a request to an API server.

    `train` is a function, whose source is in the HyperJob, or the path of a script, whose folder
    is in the HyperJob. `args` are the function's keyword arguments, or the script's command line.
    The `replicas` pods, each with `gpus` accelerators, are spread evenly over `clusters`: a
    number, or the names of the allowed clusters. `framework` decides how processes find each
    other: `python` (variables HYPERJOB_*), `torchrun` or `jax`. A failed pod fails its sub-job at
    once; `max_restarts` is the number of restarts of all sub-jobs after failures.

    Raise SourceError where the function or the folder cannot be put into a HyperJob, and
    ValueError for inconsistent numbers.
    """
    number = clusters if isinstance(clusters, int) else len(clusters)
    if number < 1 or replicas < 1 or replicas % number:
        raise ValueError(
            f"replicas ({replicas}) must be a positive multiple of the clusters ({number}): all"
            " clusters get the same number of pods"
        )
    if framework not in _PLUGINS:
        raise ValueError(f"framework must be one of {', '.join(_PLUGINS)}; got {framework!r}")
    command, variables, title = _command(train, args, framework)
    requests = {
        **({"cpu": str(cpu)} if cpu is not None else {}),
        **({"memory": memory} if memory is not None else {}),
        **({accelerator: str(gpus)} if gpus else {}),
    }
    container: Object = {
        "name": "trainer",
        "image": image,
        "command": command,
        "env": [
            {"name": key, "value": str(value)}
            for key, value in {**variables, **(env or {})}.items()
        ]
        + [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    }
    if requests:
        container["resources"] = {"requests": requests, "limits": requests}
    pod: Object = {"restartPolicy": "Never", "containers": [container]}
    if grace_seconds is not None:
        pod["terminationGracePeriodSeconds"] = grace_seconds
    task: Object = {
        "name": "worker",
        "replicas": replicas // number,
        "template": {"spec": pod},
    }
    # Volcano fails the sub-job at its first failed pod; the failurePolicy alone starts it again.
    template: Object = {
        "policies": [{"event": "PodFailed", "action": "RestartJob"}],
        "maxRetry": 1,
        "tasks": [task],
    }
    if queue is not None:
        template["queue"] = queue
    if priority_class is not None:
        template["priorityClassName"] = priority_class
    group: Object = {"name": "trainer", "replicas": number, "templateSpec": template}
    if not isinstance(clusters, int):
        group |= {"clusterNames": list(clusters), "clusterPolicy": "Required"}
    spec: Object = {
        "maxDomains": number,
        "plugins": {key: list(value) for key, value in _PLUGINS[framework].items()},
        "replicatedJobs": [group],
    }
    if max_restarts:
        spec["failurePolicy"] = {"maxRestarts": max_restarts}
    metadata: Object = {"name": name or f"{title}-{secrets.token_hex(3)}"}
    if namespace is not None:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def _command(
    train: Callable[..., Any] | str | Path,
    args: Mapping[str, Any] | Sequence[str] | None,
    framework: Framework,
) -> tuple[list[str], dict[str, str], str]:
    """Return the container's command, its variables, and a name for the HyperJob."""
    if isinstance(train, str | Path):
        line = _command_line(train, args)
        folder, script = folder_of(Path(train))
        words = [*_runner(framework), script, *line]
        start, variables = _START_FOLDER, {_FOLDER: folder}
        title = Path(train).stem
    else:
        if args is not None and not isinstance(args, Mapping):
            raise SourceError(
                'args of a function are a dict of its keyword arguments, such as {"lr": 0.1};'
                f" got {args!r}"
            )
        program = program_of(train, args or {})
        if len(program) > LONGEST_BYTES:
            raise SourceError(f"{train.__name__}: its source is longer than {LONGEST_BYTES} bytes")
        words = [*_runner(framework), "main.py"]
        start, variables = _START_PROGRAM, {_PROGRAM: _literal(program)}
        title = train.__name__
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:30] or "training"
    return ["python", "-c", start, *words], variables, name


def _command_line(script: str | Path, args: Mapping[str, Any] | Sequence[str] | None) -> list[str]:
    """Return the command line of a script; raise SourceError."""
    if isinstance(args, str):
        split = json.dumps(shlex.split(args))
        raise SourceError(f"{script}: args of a script are a list of words: args={split}")
    if isinstance(args, Mapping):
        raise SourceError(f"{script}: args of a script are a list of words, its command line")
    words: Sequence[object] = args or ()
    for word in words:
        if isinstance(word, bool) or not isinstance(word, str | int | float | Path):
            raise SourceError(
                f"{script}: args has {word!r}, and a command line has only texts and numbers"
            )
    return [str(word) for word in words]


def _runner(framework: Framework) -> list[str]:
    return ["torchrun"] if framework == "torchrun" else ["python", "-u"]


def _literal(text: str) -> str:
    """Return the text with escaped `$`: Kubernetes expands $(NAME) in values of variables."""
    return text.replace("$", "$$")
