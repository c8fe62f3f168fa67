"""Definitions, analyses, layouts and plans as JSON, for the ledger."""

from __future__ import annotations

from viewkeeper.algebra import aggregates, expressions, relations, scalars, summary_delta
from viewkeeper.algebra.rules import touched_rows
from viewkeeper.analyse import analysis
from viewkeeper.codec import Codec
from viewkeeper.define import definitions, sources, timing
from viewkeeper.errors import Position
from viewkeeper.plan import hidden_state, layout, methods, prices, propagation, steps

CODEC = Codec(
    (
        scalars.Column,
        scalars.Scalar,
        scalars.Named,
        relations.State,
        relations.Field,
        relations.Scan,
        relations.TableAt,
        relations.Staged,
        relations.Nothing,
        relations.Constant,
        relations.Moment,
        relations.Filter,
        relations.TimeFilter,
        relations.Project,
        relations.Join,
        relations.OuterJoin,
        relations.Exists,
        relations.SemiJoin,
        relations.UnionAll,
        relations.Distinct,
        relations.AggregateCall,
        relations.Aggregate,
        relations.WindowCall,
        relations.Window,
        relations.Generate,
        relations.Expand,
        relations.Repeat,
        aggregates.Combine,
        aggregates.Kept,
        summary_delta.Groups,
        Position,
        analysis.Reason,
        analysis.TableHole,
        analysis.QueryText,
        analysis.Analysis,
        definitions.SessionPins,
        definitions.ColumnSpec,
        definitions.OnViolation,
        definitions.Expectation,
        definitions.ViewDefinition,
        timing.TargetLag,
        timing.Schedule,
        sources.SourceDefinition,
        layout.Reserve,
        layout.Layout,
        hidden_state.Trial,
        expressions.Operand,
        expressions.Terms,
        expressions.Node,
        propagation.Propagation,
        methods.Method,
        prices.Price,
        steps.Strategy,
        steps.Installer,
        steps.Extract,
        steps.Share,
        steps.ComputeGroups,
        steps.ComputeBag,
        steps.ComputeReplacement,
        touched_rows.KeyColumn,
        touched_rows.TouchedKeys,
        steps.ComputeRows,
        steps.ComputeVisible,
        steps.CheckRows,
        steps.Install,
        steps.Publish,
        steps.Work,
        steps.ViewPlan,
        steps.EpochPlan,
    )
)
"""Every class that the ledger may hold."""
