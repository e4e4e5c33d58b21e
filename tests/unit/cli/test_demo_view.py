"""What the demo prints of HyperJobs and of clusters."""

from pathlib import Path

from hyperjob_sandbox_cli.demo import view

ROOT = Path(__file__).parents[3]


def test_what_to_try_names_programs_and_examples_that_are_there() -> None:
    examples = ROOT / "examples"
    told = view.what_to_try(Path("/k/karmada.kubeconfig"), Path("/v/bin"), examples)
    assert "export KUBECONFIG=/k/karmada.kubeconfig\n" in told
    assert "export PATH=/v/bin:$PATH\n" in told
    files = [Path(word) for word in told.split() if word.endswith(".yaml")]
    assert len(files) == 2
    assert [file for file in files if not file.exists()] == []
