"""How a handler asks for another attempt at its page."""

from trotline.model.time import Seconds
from trotline.rules.task_checks import shown

LONGEST_AFTER: Seconds = 7 * 86_400.0
LONGEST_REASON = 200


class Retry(Exception):
    """Raised by a handler or a hook: the page is fetched again later, if it has attempts left. Nothing of this attempt
    is stored. `after`: seconds to wait at least; else as after other failures."""

    def __init__(self, why: str, *, after: Seconds = 0.0) -> None:
        if not isinstance(why, str) or not why.strip():
            raise ValueError(f'Retry({shown(why)}) says no reason; write Retry("no price yet")')
        if isinstance(after, bool) or not isinstance(after, int | float) or not 0 <= after <= LONGEST_AFTER:
            raise ValueError(f"Retry(after={shown(after)}) is not a number of seconds from 0 to {LONGEST_AFTER:,.0f}")
        super().__init__(why)
        self.reason = " ".join(why.split())[:LONGEST_REASON]
        """In one line. It is counted by its text: leave URLs and values of the page out."""
        self.after = float(after)
