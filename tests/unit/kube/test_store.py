"""The objects of an informer: every index holds exactly the objects that are stored."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hyperjob_core.kube.informer import Store

COLOURS = st.sampled_from(["red", "green", "blue"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.none() | st.sets(COLOURS)), max_size=12
)


def pod(name: str, colours: set[str]) -> dict[str, Any]:
    return {"metadata": {"namespace": "ns", "name": name}, "colours": sorted(colours)}


@given(STEPS)
def test_an_index_gives_the_objects_that_a_search_of_all_would(
    steps: list[tuple[str, set[str] | None]],
) -> None:
    store, expected = Store({"colour": lambda obj: obj["colours"]}), {}
    for name, colours in steps:
        if colours is None:
            assert store.pop(f"ns/{name}") == expected.pop(name, None)
        else:
            made = pod(name, colours)
            assert store.put(made) == expected.get(name)
            expected[name] = made
    assert {obj["metadata"]["name"]: obj for obj in store.items()} == expected
    for colour in ("red", "green", "blue"):
        found = {obj["metadata"]["name"] for obj in store.by_index("colour", colour)}
        assert found == {name for name, obj in expected.items() if colour in obj["colours"]}
