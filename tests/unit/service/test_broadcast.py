from __future__ import annotations

import threading

from viewkeeper.events import EpochPublished
from viewkeeper.service.broadcast import Broadcast


def test_everybody_hears_everything_since_they_listen():
    broadcast = Broadcast()
    broadcast.publish(EpochPublished(1))
    with broadcast.subscribe() as one, broadcast.subscribe() as other:
        broadcast.publish(EpochPublished(2))
        assert one.get(0) == other.get(0) == EpochPublished(2)
        assert one.get(0) is None
    broadcast.publish(EpochPublished(3))
    assert one.get(0) is None
    assert one.closed


def test_who_does_not_keep_up_loses_the_oldest_and_knows():
    broadcast = Broadcast()
    with broadcast.subscribe(size=2) as slow:
        for epoch in range(5):
            broadcast.publish(EpochPublished(epoch))
        assert slow.missed == 3
        assert [slow.get(0), slow.get(0)] == [EpochPublished(3), EpochPublished(4)]


def test_who_waits_is_woken_by_an_event_and_by_the_end():
    broadcast = Broadcast()
    heard: list[object] = []
    with broadcast.subscribe() as listener:

        def listen() -> None:
            heard.extend([listener.get(10), listener.get(10)])

        thread = threading.Thread(target=listen)
        thread.start()
        broadcast.publish(EpochPublished(1))
        broadcast.close()
        thread.join(10)
    assert heard == [EpochPublished(1), None]
