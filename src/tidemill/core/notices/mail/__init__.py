"""Mail: which letters the pool writes, how they read in each language, and what a server's answer means."""

from tidemill.core.notices.mail.delivery import FailureCause, RetryRules, is_final, is_too_late, next_try
from tidemill.core.notices.mail.letters import Letter, LetterKind, LetterRefusal, LetterValue, is_understood
from tidemill.core.notices.mail.renderer import Masthead, RenderedLetter, render

__all__ = [
    "FailureCause",
    "Letter",
    "LetterKind",
    "LetterRefusal",
    "LetterValue",
    "Masthead",
    "RenderedLetter",
    "RetryRules",
    "is_final",
    "is_too_late",
    "is_understood",
    "next_try",
    "render",
]
