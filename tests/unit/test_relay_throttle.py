"""When a layer's event goes out, and when writers should ring. Time is a number here."""

from __future__ import annotations

from datetime import UTC, datetime

from planetwire.layers.registry import EarthLayerAdapterRegistry
from planetwire.model import Change, LayerAdapter, Operation, Provenance
from planetwire.relay.gate import BUSY_ROWS, OPEN_S, Gate
from planetwire.relay.route import route
from planetwire.relay.throttle import HELD_MAX, LAYER_FULL, Throttle

AT = datetime(2026, 1, 1, tzinfo=UTC)
ABOUT = Provenance("p", "l", "c", "x")


def adapter(name: str, *sources: str, floor_s: float = 0.2) -> LayerAdapter:
    feeds = tuple(("facts", source) for source in sources)
    return LayerAdapter(name, name, name, "g", "point", feeds, (), ABOUT, reload_floor_s=floor_s)


REGISTRY = EarthLayerAdapterRegistry(
    [adapter("quick", "a", "both"), adapter("slow", "b", "both", floor_s=5.0), adapter("other", "c")]
)


class Made:
    """A throttle, fed by source name."""

    def __init__(self, window_s: float = 0.2) -> None:
        self.throttle = Throttle(REGISTRY, window_s)
        self.number = 0

    def add(self, source: str, operation: Operation = Operation.INSERT) -> int:
        self.number += 1
        row = Change(self.number, "facts", operation, source, 1, None, AT)
        self.throttle.add(route(row, REGISTRY))
        return self.number

    def send(self, now: float) -> dict[str, int]:
        """What goes out now: layer → how many effects."""
        out = {}
        for layer in self.throttle.due(now):
            effects = self.throttle.held(layer)
            self.throttle.sent(effects, now)
            out[layer] = len(effects)
        return out


def test_the_first_change_of_a_quiet_layer_goes_out_at_once() -> None:
    """S28: a throttle, not a debounce."""
    made = Made()
    made.add("a")
    assert made.send(10.0) == {"quick": 1}
    made.add("a")
    assert made.send(10.5) == {"quick": 1}


def test_later_changes_wait_for_the_window_and_go_out_together() -> None:
    """S28."""
    made = Made()
    made.add("a")
    made.send(10.0)
    made.add("a")
    assert made.send(10.05) == {}
    made.add("a")
    assert made.throttle.next_due_at() == 10.2
    assert made.send(10.19) == {}
    assert made.send(10.2) == {"quick": 2}


def test_a_steady_stream_does_not_push_the_event_away() -> None:
    """S28: no change waits longer than the window."""
    made = Made(window_s=0.25)
    sent_at = []
    for tick in range(64):  # binary fractions, so that sums are exact
        made.add("a")
        if made.send(tick / 32):
            sent_at.append(tick / 32)
    assert sent_at == [n / 4 for n in range(8)]


def test_a_layer_is_not_held_by_another() -> None:
    made = Made()
    made.add("a")
    made.send(10.0)
    made.add("a")
    made.add("c")
    assert made.send(10.05) == {"other": 1}


def test_reloads_keep_the_layers_own_spacing_and_a_clear_does_not() -> None:
    """Contracts §5: `clear_then_reload` is never delayed by the floor."""
    made = Made()
    made.add("b")
    made.send(10.0)
    made.add("b")
    assert made.send(11.0) == {}
    assert made.throttle.next_due_at() == 15.0
    made.add("b", Operation.DELETE)
    assert made.send(11.0) == {"slow": 2}
    made.add("b", Operation.DELETE)
    assert made.send(11.1) == {}
    assert made.send(11.2) == {"slow": 1}


def test_a_row_of_two_layers_is_done_when_both_are_published() -> None:
    """S31."""
    made = Made()
    made.add("both")
    made.send(10.0)
    number = made.add("both")
    quick = made.throttle.held("quick")
    assert made.throttle.due(10.2) == ["quick"]
    assert made.throttle.settled(quick) == []
    made.throttle.sent(quick, 10.2)
    assert list(made.throttle.keys) == [("change", number)]
    slow = made.throttle.held("slow")
    assert made.throttle.settled(slow) == [("change", number)]
    made.throttle.sent(slow, 15.0)
    assert list(made.throttle.keys) == []


def test_a_row_that_was_put_off_leaves_every_layer() -> None:
    """S32."""
    made = Made()
    made.add("both")
    made.send(10.0)
    gone, kept = made.add("both"), made.add("b")
    made.throttle.drop([("change", gone)])
    assert made.throttle.due(99.0) == ["slow"]
    assert [effect.key[1] for effect in made.throttle.held("slow")] == [kept]


def test_a_clear_that_was_put_off_no_longer_hurries_its_layer() -> None:
    made = Made()
    made.add("b")
    made.send(10.0)
    made.add("b")
    clear = made.add("b", Operation.DELETE)
    made.throttle.drop([("change", clear)])
    assert made.throttle.next_due_at() == 15.0


def test_a_full_layer_gives_up_its_own_spacing_but_not_the_window() -> None:
    """S28."""
    made = Made()
    made.add("b")
    made.send(10.0)
    for _ in range(LAYER_FULL):
        made.add("b")
    assert made.throttle.next_due_at() == 10.2
    assert made.throttle.room == HELD_MAX - LAYER_FULL


def test_forgotten_rows_leave_no_trace_but_the_spacing_stays() -> None:
    made = Made()
    made.add("a")
    made.send(10.0)
    made.add("a")
    made.throttle.forget()
    assert list(made.throttle.keys) == []
    assert made.throttle.next_due_at() == float("inf")
    made.add("a")
    assert made.throttle.next_due_at() == 10.2


def test_the_gate_is_open_while_little_happens_and_renewed_in_time() -> None:
    """S18."""
    gate = Gate()
    assert gate.wanted(0.0) == OPEN_S
    gate.moved(OPEN_S, 0.0)
    assert gate.wanted(1.0) is None
    assert gate.wanted(21.0) == OPEN_S


def test_the_gate_is_shut_under_load_and_opened_after_it() -> None:
    """Architecture D7: under load nobody rings."""
    gate = Gate()
    gate.moved(OPEN_S, 0.0)
    gate.note(BUSY_ROWS, 1.0)
    assert gate.busy
    assert gate.wanted(1.0) == 0.0
    gate.moved(0.0, 1.0)
    gate.note(0, 2.5)  # the second before was busy
    assert gate.wanted(2.5) is None
    gate.note(0, 4.0)
    assert not gate.busy
    assert gate.wanted(4.0) == OPEN_S


def test_a_deposed_relay_does_not_trust_what_it_knew_of_the_gate() -> None:
    gate = Gate()
    gate.moved(OPEN_S, 0.0)
    gate.forget()
    assert gate.wanted(1.0) == OPEN_S
