"""Which limit holds for which caller."""

from tidemill.core.accounts.roles import Caller, Credential, Role
from tidemill.core.clock import DAY, HOUR, SECOND
from tidemill.core.rate_limits import Limit, address_key
from tidemill.core.settings.sections.edge import LimitsSettings

_MINUTE = 60 * SECOND


class CallerLimits:
    """The pool's limits. Each key has one by its role, an account one for all its keys and sessions, a stranger one by
    address. What costs much has limits of its own."""

    def __init__(self, settings: LimitsSettings) -> None:
        self._stranger = Limit("stranger", settings.stranger_per_minute, _MINUTE)
        self._account = Limit("account", settings.account_per_minute, _MINUTE)
        self._data_centre = Limit("data_centre_account", settings.data_centre_account_per_minute, _MINUTE)
        self._operator = Limit("operator", settings.operator_per_minute, _MINUTE)
        self._by_role = {
            Role.DATA_CENTRE: Limit("data_centre", settings.data_centre_per_minute, _MINUTE),
            Role.OPERATOR: self._operator,
        }
        self._customer = Limit("customer", settings.customer_per_minute, _MINUTE)
        self._node = Limit("node", settings.node_per_minute, _MINUTE)
        self.login = Limit("login", settings.login_per_minute, _MINUTE)
        self.door = Limit("door", settings.login_per_minute, _MINUTE)
        self.mail = Limit("mail", settings.mail_per_hour, HOUR)
        self.orders = Limit("orders", settings.orders_per_minute, _MINUTE)
        self.answers = Limit("answers", settings.answers_kib_per_day, DAY)
        self.credentials = Limit("credentials", settings.credentials_per_hour, HOUR)

    def of(self, caller: Caller) -> Limit:
        match caller.credential:
            case Credential.NOTHING:
                return self._stranger
            case Credential.SESSION:
                return self._account
            case Credential.NODE:
                return self._node
            case Credential.HOME:
                return self._operator
            case Credential.KEY:
                return self._by_role.get(next(iter(caller.roles), Role.CUSTOMER), self._customer)

    def shared_by_keys(self, caller: Caller) -> Limit | None:
        """The limit of the account that a key draws from besides its own; operators' keys have none."""
        if caller.key_id is None or Role.OPERATOR in caller.roles:
            return None
        return self._data_centre if Role.DATA_CENTRE in caller.roles else self._account

    @staticmethod
    def whose_request(caller: Caller, address: str) -> str:
        """Whose bucket a request draws from: strangers are told apart by their address."""
        return address_key(address) if caller.credential is Credential.NOTHING else caller.bucket

    @staticmethod
    def whose_account(caller: Caller, address: str) -> str:
        """Who has what may be had at once: the account, whichever key is used; strangers by their address."""
        return address_key(address) if caller.credential is Credential.NOTHING else caller.account_bucket
