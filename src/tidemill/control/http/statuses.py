"""Which refusal means which status of HTTP: one table, of every refusal there is."""

from collections.abc import Mapping

from tidemill.core.accounts.account import AccountStateRefusal
from tidemill.core.accounts.addresses import AddressRefusal
from tidemill.core.accounts.keys import KeyRefusal
from tidemill.core.accounts.kyc import KycRefusal
from tidemill.core.accounts.lockout import LoginRefusal
from tidemill.core.accounts.operator_word import OperatorWordRefusal
from tidemill.core.accounts.passwords import PasswordRefusal
from tidemill.core.accounts.permissions import PermissionRefusal
from tidemill.core.accounts.second_factor import SecondFactorRefusal
from tidemill.core.accounts.sessions import SessionRefusal
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.jobs.kinds.kind import KindRefusal
from tidemill.core.jobs.receipts import ReceiptRefusal
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.jobs.result_archives import ResultFilesRefusal
from tidemill.core.jobs.results import ResultRefusal
from tidemill.core.jobs.sandboxes import SandboxRefusal
from tidemill.core.ledger import AccountRefusal, AdjustmentRefusal, FreezeRefusal, PostingRefusal
from tidemill.core.models.model import ModelRefusal
from tidemill.core.money import MoneyRefusal
from tidemill.core.nodes.admission import AdmissionRefusal
from tidemill.core.nodes.attempt_queue import QueueRefusal
from tidemill.core.nodes.challenge.figures import ChallengeRefusal
from tidemill.core.nodes.join_tokens import JoinTokenRefusal
from tidemill.core.nodes.life import LifeRefusal
from tidemill.core.nodes.machine.hardware import HardwareRefusal
from tidemill.core.nodes.node import NodeRefusal
from tidemill.core.nodes.passes import PassRefusal
from tidemill.core.nodes.rules.rule_book import RulesRefusal
from tidemill.core.notices.mail import LetterRefusal
from tidemill.core.operations.switches import SwitchRefusal
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.references import ReferenceRefusal
from tidemill.core.refusals import Refusal
from tidemill.core.settings.critical import SettingChangeRefusal
from tidemill.core.trust.proofs.refusals import ProofRefusal
from tidemill.core.trust.reviews import ReviewRefusal
from tidemill.serving.request_entry import DoorRefusal
from tidemill.store.ledger.archive import ArchiveRefusal
from tidemill.store.ledger.books import PastRefusal
from tidemill.store.operations.idempotent_answers import AnswerRefusal


class RequestRefusal(Refusal):
    """What can be wrong with any request, whatever it asks for."""

    TOKEN_WRONG = "Send the token or the API key as `Authorization: Bearer …`: no other scheme is understood."  # noqa: S105
    FOREIGN_PAGE = "This request comes from a page of another site: open the pool's own page and try again."
    BODY_TOO_LARGE = "The body is larger than the pool accepts: send less, or send it in parts."
    IDEMPOTENCY_KEY_MALFORMED = "An Idempotency-Key is 1 to 255 visible ASCII characters: send one of that shape."
    TOO_MANY_STREAMS = (
        "Your account or address has too many event streams open, or the pool has: close one, or ask for pages with "
        "`Accept: application/json`."
    )
    WRONG_HOST = "This pool listens on this machine only: use its address, such as 127.0.0.1 or localhost."
    RATE_LIMITED = "Too many requests in a short time: wait as many seconds as `Retry-After` says, then go slower."
    ACCOUNT_RATE_LIMITED = (
        "The keys and sessions of your account together ask too often: wait as many seconds as `Retry-After` says, and "
        "let fewer of them ask, or more slowly."
    )
    TOO_MANY_ORDERS = (
        "Your account asks for too many quotes and confirmations in a short time: wait as many seconds as "
        "`Retry-After` says. A job counts once for each hundred tasks."
    )
    TOO_MANY_ORDERS_WAITING = "Too many orders of your account wait to be priced: wait for their answers, then go on."
    TOO_MANY_ANSWERS = (
        "The pool keeps as many answers to your Idempotency-Keys as it may in a day: wait as many seconds as "
        "`Retry-After` says, or send the request without a key. Nothing was done."
    )
    TOO_MANY_CREDENTIALS = (
        "Your account made too many API keys and join tokens in a short time: wait as many seconds as `Retry-After` "
        "says, or use those that you have."
    )
    CURSOR_MALFORMED = "This cursor was not made by the pool: leave it out to begin at the start."


