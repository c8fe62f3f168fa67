"""``viewkeeper.yml``: what Spark's pipeline format has no word for.

Example::

    connection:
      warehouse: warehouse            # an embedded warehouse, beside this file; or:
      # remote: sc://spark.example:15002
      # catalog: lake
      # ledger: {env: VIEWKEEPER_LEDGER}
    policy: auto
    target_lag: 15 minutes            # or schedule: {cron: 0 6 * * 1-5, time_zone: Europe/Berlin}
    sources:
      orders: {kind: files, options: {path: deliveries/orders, format: csv, header: true}}
    keys:
      stores: [storeID]
    foreign_keys:
      - {table: pos, columns: [storeID], references: stores}
    dependencies:
      - {table: stores, columns: [city], determine: [region]}
    views:
      sR_sales:
        policy: incremental
        target_lag: 5 minutes
        expectations:
          sold: {expect: quantity > 0, on_violation: drop row}
    cubes:
      by:                             # the views by_city_date, by_city, by_date and by_all
        query: SELECT city, date, COUNT(*) AS n FROM pos NATURAL JOIN stores GROUP BY CUBE (city, date)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from viewkeeper.define.definitions import Expectation, OnViolation
from viewkeeper.define.fields import Interval, Name, Reference, Strict
from viewkeeper.define.service_settings import ServiceSettings
from viewkeeper.define.timing import TargetLag, Timing, read_schedule, read_zone
from viewkeeper.sql.quoting import parse_path

Policy = Literal["auto", "incremental", "incremental strict", "full"]
Columns = Annotated[tuple[Name, ...], Field(min_length=1, strict=False)]


class Connection(Strict):
    """Where Spark, the catalog and the ledger are. Nothing given: an embedded warehouse."""

    warehouse: Name | None = None
    """The folder of an embedded warehouse, relative to the project."""
    master: Name | None = None
    """The master of a cluster, such as ``spark://host:7077``; needs a catalog."""
    remote: Name | None = None
    """A Spark Connect server, such as ``sc://host:15002``; needs a catalog."""
    catalog: Name | None = None
    """The catalog that holds the views; Spark must be configured for it."""
    ledger: Reference | None = None
    """The URL of the ledger; beside an embedded warehouse it is in its folder."""

    @model_validator(mode="after")
    def _one_place(self) -> Connection:
        given = [name for name in ("warehouse", "master", "remote") if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} exclude each other")
        if (self.master or self.remote) and not self.catalog:
            raise ValueError(f"{given[0]} needs a catalog beside it")
        return self


class ForeignKey(Strict):
    """Every row's ``columns`` are found in the key of the table that it references."""

    table: Name
    columns: Columns
    references: Name
    """The other table."""
    referenced_columns: Columns | None = None
    """Its columns, where they are not its declared key."""


class Dependency(Strict):
    """Rows that agree on ``columns`` agree on what these determine, such as city → region."""

    table: Name
    columns: Columns
    determine: Columns


class ScheduleSettings(Strict):
    """When a view is refreshed; without a time zone, by that of the session in which it was defined."""

    cron: Name
    time_zone: Name | None = None

    @model_validator(mode="after")
    def _can_be_followed(self) -> ScheduleSettings:
        if self.time_zone is not None:
            read_zone(self.time_zone)
        read_schedule(self.cron, self.time_zone)
        return self


class _Refreshing(Strict):
    policy: Policy | None = None
    """How to refresh: the cheapest way, by deltas wherever there is a rule, by deltas or not at all, anew."""
    target_lag: Interval | None = None
    schedule: ScheduleSettings | None = None

    @model_validator(mode="after")
    def _one_timing(self) -> _Refreshing:
        if self.target_lag is not None and self.schedule is not None:
            raise ValueError("target_lag and schedule exclude each other")
        return self

    @property
    def timing(self) -> Timing | None:
        """How fresh a view is to be, if it is said here."""
        if self.target_lag is not None:
            return TargetLag(self.target_lag)
        return read_schedule(self.schedule.cron, self.schedule.time_zone) if self.schedule else None


class ExpectationSettings(Strict):
    """What is to be true of every row of a view, and what happens to rows for which it is not."""

    expect: Name
    """A condition on the view's columns."""
    on_violation: Literal["warn", "drop row", "fail epoch"] = "warn"


class ViewSettings(_Refreshing):
    """How one view is refreshed; overrides the project's. What is expected of its rows stands here for
    projects that ``spark-pipelines`` must parse, too: its DDL has no word for it."""

    consistency: Literal["strong", "complete"] | None = None
    """Of a view over remote tables: a state that they had, or each of their states, one after the other."""
    expectations: dict[str, ExpectationSettings] = Field(default_factory=dict)


