"""`hyperjob why`: the reason why a HyperJob is not running, and the next command to type."""

import sys

import click

from hyperjob.cli.kubectl import output as out
from hyperjob.cli.kubectl.access import Access, access
from hyperjob.cli.kubectl.exits import Code, run
from hyperjob.cli.kubectl.names import TrainJobName, name_argument
from hyperjob.cli.why import view
from hyperjob.client.reading import items
from hyperjob.client.trainjobs import without_hyperjob
from hyperjob.client.why.evidence import Outcome
from hyperjob.client.why.explain import explain
from hyperjob.client.why.gather import gather
from hyperjob_core.kube.errors import NotFound

_CODES = {
    Outcome.FINE: Code.OK,
    Outcome.WAITS: Code.NOT_YET,
    Outcome.NEEDS_HELP: Code.NEVER,
}


@click.command()
@name_argument(trainjobs=True)
@access()
@out.output(out.JSON, out.YAML)
def why(name: str, access: Access, form: str) -> None:
    """Explain why a HyperJob is not running, and print the command to type next.

    The command prints the HyperJob's status with a command for each reason. It also reads vcjobs,
    ResourceBindings, events, the controller's Lease and, where pods do not start, the pods. It
    names the objects that you may not read and explains without them. The name trainjob/NAME is
    that of a TrainJob.

    Exit code 0: the HyperJob runs or has completed; 3: it waits for free accelerators or in its
    queue; 4: a person must act.

    Example: kubectl hyperjob why llm-training
    """

    async def show() -> Outcome:
        async with access.connect() as kube:
            try:
                evidence = await gather(kube, access.home(kube), name)
            except NotFound:
                if isinstance(name, TrainJobName):
                    raise await without_hyperjob(kube, access.home(kube), name) from None
                raise
        explanation = explain(evidence)
        if form:
            out.dump(view.value(explanation, access.command), form)
        else:
            events = items(evidence.events)
            out.say(view.lines(explanation, events, evidence.now, access.command))
        return explanation.outcome

    sys.exit(_CODES[run(show())])
