"""A container of a pod: start, probes, restarts with back-off, end, and its status."""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_sandbox.apiserver.state.clock import wire_now
from hyperjob_sandbox.processes import probes
from hyperjob_sandbox.processes.environment import MissingSourceError, environment
from hyperjob_sandbox.processes.expansion import expand
from hyperjob_sandbox.processes.hostclient import Command, Process, RefusedError
from hyperjob_sandbox.processes.images import image_of
from hyperjob_sandbox.processes.node import PodPlace
from hyperjob_sandbox.processes.volumes import Mount, UnsupportedVolumeError, mounts, without_mounts

_FIRST_BACKOFF: Final = 10.0
_LONGEST_BACKOFF: Final = 300.0
_STEADY_SECONDS: Final = 600.0
"""Running time after which the back-off of a container is reset, as in a kubelet."""
_RETRY_SECONDS: Final = 1.0


class ConfigError(Exception):
    """A container that cannot be created yet; `reason` is a reason of the kubelet."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True, eq=False)
class Container:
    """A container, which calls `changed` after each change of its status."""

    spec: Object
    place: PodPlace
    changed: Callable[[], None]
    restart_policy: str
    state: Object = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last_state: Object = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    started: bool = False
    has_run: bool = False
    ending: bool = False
    process: Process | None = None
    _probes: "list[asyncio.Task[None]]" = field(default_factory=list)
    _unhealthy: bool = False

    @property
    def name(self) -> str:
        """Return the container's name."""
        return str(self.spec["name"])

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of a container that has ended, None while it has not."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    @property
    def log(self) -> Path:
        """Return the path of the log of the present instance."""
        return self._log(self.restarts)

    @property
    def previous_log(self) -> Path | None:
        """Return the path of the log of the previous instance, None for the first one."""
        return self._log(self.restarts - 1) if self.restarts else None

    def status(self) -> Object:
        """Return the entry of `status.containerStatuses`."""
        entry: Object = {
            "name": self.name,
            "image": self.spec.get("image", ""),
            "imageID": "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": self.state,
        }
        if self.last_state:
            entry["lastState"] = self.last_state
        return entry

    async def run(self) -> int:
        """Run the container until its restart policy ends it; return its exit code."""
        backoff = 0.0
        loop = asyncio.get_running_loop()
        while True:
            since = loop.time()
            code = await self._once()
            if self.ending or not self._restarts_after(code):
                return code
            if loop.time() - since > _STEADY_SECONDS:
                backoff = 0.0
            await self._back_off(backoff)
            backoff = min(max(_FIRST_BACKOFF, backoff * 2), _LONGEST_BACKOFF)

    async def stop(self, *, grace: float) -> None:
        """Run preStop and send SIGTERM; send SIGKILL `grace` seconds after the call began."""
        self.ending = True
        process = self.process
        if process is None or process.exited.done():
            return
        self.place.event("Normal", "Killing", f"Stopping container {self.name}")
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                hook = (self.spec.get("lifecycle") or {}).get("preStop")
                if hook:
                    await probes.attempt(
                        hook, self.spec, address=self.place.address, run=self.exec, timeout=grace
                    )
                process.signal(signal.SIGTERM)
                await asyncio.wait((process.exited,))
        await process.kill()

    async def exec(self, command: Sequence[str]) -> int:
        """Run a command with the container's environment and mounts; return the exit code."""
        try:
            prepared = self._command(list(command), [], log=self._log_of("probe"))
            process = await self.place.host.start(f"{self._id}.probe", prepared)
        except (RefusedError, ConfigError):
            return 126
        try:
            return await asyncio.shield(process.exited)
        except asyncio.CancelledError:
            await process.kill()
            raise

    async def _once(self) -> int:
        started_at = wire_now()
        try:
            process = await self._start()
        except RefusedError as error:
            self.place.event("Warning", "Failed", f"Error: {error}")
            return self._ended(error.code, started_at, "StartError", str(error))
        started_at = wire_now()
        self.process, self.has_run, self._unhealthy = process, True, False
        self.started = "startupProbe" not in self.spec
        self.ready = self.started and "readinessProbe" not in self.spec
        self.state = {"running": {"startedAt": started_at}}
        self.changed()
        self.place.event("Normal", "Started", f"Started container {self.name}")
        try:
            await self._post_start(process)
            self._start_probes()
            code = await asyncio.shield(process.exited)
        except asyncio.CancelledError:
            await process.kill()  # it may write into the folders that are removed next
            raise
        finally:
            for probe in self._probes:
                probe.cancel()
            await asyncio.gather(*self._probes, return_exceptions=True)
            self._probes.clear()
        return self._ended(code, started_at, "Completed" if code == 0 else "Error", "")

    async def _start(self) -> Process:
        """Start the process as soon as all objects that the container refers to exist."""
        while True:
            try:
                command = self._command(
                    list(self.spec.get("command") or ()),
                    list(self.spec.get("args") or ()),
                    log=self.log,
                )
            except ConfigError as error:
                state = {"waiting": {"reason": error.reason, "message": str(error)}}
                if state != self.state:
                    self.state = state
                    self.changed()
                    self.place.event("Warning", "Failed", f"Error: {error}")
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            return await self.place.host.start(self._id, command)

    def _command(self, command: list[str], args: list[str], *, log: Path) -> Command:
        """Return the command of the process; raise ConfigError for a missing object or command."""
        place = self.place
        try:
            variables = environment(place.pod, self.spec, place.sources())
            seen = mounts(self.spec, place.volumes, variables)
        except MissingSourceError as error:
            raise ConfigError("CreateContainerConfigError", str(error)) from None
        except UnsupportedVolumeError as error:
            raise ConfigError("CreateContainerError", str(error)) from None
        image = image_of(str(self.spec.get("image", "")), place.images)
        argv = [*image.prefix, *(expand(each, variables) for each in (*command, *args))]
        if not argv:
            raise ConfigError(
                "CreateContainerError",
                "no command specified: a pod that is a process runs the container's command and"
                " args, the entrypoint of an image is not known",
            )
        variables = {
            "PATH": image.path,
            "HOME": str(place.folders.pod),
            "HOSTNAME": place.hostname,
            "TMPDIR": str(place.folders.temporary),
            "LANG": "C.UTF-8",
            **({"VIRTUAL_ENV": image.virtualenv} if image.virtualenv else {}),
            **place.slots.take(place.pod, self.spec),
            **variables,
        }
        cwd = str(self.spec.get("workingDir") or place.folders.pod / "work")
        if not place.host.permitted:
            argv = [without_mounts(place.addressed(each), seen) for each in argv]
            variables = {
                key: without_mounts(place.addressed(value), seen)
                for key, value in variables.items()
            }
            cwd = without_mounts(cwd, seen)
        else:
            hosts = place.network.hosts_file(place.cluster, place.namespace)
            seen = [Mount(source=hosts, target="/etc/hosts", read_only=True), *seen]
        return Command(
            argv=argv,
            env=variables,
            cwd=cwd,
            path=variables["PATH"],
            log=log,
            scratch=place.folders.pod / "scratch",
            hostname=place.hostname if place.host.permitted else "",
            mounts=seen if place.host.permitted else (),
            memory=_memory(self.spec),
        )

    async def _post_start(self, process: Process) -> None:
        hook = (self.spec.get("lifecycle") or {}).get("postStart")
        failure = hook and await probes.attempt(
            hook, self.spec, address=self.place.address, run=self.exec, timeout=60
        )
        if failure:
            self.place.event("Warning", "FailedPostStartHook", f"PostStartHook failed: {failure}")
            process.signal(signal.SIGKILL)

    def _start_probes(self) -> None:
        startup = self.spec.get("startupProbe")
        if startup:
            self._watch("Startup", startup, self._on_startup)
        else:
            self._start_later_probes()

    def _start_later_probes(self) -> None:
        if readiness := self.spec.get("readinessProbe"):
            self._watch("Readiness", readiness, self._on_readiness)
        if liveness := self.spec.get("livenessProbe"):
            self._watch("Liveness", liveness, self._on_liveness)

    def _watch(self, kind: str, spec: Object, told: Callable[[bool], None]) -> None:
        probe = probes.Probe.of(spec)
        watching = probes.watch(
            probe,
            self.spec,
            address=self.place.address,
            run=self.exec,
            told=told,
            failed=lambda why: self.place.event(
                "Warning", "Unhealthy", f"{kind} probe failed: {why}"
            ),
        )
        self._probes.append(asyncio.create_task(watching, name=f"probe/{self._id}"))

    def _on_startup(self, passed: bool) -> None:
        if not passed:
            self._kill("startup")
            return
        self.started = True
        self.ready = "readinessProbe" not in self.spec
        self.changed()
        self._start_later_probes()

    def _on_readiness(self, passed: bool) -> None:
        self.ready = passed
        self.changed()

    def _on_liveness(self, passed: bool) -> None:
        if not passed:
            self._kill("liveness")

    def _kill(self, probe: str) -> None:
        """Kill the present instance as unhealthy; the restart policy decides on a restart."""
        self._unhealthy = True
        self.place.event(
            "Normal",
            "Killing",
            f"Container {self.name} failed {probe} probe, will be restarted",
        )
        if self.process is not None:
            self.process.signal(signal.SIGTERM)
            process, grace = self.process, self.place.grace_seconds
            asyncio.get_running_loop().call_later(grace, lambda: process.signal(signal.SIGKILL))

    def _ended(self, code: int, started_at: str, reason: str, message: str) -> int:
        if self._unhealthy and code == 0:
            code = 137
        self.ready = self.started = False
        ended: Object = {
            "exitCode": code,
            "reason": reason,
            "startedAt": started_at,
            "finishedAt": wire_now(),
        }
        if message:
            ended["message"] = message
        elif code:
            ended["message"] = self._termination_message()
        self.state = {"terminated": {key: value for key, value in ended.items() if value != ""}}
        self.changed()
        return code

    def _termination_message(self) -> str:
        """Return the end of the log if the terminationMessagePolicy is FallbackToLogsOnError."""
        if self.spec.get("terminationMessagePolicy") != "FallbackToLogsOnError":
            return ""
        try:
            lines = self.log.read_bytes().split(b"\n")[-81:]
        except OSError:
            return ""
        text = b"\n".join(line.split(b" ", 3)[-1] for line in lines)
        return text.decode(errors="replace")[-2048:]

    def _restarts_after(self, code: int) -> bool:
        return self.restart_policy == "Always" or (self.restart_policy == "OnFailure" and code != 0)

    async def _back_off(self, seconds: float) -> None:
        self.last_state = self.state
        if seconds:
            message = f"back-off {seconds:.0f}s restarting failed container={self.name}"
            self.state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
            self.changed()
            pod = self.place.pod["metadata"]["name"]
            self.place.event(
                "Warning",
                "BackOff",
                f"Back-off restarting failed container {self.name} in pod {pod}",
            )
            await asyncio.sleep(seconds / self.place.speed)
        self.restarts += 1
        if self.restarts > 1:  # a kubelet keeps only the log of the previous instance
            oldest = self._log(self.restarts - 2)
            for path in (oldest, oldest.with_name(f"{oldest.name}.1")):
                path.unlink(missing_ok=True)

    @property
    def _id(self) -> str:
        return f"{self.place.pod['metadata']['uid']}/{self.name}"

    def _log(self, instance: int) -> Path:
        return self._log_of(str(instance))

    def _log_of(self, what: str) -> Path:
        folder = self.place.folders.pod / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.name}-{what}.log"


def _memory(spec: Mapping[str, object]) -> int | None:
    resources = spec.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    amount = (limits or {}).get("memory")
    return None if amount is None else Quantity.parse(amount).nano // NANO
