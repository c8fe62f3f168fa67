"""A small shop to analyse queries over, and a referee that needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from viewkeeper.analyse.analysis import Analysis, TableInfo
from viewkeeper.analyse.reading import analyse
from viewkeeper.define.clock import CLOCK, NOW, hand_of
from viewkeeper.define.definitions import SessionPins
from viewkeeper.sql.quoting import show_path

PINS = SessionPins("lake", ("shop",), "UTC")

_COLUMNS = {
    "pos": "store:int item:int qty:int price:decimal(10,2) d:date note:string tags:array<string> "
    "info:struct<a:int,b:struct<c:string>> attrs:map<string,int>",
    "stores": "store:int city:string region:string",
    "items": "item:int name:string qty:int",
    "visits": "page:string at:timestamp local:timestamp_ntz span:struct<start:timestamp,end:timestamp>",
    "cases": "a:int A:int",
    "odd": "a b:int|select:int|x:int|xs:array<int>|user:string|pos:struct<qty:int>",
}
TABLES = {
    name: TableInfo(
        f"lake.shop.{name}",
        tuple(
            (column.partition(":")[0], column.partition(":")[2])
            for column in columns.split("|" if name == "odd" else " ")
        ),
    )
    for name, columns in _COLUMNS.items()
}


def resolve(parts: tuple[str, ...]) -> TableInfo | None:
    if parts[0] == CLOCK:
        return TableInfo(show_path(parts), ((NOW, hand_of(show_path(parts)).type),))
    folded = tuple(part.lower() for part in parts)
    if ("lake", "shop", folded[-1])[-len(folded) :] != folded:
        return None
    return TABLES.get(folded[-1])


@dataclass
class Referee:
    """Says that every text has these columns, and remembers what it was asked."""

    columns: Sequence[str] = ("a",)
    type_name: str = "int"
    asked: list[str] = field(default_factory=list)

    def __call__(self, sql: str) -> list[tuple[str, str]]:
        self.asked.append(sql)
        return [(name, self.type_name) for name in self.columns]


def read(query: str, *columns: str, pins: SessionPins = PINS) -> Analysis:
    return analyse(query, session=pins, resolve=resolve, referee=Referee(columns or ("a",)))
