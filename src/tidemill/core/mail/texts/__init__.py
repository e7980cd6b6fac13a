"""The letters in each language."""

from collections.abc import Mapping

from tidemill.core.accounts.account import Language
from tidemill.core.mail.texts import en, ru, zh
from tidemill.core.mail.wording import Wording

WORDINGS: Mapping[Language, Wording] = {
    Language.ENGLISH: en.WORDING,
    Language.RUSSIAN: ru.WORDING,
    Language.CHINESE: zh.WORDING,
}
