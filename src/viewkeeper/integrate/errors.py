"""What the integrator halts on: never patched over, for a patch would be a guess."""

from __future__ import annotations

from viewkeeper.errors import ViewkeeperError


class IntegrationError(ViewkeeperError):
    """A source or a channel broke what the algorithms rely on; the view is as it was last published.

    ====================  ==========================================================================
    VK-SWEEP-GAP          a message is missing: lost, or overtaken by this one
    VK-SWEEP-REPEATED     a message came again, or its source came back with an older state
    VK-SWEEP-OLDER        a source says that it sent less than was received: its state is older
    VK-SWEEP-UNASKED      an answer to no open query
    VK-SWEEP-UNANSWERED   a query was never answered
    VK-SWEEP-INCOMPLETE   a part of a global transaction never came
    VK-SWEEP-UNKNOWN      a message about a source or relation that the view does not read, or an
                          answer that contains an update which has not arrived
    ====================  ==========================================================================
    """

    code = "VK-SWEEP"
