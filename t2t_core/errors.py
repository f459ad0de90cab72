"""The one error that a user's mistake raises. It says what went wrong, where, the probable cause and the next command."""

from __future__ import annotations


class T2TError(Exception):
    """A mistake that the user can fix. The command line prints it without a traceback and exits with status 2.

    Args:
        what: one sentence that says what went wrong.
        where: the file, line, field, option or address concerned.
        cause: the probable cause.
        next: the next command or edit, which fixes it.
    """

    def __init__(self, what: str, *, where: str = "", cause: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.cause, self.next = what, where, cause, next

    def __str__(self) -> str:
        parts = [self.what]
        for label, text in (("where", self.where), ("cause", self.cause), ("next", self.next)):
            if text:
                parts.append(f"  {label}: {text}")
        return "\n".join(parts)


class BudgetSpent(T2TError):
    """Raised by a policy that may not spend more (`Policy.spend_at_most`). Not a mistake: the evaluation ends early and says
    so."""


class NotReady(T2TError):
    """Something needed is not available on this machine now (a key, a GPU, an extra); the request itself is fine."""
