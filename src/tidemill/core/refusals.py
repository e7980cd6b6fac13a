"""Refusals: expected answers of "no". A decision returns one; nothing is raised, nothing has changed."""

from enum import Enum


class Refusal(Enum):
    """Base of all refusals. A member's value is the sentence the user reads; its name is the stable code."""

    @property
    def code(self) -> str:
        return self.name.lower()

    @property
    def sentence(self) -> str:
        sentence: str = self.value
        return sentence