STATUS: Mapping[Refusal, int] = {
    RequestRefusal.TOKEN_WRONG: 401,
    RequestRefusal.FOREIGN_PAGE: 403,
    RequestRefusal.BODY_TOO_LARGE: 413,
    RequestRefusal.IDEMPOTENCY_KEY_MALFORMED: 400,
    RequestRefusal.CURSOR_MALFORMED: 400,
    RequestRefusal.TOO_MANY_STREAMS: 503,
    RequestRefusal.RATE_LIMITED: 429,
    RequestRefusal.ACCOUNT_RATE_LIMITED: 429,
    RequestRefusal.TOO_MANY_ORDERS: 429,
    RequestRefusal.TOO_MANY_ORDERS_WAITING: 429,
    RequestRefusal.TOO_MANY_ANSWERS: 429,
    RequestRefusal.TOO_MANY_CREDENTIALS: 429,
    RequestRefusal.WRONG_HOST: 421,
    DoorRefusal.TOO_MANY_CONNECTIONS: 503,
    DoorRefusal.POOL_CROWDED: 503,
    DoorRefusal.TOO_MANY_BODIES: 503,
    AnswerRefusal.IDEMPOTENCY_KEY_REUSED: 422,
    ReferenceRefusal.REFERENCE_MALFORMED: 422,
    ReferenceRefusal.REFERENCE_AMBIGUOUS: 409,
    ReferenceRefusal.NAME_LIKE_AN_ID: 422,
    ReferenceRefusal.NAME_NOT_IN_ADDRESSES: 422,
    PermissionRefusal.UNAUTHENTICATED: 401,
    PermissionRefusal.NOT_FOR_NODES: 403,
    PermissionRefusal.NODE_ONLY: 403,
    PermissionRefusal.SECOND_FACTOR_REQUIRED: 403,
    PermissionRefusal.OPERATOR_ONLY: 403,
    PermissionRefusal.ROLE_MISSING: 403,
    PermissionRefusal.SESSION_NEEDED: 403,
    PermissionRefusal.SCOPE_MISSING: 403,
    PermissionRefusal.FRESH_LOGIN_NEEDED: 403,
    LoginRefusal.LOGIN_FAILED: 401,
    LoginRefusal.SECOND_FACTOR_NEEDED: 401,
    LoginRefusal.LOGIN_LOCKED: 429,
    LoginRefusal.LOGIN_BUSY: 503,
    LoginRefusal.ACCOUNT_BLOCKED: 403,
    SessionRefusal.SESSION_OVER: 401,
    SessionRefusal.TOKEN_UNKNOWN: 401,
    SessionRefusal.UNKNOWN_SESSION: 404,
    KeyRefusal.KEY_UNKNOWN: 401,
    KeyRefusal.KEY_NOT_FROM_HERE: 403,
    KeyRefusal.UNKNOWN_KEY: 404,
    KeyRefusal.TOO_MANY_KEYS: 409,
    KeyRefusal.KEY_ROTATED: 409,
    KeyRefusal.KEY_NAME_MALFORMED: 422,
    KeyRefusal.KEY_NETWORKS_MALFORMED: 422,
    KeyRefusal.KEY_EXPIRES_IN_THE_PAST: 422,
    KeyRefusal.KEY_ROLE_MISSING: 422,
    KeyRefusal.KEY_SCOPES_MISSING: 422,
    KeyRefusal.SPENDING_CAP_REACHED: 402,
    SecondFactorRefusal.SECOND_FACTOR_ON: 409,
    SecondFactorRefusal.SECOND_FACTOR_OFF: 409,
    SecondFactorRefusal.CODE_WRONG: 422,
    AddressRefusal.ADDRESS_MALFORMED: 422,
    PasswordRefusal.PASSWORD_TOO_SHORT: 422,
    PasswordRefusal.PASSWORD_TOO_LONG: 422,
    PasswordRefusal.PASSWORD_TOO_SIMPLE: 422,
    PasswordRefusal.PASSWORD_COMMON: 422,
    PasswordRefusal.PASSWORD_IS_ADDRESS: 422,
    AccountStateRefusal.UNKNOWN_PERSON: 404,
    AccountStateRefusal.ADDRESS_IN_USE: 409,
    AccountStateRefusal.ALREADY_BLOCKED: 409,
    AccountStateRefusal.NOT_BLOCKED: 409,
    AccountStateRefusal.LAST_OPERATOR: 409,
    AccountStateRefusal.ROLE_NOT_FREE: 403,
    AccountStateRefusal.ROLES_MISSING: 422,
    AccountStateRefusal.MONEY_LEFT: 409,
    AccountStateRefusal.MAIL_TOKEN_UNKNOWN: 422,
    AccountStateRefusal.REGISTRATION_PASSWORD: 422,
    AccountStateRefusal.POOL_NOT_SET_UP: 503,
    AccountStateRefusal.SET_UP_ALREADY: 409,
    AccountStateRefusal.SET_UP_LINK_WRONG: 403,
    KycRefusal.KYC_STATE: 409,
    ReasonRefusal.REASON_MISSING: 422,
    ReasonRefusal.REASON_TOO_LONG: 422,
    ReasonRefusal.REASON_UNPRINTABLE: 422,
    SwitchRefusal.ALREADY_SO: 409,
    SwitchRefusal.ORDERS_STOPPED: 503,
    SettingChangeRefusal.NO_SUCH_CHANGE: 404,
    SettingChangeRefusal.CHANGE_DECIDED: 409,
    SettingChangeRefusal.OWN_LOGIN_NEEDED: 403,
    SettingChangeRefusal.ANOTHER_OPERATOR_NEEDED: 403,
    LetterRefusal.UNKNOWN_LETTER: 404,
    LetterRefusal.LETTER_UNDER_WAY: 409,
    LetterRefusal.LETTER_EMPTIED: 410,
    JoinTokenRefusal.JOIN_TOKEN_MALFORMED: 422,
    JoinTokenRefusal.JOIN_TOKEN_UNKNOWN: 401,
    JoinTokenRefusal.JOIN_TOKEN_EXPIRED: 401,
    JoinTokenRefusal.JOIN_TOKEN_REVOKED: 401,
    JoinTokenRefusal.JOIN_TOKEN_USED_UP: 401,
    JoinTokenRefusal.JOIN_TOKEN_NAME_MALFORMED: 422,
    JoinTokenRefusal.JOIN_TOKEN_USES_MALFORMED: 422,
    JoinTokenRefusal.JOIN_TOKEN_LIFETIME_MALFORMED: 422,
    JoinTokenRefusal.JOIN_TOKEN_NOT_PROVIDER: 403,
    JoinTokenRefusal.JOIN_TOKEN_NOT_HOUSE: 403,
    JoinTokenRefusal.TOO_MANY_JOIN_TOKENS: 409,
    JoinTokenRefusal.UNKNOWN_JOIN_TOKEN: 404,
    AdmissionRefusal.AGENT_MALFORMED: 422,
    AdmissionRefusal.NODE_UNKNOWN: 401,
    AdmissionRefusal.NODE_KEY_WRONG: 401,
    AdmissionRefusal.NODE_KEY_TAKEN: 409,
    AdmissionRefusal.NODE_OWNER_BLOCKED: 403,
    AdmissionRefusal.IDENTITY_IN_USE: 409,
    AdmissionRefusal.NEWER_HELLO: 409,
    AdmissionRefusal.TOO_MANY_JOINED: 429,
    AdmissionRefusal.JOINED_AT_ONCE: 409,
    PassRefusal.PASS_MALFORMED: 401,
    PassRefusal.PASS_OVER: 401,
    PassRefusal.PASS_TOO_LONG: 401,
    PassRefusal.PASS_WRONG: 401,
    NodeRefusal.UNKNOWN_NODE: 404,
    NodeRefusal.NODE_NAME_MALFORMED: 422,
    NodeRefusal.NODE_SUSPENDED: 409,
    NodeRefusal.NODE_NOT_SUSPENDED: 409,
    NodeRefusal.NODES_LEFT: 409,
    LifeRefusal.NODE_REMOVED: 410,
    ChallengeRefusal.MEMORY_NOT_SHOWN: 422,
    ChallengeRefusal.PRODUCT_WRONG: 422,
    ChallengeRefusal.SPEED_BELOW_CATALOGUE: 422,
    ChallengeRefusal.SPEED_BELOW_EARLIER: 422,
    ChallengeRefusal.CORES_NOT_SHOWN: 422,
    ChallengeRefusal.CHALLENGE_LATE: 409,
    ChallengeRefusal.CHALLENGE_MISSED: 409,
    ChallengeRefusal.CHALLENGE_IMPOSSIBLE: 409,
    ChallengeRefusal.CHALLENGE_ANSWER_MALFORMED: 422,
    ChallengeRefusal.CHALLENGE_ANSWER_STRAY: 409,
    LifeRefusal.NODE_ALREADY_SO: 409,
    LifeRefusal.NODE_NOT_PROVED: 409,
    RulesRefusal.RULES_MALFORMED: 422,
    RulesRefusal.RULE_UNKNOWN: 422,
    RulesRefusal.WINDOWS_MALFORMED: 422,
    RulesRefusal.IDLE_MALFORMED: 422,
    RulesRefusal.POWER_LIMIT_MALFORMED: 422,
    RulesRefusal.TEMPERATURE_LIMIT_MALFORMED: 422,
    RulesRefusal.LABELS_MALFORMED: 422,
    RulesRefusal.REGION_MALFORMED: 422,
    RulesRefusal.RULE_DATED_AHEAD: 422,
    RulesRefusal.WORK_MALFORMED: 422,
    HardwareRefusal.FACTS_MALFORMED: 422,
    HardwareRefusal.DEVICES_DISORDERED: 422,
    HardwareRefusal.DEVICE_TWICE: 422,
    HardwareRefusal.DEVICE_INCOMPLETE: 422,
    HardwareRefusal.DEVICE_MAKER_WRONG: 422,
    HardwareRefusal.DEVICE_MEMORY_IMPLAUSIBLE: 422,
    HardwareRefusal.LINK_IMPLAUSIBLE: 422,
    KindRefusal.KIND_UNKNOWN: 422,
    KindRefusal.PARAMETERS_MALFORMED: 422,
    KindRefusal.INPUTS_WRONG: 422,
    KindRefusal.WORK_TOO_LARGE: 422,
    KindRefusal.RESULT_WRONG: 422,
    MoneyRefusal.AMOUNT_MALFORMED: 422,
    MoneyRefusal.AMOUNT_NEGATIVE: 422,
    MoneyRefusal.AMOUNT_TOO_LARGE: 422,
    MoneyRefusal.AMOUNT_TOO_FINE: 422,
    AccountRefusal.ACCOUNT_MALFORMED: 422,
    AccountRefusal.ACCOUNT_KIND_UNKNOWN: 422,
    AccountRefusal.ACCOUNT_OWNER_NEEDED: 422,
    AccountRefusal.ACCOUNT_NAME_NEEDED: 422,
    AccountRefusal.ACCOUNT_OF_THE_POOL: 422,
    PostingRefusal.ID_REUSED: 422,
    PostingRefusal.LINK_REPEATED: 409,
    PostingRefusal.ID_OUT_OF_TIME: 422,
    PostingRefusal.AMOUNT_OUT_OF_BOUNDS: 422,
    PostingRefusal.SAME_ACCOUNT: 422,
    PostingRefusal.UNKNOWN_ACCOUNT: 404,
    PostingRefusal.CURRENCY_MISMATCH: 422,
    PostingRefusal.ACCOUNT_FROZEN: 409,
    PostingRefusal.UNKNOWN_HOLD: 404,
    PostingRefusal.HOLD_OF_ANOTHER_ACCOUNT: 422,
    PostingRefusal.HOLD_OVER: 409,
    PostingRefusal.HOLD_TOO_SMALL: 409,
    PostingRefusal.INSUFFICIENT_FUNDS: 402,
    PostingRefusal.LINK_BROKEN: 409,
    PastRefusal.ARCHIVED: 410,
    ArchiveRefusal.NO_SUCH_MONTH: 404,
    ArchiveRefusal.NOT_THE_OLDEST: 409,
    ArchiveRefusal.NOT_OVER: 409,
    ArchiveRefusal.HOLDS_OPEN: 409,
    ArchiveRefusal.LATER_HOLD: 409,
    FreezeRefusal.ALREADY_FROZEN: 409,
    FreezeRefusal.NOT_FROZEN: 409,
    ReviewRefusal.REVIEW_UNKNOWN: 404,
    AdjustmentRefusal.UNKNOWN_ADJUSTMENT: 404,
    AdjustmentRefusal.ALREADY_DECIDED: 409,
    AdjustmentRefusal.OWN_ACCOUNT_NEEDED: 403,
    AdjustmentRefusal.SECOND_OPERATOR_NEEDED: 403,
    OperatorWordRefusal.OPERATOR_TOO_NEW: 403,
    ModelRefusal.UNKNOWN_MODEL: 404,
    ModelRefusal.MODEL_NAME_MALFORMED: 422,
    ModelRefusal.MODEL_NAME_TAKEN: 409,
    ModelRefusal.MODEL_TEXT_MALFORMED: 422,
    ModelRefusal.MODEL_NEEDS_MALFORMED: 422,
    ModelRefusal.MODEL_ARTEFACT_WRONG: 422,
    ArtefactRefusal.UNKNOWN_ARTEFACT: 404,
    ArtefactRefusal.DIGEST_MALFORMED: 422,
    ArtefactRefusal.ARTEFACT_NAME_MALFORMED: 422,
    ArtefactRefusal.ARTEFACT_TOO_LARGE: 413,
    ArtefactRefusal.ARTEFACT_QUOTA_REACHED: 409,
    ArtefactRefusal.ARTEFACT_BALANCE_NEEDED: 402,
    ArtefactRefusal.ARTEFACT_IN_USE: 409,
    ArtefactRefusal.RANGE_NOT_THERE: 416,
    UploadRefusal.UNKNOWN_UPLOAD: 404,
    UploadRefusal.TUS_VERSION_WRONG: 412,
    UploadRefusal.UPLOAD_MEDIA_TYPE_WRONG: 415,
    UploadRefusal.UPLOAD_METADATA_MALFORMED: 400,
    UploadRefusal.TOO_MANY_UPLOADS: 409,
    UploadRefusal.UPLOAD_NOT_GRANTED: 403,
    UploadRefusal.UPLOAD_OFFSET_MALFORMED: 400,
    UploadRefusal.UPLOAD_LENGTH_MALFORMED: 400,
    UploadRefusal.UPLOAD_OFFSET_WRONG: 409,
    UploadRefusal.UPLOAD_BEYOND_LENGTH: 413,
    UploadRefusal.UPLOAD_INCOMPLETE: 409,
    UploadRefusal.UPLOAD_EXPIRED: 410,
    UploadRefusal.UPLOAD_BUSY: 423,
    UploadRefusal.UPLOAD_CHECKSUM_MALFORMED: 400,
    UploadRefusal.UPLOAD_CHECKSUM_WRONG: 460,  # a status of tus's own
    UploadRefusal.UPLOAD_DIGEST_WRONG: 422,
    **dict.fromkeys(ReceiptRefusal, 422),
    **dict.fromkeys(QueueRefusal, 409),
    **dict.fromkeys((*ResultFilesRefusal, *ResultRefusal), 422),
    **dict.fromkeys(ProofRefusal, 422),
    **dict.fromkeys(SandboxRefusal, 409),
    **dict.fromkeys(JobRefusal, 409),
    JobRefusal.UNKNOWN_JOB: 404,
    JobRefusal.NOTHING_TO_EXTEND: 422,
}
