"""The node agent: what runs on an owner's machine. It only dials out, and nothing on the machine may stop it."""
