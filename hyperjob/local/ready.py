"""How `hyperjob sandbox up` tells the process that started it that everything is up."""

from typing import Final

READY_FILE: Final = "ready"
"""Written beside the kubeconfigs, last."""
