"""A command in a running container: `kubectl exec`, by Kubernetes' channels over a WebSocket.

A shell of the container opens the pipes, or the terminal, of this process, and becomes the command.
"""

import asyncio
import enum
import fcntl
import json
import os
import struct
import tempfile
import termios
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import WSMsgType, web

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, decoded, integer
from hyperjob_sandbox.processes.probes import Exec

_SHELL: Final = 'i=$1 o=$2 e=$3; shift 3; exec <"$i" >"$o" 2>"$e"; printf "\\0"; exec "$@"'
"""What the container runs; the byte 0 says that it has opened its ends."""
_LOOK_SECONDS: Final = 0.02
_BLOCK: Final = 1 << 16


class _Channel(enum.IntEnum):
    STDIN, STDOUT, STDERR, STATUS, RESIZE = range(5)
    CLOSE = 255


@dataclass(slots=True)
class _Ends:
    """The file descriptors of this process by channel, and the paths that the command opens."""

    numbers: dict[int, int]
    paths: Sequence[str]
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False


async def converse(
    socket: web.WebSocketResponse, run: Exec, command: Sequence[str], *, stdin: bool, tty: bool
) -> None:
    """Run a command in a container, and carry its input, its output and its end."""
    with ExitStack() as stack:
        ends = _terminal(stack) if tty else _pipes(stack, stdin=stdin)
        words = ["sh", "-c", _SHELL, "sh", *ends.paths, *command]
        task = asyncio.ensure_future(run(words))
        task.add_done_callback(lambda _: setattr(ends, "over", True))
        outputs = [each for each in (_Channel.STDOUT, _Channel.STDERR) if each in ends.numbers]
        said = [asyncio.ensure_future(_say(socket, ends, each)) for each in outputs]
        heard = asyncio.ensure_future(_hear(socket, ends))
        try:
            await asyncio.wait((task, heard), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await asyncio.gather(*said)
                status = json.dumps(_status(task.result())).encode()
                await socket.send_bytes(bytes([_Channel.STATUS]) + status)
        finally:
            for each in (task, heard, *said):
                each.cancel()
            await asyncio.gather(task, heard, *said, return_exceptions=True)


def _pipes(stack: ExitStack, *, stdin: bool) -> _Ends:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hyperjob-exec-")))
    numbers, paths = dict[int, int](), list[str]()
    for channel in (_Channel.STDIN, _Channel.STDOUT, _Channel.STDERR):
        path = folder / str(int(channel))
        if channel is _Channel.STDIN and not stdin:
            paths.append(os.devnull)
            continue
        os.mkfifo(path)
        numbers[channel] = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        paths.append(os.fspath(path))
    stack.callback(lambda: [*map(os.close, numbers.values())])
    return _Ends(numbers, paths)


def _terminal(stack: ExitStack) -> _Ends:
    ours, theirs = os.openpty()
    stack.callback(os.close, ours)
    stack.callback(os.close, theirs)
    os.set_blocking(ours, False)
    return _Ends({_Channel.STDIN: ours, _Channel.STDOUT: ours}, [os.ttyname(theirs)] * 3)


async def _say(socket: web.WebSocketResponse, ends: _Ends, channel: int) -> None:
    """Send what the command writes, until it has ended."""
    while True:
        is_last = ends.over
        try:
            data = os.read(ends.numbers[channel], _BLOCK)
        except BlockingIOError:
            if is_last:
                return
            await asyncio.sleep(_LOOK_SECONDS)
            continue
        if channel == _Channel.STDOUT and not ends.opened.is_set():
            data = data[1:]
            ends.opened.set()
        if data:
            await socket.send_bytes(bytes([channel]) + data)


async def _hear(socket: web.WebSocketResponse, ends: _Ends) -> None:
    """Write what the client sends, until it leaves."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        await ends.opened.wait()
        if channel == _Channel.STDIN:
            await _write(ends, data)
        elif channel == _Channel.RESIZE and ends.numbers:
            size = [integer(at(decoded(data), name)) or 0 for name in ("Height", "Width")]
            with suppress(OSError, struct.error):
                rows = struct.pack("HHHH", *size, 0, 0)
                fcntl.ioctl(ends.numbers[_Channel.STDIN], termios.TIOCSWINSZ, rows)
        elif channel == _Channel.CLOSE and _Channel.STDERR in ends.numbers:
            number = ends.numbers.pop(_Channel.STDIN, None)
            if number is not None:
                os.close(number)


async def _write(ends: _Ends, data: bytes) -> None:
    while data and _Channel.STDIN in ends.numbers:
        try:
            data = data[os.write(ends.numbers[_Channel.STDIN], data) :]
        except BlockingIOError:
            await asyncio.sleep(_LOOK_SECONDS)


def _status(code: int) -> Object:
    """Return the Status of a command that has ended, as a kubelet writes it."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
