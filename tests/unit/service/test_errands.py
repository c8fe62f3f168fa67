from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest

from viewkeeper.errors import RefreshError
from viewkeeper.service.errands import Errands


def asked(errands: Errands, work) -> tuple[threading.Thread, list[object]]:
    """Asks in a thread of its own; what came of it."""
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(errands.ask(work))
        except Exception as error:
            found.append(error)

    before = errands._waiting.qsize()
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    while thread.is_alive() and errands._waiting.qsize() == before:
        thread.join(0.01)
    return thread, found


def test_done_in_the_thread_of_the_service():
    errands = Errands()
    thread, found = asked(errands, threading.get_ident)
    errands.run()
    thread.join(5)
    assert found == [threading.get_ident()]


def test_what_goes_wrong_is_told_to_who_asked_and_to_nobody_else():
    errands = Errands()
    thread, found = asked(errands, lambda: 1 // 0)
    errands.run()
    thread.join(5)
    assert isinstance(found[0], ZeroDivisionError)


def test_an_interruption_ends_both():
    errands = Errands()

    def interrupted() -> None:
        raise KeyboardInterrupt

    errands._waiting.put((Future(), interrupted))
    with pytest.raises(KeyboardInterrupt):
        errands.run()


def test_nobody_waits_for_a_service_that_has_ended():
    errands = Errands()
    thread, found = asked(errands, lambda: 1)
    errands.close()
    thread.join(5)
    assert isinstance(found[0], RefreshError)
    with pytest.raises(RefreshError):
        errands.ask(lambda: 1)


def test_who_waited_too_long_keeps_nobody_else_from_being_told_of_the_end():
    errands = Errands()
    with pytest.raises(RefreshError, match="busy"):
        errands.ask(lambda: 1, patience=0.01)
    thread, found = asked(errands, lambda: 1)
    errands.close()
    thread.join(5)
    assert isinstance(found[0], RefreshError)
    assert found[0].code == "VK-SERVICE-ENDED"
