"""How `hyperjob sandbox up` lets the process that started it know that everything is up."""

from typing import Final

READY_FILE: Final = "ready"
"""Written beside the kubeconfigs, last."""
