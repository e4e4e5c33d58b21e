"""A TCP relay on 127.0.0.1 that a test can cut: its clients then lose the server."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.support.processes import free_port

_CHUNK = 65536


class Relay:
    """Relays connections to a port of 127.0.0.1; refuses them between `cut()` and `remedy()`."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._listener: socket.socket | None = None
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self.remedy()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()

    def remedy(self) -> None:
        """Listen, on the same port as before."""
        assert self._listener is None, "it relays already"
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        self._listener = listener
        self._run(self._accept, listener)

    def cut(self) -> None:
        """Refuse new connections and close open connections."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join(10)

    def _run(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target), timeout=5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                cut = self._listener is not listener
                if not cut:
                    self._pairs.add((near, far))
            if cut:
                near.close()
                far.close()
                return
            self._run(self._relay, near, far)

    def _relay(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        with near, far, selectors.DefaultSelector() as selector:
            for one in other:
                selector.register(one, selectors.EVENT_READ)
            try:
                while True:
                    for key, _ in selector.select():
                        end = next(one for one in other if one is key.fileobj)
                        data = end.recv(_CHUNK)
                        if not data:
                            return
                        other[end].sendall(data)
            except OSError:
                return
            finally:
                with self._lock:
                    self._pairs.discard((near, far))
