"""Which system calls a task may not make, as the program that the kernel runs before each call.

It refuses calls that change the machine, look into other processes, make namespaces or have little use beside attacks.
It answers calls that are newer than the table as an older kernel would. Calls by another processor's numbers (32-bit,
x32) end the process. Calls that take disk space without writing to it are answered as by a filesystem that cannot do
that: libraries then write, and a writer is slow enough to be watched.
"""

import errno
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass

REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_kernel_syms": (177, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "syslog": (103, 116),
    "_sysctl": (156, None),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
}
"""The numbers of refused calls on x86_64 and on aarch64, where they exist."""

CHECKED: Mapping[str, tuple[int, int]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    "personality": (135, 92),
    "ioctl": (16, 29),
    "fallocate": (285, 47),
}
"""Calls judged by their arguments. Those of clone3 are in memory, out of sight: refused, so libraries use clone.
Those of fallocate do not tell a file on disk from one in memory."""

NEWEST_CALL = 451
NAMESPACES = 0x7E020080
"""Flags of clone that make a user, mount, process, network, name, message or control group namespace, or a time one."""
FAMILIES = (1, 2, 10, 16)
"""Sockets: unix, IPv4, IPv6 and netlink. Others, such as those to a hypervisor, know no network namespace."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""Typing into a terminal as if its user did."""
RESERVING = (0x40305828, 0x4030582A, 0x40305839, 0x4030580A, 0x40305824, 0x401C5820)
"""Older ways to fallocate on any filesystem, two more of XFS, and what sets how much one written byte takes there."""
DEFAULT_PERSONALITY = (0, 0xFFFFFFFF)

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _ANSWER = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ALLOW, _ERROR = 0x80000000, 0x7FFF0000, 0x00050000
_NUMBER, _PROCESSOR, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24


@dataclass(frozen=True)
class Processor:
    column: int
    architecture: int
    """The kernel's mark of a call made by this processor's own numbers."""
    engine: str
    """How engines call it."""


PROCESSORS = {
    "x86_64": Processor(0, 0xC000003E, "SCMP_ARCH_X86_64"),
    "aarch64": Processor(1, 0xC00000B7, "SCMP_ARCH_AARCH64"),
}


def call_filter(machine: str) -> bytes | None:
    """The program for a machine, or None where its numbers are not in the table."""
    processor = PROCESSORS.get(machine)
    if processor is None:
        return None
    numbers = [row[processor.column] for row in REFUSED.values()]
    steps = [
        _step(_LOAD, _PROCESSOR),
        *_unless_equal(processor.architecture, _KILL),
        _step(_LOAD, _NUMBER),
        *_when(_AT_LEAST, 0x40000000, _KILL),
        *_when(_AT_LEAST, NEWEST_CALL + 1, _ERROR | errno.ENOSYS),
        *(step for number in numbers if number is not None for step in _when(_EQUAL, number, _ERROR | errno.EPERM)),
        *_by_argument(processor.column),
        _step(_ANSWER, _ALLOW),
    ]
    return b"".join(steps)


def call_profile(machine: str, may_reserve: bool = False) -> dict[str, object] | None:
    """The same refusals in the form that engines read, as far as that form can express them.

    It names calls, and allows one comparison an argument. So calls that are newer than the engine's library are not
    refused, and only the default personality is allowed. `may_reserve` allows fallocate.
    """
    processor = PROCESSORS.get(machine)
    if processor is None:
        return None
    bits = [1 << bit_number for bit_number in range(32) if NAMESPACES >> bit_number & 1]
    families = [("SCMP_CMP_EQ", family) for family in range(max(FAMILIES)) if family not in FAMILIES]
    rules = [
        {"names": sorted(REFUSED), **_refusal(errno.EPERM)},
        {"names": ["clone3"], **_refusal(errno.ENOSYS)},
        *([] if may_reserve else [{"names": ["fallocate"], **_refusal(errno.EOPNOTSUPP)}]),
        *(_compared("clone", 0, "SCMP_CMP_MASKED_EQ", bit, errno.EPERM) for bit in bits),
        *(_compared("socket", 0, test, family, errno.EAFNOSUPPORT) for test, family in families),
        _compared("socket", 0, "SCMP_CMP_GT", max(FAMILIES), errno.EAFNOSUPPORT),
        _compared("personality", 0, "SCMP_CMP_GT", 0, errno.EPERM),
        *(_asked_by_ioctl(code, errno.EPERM) for code in TERMINAL_INPUT),
        *(_asked_by_ioctl(code, errno.EOPNOTSUPP) for code in RESERVING),
    ]
    return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": [processor.engine], "syscalls": rules}


def _refusal(number: int) -> dict[str, object]:
    return {"action": "SCMP_ACT_ERRNO", "errnoRet": number}


def _compared(name: str, index: int, test: str, value: int, number: int) -> dict[str, object]:
    argument = {"index": index, "value": value, "valueTwo": value, "op": test}
    return {"names": [name], "args": [argument], **_refusal(number)}


def _asked_by_ioctl(code: int, number: int) -> dict[str, object]:
    """The kernel ignores the upper half of the code, so the comparison does, too."""
    argument = {"index": 1, "value": 0xFFFFFFFF, "valueTwo": code, "op": "SCMP_CMP_MASKED_EQ"}
    return {"names": ["ioctl"], "args": [argument], **_refusal(number)}


def this_machine() -> str:
    return platform.machine()


def _by_argument(column: int) -> list[bytes]:
    number = {name: row[column] for name, row in CHECKED.items()}
    refuse = _ERROR | errno.EPERM
    typed = [step for code in TERMINAL_INPUT for step in _when(_EQUAL, code, refuse)]
    reserving = [step for code in RESERVING for step in _when(_EQUAL, code, _ERROR | errno.EOPNOTSUPP)]
    return [
        *_when(_EQUAL, number["clone3"], _ERROR | errno.ENOSYS),
        *_when(_EQUAL, number["fallocate"], _ERROR | errno.EOPNOTSUPP),
        *_for(number["clone"], _FIRST_ARGUMENT, _when(_ANY_BIT, NAMESPACES, refuse)),
        *_for(number["socket"], _FIRST_ARGUMENT, _unless_one_of(FAMILIES, _ERROR | errno.EAFNOSUPPORT)),
        *_for(number["personality"], _FIRST_ARGUMENT, _unless_one_of(DEFAULT_PERSONALITY, refuse)),
        *_for(number["ioctl"], _SECOND_ARGUMENT, [*typed, *reserving]),
    ]


def _for(number: int, argument: int, steps: list[bytes]) -> list[bytes]:
    """Steps over one argument of one call. The call is allowed if none of them answers."""
    body = [_step(_LOAD, argument), *steps, _step(_ANSWER, _ALLOW)]
    return [_step(_EQUAL, number, 0, len(body)), *body]


def _when(test: int, value: int, answer: int) -> list[bytes]:
    return [_step(test, value, 0, 1), _step(_ANSWER, answer)]


def _unless_equal(value: int, answer: int) -> list[bytes]:
    return [_step(_EQUAL, value, 1, 0), _step(_ANSWER, answer)]


def _unless_one_of(values: tuple[int, ...], answer: int) -> list[bytes]:
    tests = [_step(_EQUAL, value, len(values) - position, 0) for position, value in enumerate(values)]
    return [*tests, _step(_ANSWER, answer)]


def _step(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)
