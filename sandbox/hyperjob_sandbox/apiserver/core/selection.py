"""Label and field selectors of a request, as one test for stored objects."""

from dataclasses import dataclass

from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo
from hyperjob_sandbox.apiserver.state.selectors import (
    FieldSelector,
    LabelSelector,
    SelectorError,
    field_value,
    parse_fields,
    parse_labels,
)
from hyperjob_sandbox.apiserver.state.store import Stored
from hyperjob_sandbox.apiserver.transport.encode import to_version
from hyperjob_sandbox.apiserver.transport.requestinfo import RequestInfo

_ALWAYS = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list or watch selects; an empty one selects everything."""

    labels: LabelSelector
    fields: FieldSelector

    def __bool__(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    def matches(self, stored: Stored, resource: ResourceInfo) -> bool:
        """Tell whether an object is selected."""
        if self.labels and not self.labels.matches(stored.metadata.get("labels")):
            return False
        if not self.fields:
            return True

        namespace, name = stored.key
        known = {"metadata.name": name, "metadata.namespace": namespace}

        def value(path: str) -> str:
            if path in known:
                return known[path]
            return field_value(to_version(stored.obj, resource), path)

        return self.fields.matches(value)


def selection(info: RequestInfo, resource: ResourceInfo) -> Selection:
    """Read the selectors of a request; refuse what cannot be selected by (400)."""
    labels, fields = LabelSelector(), FieldSelector()
    text = info.query.get("labelSelector", "")
    if text:
        try:
            labels = parse_labels(text)
        except SelectorError as error:
            raise errors.bad_request(f"unable to parse requirement: {error}") from None
    text = info.query.get("fieldSelector", "")
    if text:
        try:
            fields = parse_fields(text)
        except SelectorError as error:
            raise errors.bad_request(str(error)) from None
        try:
            fields.require((*_ALWAYS, *resource.selectable))
        except SelectorError as error:
            raise errors.bad_request(str(error)) from None
    return Selection(labels, fields)
