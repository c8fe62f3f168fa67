from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from viewkeeper.events import EpochAbandoned, EpochPublished, EpochStarted, Phase, StepFinished
from viewkeeper.service.logs import EventLog, set_up

logger = logging.getLogger("viewkeeper.service")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    ours = logging.getLogger("viewkeeper")
    handlers, level, propagate = list(ours.handlers), ours.level, ours.propagate
    yield
    ours.handlers[:], ours.propagate = handlers, propagate
    ours.setLevel(level)


def test_json_lines_name_epoch_and_view():
    log, out = EventLog(), io.StringIO()
    set_up("json", log, debug=True, stream=out)
    log(EpochStarted(7, ("a", "b")))
    log(StepFinished("a", Phase.COMPUTE, 1.25, 3))
    logging.getLogger("viewkeeper").warning("said by the engine\nin two lines")
    log(EpochPublished(7))
    log.over()
    logger.info("later", extra={"view": "a", "code": "VK-X"})
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line.get("epoch") for line in lines] == [7, 7, 7, 7, None]
    assert lines[0]["views"] == ["a", "b"]
    step = {"view": "a", "phase": "compute", "seconds": 1.25, "rows": 3}
    assert lines[1].items() >= step.items()
    assert (lines[2]["level"], lines[2]["message"]) == ("warning", "said by the engine\nin two lines")
    assert (lines[4]["view"], lines[4]["code"]) == ("a", "VK-X")


def test_text_for_people():
    log, out = EventLog(), io.StringIO()
    set_up("text", log, stream=out)
    log(EpochStarted(7, ("a",)))
    log(EpochAbandoned(7, "division by zero"))
    assert out.getvalue().splitlines()[0].endswith("epoch 7: begins")
    assert out.getvalue().splitlines()[1].endswith("warning: epoch 7: given up: division by zero")


def test_a_traceback_stays_in_its_object():
    out = io.StringIO()
    set_up("json", EventLog(), stream=out)
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("failed")
    (line,) = out.getvalue().splitlines()
    assert "ValueError: no" in json.loads(line)["traceback"]
