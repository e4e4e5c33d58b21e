"""Who may name which queue, PriorityClass and cluster, decided by a real kube-apiserver."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from hyperjob_install.tenancy import NAMES, tenancy
from tests.support.envtest import ASSETS, NEEDS_KUBE_APISERVER, kube_apiserver
from tests.support.hyperjobs import hyperjob, job_template
from tests.support.processes import wait_for
from tests.support.stack import installed, kubectl

ROOT = Path(__file__).parents[2]

pytestmark = NEEDS_KUBE_APISERVER


@pytest.fixture(scope="module")
def admin(tmp_path_factory):
    """An API server where mallory and bob may edit HyperJobs, and mallory may use what is hers."""
    with ExitStack() as stack:
        admin = stack.enter_context(kube_apiserver(ASSETS, tmp_path_factory.mktemp("k")))
        stack.enter_context(installed(admin, [ROOT / "crds/training.volcano.sh_hyperjobs.yaml"]))
        for item in tenancy(enabled=True):
            kubectl(admin, "apply", "--server-side", "-f", "-", stdin=json.dumps(item.object))
        edit = ["--verb=get,create,update,patch", "--resource=hyperjobs.training.volcano.sh"]
        kubectl(admin, "create", "clusterrole", "edit-hyperjobs", *edit)
        for user in ("mallory", "bob", "ops"):
            binding = ["--clusterrole=edit-hyperjobs", f"--user={user}"]
            kubectl(admin, "create", "clusterrolebinding", f"{user}-edits", *binding)
        kubectl(admin, "apply", "-f", "-", stdin=tenant_role())
        bind = ["create", "clusterrolebinding"]
        kubectl(admin, *bind, "mallory-uses", "--clusterrole=team-a-uses", "--user=mallory")
        kubectl(admin, *bind, "ops-uses", "--clusterrole=hyperjob-use-all", "--user=ops")
        wait_for(
            lambda: create(admin, "bob", named()).returncode, what="the policies to be in force"
        )
        yield admin


def tenant_role():
    """Give the ClusterRole of docs/security.md."""
    page = (ROOT / "docs/security.md").read_text()
    blocks = page.split("```yaml\n")[1:]
    documents = [yaml.safe_load(block.partition("```")[0]) for block in blocks]
    return json.dumps(next(one for one in documents if one.get("kind") == "ClusterRole"))


def named(*, queue=None, job_class=None, task_class=None, clusters=("east",), policy="Required"):
    classes = {"queue": queue, "priorityClassName": job_class}
    given = {key: value for key, value in classes.items() if value}
    pod = {"priorityClassName": task_class} if task_class else {}
    group = {"clusterNames": list(clusters), "clusterPolicy": policy} if clusters else {}
    return hyperjob("x", job_template(pod=pod, **given), group={"name": "a", **group})


def several(**each):
    """A HyperJob of several replicatedJobs; `each` has a list of values for one field."""
    ((field, values),) = each.items()
    one = named(queue="team-a")
    one["spec"]["replicatedJobs"] = [
        {
            **named(**{"queue": "team-a", field: value})["spec"]["replicatedJobs"][0],
            "name": f"j{n}",
        }
        for n, value in enumerate(values)
    ]
    return one


def create(admin, user, obj, *more):
    words = ["create", "--dry-run=server", f"--as={user}", "-f", "-", *more]
    return kubectl(admin, *words, stdin=json.dumps(obj), check=False)


ALLOWED = {
    "her queue and cluster": named(queue="team-a"),
    "her classes": named(queue="team-a", job_class="batch", task_class="batch"),
    "one queue many times": several(queue=["team-a"] * 100),
    "two of her clusters": named(queue="team-a", clusters=["east", "west"]),
}


@pytest.mark.parametrize("obj", ALLOWED.values(), ids=ALLOWED.keys())
def test_a_tenant_may_name_what_her_role_names(admin, obj):
    done = create(admin, "mallory", obj)
    assert done.returncode == 0, done.stderr


FORBIDDEN = {
    "a stranger's queue": (named(queue="team-b"), 'queues.scheduling.volcano.sh "team-b" is'),
    "the queue default": (named(), 'queues.scheduling.volcano.sh "default" is forbidden'),
    "a stranger's queue in the last of 100": (
        several(queue=["team-a"] * 99 + ["team-b"]),
        '"team-b" is forbidden',
    ),
    "a class of the job": (
        named(queue="team-a", job_class="urgent"),
        'priorityclasses.scheduling.k8s.io "urgent" is forbidden: User "mallory" cannot use',
    ),
    "a class of a task": (named(queue="team-a", task_class="urgent"), '"urgent" is forbidden'),
    "a class of the system": (
        named(queue="team-a", job_class="system-node-critical"),
        "are for the cluster's own pods",
    ),
    "a stranger's cluster": (
        named(queue="team-a", clusters=["east", "north"]),
        'clusters.cluster.karmada.io "north" is forbidden',
    ),
    "any cluster": (named(queue="team-a", clusters=()), "cannot use every cluster"),
    "any cluster after hers": (
        named(queue="team-a", policy="Preferred"),
        "cannot use every cluster",
    ),
    "more queues than are looked at": (
        several(queue=[f"team-a-{n}" for n in range(NAMES + 1)]),
        f"names more than {NAMES} different queues",
    ),
}


@pytest.mark.parametrize(("obj", "said"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_a_tenant_may_name_nothing_else(admin, obj, said):
    done = create(admin, "mallory", obj)
    assert done.returncode
    assert "forbidden" in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("user", ["ops", "admin"])
def test_who_may_use_all_may_name_all(admin, user):
    more = [] if user == "admin" else [f"--as={user}"]
    obj = several(queue=[f"q{n}" for n in range(3 * NAMES)])
    obj["spec"]["replicatedJobs"][0]["templateSpec"]["priorityClassName"] = "urgent"
    del obj["spec"]["replicatedJobs"][1]["clusterNames"]
    del obj["spec"]["replicatedJobs"][1]["clusterPolicy"]
    done = kubectl(
        admin, "create", "--dry-run=server", "-f", "-", *more, stdin=json.dumps(obj), check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_largest_number_of_names_costs_less_than_a_policy_may(admin):
    obj = several(queue=["team-a"] * NAMES)
    for n, job in enumerate(obj["spec"]["replicatedJobs"]):
        job["templateSpec"]["queue"] = f"many-{n}"
        job["templateSpec"]["priorityClassName"] = f"many-{n}"
        job["clusterNames"] = [f"many-{n}"]
    said = create(admin, "mallory", obj).stderr
    assert '"many-0" is forbidden' in said
    names = [f"many-{n}" for n in range(NAMES)]
    rules = [
        {"apiGroups": [group], "resources": [kind], "verbs": ["use"], "resourceNames": names}
        for group, kind in (
            ("scheduling.volcano.sh", "queues"),
            ("scheduling.k8s.io", "priorityclasses"),
            ("cluster.karmada.io", "clusters"),
        )
    ]
    cluster_role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "many"},
        "rules": rules,
    }
    kubectl(admin, "apply", "-f", "-", stdin=json.dumps(cluster_role))
    bind = ["create", "clusterrolebinding", "bob-uses", "--clusterrole=many", "--user=bob"]
    kubectl(admin, *bind)
    wait_for(lambda: create(admin, "bob", obj).returncode == 0, what="bob to be admitted")


def test_labels_may_change_without_a_right_and_the_spec_may_not(admin):
    obj = named(queue="team-a")
    obj["metadata"]["name"] = "stored"
    kubectl(admin, "create", "--as=mallory", "-f", "-", stdin=json.dumps(obj))
    label = ["label", "hyperjob", "stored", "a=b", "--as=bob"]
    assert kubectl(admin, *label, check=False).returncode == 0
    patch = ["patch", "hyperjob", "stored", "--type=merge", "-p", '{"spec":{"suspend":true}}']
    assert "forbidden" in kubectl(admin, *patch, "--as=bob", check=False).stderr
    assert kubectl(admin, *patch, "--as=mallory", check=False).returncode == 0
