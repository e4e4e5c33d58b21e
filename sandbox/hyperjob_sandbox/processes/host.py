"""The parent of all container processes, a small program with Python's standard library only.

The program reads commands as JSON lines from standard input and writes events as JSON lines to
standard output. When standard input ends, since the sandbox has ended or was killed, the program
kills all its descendants and exits. It forks for every container: a small program forks quickly.

Commands:
  {"op": "start", "id": ID, "argv": [...], "env": {...}, "cwd": PATH, "log": PATH, "path": PATH,
   "log_limit": BYTES, "memory": BYTES or null, "mounts": [[SOURCE, TARGET, READ_ONLY], ...],
   "scratch": FOLDER, "hostname": NAME}  the last three only with permitted namespaces
  {"op": "signal", "id": ID, "signal": NUMBER}
  {"op": "namespaces"}                   reports whether a mount namespace is permitted
Events:
  {"event": "started", "id": ID, "pid": PID}
  {"event": "refused", "id": ID, "code": EXIT_CODE, "error": TEXT}
  {"event": "exited", "id": ID, "code": EXIT_CODE}         128 + n after signal n
  {"event": "namespaces", "permitted": BOOL, "error": TEXT}
"""

import ctypes
import json
import os
import resource
import selectors
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

Command = dict[str, Any]
MARK = "HYPERJOB_SANDBOX_CONTAINER"
_NEW_NAMESPACE, _NEW_USER = 0x00020000 | 0x04000000, 0x10000000  # mounts and host name
_BIND, _RECURSIVE, _PRIVATE, _REMOUNT, _READ_ONLY = 4096, 16384, 1 << 18, 32, 1
_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
_CHUNK = 65536
_LONGEST_LINE = 1 << 20
_libc = ctypes.CDLL(None, use_errno=True)