class CubeSettings(Strict):
    """A view for each set of keys that the query groups by."""

    query: Name
    """One SELECT with GROUPING SETS, CUBE or ROLLUP."""
    policy: Policy | None = None


class SourceSettings(Strict):
    """A source that is not simply a table of the catalog, as ``CREATE SOURCE`` declares it; paths of files
    may be relative to the project's folder."""

    kind: Name
    """``files``, ``postgres`` or ``jdbc``."""
    options: dict[str, str | bool | int | list[str] | Reference] = Field(default_factory=dict)

    def told(self, folder: Path) -> tuple[tuple[str, str], ...]:
        """The options as a statement would have them; a secret stays where it is kept."""
        told = {}
        for key, value in self.options.items():
            if isinstance(value, Reference):
                told[f"{key}_env"] = value.env
            elif isinstance(value, bool | int):
                told[key] = str(value).lower()
            elif isinstance(value, list):
                told[key] = ", ".join(value)
            elif key == "path" and "://" not in value:
                told[key] = str(folder / value)
            else:
                told[key] = value
        return tuple(told.items())


def _path(name: str) -> tuple[str, ...]:
    return parse_path(name.casefold())


class Settings(_Refreshing):
    """The whole of ``viewkeeper.yml``."""

    connection: Connection = Connection()
    on_error: Literal["stop", "skip"] = "stop"
    """Whether a view that fails stops the epoch, or is skipped with all that read it."""
    aggregates: Literal["lattice", "alone", "counting"] = "lattice"
    """From each other where that reads less; the others are there to be compared with it."""
    joins: Literal["optimal", "n-term", "all terms"] = "optimal"
    """By the delta expression that reads least; the others are there to be compared with it."""
    sources: dict[str, SourceSettings] = Field(default_factory=dict)
    """Files and databases; tables of the catalog need no declaration."""
    keys: dict[str, Columns] = Field(default_factory=dict)
    """By table: the columns that tell its rows apart."""
    foreign_keys: tuple[ForeignKey, ...] = Field(default=(), strict=False)
    dependencies: tuple[Dependency, ...] = Field(default=(), strict=False)
    views: dict[str, ViewSettings] = Field(default_factory=dict)
    cubes: dict[str, CubeSettings] = Field(default_factory=dict)
    service: ServiceSettings = ServiceSettings()

    @model_validator(mode="after")
    def _references_match(self) -> Settings:
        for fk in self.foreign_keys:
            if len(fk.columns) != len(referenced := self.referenced(fk)):
                raise ValueError(
                    f"foreign_keys: {fk.table} ({', '.join(fk.columns)}) cannot refer to {fk.references} "
                    f"({', '.join(referenced)}): name as many columns of both"
                )
        return self

    def referenced(self, fk: ForeignKey) -> Columns:
        """The columns that a foreign key refers to: those it names, or the declared key, or its own names."""
        return fk.referenced_columns or self.keys.get(fk.references, fk.columns)

    @property
    def references(self) -> tuple[ForeignKey, ...]:
        """The foreign keys, each with the columns that it refers to."""
        return tuple(
            fk.model_copy(update={"referenced_columns": self.referenced(fk)}) for fk in self.foreign_keys
        )

    def expectations_of(self, view: str) -> tuple[Expectation, ...]:
        """What is expected of the rows of a view, by its whole name or the end of it."""
        return tuple(
            Expectation(name, each.expect, OnViolation(each.on_violation))
            for own in self._own(view)
            for name, each in own.expectations.items()
        )

    def timing_of(self, view: str) -> Timing | None:
        """How fresh a view is to be: what is said of it, else of the whole project."""
        said = (own.timing for own in self._own(view))
        return next((timing for timing in said if timing is not None), self.timing)

    def _own(self, view: str) -> list[ViewSettings]:
        path = parse_path(view.casefold())
        return [own for name, own in self.views.items() if path[-len(_path(name)) :] == _path(name)]

    def unmet(self, views: Iterable[str]) -> list[str]:
        """The names of which something is said, and that none of these views has: of their rows, how fresh
        they are, how they are refreshed, or which states they show."""
        paths = [parse_path(view.casefold()) for view in views]
        return [
            name
            for name, own in self.views.items()
            if (own.expectations or own.timing or own.policy or own.consistency)
            and not any(path[-len(_path(name)) :] == _path(name) for path in paths)
        ]

    def policy_of(self, view: str, otherwise: Policy | None = None) -> Policy | None:
        """The policy of a view: its own, else that of its cube, say, else the project's."""
        return next((own.policy for own in self._own(view) if own.policy), otherwise or self.policy)

    def consistency_of(self, view: str) -> str | None:
        """Which states of its remote tables a view shows, if it is said here."""
        return next((own.consistency for own in self._own(view) if own.consistency), None)
