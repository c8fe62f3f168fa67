from __future__ import annotations

import threading
import time

from viewkeeper.service.outbox import Outbox


def test_in_order_and_whole_when_it_is_closed():
    got: list[int] = []
    outbox = Outbox("test", got.append, lambda: None)
    for each in range(100):
        outbox.put(each)
    outbox.close()
    assert got == list(range(100))


def test_a_sink_that_hangs_delays_nobody_and_what_is_lost_is_counted(caplog):
    stuck, lost = threading.Event(), list[int]()
    outbox = Outbox("test", lambda item: (stuck.wait(20), None)[1], lambda: lost.append(1), size=10)
    started = time.monotonic()
    for each in range(100):
        outbox.put(each)
    assert time.monotonic() - started < 1
    assert 85 <= len(lost) <= 90
    assert caplog.text.count("too much waits") == 1, "not every time"
    stuck.set()
    outbox.close()


def test_what_cannot_be_sent_before_the_end_is_counted_and_given_back(caplog):
    stuck, lost = threading.Event(), list[int]()
    outbox = Outbox("test", lambda item: (stuck.wait(20), None)[1], lambda: lost.append(1), 3, patience=0.1)
    for each in range(3):
        outbox.put(each)
    assert outbox.close() == [0, 1, 2]
    assert len(lost) == 3
    assert "3 could not be sent before the end" in caplog.text
    stuck.set()


def test_a_delivery_gets_the_time_that_it_may_take():
    got: list[int] = []
    outbox = Outbox("test", lambda item: (time.sleep(5.2), got.append(item))[1], lambda: None, patience=10)
    outbox.put(1)
    assert outbox.close() == []
    assert got == [1]
