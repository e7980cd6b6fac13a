"""What the machine is and how it is: asked of its drivers, which may fail, hang or be missing, and stop nothing."""

from tidemill.agent.machine.machine import DriverPatience, Hardware, beat_of

__all__ = ["DriverPatience", "Hardware", "beat_of"]
