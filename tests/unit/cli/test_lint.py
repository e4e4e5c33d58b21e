import json
from pathlib import Path
from time import thread_time

import pytest
from click.testing import CliRunner, Result

from hyperjob.cli.lint import lint
from hyperjob.cli.lint.documents import UnreadableError, parse, read

GOOD = """\
apiVersion: training.volcano.sh/v1alpha1
kind: HyperJob
metadata: {name: llm, namespace: ml}
spec:
  replicatedJobs:
  - name: trainer        # the only one
    replicas: 2
    templateSpec:
      tasks:
      - name: worker
        replicas: 4
        template:
          spec:
            restartPolicy: Never
            containers:
            - name: main
              image: "training:v1"   # pinned
              resources:
                requests:
                  nvidia.com/gpu: 1
"""
BAD = GOOD.replace("        replicas: 4\n", "        replicas: 4\n        minAvailable: 5\n")
WARNED = GOOD.replace("nvidia.com/gpu", "ascend910c")


REMEDY = "lower minAvailable, raise the replicas, or leave minAvailable out: all pods count then"


def run(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(lint, list(arguments), input=text)


def file(folder: Path, text: str, name: str = "job.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_what_would_be_accepted_ends_with_0(tmp_path: Path):
    name = file(tmp_path, GOOD)
    result = run(name)
    assert (result.exit_code, result.output) == (
        0,
        f"{name}:1: HyperJob ml/llm: would be accepted\n",
    )


def test_what_would_be_refused_ends_with_1_and_says_where(tmp_path: Path):
    name = file(tmp_path, BAD)
    result = run(name)
    assert result.exit_code == 1
    field = "spec.replicatedJobs[0].templateSpec.tasks[0].minAvailable"
    body = "Invalid value: 5: must be less than or equal to `replicas` (4)"
    assert result.output.splitlines() == [
        f"{name}:12: error: {field}: {body} [V4.min-available]",
        f"    remedy: {REMEDY}",
        f"{name}:1: HyperJob ml/llm: would be refused, 1 error",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "line 1"),
        ("- a\n", "is not an object"),
        ("just text\n", "is not an object"),
        ("? [a, b]\n: c\n", "a key must be a string"),
        ("a: !!python/object:os.system {}\n", "could not determine a constructor"),
    ],
    ids=["yaml", "list", "text", "key", "tag"],
)
def test_what_cannot_be_read_ends_with_2(tmp_path: Path, text: str, problem: str):
    result = run(file(tmp_path, text))
    assert result.exit_code == 2
    assert problem in result.stderr


def test_a_file_of_other_bytes_ends_with_2(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_bytes(b"\xff\xfea")
    with pytest.raises(UnreadableError, match="is not UTF-8"):
        read(str(path))


def test_a_file_larger_than_any_object_is_not_read(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_bytes(b"# " + b"x" * 7 * 1024 * 1024)
    with pytest.raises(UnreadableError, match="is larger than"):
        read(str(path))


def test_all_documents_are_looked_at_and_other_kinds_left_alone(tmp_path: Path):
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {since: 2026-11-21}\n"
    name = file(tmp_path, f"{other}---\n{GOOD}---\n---\n{BAD}")
    result = run(name)
    assert result.exit_code == 1
    assert f"{name}:6: HyperJob ml/llm: would be accepted" in result.output
    assert ":39: error: " in result.output


@pytest.mark.parametrize("kind", ["Secret", "HyperNode", "Job"])
def test_a_file_without_a_hyperjob_needs_a_flag(tmp_path: Path, kind: str):
    name = file(tmp_path, f"apiVersion: topology.volcano.sh/v1alpha1\nkind: {kind}\n")
    result = run(name)
    assert (result.exit_code, result.stdout) == (1, "")
    told = f"contains no HyperJob, but {kind}; --allow-none accepts that"
    assert result.stderr == f"error: {name}: {told}\n"
    assert run(name, "--allow-none").exit_code == 0


def test_a_folder_is_its_files_and_needs_one_hyperjob(tmp_path: Path):
    assert run(str(tmp_path)).exit_code == 1
    file(tmp_path, "apiVersion: v1\nkind: Secret\n", "secret.yaml")
    assert run(str(tmp_path)).exit_code == 1
    file(tmp_path, GOOD, "job.yml")
    result = run(str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "HyperJob ml/llm: would be accepted" in result.output


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("v1alpha1", "v1beta1"), 'apiVersion: Unsupported value: "training.volcano.sh/v1beta1"'),
        (("kind: HyperJob\n", ""), "kind: Required value"),
        (("kind: HyperJob", "kind: Hyperjob"), 'kind: Unsupported value: "Hyperjob"'),
        (("  replicatedJobs:", "  replicatdJobs:"), 'did you mean "replicatedJobs"?'),
        (("replicas: 2", 'replicas: "2"'), "must be of type integer"),
    ],
)
def test_what_the_api_server_checks_first_is_checked_too(
    tmp_path: Path, change: tuple[str, str], error: str
):
    result = run(file(tmp_path, GOOD.replace(*change)))
    assert result.exit_code == 1
    assert error in result.output


