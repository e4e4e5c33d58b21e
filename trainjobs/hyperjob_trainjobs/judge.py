"""The decision about a TrainJob that becomes a HyperJob. Pure.

A TrainJob is refused by field where it cannot be carried over, and where its HyperJob would be
refused. The controller decides the same again: an outage of the webhook lets no TrainJob through.
"""

from dataclasses import dataclass, replace
from typing import Final

from hyperjob_core.api.field import METADATA, SPEC, FieldError, forbidden, invalid, not_found
from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import SPREAD
from hyperjob_core.api.wire import at, objects, string_map
from hyperjob_rules.validation.context import Context
from hyperjob_rules.validation.create import validate_create
from hyperjob_rules.validation.rules import ALLOWED, Decision
from hyperjob_trainjobs.convert import convert
from hyperjob_trainjobs.decide import runs_as_hyperjob
from hyperjob_trainjobs.refusals import RUNTIME_REF

_FIXED: Final = "the HyperJob exists already: delete the TrainJob and create another"


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The objects that decide about a TrainJob; None: it does not exist."""

    runtime: Object | None
    namespace: Object | None


def judge(trainjob: Object, old: Object | None, around: Around, context: Context) -> Decision:
    """Return the decision about a new TrainJob, or about a change of `old`."""
    if not runs_as_hyperjob(trainjob, around.runtime, around.namespace):
        return ALLOWED
    if at(trainjob, "metadata", "deletionTimestamp") is not None:
        return ALLOWED
    if old is not None:
        return Decision(errors=tuple(_changes(trainjob, old)))
    if around.runtime is None:
        return Decision(
            errors=(not_found(RUNTIME_REF, at(trainjob, "spec", "runtimeRef", "name")),)
        )
    found = convert(trainjob, around.runtime)
    if found.hyperjob is None:
        return Decision(errors=found.refusals)
    decided = validate_create(found.hyperjob, context=context)
    name = str(at(trainjob, "metadata", "name"))
    errors = [
        replace(invalid(SPEC, name, f"its HyperJob is refused: {error}"), remedy=error.remedy)
        for error in decided.errors
    ]
    return Decision(errors=tuple(errors), warnings=decided.warnings)


def _changes(trainjob: Object, old: Object) -> list[FieldError]:
    """Return the refusals of changes that the HyperJob could not follow."""
    errors = []
    spread = [
        string_map(at(each, "metadata", "annotations")).get(SPREAD) for each in (old, trainjob)
    ]
    if spread[0] != spread[1]:
        errors.append(forbidden(METADATA.child("annotations").key(SPREAD), _FIXED))
    if _patches(old) != _patches(trainjob):
        errors.append(forbidden(SPEC.child("runtimePatches"), _FIXED))
    return errors


def _patches(trainjob: Object) -> list[Object]:
    """Return the patches without their times, which Trainer's webhook writes."""
    return [
        {name: value for name, value in patch.items() if name != "time"}
        for patch in objects(at(trainjob, "spec", "runtimePatches"))
    ]
