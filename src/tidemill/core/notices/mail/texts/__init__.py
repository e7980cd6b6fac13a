"""The letters in each language."""

from collections.abc import Mapping

from tidemill.core.accounts.account import Language
from tidemill.core.notices.mail.texts import en, ru, zh
from tidemill.core.notices.mail.wording import Wording

WORDINGS: Mapping[Language, Wording] = {
    Language.ENGLISH: en.WORDING,
    Language.RUSSIAN: ru.WORDING,
    Language.CHINESE: zh.WORDING,
}
