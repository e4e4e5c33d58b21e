"""The message about the container of a sub-job that failed first."""

from hyperjob_engine.model.runs import ContainerFailure


def container_text(failure: ContainerFailure) -> str:
    """Return the pod, the container and the way in which it failed."""
    container = f", container {failure.container}" if failure.container else ""
    how = [failure.reason] if failure.reason else []
    if failure.exit_code is not None:
        how.insert(0, f"exit code {failure.exit_code}")
    text = f"pod {failure.pod}{container}: {', '.join(how) or 'failed'}"
    return f"{text}: {failure.message}" if failure.message else text
