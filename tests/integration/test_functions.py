"""Every built-in function of Spark, through analysis and back: the answers must be the same.

Spark documents each function with examples. They are read as queries of a view over a table whose columns
are named like lambda variables, units and types, so that a word taken for a column, or a column taken for
a word, shows. What cannot be read must say so.
"""

from __future__ import annotations

import gc
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.analyse.analysis import Analysis, TableInfo
from viewkeeper.analyse.reading import analyse
from viewkeeper.define.definitions import SessionPins
from viewkeeper.errors import DefinitionError
from viewkeeper.sql.printer import print_relation

pytestmark = pytest.mark.spark

_COLUMNS = ("x", "y", "k", "v", "v1", "i", "acc", "a", "b", "day", "year", "month", "date", "e", "key")
_PINS = SessionPins("lake", ("default",), "UTC")
_BATCH = 40
_NOT_RUN = "not run by Spark"

Referee = Callable[[str], list[tuple[str, str]]]

# What the examples of scalar functions may run into; anything else would be a gap in the analysis.
_EXPECTED = {
    "NOT_PARSED",
    "SUBQUERY_EXPRESSION",
    "AGGREGATE_FUNCTION",
    "LATERAL_VIEW",
    "TIME_WINDOW",
    "MAP_COLUMN",
}

# Examples with a table or with column names of their own.
_SKIPPED = re.compile(r"\bFROM\s+(VALUES|range)|from [a-z]+\(|\bAS\s+\w+\s*(,|$)|\n", re.IGNORECASE)

Example = tuple[str, str]


def _examples(spark: SparkSession) -> Iterator[tuple[str, str]]:
    for (function,) in spark.sql("SHOW FUNCTIONS").collect():
        name = f"`{function}`" if function.isidentifier() else function
        lines = spark.sql(f"DESCRIBE FUNCTION EXTENDED {name}").collect()
        text = "\n".join(line[0] for line in lines)
        for example in re.findall(r"> SELECT (.*?);\s*$", text, re.MULTILINE | re.DOTALL):
            if not _SKIPPED.search(example):
                yield function, example.strip()


def _analyse(expressions: Sequence[str], referee: Referee) -> Analysis:
    items = ", ".join(f"{expression} AS c{index}" for index, expression in enumerate(expressions))
    info = TableInfo("one", tuple((name, "int") for name in _COLUMNS))
    return analyse(
        f"SELECT {items} FROM one AS t",
        session=_PINS,
        resolve=lambda parts: info if parts == ("one",) else None,
        referee=referee,
    )


@dataclass
class _Run:
    spark: SparkSession
    same: set[str] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    def can_be_read(self, example: Example) -> bool:
        """Without asking Spark: whether the structure is understood."""
        try:
            reason = _analyse([example[1]], lambda _: [("c0", "int")]).reason
        except DefinitionError as refusal:
            self.outcomes[refusal.code] += 1
            return False
        if reason is not None:
            self.outcomes[reason.code] += 1
            if reason.code not in _EXPECTED:
                self.wrong.append(f"{example[1]}: {reason}")
        return reason is None

    def schema(self, sql: str) -> list[tuple[str, str]]:
        return [(column.name, column.dataType.simpleString()) for column in self.spark.sql(sql).schema]

    def check(self, batch: Sequence[Example]) -> None:
        """All of them in one query; where that does not work out, half of them at a time."""
        problem = self._problem(batch)
        if problem is None:
            self.same |= {function for function, _ in batch}
            self.outcomes["same"] += len(batch)
        elif problem == "MAP_COLUMN" and len(batch) > 1:
            maps = [example for example in batch if self._gives_map(example)]
            self.outcomes["MAP_COLUMN"] += len(maps)
            self.check([example for example in batch if example not in maps])
        elif len(batch) > 1:
            middle = len(batch) // 2
            self.check(batch[:middle])
            self.check(batch[middle:])
        else:
            self.outcomes[problem] += 1
            self.not_run += [batch[0][1]] if problem == _NOT_RUN else []
            if problem not in (_NOT_RUN, "MAP_COLUMN"):
                self.wrong.append(f"{batch[0][1]}: {problem}")

    def _gives_map(self, example: Example) -> bool:
        (column,) = self.schema(f"SELECT {example[1]} AS c0 FROM one AS t")
        return "map<" in column[1] or "variant" in column[1]

    def _problem(self, batch: Sequence[Example]) -> str | None:
        try:
            analysis = _analyse([expression for _, expression in batch], self.schema)
        except DefinitionError as refusal:
            # Refused by Spark itself (several columns, a feature that is off), or else by us: wrongly so.
            return _NOT_RUN if isinstance(refusal.__cause__, PySparkException) else refusal.code
        if analysis.relation is None:
            return analysis.reason.code if analysis.reason is not None else "no reason"
        try:
            expected = self._rows(analysis.text.fill({"one": "one"}))
        except PySparkException:
            return _NOT_RUN  # the example shows an error
        found = self._rows(print_relation(analysis.relation))
        return None if expected == found else f"{expected} became {found}"

    def _rows(self, sql: str) -> list[Row]:
        """The rows as strings: Python has no values for some of Spark's types."""
        frame = self.spark.sql(sql)
        return frame.select([frame[name].cast("string") for name in frame.columns]).collect()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_functions(spark: SparkSession) -> None:
    # An inline table: Spark evaluates over it without a job and without generating code, which is quick.
    values = ", ".join(str(value) for value, _ in enumerate(_COLUMNS))
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW one AS SELECT * FROM VALUES ({values}) AS t({', '.join(_COLUMNS)})"
    )
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    run = _Run(spark)
    examples = list(_examples(spark))
    readable = [example for example in examples if run.can_be_read(example)]
    for start in range(0, len(readable), _BATCH):
        run.check(readable[start : start + _BATCH])
    gc.collect()  # pyspark leaves the sockets of failed queries open; here, and not in the next test
    print(f"\n{len(examples)} examples: {dict(run.outcomes)}; {len(run.same)} functions give equal results")
    print("not run by Spark:", *run.not_run, sep="\n  ")
    assert run.wrong == []
    # 332 of them with Spark 4.1.4; fewer would mean that examples are no longer read or no longer run.
    assert len(run.same) >= 330
