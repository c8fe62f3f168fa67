"""What happens, told to whoever listens: the console's pages, by server-sent events.

A listener that does not keep up loses the oldest events and is told how many; the refresh never waits.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType

from viewkeeper.events import Event

SIZE = 1000


class Subscription:
    """The events since one began to listen. A context manager: it ends with the block."""

    def __init__(self, broadcast: Broadcast, size: int) -> None:
        self._broadcast = broadcast
        self._waiting: deque[Event] = deque(maxlen=size)
        self._changed = threading.Condition()
        self._closed = False
        self.missed = 0
        """Events that were lost since one did not keep up."""

    def get(self, timeout: float | None = None) -> Event | None:
        """The next event; ``None`` if none came in time, or none will come any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed, timeout)
            return self._waiting.popleft() if self._waiting else None

    @property
    def closed(self) -> bool:
        """Whether nothing more will come: what is waiting can still be got."""
        return self._closed

    def close(self) -> None:
        self._broadcast.forget(self)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def put(self, event: Event) -> None:
        """For the broadcast alone."""
        with self._changed:
            self.missed += len(self._waiting) == self._waiting.maxlen
            self._waiting.append(event)
            self._changed.notify_all()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Broadcast:
    """Threads may publish and subscribe at any time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Subscription] = []

    def subscribe(self, size: int = SIZE) -> Subscription:
        """Listen from now on; at most ``size`` events wait."""
        listener = Subscription(self, size)
        with self._lock:
            self._listeners.append(listener)
        return listener

    def publish(self, event: Event) -> None:
        """Tell everybody who listens."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.put(event)

    def forget(self, listener: Subscription) -> None:
        """It listens no longer."""
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def close(self) -> None:
        """Nothing more will be told."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            listener.close()
