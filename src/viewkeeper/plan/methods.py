"""The ways to bring a view up to date, under the names that Labio et al. (2000) gave them.

Aggregates (Section 3.2) are recomputed, or their touched groups get into the storage by one MERGE, by a
delete and an insert, or by writing all groups anew. Bags (Section 3.1) lose rows by their key, or by value;
or all rows that show a key of what changed are replaced, which the paper did not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from viewkeeper.errors import DefinitionError
from viewkeeper.plan.properties import asked_for

PROPERTY = "viewkeeper.install"
"""The table property by which a view's definition pins its method."""


class Method(Enum):
    """How a view's storage gets to its new state."""

    FULLRECOMP = "fullrecomp"
    SDCURSOR = "sdcursor"
    """The touched groups in one MERGE; what the paper's cursor loop with an index is on a lakehouse."""
    SDBATCH = "sdbatch"
    """∇V and ΔV explicit: delete, and append."""
    SDOVERWRITE = "sdoverwrite"
    """All groups written anew, those that are not touched as they were."""
    SDAPPEND = "sdappend"
    """The summary-delta is appended as it is; readers combine the parts of a group, until they are folded."""
    KEYINSTALL = "keyinstall"
    GENINSTALL = "geninstall"
    KEYREPLACE = "keyreplace"
    """Joined rows that show a key of a changed row go, and are made anew: no delta is computed."""


OF_GROUPS = (Method.SDCURSOR, Method.SDBATCH, Method.SDOVERWRITE)
"""Any of them will do at any time. SDAPPEND is another matter: it is how the view is stored."""
OF_BAGS = (Method.KEYINSTALL, Method.GENINSTALL, Method.KEYREPLACE)


def pinned(properties: Mapping[str, str]) -> Method | None:
    """The method that a definition, which was not refused, asks for."""
    asked = asked_for(properties, PROPERTY)
    return None if asked is None else Method(asked)


def refuse_unsuitable(
    view: str,
    properties: Mapping[str, str],
    *,
    groups: bool,
    keyed: bool,
    adds_up: bool = False,
    joined: bool = False,
) -> None:
    """Raise if the method that a definition asks for cannot be had. ``adds_up``: what is kept for a group is
    the sum of what is kept for its parts, deletions among them. ``joined``: the rows are those of a join."""
    asked = asked_for(properties, PROPERTY)
    if asked is None:
        return
    suitable = (*OF_GROUPS, Method.SDAPPEND) if groups else OF_BAGS
    found = next((method for method in suitable if method.value == asked), None)
    if found is None:
        listed = ", ".join(method.value for method in suitable)
        what = "an aggregate" if groups else "no aggregate"
        raise DefinitionError(
            f"view {view}: {PROPERTY} is {asked!r}, but it is {what}",
            code="VK-INSTALL-METHOD",
            hint=f"One of: auto, {listed}. To recompute it always, use REFRESH POLICY full.",
        )
    if found is Method.SDAPPEND and not adds_up:
        raise DefinitionError(
            f"view {view}: {PROPERTY} is 'sdappend', but not all of its aggregates add up",
            code="VK-INSTALL-METHOD",
            hint="Counts, sums and averages do; a minimum or maximum does not survive deletions.",
        )
    if found is Method.KEYINSTALL and not keyed:
        raise DefinitionError(
            f"view {view}: {PROPERTY} is 'keyinstall', but no key of it is known",
            code="VK-INSTALL-METHOD",
            hint="Declare the keys of its tables (Iceberg's identifier fields), and select them.",
        )
    if found is Method.KEYREPLACE and not joined:
        raise DefinitionError(
            f"view {view}: {PROPERTY} is 'keyreplace', but its rows are not those of a join",
            code="VK-INSTALL-METHOD",
            hint="Filters and chosen columns over inner joins can be kept so; 'geninstall' suits all others.",
        )
