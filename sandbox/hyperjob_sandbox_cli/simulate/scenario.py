"""The scenario file of `hyperjob simulate`: the workload and its failures, beyond their size."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError

from hyperjob_core.api.field import ROOT
from hyperjob_queueing.consumed import HALF_LIFE
from hyperjob_sandbox.simulate.generate import Estimates
from hyperjob_sandbox.simulate.workload import Amount, Failures, ScenarioPart, WorkloadError

Share = Annotated[float, Field(ge=0, le=1)]


class TraceReading(ScenarioPart):
    """How the file of `--trace` is read: its format, and the number of its first jobs."""

    format: Literal["auto", "csv", "philly", "helios", "alibaba2020", "alibaba2023"] = "auto"
    limit: Annotated[int, Field(ge=1)] | None = None


class ScenarioFile(ScenarioPart):
    """A scenario file; without a file every field has its default.

    `queues` has the share of the generated jobs that go to each queue, `urgent` the share with a
    high priority, `recurring` that of runs of an earlier one's template, `elastic` that of
    jobs with any number of sub-jobs, `max_domains` the most clusters of a generated or traced job,
    and `checkpoint_minutes` the time between checkpoints.
    """

    shape: Literal["philly", "helios", "llm"] = "llm"
    queues: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict
    )
    urgent: Share = 0.0
    recurring: Share = 0.0
    elastic: Share = 0.0
    estimates: Estimates = Estimates()
    max_domains: Annotated[int, Field(ge=1)] = 4
    checkpoint_minutes: Amount = 30.0
    usage_half_life_hours: Amount = HALF_LIFE / timedelta(hours=1)
    failures: Failures = Failures()
    trace: TraceReading = TraceReading()


def scenario_of(path: Path | None) -> ScenarioFile:
    """Read a scenario file; raises WorkloadError with the file and the field."""
    if path is None:
        return ScenarioFile()
    try:
        return ScenarioFile.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        raise WorkloadError(f"{path}: is no YAML: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        problems = "; ".join(
            f"{ROOT.below(each['loc']) if each['loc'] else 'file'}: {each['msg']}"
            for each in error.errors()
        )
        raise WorkloadError(f"{path}: {problems}") from None
