"""Volumes are folders, pods have addresses and names, images are environments, slots numbers."""

from pathlib import Path

import pytest

from hyperjob_sandbox.processes import logs, volumes
from hyperjob_sandbox.processes.accelerators import Slots
from hyperjob_sandbox.processes.environment import MissingSourceError, Sources
from hyperjob_sandbox.processes.images import Image, ImageError, image_of, this_python
from hyperjob_sandbox.processes.network import Host, Network
from hyperjob_sandbox.processes.volumes import Folders, Mount, UnsupportedVolumeError

SOURCES = Sources(config_maps={"cm": {"data": {"a.txt": "A", "b.txt": "B"}}})


def folders(base: Path, cluster: str = "a", pod: str = "p") -> Folders:
    return Folders(
        pod=base / cluster / pod,
        temporary=base / "temporary",
        cluster=base / cluster,
        shared=base / "shared",
    )


def pod(*found: dict) -> dict:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"l": "1"}},
        "spec": {"volumes": [{"name": f"v{i}", **each} for i, each in enumerate(found)]},
    }


def files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_config_maps_and_the_downward_api_become_files(tmp_path: Path) -> None:
    made = volumes.prepare(
        pod(
            {"configMap": {"name": "cm"}},
            {"configMap": {"name": "cm", "items": [{"key": "a.txt", "path": "sub/x"}]}},
            {
                "projected": {
                    "sources": [
                        {"configMap": {"name": "cm", "items": [{"key": "b.txt", "path": "b"}]}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}
                                ]
                            }
                        },
                        {"serviceAccountToken": {"path": "token"}},
                    ]
                }
            },
            {"emptyDir": {}},
        ),
        SOURCES,
        {},
        folders(tmp_path),
    )
    assert files(made["v0"]) == {"a.txt": "A", "b.txt": "B"}
    assert files(made["v1"]) == {"sub/x": "A"}
    assert files(made["v2"]) == {"b": "B", "l": 'l="1"'}, "a process gets no token"
    assert files(made["v3"]) == {}


def test_pods_share_a_claim_in_their_cluster_and_an_export_in_all(tmp_path: Path) -> None:
    def where(cluster: str, source: dict) -> Path:
        claims = {"c": {"metadata": {"name": "c"}}}
        return volumes.prepare(pod(source), SOURCES, claims, folders(tmp_path, cluster))["v0"]

    claim = {"persistentVolumeClaim": {"claimName": "c"}}
    export, other = ({"nfs": {"server": "s", "path": path}} for path in ("/a", "/../a"))
    assert where("a", claim) == where("a", claim) != where("b", claim)
    assert where("a", export) == where("b", export) != where("b", other)
    assert where("a", export).parent == where("a", other).parent


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ({"configMap": {"name": "no"}}, MissingSourceError, 'configmap "no" not found'),
        (
            {"persistentVolumeClaim": {"claimName": "no"}},
            MissingSourceError,
            'persistentvolumeclaim "no" not found',
        ),
        ({"iscsi": {"lun": 0}}, UnsupportedVolumeError, "type iscsi"),
        (
            {"configMap": {"name": "cm", "items": [{"key": "a.txt", "path": "../../x"}]}},
            UnsupportedVolumeError,
            "leaves its volume",
        ),
    ],
)
def test_a_volume_that_cannot_be_made_says_why(
    tmp_path: Path, source: dict, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        volumes.prepare(pod(source), SOURCES, {}, folders(tmp_path))


def test_a_sub_path_does_not_leave_its_volume(tmp_path: Path) -> None:
    container = {"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "../../etc"}]}
    with pytest.raises(UnsupportedVolumeError, match="leaves its volume"):
        volumes.mounts(container, {"v": tmp_path / "v"}, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/data", "/f"),
        ("/data/x --out=/data", "/f/x --out=/f"),
        ("/database /x/data ./data", "/database /x/data ./data"),
    ],
)
def test_without_mounts_paths_lead_to_the_folders(text: str, expected: str) -> None:
    assert volumes.without_mounts(text, [Mount(source=Path("/f"), target="/data")]) == expected


def test_every_pod_has_an_address_that_stays_with_its_name(tmp_path: Path) -> None:
    network = Network(tmp_path, ("a", "b"))
    first = network.address("a", "n", "p-0")
    assert first.startswith("127.")
    every = {network.address(c, n, f"p-{i}") for c in "ab" for n in "xy" for i in range(600)}
    assert len(every) == 2400
    assert network.address("a", "n", "p-0") == first


def test_names_are_those_of_services_within_and_across_clusters(tmp_path: Path) -> None:
    network = Network(tmp_path, ("a", "b"))
    one = Host(cluster="a", namespace="n", name="p-0", service="job")
    files_ = {each: network.hosts_file(each, "n") for each in "ab"}
    address = network.join(one)
    inside = files_["a"].read_text()
    assert f"{address} p-0 p-0.job p-0.job.n p-0.job.n.svc p-0.job.n.svc.cluster.local" in inside
    outside = files_["b"].read_text()
    assert "p-0.job " not in outside
    assert "p-0.a.job.n.svc.clusterset.local" in outside
    inode = files_["a"].stat().st_ino
    network.leave(one)
    assert "p-0" not in files_["a"].read_text()
    assert files_["a"].stat().st_ino == inode, "a mount shows this very file"


def test_without_a_hosts_file_names_become_addresses_before_their_pods_exist(
    tmp_path: Path,
) -> None:
    network = Network(tmp_path, ("a", "b"))
    one = Host(cluster="a", namespace="n", name="p-0", service="job")
    text = network.addressed(
        "tcp://p-1.job:1,q-0.b.other.n.svc.clusterset.local example.org v1.2", one
    )
    near, far = network.address("a", "n", "p-1"), network.address("b", "n", "q-0")
    assert text == f"tcp://{near}:1,{far} example.org v1.2"


def test_an_image_is_this_python_unless_it_is_mapped(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    mapped = [Image.parse(f"torch:*={tmp_path}"), Image.parse("tool=nice -n 5")]
    assert image_of("torch:2", mapped).virtualenv == str(tmp_path)
    assert image_of("torch:2", mapped).path.startswith(f"{tmp_path}/bin:")
    assert image_of("tool", mapped).prefix == ("nice", "-n", "5")
    assert image_of("other", mapped) == this_python()


@pytest.mark.parametrize("text", ["", "x", "x=", "=y", "x=/no/such/folder"])
def test_a_mapping_of_images_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ImageError):
        Image.parse(text)


def test_no_accelerator_of_a_node_is_given_twice() -> None:
    slots = Slots()

    def take(uid: str, node: str = "n1") -> str:
        asking = {"metadata": {"uid": uid}, "spec": {"nodeName": node}}
        container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 2}}}
        return slots.take(asking, container)["CUDA_VISIBLE_DEVICES"]

    assert [take("a"), take("b"), take("a"), take("c", "n2")] == ["0,1", "2,3", "0,1", "0,1"]
    slots.give_back({"metadata": {"uid": "a"}})
    assert take("d") == "0,1"


