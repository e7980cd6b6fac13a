"""Knowing who a provider is: a state that the provider asks for and an operator decides on."""

from collections.abc import Mapping
from enum import StrEnum

from tidemill.core.refusals import Refusal


class Kyc(StrEnum):
    NONE = "none"
    SUBMITTED = "submitted"
    VERIFIED = "verified"
    REJECTED = "rejected"


class KycRefusal(Refusal):
    KYC_STATE = "The account's verification does not stand where this could follow: look at its state first."


SUBMISSIONS: Mapping[Kyc, frozenset[Kyc]] = {
    Kyc.NONE: frozenset({Kyc.SUBMITTED}),
    Kyc.REJECTED: frozenset({Kyc.SUBMITTED}),
}
"""What a provider may do: from which state to which."""

DECISIONS: Mapping[Kyc, frozenset[Kyc]] = {
    Kyc.SUBMITTED: frozenset({Kyc.VERIFIED, Kyc.REJECTED}),
    Kyc.VERIFIED: frozenset({Kyc.REJECTED}),
    Kyc.REJECTED: frozenset({Kyc.VERIFIED}),
}
"""What an operator may do."""


def next_kyc(state: Kyc, target: Kyc, table: Mapping[Kyc, frozenset[Kyc]]) -> Kyc | KycRefusal:
    return target if target in table.get(state, frozenset()) else KycRefusal.KYC_STATE
