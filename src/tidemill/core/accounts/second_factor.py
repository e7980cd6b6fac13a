"""The second factor: time-based codes (RFC 6238), each good once, and recovery codes for the day the phone is lost."""

import base64
import hashlib
import hmac
import re

import pyotp

from tidemill.core.clock import SECOND, Instant
from tidemill.core.refusals import Refusal

SECRET_BYTES = 20
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
_STEP_S = 30
_DRIFT_STEPS = 1


class SecondFactorRefusal(Refusal):
    SECOND_FACTOR_ON = "The second factor is on already: remove it first to set up another device."
    SECOND_FACTOR_OFF = "The second factor is not on: begin with POST /api/v1/account/second-factor."
    CODE_WRONG = "This code is wrong or was used before: wait for the next one, and check your device's clock."


def secret_text(secret: bytes) -> str:
    """The secret as authenticators take it by hand."""
    return base64.b32encode(secret).decode()


def provisioning_uri(secret: bytes, *, account: str, issuer: str) -> str:
    """What the QR code says."""
    return pyotp.TOTP(secret_text(secret), interval=_STEP_S).provisioning_uri(account, issuer)


def matching_step(secret: bytes, code: str, now: Instant, used_step: int) -> int | None:
    """The time step a code belongs to, if it is right and newer than the last one used."""
    totp = pyotp.TOTP(secret_text(secret), interval=_STEP_S)
    current = now // (_STEP_S * SECOND)
    steps = range(max(current - _DRIFT_STEPS, used_step + 1), current + _DRIFT_STEPS + 1)
    typed = code.encode()
    return next((step for step in steps if hmac.compare_digest(totp.generate_otp(step).encode(), typed)), None)


def is_time_code(code: str) -> bool:
    return re.fullmatch(r"[0-9]{6}", code) is not None


def recovery_code(entropy: bytes) -> str:
    """A recovery code as people write it down: four groups of four."""
    text = base64.b32encode(entropy).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def recovery_sha256(code: str) -> bytes:
    """What is kept of a recovery code. It has 80 random bits, so a fast hash is enough."""
    return hashlib.sha256(re.sub(r"[\s-]", "", code).lower().encode()).digest()


def normal_code(code: str) -> str:
    """A code without the spaces that authenticators show in it."""
    return re.sub(r"\s", "", code)
