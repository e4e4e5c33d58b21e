"""The controller's rights on a kube-apiserver that asks for `hyperjobs/finalizers`."""

import json

from hyperjob_core.kube.resources import HYPERJOBS, VCJOBS
from hyperjob_install.definitions import definitions
from hyperjob_install.rbac import rbac
from hyperjob_install.settings import Settings
from tests.support.cliworld import hyperjob
from tests.support.envtest import ASSETS, NEEDS_KUBE_APISERVER, kube_apiserver
from tests.support.processes import wait_for
from tests.support.stack import kubectl

PLUGIN = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"

pytestmark = NEEDS_KUBE_APISERVER


def test_the_controller_makes_children_that_block_the_deletion_of_their_owner(tmp_path):
    with kube_apiserver(ASSETS, tmp_path / "k", PLUGIN) as admin:
        rights = rbac(Settings(), namespace="karmada-system")
        for item in [*definitions(), *rights]:
            kubectl(admin, "apply", "--server-side", "-f", "-", stdin=json.dumps(item.object))
        owner = hyperjob("owner")
        owner["metadata"]["namespace"] = "default"
        apply = ["apply", "-o", "json", "-f", "-"]
        made = []

        def is_served():
            done = kubectl(admin, *apply, stdin=json.dumps(owner), check=False)
            made.append(done.stdout)
            return done.returncode == 0

        wait_for(is_served, what="the definition to be served")
        reference = {
            **HYPERJOBS.head,
            "name": "owner",
            "uid": json.loads(made[-1])["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        child = {
            **VCJOBS.head,
            "metadata": {
                "name": "child",
                "namespace": "default",
                "ownerReferences": [reference],
            },
            "spec": owner["spec"]["replicatedJobs"][0]["templateSpec"],
        }
        create = ["create", "--as=hyperjob-controller", "-f", "-"]
        done = kubectl(admin, *create, stdin=json.dumps(child), check=False)
        assert done.returncode == 0, done.stderr