def test_json_tells_everything(tmp_path: Path):
    bad, warned = file(tmp_path, BAD), file(tmp_path, WARNED, "warned.yaml")
    result = run("-o", "json", bad, warned, str(tmp_path / "gone"))
    assert result.exit_code == 2
    answer = json.loads(result.output)
    assert (answer["errors"], answer["warnings"]) == (1, 1)
    assert answer["files"][0]["hyperJobs"][0]["errors"] == [
        {
            "rule": "V4.min-available",
            "line": 12,
            "field": "spec.replicatedJobs[0].templateSpec.tasks[0].minAvailable",
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 5: must be less than or equal to `replicas` (4)",
            "remedy": REMEDY,
        }
    ]
    assert answer["files"][1]["hyperJobs"][0]["warnings"][0]["rule"] == (
        "V8.ResourceList.name.unqualified"
    )
    assert answer["files"][2]["problem"] == "No such file or directory"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1_000", 1000), ("-7", -7), ("0644", 420), ("08", 8.0), ("-1.5", -1.5), ("1_0.5", 10.5)],
)
def test_a_number_is_an_integer_or_not_as_for_kubectl(text: str, value: object):
    (document,) = parse(f"a: {text}\n")
    assert document.content == {"a": value}
    assert type(document.content["a"]) is type(value)


ALIASES = {
    "a value that contains itself": ("a: &r {a: *r}\n", "contains itself by an alias"),
    "a list that contains itself": ("a: &r [1, *r]\n", "contains itself by an alias"),
    "aliases of aliases": (
        "a0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
        "has more than 100000 fields",
    ),
    "merges of merges": (
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 40)),
        "has more than 100000 fields",
    ),
    "a long name above many fields": (
        f"? {'x' * 900_000}\n:\n" + "".join(f"  a{n}: 1\n" for n in range(200)),
        "has paths of more than",
    ),
    "a million items": ("a: [" + "1," * 1_000_000 + "1]\n", "has more than 100000 fields"),
    "lists in lists": ("a: " + "[" * 5000 + "]" * 5000 + "\n", "is nested too deep"),
}


@pytest.mark.parametrize(("text", "said"), ALIASES.values(), ids=ALIASES.keys())
def test_a_file_that_would_grow_without_bound_is_refused_before_it_grows(
    text: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "grows.yaml"
    path.write_text("kind: HyperJob\n" + text)
    began = thread_time()
    result = run(str(path))
    assert result.exit_code == 2
    assert said in result.output
    assert thread_time() - began < 30


def test_a_field_without_a_line_has_that_of_its_nearest_parent():
    (found,) = parse("kind: x\nspec:\n  jobs:\n    - a: 1\n    - b:\n        c.d: 2\n  more: 1\n")
    lines = {
        "kind": 1,
        "spec": 2,
        "spec.jobs": 3,
        "spec.jobs[1]": 5,
        "spec.jobs[1].b": 5,
        "spec.jobs[0].missing": 4,
        "spec.jobs[7]": 3,
        "spec.jobs[7].a[2].b": 3,
        "spec.none.deeper[1]": 2,
        "none": 1,
        "": 1,
    }
    assert {path: found.line_of(path) for path in lines} == lines
    second = list(parse("a: 1\n---\nb: 2\n"))[1]
    assert (second.line, second.line_of("none"), second.line_of("b")) == (3, 3, 3)


def test_our_own_examples_give_no_warning() -> None:
    result = CliRunner().invoke(lint, [str(Path(__file__).parents[3] / "examples")])
    assert result.exit_code == 0
    assert result.output.count("would be accepted") > 10
    assert "warning" not in result.output
