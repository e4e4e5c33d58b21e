"""The words for the container that failed first."""

from controller.model.runs import ContainerFailure


def container_text(failure: ContainerFailure) -> str:
    """Say which container failed, and how."""
    container = f", container {failure.container}" if failure.container else ""
    how = [failure.reason] if failure.reason else []
    if failure.exit_code is not None:
        how.insert(0, f"exit code {failure.exit_code}")
    told = f"pod {failure.pod}{container}: {', '.join(how) or 'failed'}"
    return f"{told}: {failure.message}" if failure.message else told
