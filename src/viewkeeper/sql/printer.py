"""The algebra as Spark SQL that a person can read and paste into a notebook.

Every relation becomes a SELECT. Where two of them can be one without changing what is computed, they
are: a filter or a choice of columns over a stored table, an aggregate over plain columns. Everything else
is nested, which is always right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import assert_never

from viewkeeper.algebra.estimates import is_small
from viewkeeper.algebra.provenance import staged_origin
from viewkeeper.algebra.relations import (
    Aggregate,
    AggregateCall,
    Constant,
    Distinct,
    Exists,
    Expand,
    Field,
    Filter,
    Generate,
    Join,
    Moment,
    Nothing,
    OuterJoin,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    Staged,
    TableAt,
    TimeFilter,
    UnionAll,
    Window,
    children,
)
from viewkeeper.algebra.scalars import Named, Scalar, keep, words
from viewkeeper.sql.quoting import ident, ident_path, literal, parse_path, read_options
from viewkeeper.sql.selects import Select, Term, conjunction, fits, indented, own_terms, scalar_text

_CHUNK = 1_000_000
"""Copies of a row that are made at once."""


def print_relation(relation: Relation) -> str:
    """The relation as one Spark SELECT.

    >>> from viewkeeper.algebra.relations import Field, Filter, Scan
    >>> from viewkeeper.algebra.scalars import Column, Scalar
    >>> pos = Scan("lake.shop.pos", (Field("qty", "qty"),))
    >>> print(print_relation(Filter(pos, Scalar((Column("qty"), " > 3")))))
    SELECT qty
    FROM lake.shop.pos /* new */
    WHERE qty > 3
    """
    return "\n".join(_Printer(_alias_prefix(relation)).statement(relation))


def _alias_prefix(relation: Relation) -> str:
    """A prefix for r1, r2, … that no name or expression of the relation can be mistaken for."""
    prefix = "r"
    names = "\n".join(_texts(relation))
    while re.search(rf"\b{prefix}\d+\b", names, re.IGNORECASE):
        prefix = "_" + prefix
    return prefix


def _texts(relation: Relation) -> Iterator[str]:
    yield from relation.columns
    match relation:
        case Scan() | TableAt() | Staged():
            yield from (field.stored for field in relation.fields)
        case Filter() | TimeFilter():
            yield from _words(relation.predicate)
        case Project():
            for item in relation.items:
                yield from _words(item.scalar)
        case Join() | OuterJoin() | Exists():
            for conjunct in relation.conjuncts:
                yield from _words(conjunct)
        case Window():
            for call in relation.calls:
                yield from _words(call.scalar)
        case Generate():
            yield from _words(relation.call)
        case Constant():
            yield relation.text
        case Moment():
            yield relation.literal
        case Aggregate():
            for aggregate in relation.calls:
                for scalar in aggregate.reads:
                    yield from _words(scalar)
        case Nothing() | SemiJoin() | UnionAll() | Distinct() | Expand() | Repeat():
            pass
        case _:
            assert_never(relation)
    for child in children(relation):
        yield from _texts(child)


def _words(scalar: Scalar) -> Iterator[str]:
    return (part for part in scalar.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True)
class _Printer:
    prefix: str

    def statement(self, relation: Relation) -> list[str]:
        if isinstance(relation, UnionAll):
            return self._union(relation)
        return self._select(relation).lines()

    def _select(self, relation: Relation) -> Select:
        match relation:
            case Scan():
                table = f"{ident_path(parse_path(relation.table))} /* {relation.state.value} */"
                return _stored(table, relation.table, relation.fields)
            case TableAt():
                table = ident_path(parse_path(relation.table)) + at_version(
                    relation.version, relation.options
                )
                return _stored(table, relation.table, relation.fields)
            case Staged():
                return _stored(ident_path(parse_path(relation.name)), relation.name, relation.fields)
            case Nothing():
                typed = zip(relation.columns, relation.types, strict=True)
                nulls = {name: Term(f"CAST(NULL AS {kind})", plain=False) for name, kind in typed}
                return Select(nulls, (), where=("false",))
            case Constant():
                names = ", ".join(ident(name) for name in relation.columns)
                source = f"FROM ({relation.text}) AS _vk_constant({names})"
                return Select(own_terms(relation.columns), (source,))
            case Moment():
                return Select({relation.name: Term(relation.literal, plain=False)}, ())
            case Filter():
                return self._filter(relation)
            case TimeFilter():
                return self._filter(Filter(relation.child, relation.at(self._moment(relation.clock))))
            case Project():
                return self._project(relation)
            case Join():
                return self._join(relation)
            case OuterJoin():
                return self._outer_join(relation)
            case Exists():
                return self._exists(relation)
            case SemiJoin():
                return self._semi_join(relation)
            case UnionAll():
                return Select(own_terms(relation.columns), _nested(self._union(relation)))
            case Distinct():
                child = self._select(relation.child)
                child = _wrapped(relation.child, child) if child.distinct else child
                return replace(child, distinct=True, table=None)
            case Aggregate():
                return self._aggregate(relation)
            case Window():
                return self._window(relation)
            case Generate():
                return self._generate(relation)
            case Expand():
                return self._expand(relation)
            case Repeat():
                return self._repeat(relation)
            case _:
                assert_never(relation)

    def _filter(self, relation: Filter) -> Select:
        child = self._select(relation.child)
        if not (child.open and fits(relation.predicate, child.terms)):
            child = _wrapped(relation.child, child)
        condition = scalar_text(relation.predicate, child.terms)
        return replace(child, where=(*child.where, condition), table=None)

    def _moment(self, clock: Relation) -> Scalar:
        """What a clock shows: a literal, which files can be skipped by, or a question."""
        if isinstance(clock, Moment):
            return words(clock.literal)
        (select,) = self._select(clock).terms.values()
        assert isinstance(clock, Scan), "clocks are logical, or bound to a moment"
        return words(f"SELECT max({select.text}) FROM {ident_path(parse_path(clock.table))}")

    def _project(self, relation: Project) -> Select:
        child = self._select(relation.child)
        if not _can_choose(child, relation):
            child = _wrapped(relation.child, child)
        terms = {item.name: _term(item.scalar, child) for item in relation.items}
        only_names = child.table is not None and all(item.is_rename for item in relation.items)
        return replace(child, terms=terms, table=child.table if only_names else None)

    def _aggregate(self, relation: Aggregate) -> Select:
        child = self._select(relation.child)
        if not _can_group(child, relation):
            child = _wrapped(relation.child, child)
        keys = {key: child.terms[key] for key in relation.keys}
        calls = {call.name: Term(_call(call, child), plain=False) for call in relation.calls}
        group_by = tuple(term.text for term in keys.values())
        return replace(child, terms={**keys, **calls}, group_by=group_by, table=None)

    def _join(self, relation: Join) -> Select:
        operands = [self._operand(child, index) for index, child in enumerate(relation.inputs, start=1)]
        terms = {name: term for operand in operands for name, term in operand.terms.items()}
        first, *others = operands
        source = _prefixed("FROM ", first.lines)
        available = set(first.terms)
        waiting = list(relation.conjuncts)
        for operand in others:
            available |= set(operand.terms)
            ready = [conjunct for conjunct in waiting if conjunct.columns <= available]
            waiting = [conjunct for conjunct in waiting if not conjunct.columns <= available]
            source += _joined(operand.lines, [scalar_text(conjunct, terms) for conjunct in ready])
        chosen = relation.broadcast
        broadcast = tuple(
            operand.alias
            for at, (operand, child) in enumerate(zip(operands, relation.inputs, strict=True))
            if (is_small(_rows(child), child) if chosen is None else at in chosen)
        )
        return Select(terms, tuple(source), broadcast=broadcast)

    def _outer_join(self, relation: OuterJoin) -> Select:
        left, right = self._operand(relation.left, 1), self._operand(relation.right, 2)
        terms = {**left.terms, **right.terms}
        kind = "FULL JOIN " if relation.full else "LEFT JOIN "
        source = _prefixed("FROM ", left.lines) + _prefixed(kind, right.lines)
        source[-1] += " ON " + _condition(relation.conjuncts, terms)
        return Select(terms, tuple(source), broadcast=(right.alias,) if relation.broadcast else ())

    def _exists(self, relation: Exists) -> Select:
        if relation.mark is not None:
            return self._select(_marked(relation, relation.mark))
        left, right = self._operand(relation.child, 1), self._operand(relation.among, 2)
        on = _condition(relation.conjuncts, {**left.terms, **right.terms})
        source = _prefixed("FROM ", left.lines)
        source += _prefixed("LEFT ANTI JOIN " if relation.anti else "LEFT SEMI JOIN ", right.lines)
        source[-1] += " ON " + on
        return Select(left.terms, tuple(source), broadcast=(right.alias,) if relation.broadcast else ())

    def _window(self, relation: Window) -> Select:
        child = self._select(relation.child)
        if not (child.open and all(fits(call.scalar, child.terms) for call in relation.calls)):
            child = _wrapped(relation.child, child)
        calls = {
            call.name: Term(scalar_text(call.scalar, child.terms), plain=False) for call in relation.calls
        }
        return replace(child, terms={**child.terms, **calls}, windowed=True, table=None)

    def _generate(self, relation: Generate) -> Select:
        operand = self._operand(relation.child, 1)
        names = ", ".join(ident(name) for name in relation.names)
        call = scalar_text(relation.call, operand.terms)
        view = f"LATERAL VIEW {'OUTER ' if relation.outer else ''}{call} _vk_rows AS {names}"
        own = own_terms(relation.names, "_vk_rows")
        return Select({**operand.terms, **own}, (*_prefixed("FROM ", operand.lines), view))

    def _semi_join(self, relation: SemiJoin) -> Select:
        left, right = self._operand(relation.child, 1), self._operand(relation.keys, 2)
        on = [
            f"{left.terms[mine].text} {_equals(relation, theirs)} {right.terms[theirs].text}"
            for mine, theirs in relation.on
        ]
        kind = "LEFT ANTI JOIN " if relation.anti else "LEFT SEMI JOIN "
        lines = _prefixed(kind, right.lines)
        lines[-1] += " ON " + (conjunction(on) or "true")
        broadcast = (right.alias,) if is_small(_rows(relation.keys), relation.keys) else ()
        return Select(left.terms, (*_prefixed("FROM ", left.lines), *lines), broadcast=broadcast)

    def _operand(self, relation: Relation, index: int) -> _Operand:
        alias = f"{self.prefix}{index}"
        if isinstance(relation, UnionAll):
            return _operand_of(alias, relation, self._union(relation))
        select = self._select(relation)
        if select.table is not None:
            stored = {
                name: Term(f"{alias}.{term.text}", plain=True, capturable=False)
                for name, term in select.terms.items()
            }
            return _Operand(alias, [f"{select.table} AS {alias}"], stored)
        return _operand_of(alias, relation, select.lines())

    def _union(self, relation: UnionAll) -> list[str]:
        lines: list[str] = []
        for child in relation.inputs:
            lines += ["UNION ALL"] if lines else []
            # The union's own SELECTs stand bare; one inside another is nested to keep its own types.
            lines += self._select(child).lines()
        return lines

    def _expand(self, relation: Expand) -> Select:
        operand = self._operand(relation.child, 1)
        terms = {name: term for name, term in operand.terms.items() if name != relation.count}
        copies = copies_of(operand.terms[relation.count].text)
        return Select(terms, (*_prefixed("FROM ", operand.lines), *copies))

    def _repeat(self, relation: Repeat) -> Select:
        operand = self._operand(relation.child, 1)
        numbers = ", ".join(str(number) for number in range(relation.times))
        repeated = f"LATERAL VIEW explode(array({numbers})) _vk_repeats AS {ident(relation.number)}"
        own = own_terms([relation.number], "_vk_repeats")
        return Select({**operand.terms, **own}, (*_prefixed("FROM ", operand.lines), repeated))


def copies_of(count: str) -> tuple[str, str]:
    """The clauses after FROM that give each row as often as ``count`` says, in chunks: a row may be there
    some hundred million times, and an array of that length would not fit."""
    # array_repeat of 0 is empty, where sequence(1, 0) would count down.
    rest = f"{count} - _vk_chunk * {_CHUNK}"
    return (
        f"LATERAL VIEW explode(sequence(0L, greatest({count} - 1, 0L) DIV {_CHUNK})) _vk_chunks AS _vk_chunk",
        f"LATERAL VIEW explode(array_repeat(0, CAST(least({rest}, {_CHUNK}) AS INT))) _vk_copies AS _vk_copy",
    )


@dataclass(frozen=True, slots=True)
class _Operand:
    """One side of a join: how it stands after FROM or JOIN, and its columns, qualified."""

    alias: str
    lines: list[str]
    terms: dict[str, Term]


def _operand_of(alias: str, relation: Relation, statement: list[str]) -> _Operand:
    return _Operand(alias, ["(", *indented(statement), f") AS {alias}"], own_terms(relation.columns, alias))


# What was made of a relation is passed along: to make it once more at each level takes time beyond all bounds
# where queries are nested deeply.


def _nested(statement: list[str]) -> tuple[str, ...]:
    return ("FROM (", *indented(statement), ")")


def _wrapped(relation: Relation, select: Select) -> Select:
    """What reads the relation, which is that select. (A union is in parentheses already.)"""
    if isinstance(relation, UnionAll):
        return select
    return Select(own_terms(relation.columns), _nested(select.lines()))


def _stored(table: str, path: str, fields: tuple[Field, ...]) -> Select:
    terms = {field.name: Term(ident(field.stored), plain=True) for field in fields}
    # A struct column named like the table would be taken for the table: `pos.qty` is then a column of pos.
    parts = {part.casefold() for part in parse_path(path)}
    clashes = any(field.stored.casefold() in parts for field in fields)
    source = f"FROM {table} AS _vk_t" if clashes else f"FROM {table}"
    return Select(terms, (source,), table=table)


def at_version(version: str | None, options: Sequence[tuple[str, str]] = ()) -> str:
    """What follows a table's name, to read it at a version and with options of its format. What stands behind
    an @ tells one table from another of the same name, and is not for Spark.

    >>> at_version("7", [("file-open-cost", "262144")]), at_version("3@1f3c9a2b")
    (" VERSION AS OF 7 WITH (`file-open-cost` = '262144')", ' VERSION AS OF 3')
    """
    if version is None:
        return ""
    number = version.partition("@")[0]
    at = " VERSION AS OF " + (number if number.isdecimal() else literal(version))
    return at + read_options(options)


def _can_choose(child: Select, relation: Project) -> bool:
    if child.distinct:
        return False
    if child.windowed:
        return all(item.is_rename for item in relation.items)
    if child.group_by is None:
        return all(item.is_rename or fits(item.scalar, child.terms) for item in relation.items)
    # Without keys it is the aggregate call alone that makes the query an aggregate.
    chosen = [child.terms[name] for item in relation.items for name in item.scalar.columns]
    keeps_grouping = bool(child.group_by) or any(not term.plain for term in chosen)
    return keeps_grouping and all(item.is_rename for item in relation.items)


def _can_group(child: Select, relation: Aggregate) -> bool:
    if not child.open or not all(child.terms[key].plain for key in relation.keys):
        return False
    scalars = [scalar for call in relation.calls for scalar in call.reads]
    return all(scalar.is_column or fits(scalar, child.terms) for scalar in scalars)


def _term(scalar: Scalar, child: Select) -> Term:
    if scalar.is_column:
        (name,) = scalar.columns
        return child.terms[name]
    return Term(scalar_text(scalar, child.terms), plain=False)


def _call(call: AggregateCall, child: Select) -> str:
    if call.written is not None:
        return scalar_text(call.written, child.terms)
    arguments = ", ".join(scalar_text(argument, child.terms) for argument in call.arguments)
    return f"{call.function}({arguments or '*'})"


def _marked(relation: Exists, mark: str) -> Relation:
    """A mark, in terms of other operators. Spark has EXISTS in a select list, too, but mixes up columns where
    such a query stands twice in a union (seen in 4.1)."""
    return UnionAll(
        tuple(
            Project(
                replace(relation, mark=None, anti=anti),
                (*keep(relation.child.columns), Named(mark, words("false" if anti else "true"))),
            )
            for anti in (False, True)
        )
    )


def _condition(conjuncts: Sequence[Scalar], terms: Mapping[str, Term]) -> str:
    return conjunction([scalar_text(conjunct, terms) for conjunct in conjuncts]) or "true"


def _rows(relation: Relation) -> int | None:
    """At most so many rows, where what it is made of says so."""
    match relation:
        case Staged():
            return relation.rows
        case Filter() | Project() | Distinct() | Aggregate() | SemiJoin():
            return _rows(relation.child)
        case _:
            return None


def _equals(relation: SemiJoin, key: str) -> str:
    """NULL matches NULL; but where it is known that no key is NULL, a plain equality does: Spark hashes one
    column for it instead of two."""
    found = staged_origin(relation.keys, key)
    return "=" if found is not None and found[1] in found[0].never_null else "<=>"


def _prefixed(prefix: str, lines: list[str]) -> list[str]:
    return [prefix + lines[0], *lines[1:]]


def _joined(lines: list[str], conditions: list[str]) -> list[str]:
    if not conditions:
        return _prefixed("CROSS JOIN ", lines)
    result = _prefixed("JOIN ", lines)
    result[-1] += " ON " + conjunction(conditions)
    return result
