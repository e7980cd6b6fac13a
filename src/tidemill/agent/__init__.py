"""The node agent, our process on an owner's machine. It only dials out, and no failing part of the machine stops it."""
