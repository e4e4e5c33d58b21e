"""Objects for the web page: clusters, queues and HyperJobs in every phase."""

from datetime import UTC, datetime, timedelta

GPU = "nvidia.com/gpu"
NOW = datetime.now(UTC).replace(microsecond=0)
HOSTILE = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "\"'><svg onload=window.pwned=1>",
    "javascript:window.pwned=1",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202etxt.exe\u2066",
    "{{7*7}} {%raw%} ${7*7}",
    "a" * 5000,
)


def ago(seconds):
    """Return the timestamp of `seconds` ago."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def cluster(name, *, total=64, used=0, ready=True, accelerator=GPU):
    """Return a Cluster."""
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "creationTimestamp": ago(90_000)},
        "spec": {"region": "eu", "provider": "on-premises"},
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "reason": "ClusterReady" if ready else "ClusterNotReachable",
                    "message": "",
                    "lastTransitionTime": ago(4000),
                }
            ],
            "resourceSummary": {
                "allocatable": {"cpu": "512", "memory": "4Ti", accelerator: str(total)},
                "allocated": {accelerator: str(used)},
            },
        },
    }


def queue(name, *, weight=1, parent="root", deserved=None):
    """Return a Queue."""
    spec = {"weight": weight, "parent": parent, "reclaimable": True}
    if deserved is not None:
        spec["deserved"] = {GPU: deserved}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "creationTimestamp": ago(80_000)},
        "spec": spec,
        "status": {"state": "Open"},
    }


def hyperjob(
    name,
    phase="Running",
    *,
    namespace="team-a",
    queue="research",
    clusters=("east", "west"),
    gpus=8,
    reason="",
    message="",
    labels=None,
    restarts=0,
    since=600,
    suspend=False,
    uid="",
    step=0,
):
    """Return a HyperJob with a sub-job for each cluster; an empty name is no cluster."""
    jobs = [
        {
            "name": f"{name}-trainer-{index}",
            "replicatedJob": "trainer",
            "index": index,
            "cluster": where,
            "accelerators": gpus,
            "phase": _job_phase(phase, where),
            "reason": reason,
            "message": message,
            "attempt": restarts,
            "running": gpus if phase == "Running" else 0,
            "pods": gpus,
            "startTime": ago(since),
            "lastTransitionTime": ago(since),
        }
        for index, where in enumerate(clusters)
    ]
    ready = sum(job["phase"] in ("Running", "Completed") for job in jobs)
    template = {
        "queue": queue,
        "tasks": [
            {
                "name": "worker",
                "replicas": gpus,
                "template": {
                    "spec": {
                        "containers": [
                            {"name": "main", "image": "i", "resources": {"limits": {GPU: "1"}}}
                        ]
                    }
                },
            }
        ],
    }
    return {
        "apiVersion": "training.volcano.sh/v1alpha1",
        "kind": "HyperJob",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": uid or f"uid-{namespace}-{name}",
            "creationTimestamp": ago(since + 120),
            "labels": dict(labels or {}),
        },
        "spec": {
            "suspend": suspend,
            "replicatedJobs": [
                {"name": "trainer", "replicas": len(clusters), "templateSpec": template}
            ],
        },
        "status": {
            "observedGeneration": 1,
            "state": {
                "phase": phase,
                "reason": reason,
                "message": message,
                "lastTransitionTime": ago(since),
            },
            "jobs": jobs,
            "jobsReady": f"{ready}/{len(jobs)}",
            "runningPods": gpus * len(clusters) if phase == "Running" else 0,
            "clusterNames": ",".join(sorted(filter(None, set(clusters)))),
            "restarts": restarts,
            "queue": queue,
            "startTime": ago(since),
            **({"training": training(step, since)} if step else {}),
        },
    }


def training(step, since):
    """Return the progress of a program that makes 5,000 steps and began `since` seconds ago."""
    back = since * (1 - step / 5000)
    noise = 0.05 * (step * 37 % 11 - 5) / (1 + step / 900)
    return {
        "step": step,
        "steps": 5000,
        "percent": step // 50,
        "progress": f"{step // 50}%",
        "updateTime": ago(back),
        "startStep": 0,
        "startTime": ago(since),
        "metrics": {
            "loss": f"{0.8 + 7 / (1 + step / 300) + noise:.4f}",
            "learning_rate": f"{3e-4 * min(1, step / 500) * (1 - step / 6000):.3e}",
            "tokens/s": f"{41_000 + 700 * (step * 13 % 7)}",
        },
    }


def _job_phase(phase, where):
    if not where:
        return "Queued"
    return {"Queued": "Queued", "Pending": "Unplaced", "Suspended": "", "Degraded": "Failed"}.get(
        phase, phase
    )


def scene():
    """Return a fleet of four clusters, three queues, and HyperJobs in every phase."""
    return [
        cluster("east", used=24),
        cluster("west", used=40),
        cluster("north", total=32, accelerator="huawei.com/Ascend910"),
        cluster("south", ready=False),
        queue("research", weight=2, deserved="64"),
        queue("production", weight=4),
        queue("default"),
        hyperjob("llm-pretrain", labels={"project": "llm"}, step=4200),
        hyperjob("ranker", queue="production", clusters=("west",), namespace="team-b", step=2600),
        hyperjob(
            "waiting",
            "Queued",
            clusters=("", ""),
            reason="NoCapacity",
            message="16 nvidia.com/gpu are missing in clusters east, west",
        ),
        hyperjob(
            "broken",
            "Failed",
            clusters=("east",),
            reason="JobFailed",
            message="broken-trainer-0 has failed on east: exit code 1",
            restarts=3,
        ),
        hyperjob("done", "Completed", clusters=("east",)),
        hyperjob("paused", "Suspended", clusters=("",), suspend=True),
        hyperjob(
            "limping",
            "Degraded",
            clusters=("west", "south"),
            reason="ClusterLost",
            message="cluster south does not answer",
        ),
    ]


def showcase():
    """Return a fleet for the pictures of the documentation, with realistic names."""
    at = {"gpu-east": 128, "gpu-west": 128, "gpu-north": 96}
    made = [cluster(name, total=total, used=total - 16) for name, total in at.items()]
    made.append(cluster("ascend-south", total=64, used=48, accelerator="huawei.com/Ascend910"))
    made.append(cluster("ascend-lab", total=64, accelerator="huawei.com/Ascend910", ready=False))
    made += [
        queue("production", weight=4, deserved="192"),
        queue("research", weight=2, deserved="96"),
        queue("speech", weight=1),
    ]
    for name, namespace, line, clusters, gpus, since in (
        ("llm-70b", "foundation", "production", tuple(at), 48, 20_000),
        ("llm-7b-eval", "foundation", "production", ("gpu-east",), 16, 4_000),
        ("detector-v3", "vision", "research", ("gpu-east", "gpu-west"), 24, 9_000),
        ("sam-finetune", "vision", "research", ("gpu-west",), 16, 2_400),
        ("whisper-ft", "speech", "speech", ("gpu-north", "gpu-east"), 16, 7_000),
    ):
        made.append(
            hyperjob(
                name,
                namespace=namespace,
                queue=line,
                clusters=clusters,
                gpus=gpus,
                since=since,
                labels={"team": namespace},
                step=gpus * 100,
            )
        )
    made += [
        hyperjob(
            "llm-13b",
            "Queued",
            namespace="foundation",
            queue="production",
            clusters=("", ""),
            gpus=64,
            reason="InsufficientCapacity",
            message="128 nvidia.com/gpu are asked for, 48 are free in 3 clusters",
        ),
        hyperjob(
            "tts-sweep",
            "Failed",
            namespace="speech",
            queue="speech",
            clusters=("gpu-north",),
            reason="MaxRestartsExceeded",
            message="tts-sweep-trainer-0 failed on gpu-north: exit code 137",
            restarts=3,
        ),
        hyperjob("resnet-base", "Completed", namespace="vision", clusters=("gpu-east",)),
        _retried(),
    ]
    return made


def _retried():
    """Return a HyperJob that has failed on each of two clusters, after a restart."""
    made = hyperjob(
        "llm-ablation",
        "Failed",
        clusters=("gpu-east", "gpu-west"),
        reason="MaxRestartsExceeded",
        message="llm-ablation-trainer-1 failed on gpu-west: exit code 137",
        restarts=1,
        since=600,
    )
    made["metadata"]["creationTimestamp"] = ago(7200)
    made["status"] |= {"startTime": ago(6300), "completionTime": ago(600)}
    failure = {
        "pod": "llm-ablation-trainer-1-worker-3",
        "container": "main",
        "rank": 11,
        "exitCode": 137,
        "reason": "OOMKilled",
        "message": "loading the optimizer states",
        "time": ago(3300),
    }
    for job, cause in zip(made["status"]["jobs"], (None, failure), strict=True):
        run = {
            "attempt": 0,
            "cluster": job["cluster"],
            "startTime": ago(6000),
            "endTime": ago(3300),
        }
        ended = {"phase": "Failed", "reason": "JobFailed", "message": "a pod failed"}
        if cause is None:
            ended = {"phase": "Aborted", "reason": "RestartedWithAll", "message": "all restart"}
        job["history"] = [{**run, **ended, **({} if cause is None else {"failure": cause})}]
        job |= {"phase": "Failed" if cause else "Aborted", "startTime": ago(2700)}
        if cause is not None:
            job["failure"] = {**cause, "time": ago(600)}
    return made


def crowd(number):
    """Return many HyperJobs over ten clusters and five queues."""
    phases = ("Running", "Running", "Running", "Queued", "Completed", "Failed", "Suspended")
    made = [cluster(f"c{n}", total=8192, used=512) for n in range(10)]
    made += [queue(f"q{n}", weight=n + 1) for n in range(5)]
    for index in range(number):
        phase = phases[index % len(phases)]
        waits = phase in ("Queued", "Suspended")
        made.append(
            hyperjob(
                f"job-{index:05}",
                phase,
                namespace=f"team-{index % 20}",
                queue=f"q{index % 5}",
                clusters=("",) if waits else (f"c{index % 10}", f"c{(index + 3) % 10}"),
                gpus=8,
                labels={"team": f"t{index % 20}"},
                since=index % 86_400,
            )
        )
    return made


def hostile():
    """Return HyperJobs with HTML, scripts and control characters in their texts."""
    made = [cluster("east"), queue("default")]
    for index, text in enumerate(HOSTILE):
        made.append(
            hyperjob(
                f"hostile-{index}",
                "Failed",
                clusters=("east",),
                reason=text[:200],
                message=f"{text} end",
                labels={"note": text[:63]},
                queue=text[:60] if index == 0 else "default",
            )
        )
    return made
