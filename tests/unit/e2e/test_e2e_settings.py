"""What the scenarios read from the environment."""

import pytest

from e2e.support.settings import Settings, from_environment

KARMADA = {"HYPERJOB_E2E_KUBECONFIG": "k", "HYPERJOB_E2E_MEMBERS": "east=e,west=w"}


def test_without_a_kubeconfig_the_control_plane_is_embedded() -> None:
    assert from_environment({}) == Settings()
    assert from_environment({}).embedded


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"HYPERJOB_E2E_MEMBERS": ""}, "HYPERJOB_E2E_MEMBERS must name the members"),
        ({"HYPERJOB_E2E_MEMBERS": "east"}, "HYPERJOB_E2E_MEMBERS: name=kubeconfig is expected"),
        ({"HYPERJOB_E2E_LOST_TIMEOUT": "1m"}, "HYPERJOB_E2E_LOST_TIMEOUT: seconds are expected"),
        ({"HYPERJOB_E2E_TIMEOUT": "soon"}, "HYPERJOB_E2E_TIMEOUT: seconds are expected"),
    ],
)
def test_a_wrong_variable_is_named(changes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_environment(KARMADA | changes)
