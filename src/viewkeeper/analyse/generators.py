"""Generators: LATERAL VIEW, a generator in the select list, LATERAL in FROM; and LATERAL (SELECT …) without a
FROM of its own, which makes nothing but more columns of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import Generate, Project
from viewkeeper.algebra.scalars import Named, Scalar, keep
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.inputs import Inputs, column_lookup, only
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Names, Origin, Output, Scope

GENERATED_NAMES: Mapping[str, tuple[str, ...]] = {
    "explode": ("col",),
    "explode_outer": ("col",),
    "posexplode": ("pos", "col"),
    "posexplode_outer": ("pos", "col"),
    "inline": (),
    "inline_outer": (),
    "stack": (),
    "json_tuple": (),
}
"""The generators, and what Spark calls their columns if nobody else does. Those are the ones of an array;
what they are for a map, a struct or a stack depends on its type."""


@dataclass(frozen=True, slots=True)
class Generators:
    """Reads generators of one query text."""

    reader: Reader
    names: Names

    def lateral(self, inputs: Inputs, node: exp.Lateral) -> Inputs:
        """LATERAL VIEW [OUTER] generator(…) alias AS columns."""
        only(self.reader, node, "this", "view", "outer", "alias")
        alias = node.args.get("alias")
        wishes = [name.name for name in (alias.args.get("columns") if alias is not None else None) or ()]
        called = node.this
        lookup = column_lookup(inputs.scope)
        call = self.reader.scalar(called, lookup, inputs.scope.names(), aggregate=called)
        return self.generated(inputs, called, call, wishes, alias, outer=bool(node.args.get("outer")))

    def joined(self, left: Inputs, node: exp.Join, side: str, kind: str) -> Inputs:
        """``, LATERAL explode(…) AS e(x)``, as a lateral view, and ``, LATERAL (SELECT a + b AS c) AS q``."""
        if side not in ("", "LEFT") or kind == "FULL" or node.args.get("using"):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL")
        if side == "LEFT" and node.args.get("on") is not None:
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LEFT JOIN LATERAL … ON")
        inner = node.this.this
        if isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Select):
            only(self.reader, inner, "this")
            return self._computed(left, node.this, inner.this)
        if not isinstance(inner, exp.Anonymous):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL")
        inputs = self.lateral(left, node.this)
        if side == "LEFT":
            (generated,) = inputs.relations
            assert isinstance(generated, Generate)
            return replace(inputs, relations=(replace(generated, outer=True),))
        return inputs

    def _computed(self, inputs: Inputs, node: exp.Lateral, select: exp.Select) -> Inputs:
        """One row for each row, of what is computed from it."""
        only(self.reader, node, "this", "view", "outer", "alias")
        if any(value for key, value in select.args.items() if key != "expressions"):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, select, "LATERAL (SELECT … FROM …)")
        alias = node.args.get("alias")
        renamed = [name.name for name in (alias.args.get("columns") if alias is not None else None) or ()]
        scope, relation = inputs.scope, inputs.relation()
        items, outputs = list(keep(relation.columns)), list[Output]()
        for at, item in enumerate(select.expressions):
            self._read_only_the_row(item, outputs, scope)
            scalar = self.reader.scalar(item.unalias(), column_lookup(scope), scope.names())
            known = item.alias or (item.name if isinstance(item, exp.Column) else None)
            output = Output(known or None, self.names.fresh(known or "column"))
            items.append(Named(output.column, scalar))
            outputs.append(replace(output, name=renamed[at]) if renamed else output)
        qualifier = (Origin((alias.name,), tuple(outputs)),) if alias is not None and alias.name else ()
        shown = replace(scope, origins=(*scope.origins, *qualifier), visible=(*scope.visible, *outputs))
        return Inputs((Project(relation, tuple(items)),), (), shown)

    def _read_only_the_row(self, item: exp.Expr, before: Sequence[Output], scope: Scope) -> None:
        """What stands to the left in the select list goes before the columns around it, in Spark."""
        taken = {scope.fold(output.name) for output in before if output.name}
        for reference in item.find_all(exp.Column):
            if isinstance(reference.this, exp.Star) or scope.fold(reference.parts[0].name) in taken:
                raise self.reader.not_understood(reference)

    def generated(
        self,
        inputs: Inputs,
        called: exp.Expr,
        call: Scalar,
        wishes: Sequence[str],
        alias: exp.TableAlias | None = None,
        *,
        outer: bool = False,
    ) -> Inputs:
        """What FROM offers after a generator: its columns, too."""
        name = called.name.lower()
        if not isinstance(called, exp.Anonymous) or name not in GENERATED_NAMES:
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, called, name or "LATERAL VIEW")
        names = tuple(wishes) or GENERATED_NAMES[name]
        if any(isinstance(each, exp.Kwarg) for each in called.expressions):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, called, f"{name} with named arguments")
        if not names:
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, called, f"{name} without names for its columns")
        outputs = tuple(Output(each, self.names.fresh(each)) for each in names)
        relation = Generate(inputs.relation(), call, tuple(each.column for each in outputs), outer)
        qualifier = (Origin((alias.name,), outputs),) if alias is not None and alias.name else ()
        scope = replace(
            inputs.scope,
            origins=(*inputs.scope.origins, *qualifier),
            visible=(*inputs.scope.visible, *outputs),
        )
        return Inputs((relation,), (), scope)
