"""What the machine is and how it is, as its drivers tell. A driver that fails, hangs or is missing stops nothing."""

from tidemill.agent.machine.machine import DriverPatience, Hardware, beat_of

__all__ = ["DriverPatience", "Hardware", "beat_of"]