LINES = [
    b"2026-01-01T00:00:0%d.000000000Z stdout F line %d\n" % (number, number) for number in range(5)
]
READS = {
    "all": ({}, b"line 0\nline 1\nline 2\nline 3\nline 4\n"),
    "the last ones": ({"tailLines": "2"}, b"line 3\nline 4\n"),
    "none": ({"tailLines": "0"}, b""),
    "more than there are": ({"tailLines": "9"}, b"line 0\nline 1\nline 2\nline 3\nline 4\n"),
    "since a time": ({"sinceTime": "2026-01-01T00:00:03Z"}, b"line 3\nline 4\n"),
    "so many bytes": ({"limitBytes": "9"}, b"line 0\nli"),
    "with their times": (
        {"tailLines": "1", "timestamps": "true"},
        b"2026-01-01T00:00:04.000000000Z line 4\n",
    ),
}


@pytest.mark.parametrize("name", READS)
def test_a_log_is_read_as_kubectl_asks(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c-0.log"
    (tmp_path / "c-0.log.1").write_bytes(b"".join(LINES[:2]))
    path.write_bytes(b"".join(LINES[2:]))
    query, expected = READS[name]
    assert logs.read(path, logs.LogOptions.parse(query)) == expected


@pytest.mark.parametrize(
    "query", [{"tailLines": "-1"}, {"tailLines": "x"}, {"limitBytes": "0"}, {"sinceSeconds": "0"}]
)
def test_a_query_that_makes_no_sense_is_a_bad_request(query: dict[str, str]) -> None:
    with pytest.raises(Exception, match="Invalid value"):
        logs.LogOptions.parse(query)


@pytest.mark.parametrize("removed", [False, True])
async def test_a_line_written_while_a_log_is_followed_comes_once_also_from_a_removed_file(
    tmp_path: Path, removed: bool
) -> None:
    path = tmp_path / "log"
    lines = [b"2026-11-22T10:00:00.00000000%dZ stdout F %d\n" % (n, n) for n in range(4)]
    path.write_bytes(lines[0] + lines[1][:20])

    def ends() -> bool:
        with path.open("ab") as log:
            log.write(b"".join(lines)[len(lines[0]) + 20 :])
        if removed:
            path.unlink()
        return True

    followed = logs.follow(path, logs.LogOptions(follow=True), is_over=ends)
    assert b"".join([part async for part in followed]) == b"0\n1\n2\n3\n"
