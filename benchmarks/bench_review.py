"""Measure the largest reviews of HyperJobs, as a multiple of parsing their body.

    python benchmarks/bench_review.py [--quick] [--check] [--fuzz COUNT] [--seed N]

The bodies have the maximum that admission accepts: a spec of 5,000 tasks, and a spec of 1,000
replicatedJobs. The ratio to parsing the same body as JSON hardly depends on the machine. With
--fuzz, the benchmark answers COUNT reviews of up to 7 MiB instead, each with another large field
or unknown field, and prints the ten longest with their CPU seconds.
"""

import argparse
import copy
import gc
import time
from collections.abc import Callable, Iterator

import orjson

from hyperjob_core.api.limits import MAX_ALL_TASKS, MAX_REPLICATED_JOBS, MAX_TASKS
from hyperjob_core.api.meta import Object
from hyperjob_rules.configuration import MUTATE_HYPERJOB, VALIDATE_HYPERJOB
from hyperjob_webhook.admission import admit

_ROUNDS = 5
_AIM = 20.0
"""Maximum time of a review larger than a megabyte, as a multiple of parsing it."""


def hyperjob(groups: int, tasks: int) -> Object:
    """Return a HyperJob with `groups` replicatedJobs of `tasks` tasks each."""
    container = {
        "name": "main",
        "image": "registry.example/training:v1",
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {"name": "large", "namespace": "default"},
        "spec": {
            "replicatedJobs": [
                {
                    "name": f"g{group}",
                    "templateSpec": {
                        "tasks": [
                            {"name": f"t{task}", "replicas": 1, "template": {"spec": pod}}
                            for task in range(tasks)
                        ]
                    },
                }
                for group in range(groups)
            ]
        },
    }


def review(operation: str, new: Object, old: Object | None) -> bytes:
    """Return the body of the API server's review."""
    kind = {"group": "training.volcano.sh", "version": "v1alpha1", "kind": "HyperJob"}
    request = {
        "uid": "1",
        "kind": kind,
        "operation": operation,
        "namespace": "default",
        "name": "large",
        "userInfo": {"username": "ann"},
        "object": new,
        "oldObject": old,
    }
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return orjson.dumps({**head, "request": request})


def reviews() -> Iterator[tuple[str, str, bytes]]:
    """Yield name, path and body of each review."""
    per_group = MAX_TASKS - 6
    sizes = {"5,000 tasks": (MAX_ALL_TASKS // per_group, per_group)}
    sizes["1,000 replicatedJobs"] = (MAX_REPLICATED_JOBS, 1)
    for name, (groups, tasks) in sizes.items():
        old = hyperjob(groups, tasks)
        new = copy.deepcopy(old)
        new["spec"]["maxDomains"] = 3
        for verb, path in (("mutate", MUTATE_HYPERJOB), ("validate", VALIDATE_HYPERJOB)):
            yield f"{verb} CREATE, {name}", path, review("CREATE", old, None)
            yield f"{verb} UPDATE, {name}", path, review("UPDATE", new, old)


def fastest(work: Callable[[], object], rounds: int) -> float:
    """Return the CPU seconds of the fastest round."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print a line for each review; with --check, fail if a review misses the aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    rounds = 2 if given.quick else _ROUNDS
    missed = []
    admit(VALIDATE_HYPERJOB, review("CREATE", hyperjob(1, 1), None))
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # the webhook's own setting
    print(f"{'review':42}{'body':>9}{'CPU':>10}{'x reading':>11}")
    for name, path, body in reviews():
        took = fastest(lambda path=path, body=body: admit(path, body), rounds)  # type: ignore[misc]
        read = fastest(lambda body=body: orjson.loads(body), rounds)  # type: ignore[misc]
        print(f"{name:42}{len(body) / 1e6:7.2f} MB{took:8.3f} s{took / read:10.1f}")
        if len(body) > 1_000_000 and took / read > _AIM:
            missed.append(name)
    if given.check and missed:
        raise SystemExit(f"more than {_AIM:g} times reading: {', '.join(missed)}")


if __name__ == "__main__":
    main()
