"""Any sequence of epochs, against a model that keeps a copy of the whole warehouse for each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from viewkeeper.ledger import Lease, Ledger, NewEpoch, ViewRecord, ViewRefreshRecord, ViewState


class Act(Enum):
    SKIP = "skip"
    REFRESH = "refresh"
    DEFINE = "define"
    DEFINE_WITHOUT_DATA = "define without data"
    DROP = "drop"
    DROP_AND_DEFINE = "drop and define"


class Fate(Enum):
    PUBLISH = "publish"
    PUBLISH_TWICE = "publish twice"
    ABANDON = "abandon"
    LOSE_LEASE = "lose the lease"


NAMES = ("a", "b`;", "ç.d")
Turn = tuple[Fate, dict[str, Act]]
turns = st.lists(
    st.tuples(
        st.sampled_from([*Fate, Fate.PUBLISH, Fate.PUBLISH]),
        st.fixed_dictionaries({name: st.sampled_from(Act) for name in NAMES}),
    ),
    min_size=1,
    max_size=8,
)


@dataclass
class Model:
    """The warehouse now, in the order of creation, and what it was after each epoch."""

    views: dict[str, ViewRecord] = field(default_factory=dict)
    states: dict[str, ViewState] = field(default_factory=dict)
    history: dict[int, tuple[dict[str, ViewRecord], dict[str, ViewState]]] = field(default_factory=dict)

    def epoch(self, epoch_id: int, acts: dict[str, Act]) -> NewEpoch:
        """The epoch that does these acts, as far as each view's existence allows."""
        define, drop, states = [], [], []
        for name, act in acts.items():
            exists = name in self.views
            if act in (Act.DROP, Act.DROP_AND_DEFINE) and exists:
                drop.append(name)
            if act in (Act.DEFINE, Act.DEFINE_WITHOUT_DATA, Act.DROP_AND_DEFINE):
                define.append(ViewRecord(name, {"in": epoch_id}, {}, f"d{epoch_id}", epoch_id))
                snapshot = None if act is Act.DEFINE_WITHOUT_DATA else f"s{epoch_id}"
                states.append(ViewState(name, f"d{epoch_id}", "t", snapshot, {"src": "1"}, epoch_id))
            elif act is Act.REFRESH and exists:
                old = self.views[name].definition_id
                states.append(ViewState(name, old, "t", f"s{epoch_id}", {"src": None}, epoch_id))
        refreshes = tuple(ViewRefreshRecord(state.view, "full") for state in states)
        return NewEpoch(epoch_id, {}, tuple(states), refreshes, tuple(define), tuple(drop))

    def publish(self, epoch: NewEpoch) -> None:
        for name in epoch.drop:
            del self.views[name], self.states[name]
        self.views.update({record.name: record for record in epoch.define})
        self.states.update({state.view: state for state in epoch.states})
        self.history[epoch.id] = (dict(self.views), dict(self.states))


def play(ledger: Ledger, lease: Lease, model: Model, turn: Turn) -> Lease:
    fate, acts = turn
    epoch = model.epoch(ledger.begin(lease), acts)
    match fate:
        case Fate.PUBLISH | Fate.PUBLISH_TWICE:
            ledger.publish(lease, epoch)
            if fate is Fate.PUBLISH_TWICE:
                ledger.publish(lease, epoch)
            model.publish(epoch)
        case Fate.ABANDON:
            ledger.abandon(lease, epoch.id, "boom")
        case Fate.LOSE_LEASE:
            ledger.release(lease)
            return ledger.acquire("next")
    return lease


def assert_agree(ledger: Ledger, model: Model) -> None:
    assert ledger.views() == tuple(model.views.values())
    assert ledger.states() == model.states
    assert [epoch.id for epoch in ledger.epochs()] == sorted(model.history, reverse=True)
    for epoch_id, (views, states) in model.history.items():
        assert ledger.views(epoch_id) == tuple(views.values())
        assert ledger.states(epoch_id) == states
        # Equal dictionaries may differ in order; the order of creation is promised for both.
        assert list(ledger.states(epoch_id)) == list(views)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(turns)
def test_the_ledger_agrees_with_the_model(new_url: Callable[[], str], sequence: list[Turn]) -> None:
    model = Model()
    with Ledger.open(new_url()) as ledger:
        lease = ledger.acquire("first")
        for turn in sequence:
            lease = play(ledger, lease, model, turn)
        assert_agree(ledger, model)
