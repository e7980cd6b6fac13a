"""A network of our own: a namespace that can call the pool and cannot be called, and whose cable can be cut."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

POOL_ADDRESS, NODE_ADDRESS = "198.18.42.1", "198.18.42.2"


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def _try(*command: str) -> None:
    subprocess.run(command, capture_output=True, check=False)


@dataclass(frozen=True)
class Network:
    """The namespace of a node, and the pool's end of the cable to it."""

    name: str
    cable: str

    @property
    def inside(self) -> tuple[str, ...]:
        """What goes before a command that is to run there."""
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        """As if somebody pulled the cable: neither side is told."""
        _run("iptables", "-w", "-I", "INPUT", "-i", self.cable, "-j", "DROP")
        _run("iptables", "-w", "-I", "OUTPUT", "-o", self.cable, "-j", "DROP")

    def mend(self) -> None:
        _run("iptables", "-w", "-D", "INPUT", "-i", self.cable, "-j", "DROP")
        _run("iptables", "-w", "-D", "OUTPUT", "-o", self.cable, "-j", "DROP")


@contextmanager
def one_way_network(number: int) -> Iterator[Network]:
    """In the namespace every packet that does not answer one of its own is dropped, as behind an owner's router."""
    network = Network(f"tidemill-{number}", f"tm{number}a")
    far = f"tm{number}b"
    _run("ip", "netns", "add", network.name)
    try:
        _run("ip", "link", "add", network.cable, "type", "veth", "peer", "name", far, "netns", network.name)
        _run("ip", "address", "add", f"{POOL_ADDRESS}/30", "dev", network.cable)
        _run("ip", "link", "set", network.cable, "up")
        _run(*network.inside, "ip", "address", "add", f"{NODE_ADDRESS}/30", "dev", far)
        for device in ("lo", far):
            _run(*network.inside, "ip", "link", "set", device, "up")
        for rule in (("-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED"), ("-i", "lo")):
            _run(*network.inside, "iptables", "-w", "-A", "INPUT", *rule, "-j", "ACCEPT")
        _run(*network.inside, "iptables", "-w", "-P", "INPUT", "DROP")
        yield network
    finally:
        _try("iptables", "-w", "-D", "INPUT", "-i", network.cable, "-j", "DROP")
        _try("iptables", "-w", "-D", "OUTPUT", "-o", network.cable, "-j", "DROP")
        _try("ip", "link", "delete", network.cable)
        _try("ip", "netns", "delete", network.name)
