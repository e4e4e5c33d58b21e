"""The steps of the demo: start the processes, apply HyperJobs, watch until all have ended."""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.live import Live

from hyperjob.cli import install as install_view
from hyperjob.cli import tree
from hyperjob.cli import why as why_view
from hyperjob.cli.files import data_file
from hyperjob.client.summary import Summary
from hyperjob.client.why.evidence import gather
from hyperjob.client.why.explain import explain
from hyperjob_core.api.phases import Phase
from hyperjob_core.kube.client import Kube
from hyperjob_core.tasks import cancel
from hyperjob_page.serve import served_here
from hyperjob_sandbox.local.lifeline import lifeline
from hyperjob_sandbox.local.parts import StackError, kubectl, run_once
from hyperjob_sandbox.local.plane import Plane, PlaneOptions, local_plane
from hyperjob_sandbox_cli.demo import view
from hyperjob_sandbox_cli.demo.follow import Follower


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line."""

    plane: PlaneOptions
    manifests: tuple[Path, ...]
    keep: bool
    logs: bool
    """Whether containers run as processes, whose logs the demo prints."""
    seconds: float
    output: str


@dataclass(slots=True)
class DemoResult:
    """The result of a demo; `finished` is False where no HyperJob changed for too long."""

    kubeconfig: Path
    started: float
    hyperjobs: list[Summary] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Return whether every HyperJob has ended."""
        return bool(self.hyperjobs) and all(each.has_ended for each in self.hyperjobs)

    @property
    def completed(self) -> bool:
        """Return whether every HyperJob has completed."""
        return bool(self.hyperjobs) and all(
            each.phase == Phase.COMPLETED for each in self.hyperjobs
        )

    def to_json(self) -> str:
        """Return the result as one JSON document."""
        return json.dumps(
            {
                "completed": self.completed,
                "seconds": round(self.seconds, 2),
                "kubeconfig": str(self.kubeconfig),
                "hyperjobs": [
                    {
                        "name": each.key,
                        "phase": each.phase,
                        "jobs": each.jobs_ready,
                        "clusters": list(each.clusters),
                        "message": each.message or each.reason,
                    }
                    for each in self.hyperjobs
                ],
            },
            indent=2,
        )


def _news(summary: Summary) -> str:
    """Return the part of the status whose change the demo prints as a transition."""
    return f"{summary.phase} {summary.jobs_ready} {summary.clusters}"


async def _finish(task: asyncio.Task[None]) -> None:
    """Cancel a task; raise its error where the task has failed already."""
    if not task.done():
        await cancel([task])
        return
    task.result()


