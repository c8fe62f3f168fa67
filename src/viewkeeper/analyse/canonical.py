"""One answer where Spark may give several: aggregates whose result depends on the order of the rows.

``collect_list`` gives its values in the order in which Spark happens to read them, ``max_by`` picks any of
the rows that tie. In a view they mean the sorted list and the smallest of the values, and so a query is
rewritten before anything else is done with it, on its tokens alone: a view that is recomputed and one that
is kept by deltas then hold the same rows, and so does whoever verifies them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewkeeper.analyse.parsing import SqlText, tokenize
from viewkeeper.analyse.refusals import closing


@dataclass(frozen=True, slots=True)
class _Call:
    """A call as it stands in the text: the name, its arguments, what follows the parenthesis."""

    name: str
    distinct: bool
    arguments: list[str]
    order: str | None
    """What stands after ORDER BY in WITHIN GROUP."""
    filter: str
    """FILTER (WHERE …), with a blank before it, or nothing."""

    def written(self, arguments: list[str] | None = None, order: str | None = None) -> str:
        """The call again, with other arguments or another order."""
        inside = ", ".join(self.arguments if arguments is None else arguments)
        within = f" WITHIN GROUP (ORDER BY {order})" if order else ""
        return f"{self.name}({'DISTINCT ' if self.distinct else ''}{inside}){within}{self.filter}"


def canonical(text: SqlText) -> SqlText:
    """The same query with one meaning; the same object where it had one already."""
    sql = _rewritten(text, 0, len(text.tokens))
    return text if sql == text.raw(0, len(text.tokens)) else tokenize(sql)


def _rewritten(text: SqlText, first: int, end: int) -> str:
    """The text of the tokens [first, end) with every such call replaced, the inner ones first."""
    pieces: list[str] = []
    index, done = first, text.tokens[first].start
    while index < end:
        found = _call_at(text, index)
        if found is None:
            index += 1
            continue
        pieces.append(text.sql[done : text.tokens[index].start])
        call, index = found
        pieces.append(_RULES[call.name.lower()](call))
        done = text.tokens[index - 1].end + 1
    return "".join((*pieces, text.sql[done : text.tokens[end - 1].end + 1]))


def _call_at(text: SqlText, index: int) -> tuple[_Call, int] | None:
    """The call that begins at a token, if it is one to be rewritten, and the token after it."""
    name = text.tokens[index].text
    if not text.is_name(index) or name.lower() not in ORDERLESS:
        return None
    if text.word(index + 1) != "(" or text.word(index - 1) == ".":
        return None
    last = closing(text, index + 1)
    distinct = text.word(index + 2) == "DISTINCT"
    arguments = [_rewritten(text, *each) for each in _split(text, index + (3 if distinct else 2), last)]
    after, order, condition = last + 1, None, ""
    if text.word(after).startswith("WITHIN"):
        opening = next(at for at in range(after, len(text.tokens)) if text.word(at) == "(")
        # The tokenizer takes ORDER BY for one word.
        begin, end = opening + (2 if text.word(opening + 1) == "ORDER BY" else 3), closing(text, opening)
        order = _rewritten(text, begin, end)
        after = end + 1
    if text.word(after) == "FILTER":
        end = closing(text, after + 1)
        condition = " " + _rewritten(text, after, end + 1)
        after = end + 1
    if text.word(after) == "OVER":
        return None
    return _Call(name, distinct, arguments, order, condition), after


def _split(text: SqlText, first: int, end: int) -> list[tuple[int, int]]:
    """The arguments between two parentheses, as ranges of tokens."""
    found: list[tuple[int, int]] = []
    begin, depth = first, 0
    for index in range(first, end):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text.word(index), 0)
        if depth == 0 and text.word(index) == ",":
            found.append((begin, index))
            begin = index + 1
    return [*found, (begin, end)] if end > begin else found


def _sorted(call: _Call) -> str:
    return f"sort_array({call.written(order=call.order)})"


def _most_frequent(call: _Call) -> str:
    """Of several most frequent values the smallest: the second argument of MODE."""
    if not call.arguments:
        return call.written(order=call.order)  # MODE() WITHIN GROUP (ORDER BY e) says which one
    return call.written([call.arguments[0], "true"])


def _min_by(call: _Call) -> str:
    if len(call.arguments) != 2:
        return call.written()
    return f"(min({_pair(call)}){call.filter}).v"


def _max_by(call: _Call) -> str:
    """The greatest k first; among equals the smallest v, NULL being smaller than any value."""
    if len(call.arguments) != 2:
        return call.written()
    order = (
        "(_vk_l, _vk_r) -> CASE WHEN _vk_l.k > _vk_r.k THEN -1 WHEN _vk_l.k < _vk_r.k THEN 1"
        " WHEN _vk_l.v <=> _vk_r.v THEN 0 WHEN _vk_l.v IS NULL OR _vk_l.v < _vk_r.v THEN -1 ELSE 1 END"
    )
    return f"try_element_at(array_sort(collect_list({_pair(call)}){call.filter}, {order}), 1).v"


def _pair(call: _Call) -> str:
    value, key = call.arguments
    return f"CASE WHEN ({key}) IS NOT NULL THEN named_struct('k', {key}, 'v', {value}) END"


def _listed(call: _Call) -> str:
    """In the order of the values, and where another order was given, that first."""
    value = call.arguments[0] if call.arguments else ""
    if not value or (call.distinct and call.order):
        return call.written(order=call.order)  # DISTINCT is ordered by the value itself, or Spark refuses
    return call.written(order=value if call.order is None else f"{call.order}, {value}")


_RULES: dict[str, Callable[[_Call], str]] = {
    "collect_list": _sorted,
    "array_agg": _sorted,
    "collect_set": _sorted,
    "mode": _most_frequent,
    "min_by": _min_by,
    "max_by": _max_by,
    "listagg": _listed,
    "string_agg": _listed,
}

ORDERLESS = frozenset(_RULES)
"""What they give depends on the order of the rows. Over a window nothing puts that right."""
