"""Validation of pod templates, with the rules and messages of a member cluster's API server.

An absent field counts with the default that the API server sets.
"""

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.metadata import validate_pod_metadata
from hyperjob_rules.validation.podtemplate.spec import validate_pod_spec
from hyperjob_rules.validation.rules import Report

__all__ = ["validate_pod_template"]


def validate_pod_template(template: Object, path: Path, report: Report) -> None:
    """Validate the metadata and the spec of one task's pod template."""
    spec = template.get("spec") or {}
    metadata = template.get("metadata")
    if metadata:
        validate_pod_metadata(metadata, spec, path.child("metadata"), report)
    validate_pod_spec(spec, path.child("spec"), report)