class Demo:
    """One run of the demo."""

    def __init__(self, options: Options, console: Console) -> None:
        self._options = options
        self._console = console
        self._plane: Plane | None = None
        self._kubeconfig = options.plane.directory / "karmada.kubeconfig"

    def _say(self, text: str) -> None:
        if self._options.output != "json":
            self._console.print(text, highlight=False, soft_wrap=True)

    async def run(self) -> DemoResult:
        """Run the demo; raise StackError when a process does not start or ends early."""
        result = DemoResult(self._kubeconfig, time.monotonic())
        async with contextlib.AsyncExitStack() as stack:
            self._say("Starting an embedded Karmada, its members, the webhook and the controller …")
            line = await stack.enter_async_context(lifeline())
            self._plane = await stack.enter_async_context(local_plane(self._options.plane, line))
            command = f"hyperjob install --webhook-url {self._plane.webhook_url}"
            self._say(f"$ {command} --ca-file tls/ca.crt")
            self._say(install_view.summary(self._plane.installed, dry_run=False))
            kube = await stack.enter_async_context(Kube.connect(kubeconfig=self._kubeconfig))
            follower = await stack.enter_async_context(Follower(kube).running())
            page = await stack.enter_async_context(served_here(kube))
            self._say(f"Ready after {time.monotonic() - result.started:.1f} s.")
            self._say(f"The web page of these clusters: {page}")
            applying = asyncio.create_task(self._apply(self._options.manifests))
            try:
                await self._watch(kube, follower, result, applying)
            finally:
                await _finish(applying)
            result.hyperjobs = follower.hyperjobs
            result.seconds = time.monotonic() - result.started
            await self._report(result)
            if self._options.keep:
                await self._hold()
        return result

    async def _apply(self, manifests: Sequence[Path]) -> None:
        files = [word for manifest in manifests for word in ("-f", str(manifest))]
        self._say(f"$ kubectl apply {' '.join(files)}")
        self._say((await kubectl(self._kubeconfig, "apply", *files)).rstrip())

    async def _watch(
        self, kube: Kube, follower: Follower, result: DemoResult, applying: asyncio.Task[None]
    ) -> None:
        """Show the HyperJobs until all have ended, or none has changed for the time of the options.

        `applying` is kubectl's apply, whose error ends the demo; `result` gets the HyperJobs.
        """
        terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        live = terminal and self._options.output != "json"
        with (
            Live(
                console=self._console,
                refresh_per_second=8,
                transient=True,
                vertical_overflow="ellipsis",
            )
            if live
            else contextlib.nullcontext()
        ) as screen:
            shown: dict[str, str] = {}
            explained = self._options.output == "json"
            news: list[str] = []
            since = time.monotonic()
            while time.monotonic() < since + self._options.seconds:
                self._plane_is_up()
                await follower.changed(seconds=0.5)
                result.hyperjobs = follower.hyperjobs
                before, news = news, [_news(each) for each in result.hyperjobs]
                if news != before:
                    since = time.monotonic()
                if screen is not None:
                    elapsed = f"{time.monotonic() - result.started:.0f} s"
                    screen.update(view.screen(result.hyperjobs, follower.clusters, elapsed))
                else:
                    self._print_transitions(result.hyperjobs, shown, result.started)
                if not explained and (waiting := view.waiting_in_line(result.hyperjobs)):
                    explained = True
                    await self._explain(kube, waiting)
                if applying.done():
                    applying.result()
                if applying.done() and result.finished:
                    return

    async def _explain(self, kube: Kube, summary: Summary) -> None:
        """Print the output of `kubectl hyperjob why` for a HyperJob that waits."""
        namespace, name = summary.namespace, summary.name
        evidence = await gather(kube, namespace, name)
        self._say(f"\n$ kubectl hyperjob why {name} -n {namespace}")
        for line in why_view.explanation_lines(explain(evidence), [], evidence.now, str):
            self._console.print(line, soft_wrap=True)
        self._say("")

    def _print_transitions(
        self, hyperjobs: Sequence[Summary], shown: dict[str, str], started: float
    ) -> None:
        for summary in hyperjobs:
            news = _news(summary)
            if shown.get(summary.key) != news:
                shown[summary.key] = news
                self._say(f"{time.monotonic() - started:6.1f} s  {view.transition(summary)}")

    def _plane_is_up(self) -> None:
        assert self._plane is not None, "the plane is not started"
        self._plane.check()

    async def _report(self, result: DemoResult) -> None:
        """Print the trees, logs of processes, the table of HyperJobs, and what to try next."""
        if self._options.output == "json":
            return
        width = self._console.width if self._console.is_terminal else sys.maxsize
        for each in result.hyperjobs:
            for line in tree.tree_lines(each, {}, {}):
                line.truncate(width, overflow="ellipsis")
                self._console.print(line, soft_wrap=True)
            if self._options.logs:
                await self._logs(each)
        self._say("\n$ kubectl get hyperjobs -A -o wide")
        table = await kubectl(self._kubeconfig, "get", "hyperjobs", "-A", "-o", "wide")
        self._say("\n".join(line[:width].rstrip() for line in table.rstrip().splitlines()))
        unfinished = [each.key for each in result.hyperjobs if not each.has_ended]
        if unfinished:
            self._say(
                f"\nNo change for {self._options.seconds:.0f} s, and not finished:"
                f" {', '.join(unfinished)}."
                "  STATUS and MESSAGE above say why."
            )
        else:
            count = len(result.hyperjobs)
            noun = "HyperJob" if count == 1 else "HyperJobs"
            self._say(f"\n{count} {noun} ended after {result.seconds:.1f} s.")
        if self._options.keep:
            self._say(
                view.what_to_try(
                    self._kubeconfig,
                    Path(sys.executable).parent,
                    data_file(f"examples/{view.EXAMPLE}").parent,
                )
            )
        else:
            self._say("To keep the clusters running afterwards: hyperjob demo --keep")

    async def _logs(self, summary: Summary) -> None:
        """Print the last lines of each container of a HyperJob."""
        words = ("logs", summary.name, "-n", summary.namespace, "--tail", "4")
        self._say(f"\n$ kubectl hyperjob {' '.join(words)}")
        command = (sys.executable, "-m", "hyperjob", *words, "--kubeconfig", str(self._kubeconfig))
        try:
            text = await run_once("kubectl hyperjob logs", *command)
        except StackError as error:
            text = str(error)
        for line in text.splitlines():
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    async def _hold(self) -> None:
        assert self._plane is not None, "the plane is not started"
        await self._plane.failure()