class Host:
    """Starts, observes and ends containers, in a single thread."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.leaders: dict[str, int] = {}
        self.containers: dict[int, tuple[str, int, Log]] = {}
        self.ended = False
        self.inbox = b""

    def run(self) -> None:
        """Serve until standard input ends; then kill the remaining processes."""
        _libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        read_end, write_end = os.pipe()
        for end in (read_end, write_end):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.set_blocking(0, False)
        self.selector.register(0, selectors.EVENT_READ, self.commands)
        self.selector.register(read_end, selectors.EVENT_READ, lambda: self.children(read_end))
        while not self.ended:
            for key, _ in self.selector.select():
                key.data()
        kill_descendants()

    def commands(self) -> None:
        """Read the available commands from standard input."""
        try:
            data = os.read(0, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.ended = True
            return
        *lines, self.inbox = (self.inbox + data).split(b"\n")
        for line in lines:
            self.command(json.loads(line))

    def command(self, asked: Command) -> None:
        """Carry out a command."""
        if asked["op"] == "start":
            self.start(asked)
        elif asked["op"] == "signal":
            pid = self.leaders.get(asked["id"])
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.killpg(pid, asked["signal"])
        elif asked["op"] == "namespaces":
            self.try_namespaces()

    def start(self, asked: Command) -> None:
        """Fork a container; report whether its program could be started."""
        try:
            log = Log(asked["log"], asked["log_limit"])
        except OSError as error:  # the folder of a pod goes with the pod
            say(event="refused", id=asked["id"], code=128, error=f"log: {error.strerror}")
            return
        output_read, output_write = os.pipe()
        # The exec closes this pipe; a failed child writes its error to it.
        error_read, error_write = os.pipe()
        pid = os.fork()
        if not pid:
            become(asked, output_write, error_write)
        os.close(output_write)
        os.close(error_write)
        failure = b""
        while chunk := os.read(error_read, _CHUNK):
            failure += chunk
        os.close(error_read)
        if failure:
            log.close()
            os.close(output_read)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
            code, _, text = failure.decode(errors="replace").partition(" ")
            say(event="refused", id=asked["id"], code=int(code), error=text)
            return
        os.set_blocking(output_read, False)
        self.selector.register(
            output_read, selectors.EVENT_READ, lambda: self.output(output_read, log)
        )
        self.leaders[asked["id"]] = pid
        self.containers[pid] = asked["id"], output_read, log
        say(event="started", id=asked["id"], pid=pid)

    def output(self, pipe: int, log: "Log") -> None:
        """Copy the output of a container to its log."""
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            log.write(data)
        else:
            self.forget(pipe, log)

    def forget(self, pipe: int, log: "Log") -> None:
        """Close the pipe and the log of a container."""
        with suppress(KeyError, ValueError):
            self.selector.unregister(pipe)
            os.close(pipe)
            log.close()

    def children(self, pipe: int) -> None:
        """Collect the children that have ended."""
        with suppress(BlockingIOError):
            while os.read(pipe, _CHUNK):
                pass
        ended = {}
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] in self.containers:
                    ended[found[0]] = os.waitstatus_to_exitcode(found[1])
        for pid in ended:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        # Reading the process table is slow: one read serves all ended children.
        kill_marked({self.containers[pid][0] for pid in ended})
        for pid, code in ended.items():
            self.exited(pid, code)

    def exited(self, pid: int, code: int) -> None:
        """Report the end of a container after its last process has ended."""
        name, pipe, log = self.containers.pop(pid)
        self.leaders.pop(name, None)
        while pipe in self.selector.get_map():  # the rest of its output
            before = log.written
            self.output(pipe, log)
            if log.written == before:
                self.forget(pipe, log)
                break
        say(event="exited", id=name, code=code if code >= 0 else 128 - code)

    def try_namespaces(self) -> None:
        """Report whether a child may have its own mount namespace."""
        read_end, write_end = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                enter_namespace()
                os._exit(0)
            except OSError as error:
                os.write(write_end, str(error).encode())
                os._exit(1)
        os.close(write_end)
        why_not = os.read(read_end, _CHUNK).decode()
        os.close(read_end)
        _, status = os.waitpid(pid, 0)
        say(event="namespaces", permitted=status == 0, error=why_not)


class Log:
    """A log in the format of CRI, `TIME STREAM F TEXT`; a full log drops its older half."""

    def __init__(self, path: str, limit: int) -> None:
        self.path, self.limit, self.partial = path, limit, b""
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115, closed at the end of the container
        self.size = self.file.tell()
        self.written = 0

    def write(self, data: bytes) -> None:
        """Add output, and write complete lines."""
        self.written += len(data)
        *lines, self.partial = (self.partial + data).split(b"\n")
        if len(self.partial) > _LONGEST_LINE:
            lines.append(self.partial)
            self.partial = b""
        self.put(lines)

    def put(self, lines: list[bytes]) -> None:
        """Write lines with the present time."""
        if not lines:
            return
        now = time.time_ns()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9)).encode()
        stamp += b".%09dZ stdout F " % (now % 10**9)
        room = self.limit - self.size
        data = bytearray()
        for line in lines:
            entry = stamp + line + b"\n"
            if len(data) + len(entry) > room:
                self.add(data)
                self.rotate()
                room, data = self.limit, bytearray()
            data += entry
        self.add(data)

    def add(self, data: bytes | bytearray) -> None:
        """Write to the file."""
        self.file.write(data)
        self.size += len(data)

    def rotate(self) -> None:
        """Rename the full file to the older half."""
        self.size = 0
        # The folder of the pod may be deleted: no command reads the log then.
        with suppress(FileNotFoundError):
            os.replace(self.path, self.path + ".1")
            self.file.close()
            self.file = open(self.path, "ab", buffering=0)  # noqa: SIM115, as above

    def close(self) -> None:
        """Write an incomplete last line, and close the file."""
        if self.partial:
            self.put([self.partial])
            self.partial = b""
        self.file.close()


def become(asked: Command, output: int, errors: int) -> NoReturn:
    """Replace the forked child by the container's program; never returns."""
    try:
        os.setsid()
        _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        signal.set_wakeup_fd(-1)
        for number in (
            signal.SIGINT,
            signal.SIGTERM,
            signal.SIGHUP,
            signal.SIGCHLD,
            signal.SIGPIPE,
        ):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if asked["hostname"]:
            enter_namespace()
            with suppress(OSError):
                set_hostname(asked["hostname"])
            mounts = Mounts(asked["scratch"])
            for source, target, read_only in asked["mounts"]:
                mounts.bind(source, target, read_only=read_only)
        try:
            os.chdir(asked["cwd"])
        except OSError as error:
            raise OSError(128, f"workingDir {asked['cwd']}: {error.strerror}") from None
        if asked["memory"]:
            resource.setrlimit(resource.RLIMIT_DATA, (asked["memory"], asked["memory"]))
        os.closerange(3, errors)
        os.closerange(errors + 1, 65536)
        env = {**asked["env"], MARK: asked["id"]}
        os.environ["PATH"] = asked["path"]
        os.execvpe(asked["argv"][0], asked["argv"], env)
    except FileNotFoundError:
        fail(errors, 127, f'exec: "{asked["argv"][0]}": executable file not found in $PATH')
    except PermissionError as error:
        fail(errors, 126, f'exec: "{asked["argv"][0]}": {error.strerror}')
    except BaseException as error:  # noqa: BLE001, the child must not go on as a second host
        fail(errors, 128, str(getattr(error, "strerror", None) or error))
    os._exit(128)


