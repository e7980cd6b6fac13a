"""Which placement policies there are: ours, and those that installed packages bring by entry point."""

from importlib.metadata import entry_points

from tidemill.core.faults import SettingsFault
from tidemill.core.placement.policies import FitPolicy, Policy, RankPolicy
from tidemill.core.settings.tree import Settings

GROUP = "tidemill.placement_policies"


def placement_policies(settings: Settings) -> dict[str, Policy]:
    """Every policy by its name. One that cannot be used is named, rather than left out."""
    policies: dict[str, Policy] = {}
    for found in entry_points(group=GROUP):
        if found.name in policies:
            raise SettingsFault(f"Two packages bring a placement policy called {found.name}: remove one of them.")
        policy = found.load()(settings)
        if not isinstance(policy, RankPolicy | FitPolicy):
            raise SettingsFault(f"{found.value} is no placement policy: it has neither `terms` nor `begin`.")
        policies[found.name] = policy
    return policies
