"""How many workers should run, from how many are worth having: up soon, down slowly, and never on a guess."""

import msgspec

from trotline.model.time import Seconds


class ScaleRules(msgspec.Struct, frozen=True, kw_only=True):
    least: int = 1
    most: int = 1
    up_after: Seconds = 30.0
    """More workers must be worth having for this long."""
    down_after: Seconds = 300.0
    down_every: Seconds = 60.0
    """Then one at a time, no more often."""
    band: float = 0.1
    """A difference of up to this share is none."""


class ScaleState(msgspec.Struct, frozen=True, kw_only=True):
    """Since when more, or fewer, are wanted; and the one nearest to what runs that was wanted in this time."""

    up_since: Seconds | None = None
    up_to: int = 0
    down_since: Seconds | None = None
    down_to: int = 0
    stopped_at: Seconds | None = None
    """When the last one was stopped."""


def decide(
    state: ScaleState, rules: ScaleRules, now: Seconds, running: int, wanted: int | None
) -> tuple[ScaleState, int]:
    """The next state, and how many should run now. `wanted`: None is unknown, and changes nothing."""
    inside = min(max(running, rules.least), rules.most)
    if inside != running:
        # Outside of what the operator allows: at once.
        return msgspec.structs.replace(state, up_since=None, down_since=None), inside
    calm = ScaleState(stopped_at=state.stopped_at)
    if wanted is None:
        return calm, running
    aim = min(max(wanted, rules.least), rules.most)
    if aim > running * (1.0 + rules.band):
        return _up(state, rules, now, running, aim)
    if aim < running * (1.0 - rules.band):
        return _down(state, rules, now, running, aim)
    return calm, running


def _up(state: ScaleState, rules: ScaleRules, now: Seconds, running: int, aim: int) -> tuple[ScaleState, int]:
    since = now if state.up_since is None else state.up_since
    lowest = aim if state.up_since is None else min(aim, state.up_to)
    if now - since < rules.up_after:
        return ScaleState(up_since=since, up_to=lowest, stopped_at=state.stopped_at), running
    # At most twice as many: what they change is measured before the next step.
    return ScaleState(stopped_at=state.stopped_at), min(lowest, max(1, 2 * running))


def _down(state: ScaleState, rules: ScaleRules, now: Seconds, running: int, aim: int) -> tuple[ScaleState, int]:
    since = now if state.down_since is None else state.down_since
    highest = aim if state.down_since is None else max(aim, state.down_to)
    waiting = ScaleState(down_since=since, down_to=highest, stopped_at=state.stopped_at)
    if now - since < rules.down_after or highest >= running:
        return waiting, running
    if state.stopped_at is not None and now - state.stopped_at < rules.down_every:
        return waiting, running
    return msgspec.structs.replace(waiting, stopped_at=now), running - 1
