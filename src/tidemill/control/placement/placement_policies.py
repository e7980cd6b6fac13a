"""The placement policies: ours, and those that installed packages bring by entry point."""

from importlib.metadata import entry_points

from tidemill.core.faults import SettingsFault
from tidemill.core.placement.policies import FitPolicy, Policy, RankPolicy
from tidemill.core.settings.tree import Settings

GROUP = "tidemill.placement_policies"


def placement_policies(settings: Settings) -> dict[str, Policy]:
    """Every policy by its name. A policy that cannot be used is a fault, rather than left out."""
    policies: dict[str, Policy] = {}
    for entry_point in entry_points(group=GROUP):
        if entry_point.name in policies:
            raise SettingsFault(f"Two packages bring a placement policy called {entry_point.name}: remove one of them.")
        policy = entry_point.load()(settings)
        if not isinstance(policy, RankPolicy | FitPolicy):
            raise SettingsFault(f"{entry_point.value} is no placement policy: it has neither `terms` nor `begin`.")
        policies[entry_point.name] = policy
    return policies
