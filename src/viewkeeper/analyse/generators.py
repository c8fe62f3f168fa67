"""Generators: LATERAL VIEW, a generator in the select list, LATERAL in FROM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from viewkeeper.algebra.relations import Generate
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.analyse.expressions import Reader
from viewkeeper.analyse.inputs import Inputs, column_lookup, only
from viewkeeper.analyse.reasons import ReasonCode
from viewkeeper.analyse.scopes import Names, Origin, Output

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
        """``, LATERAL explode(…) AS e(x)``, as a lateral view; LATERAL (SELECT …) is not followed."""
        if not isinstance(node.this.this, exp.Anonymous) or side not in ("", "LEFT") or kind == "FULL":
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL")
        if node.args.get("on") is not None or node.args.get("using"):
            raise self.reader.stop(ReasonCode.LATERAL_VIEW, node, "LATERAL … ON")
        inputs = self.lateral(left, node.this)
        if side == "LEFT":
            (generated,) = inputs.relations
            assert isinstance(generated, Generate)
            return replace(inputs, relations=(replace(generated, outer=True),))
        return inputs

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
