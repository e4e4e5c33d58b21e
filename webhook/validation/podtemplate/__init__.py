"""Judge a pod template as the API server of a member cluster will, and in its words.

What the API server fills in when a field is left out counts as filled in.
"""

from hyperjob.api.field import Path
from hyperjob.api.meta import Object
from webhook.validation.podtemplate.metadata import validate_pod_metadata
from webhook.validation.podtemplate.spec import validate_pod_spec
from webhook.validation.report import Report

__all__ = ["validate_pod_template"]


def validate_pod_template(template: Object, path: Path, report: Report) -> None:
    """Check the metadata and the spec of the pods of one task."""
    spec = template.get("spec") or {}
    metadata = template.get("metadata")
    if metadata:
        validate_pod_metadata(metadata, spec, path.child("metadata"), report)
    validate_pod_spec(spec, path.child("spec"), report)
