"""ConfigMaps, Secrets and claims that pods name follow their vcjob into its clusters, and leave."""

import asyncio

import pytest

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import NotFound
from hyperjob_core.kube.resources import (
    CONFIG_MAPS,
    PERSISTENT_VOLUME_CLAIMS,
    PROPAGATION_POLICIES,
    VCJOBS,
)
from hyperjob_install.interpreters import interpreters
from hyperjob_sandbox.topology import Topology
from tests.support.sandbox import config, job, policy

pytestmark = pytest.mark.scenario


def config_map(name, text):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"x": text},
    }


async def data_of(kube, name):
    try:
        return (await kube.get(CONFIG_MAPS, name, namespace="default"))["data"]
    except NotFound:
        return None


async def until(read, wanted):
    async with asyncio.timeout(30):
        while await read() != wanted:  # noqa: ASYNC110, read as a user would
            await asyncio.sleep(0.02)


async def test_what_pods_name_follows_them_in_time_changes_with_them_and_leaves(tmp_path):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "store", "namespace": "default", "annotations": {"note": "kept"}},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    async with (
        Topology(config(), tmp_path) as topology,
        Kube.connect(kubeconfig=topology.kubeconfig) as kube,
    ):
        one, two = (topology.clusters[name].kube for name in ("member1", "member2"))
        for item in interpreters():
            await kube.create(item.resource, item.object)
        await kube.create(CONFIG_MAPS, config_map("early", "1"))
        await kube.create(CONFIG_MAPS, config_map("unused", "1"))
        await kube.create(PERSISTENT_VOLUME_CLAIMS, claim)
        for name, member in (("long-a", "member1"), ("long-b", "member2")):
            made = job(name)
            made["spec"]["tasks"][0]["template"]["spec"]["volumes"] = [
                {"name": "e", "configMap": {"name": "early"}},
                {"name": "l", "configMap": {"name": "late"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "store"}},
            ]
            await kube.create(PROPAGATION_POLICIES, policy(name, member))
            await kube.create(VCJOBS, made)
        for member in (one, two):
            await until(lambda kube=member: data_of(kube, "early"), {"x": "1"})
        await kube.create(CONFIG_MAPS, config_map("late", "2"))
        changed = await kube.get(CONFIG_MAPS, "early", namespace="default")
        await kube.replace(CONFIG_MAPS, {**changed, "data": {"x": "3"}})
        for member in (one, two):
            await until(lambda kube=member: data_of(kube, "late"), {"x": "2"})
            await until(lambda kube=member: data_of(kube, "early"), {"x": "3"})
            found = await member.get(PERSISTENT_VOLUME_CLAIMS, "store", namespace="default")
            assert found["metadata"]["annotations"]["note"] == "kept"
            assert await data_of(member, "unused") is None
        await kube.delete(VCJOBS, "long-a", namespace="default")
        await until(lambda: data_of(one, "early"), None)
        assert await data_of(two, "early") == {"x": "3"}