def fail(pipe: int, code: int, text: str) -> NoReturn:
    """End a child whose program could not be started."""
    os.write(pipe, f"{code} {text}".encode())
    os._exit(code)


def enter_namespace() -> None:
    """Enter a mount namespace, with a user namespace if the process needs one."""
    if _libc.unshare(_NEW_NAMESPACE):
        user, group = os.getuid(), os.getgid()
        check(_libc.unshare(_NEW_USER | _NEW_NAMESPACE))
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    check(_libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None))


class Mounts:
    """The mounts of a container; creates mount points only in the sandbox's own folders."""

    def __init__(self, scratch: str) -> None:
        self.scratch, self.mirrored = scratch, 0
        self.volumes: list[str] = []
        self.own: set[str] = set()

    def bind(self, source: str, target: str, *, read_only: bool) -> None:
        """Bind-mount `source` at `target`."""
        target = self.ensure(target, is_folder=os.path.isdir(source))
        mount(source, target, _BIND | _RECURSIVE)
        if read_only:
            with suppress(
                OSError
            ):  # the kernel forbids a user namespace to change some flags of a mount
                mount(source, target, _BIND | _REMOUNT | _READ_ONLY)
        self.volumes.append(target + "/")

    def ensure(self, target: str, *, is_folder: bool) -> str:
        """Return the path of the target; create the mount point if it is missing."""
        if os.path.exists(target):
            return os.path.realpath(target)
        parent = self.ensure(os.path.dirname(target), is_folder=True)
        if parent not in self.own and not (parent + "/").startswith(tuple(self.volumes)):
            self.mirror(parent)
        target = os.path.join(parent, os.path.basename(target))
        make(target, is_folder=is_folder)
        if parent in self.own and is_folder:
            self.own.add(target)
        return target

    def mirror(self, folder: str) -> None:
        """Mount a tmpfs over a folder of this machine, with the same entries."""
        base = os.path.join(self.scratch, f"mirror-{self.mirrored}")
        self.mirrored += 1
        os.makedirs(base, exist_ok=True)
        mount("none", base, 0, kind="tmpfs", data="mode=755")
        for entry in os.scandir(folder):
            copy = os.path.join(base, entry.name)
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), copy)
            elif entry.path != base:
                make(copy, is_folder=entry.is_dir())
                mount(entry.path, copy, _BIND | _RECURSIVE)
        if folder == "/":
            os.chroot(base)
            os.chdir("/")
        else:
            mount(base, folder, _BIND | _RECURSIVE)
        self.own.add(folder)


def make(target: str, *, is_folder: bool) -> None:
    """Create a mount point."""
    if is_folder:
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))


def mount(
    source: str, target: str, flags: int, *, kind: str | None = None, data: str | None = None
) -> None:
    """Mount a file system or a folder; raise OSError."""
    check(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind else None,
            flags,
            data.encode() if data else None,
        ),
        f"mount {target}",
    )


def check(result: int, what: str = "unshare") -> None:
    """Raise OSError if a call of the C library has failed."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def set_hostname(name: str) -> None:
    """Set the host name of this process and its children."""
    data = name.encode()[:64]
    check(_libc.sethostname(data, len(data)), "sethostname")


def write(path: str, text: str) -> None:
    """Write a file of the kernel."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def kill_marked(names: set[str]) -> None:
    """Kill the processes of containers outside their process groups."""
    marks = {f"{MARK}={name}".encode() for name in names}
    for pid in pids() if marks else ():
        with suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                belongs = not marks.isdisjoint(file.read().split(b"\0"))
            if belongs:
                os.kill(pid, signal.SIGKILL)


def kill_descendants() -> None:
    """Kill all descendants of this process until none is left; orphans become its children."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        below = descendants()
        if not below:
            return
        for pid in below:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def descendants() -> set[int]:
    """Return the descendants of this process."""
    parents: dict[int, int] = {}
    for pid in pids():
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            parents[pid] = int(file.read().rpartition(b")")[2].split()[1])
    found, before = {os.getpid()}, 0
    while len(found) > before:
        before = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {os.getpid()}


def pids() -> list[int]:
    """Return all processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def say(**event: object) -> None:
    """Report one event."""
    data = json.dumps(event).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    try:
        Host().run()
    except (BrokenPipeError, KeyboardInterrupt):
        kill_descendants()
        sys.exit(1)
