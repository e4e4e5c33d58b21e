"""Print all fields of a TrainJob and of a TrainingRuntime, from the models of Kubeflow's package.

Of the metadata in a template only the fields are printed that an API server keeps there.
"""

import json
import typing

from kubeflow_trainer_api import models
from pydantic import BaseModel

KEPT = ("annotations", "finalizers", "labels", "name", "namespace")


def model_of(kind):
    """Return the model in a type such as `list[Model] | None`; None if there is none."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    found = (model_of(each) for each in typing.get_args(kind))
    return next((each for each in found if each is not None), None)


def paths(model, path=""):
    """Yield the paths of all values below a model."""
    is_metadata = model is models.IoK8sApimachineryPkgApisMetaV1ObjectMeta
    for name, field in model.model_fields.items():
        title = field.alias or name
        if is_metadata and title not in KEPT:
            continue
        below = f"{path}.{title}" if path else title
        inner = model_of(field.annotation)
        if inner is None or not inner.model_fields:
            yield below
        else:
            yield from paths(inner, below)


if __name__ == "__main__":
    trainjob = sorted(paths(models.TrainerV1alpha1TrainJobSpec))
    runtime = sorted(paths(models.TrainerV1alpha1TrainingRuntimeSpec))
    print(json.dumps({"trainjob": trainjob, "runtime": runtime}))
