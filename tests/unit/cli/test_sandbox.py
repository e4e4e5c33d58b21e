"""The options of `hyperjob sandbox up` come before the values of its clusters file."""

from hyperjob_sandbox.clusters import SandboxConfig, parse
from hyperjob_sandbox_cli.sandbox import with_options

FILE = """
clusters: [{name: east, nodes: [{count: 1, allocatable: {cpu: 1}}]}]
images: {"train:*": python3 -s, "*": python3}
pods: processes
speed: 2
"""


def changed(images: dict[str, str], **options: object) -> SandboxConfig:
    given: dict = {"pods": None, "speed": None, "volcano_global": None, **options}
    return with_options(parse(FILE), images=images, **given)


def test_an_image_of_the_command_line_replaces_that_of_the_file_and_matches_first() -> None:
    found = changed({"*": "python3 -I", "new": "python3 -E"}).images
    assert list(found.items()) == [
        ("*", "python3 -I"),
        ("new", "python3 -E"),
        ("train:*", "python3 -s"),
    ]


def test_options_that_are_not_given_keep_the_values_of_the_file() -> None:
    file = changed({})
    assert (file.pods, file.speed, file.volcano_global.enabled) == ("processes", 2, False)
    given = changed({}, pods="simulated", speed=3.0, volcano_global=True)
    assert (given.pods, given.speed, given.volcano_global.enabled) == ("simulated", 3, True)
