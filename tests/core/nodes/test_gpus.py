"""The catalogue of GPUs: its rows can be, and drivers' names find them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.nodes.machine.gpu_names import CATALOGUE, key, memory_fits, recognised, types_named
from tidemill.core.nodes.machine.gpu_types import AMD, NVIDIA, GpuType, MemoryKind

REPORTED = [
    ("NVIDIA GeForce RTX 3090", 24_576, False, "GeForce RTX 3090"),
    ("GeForce GTX 1060 6GB", 6_078, False, "GeForce GTX 1060 6GB"),
    ("GeForce GTX 1060 3GB", 3_019, False, "GeForce GTX 1060 3GB"),
    ("GeForce GTX 1080 Ti", 11_178, False, "GeForce GTX 1080 Ti"),
    ("NVIDIA GeForce RTX 2080 Ti", 11_019, False, "GeForce RTX 2080 Ti"),
    ("NVIDIA GeForce RTX 3060", 12_053, False, "GeForce RTX 3060"),
    ("NVIDIA GeForce RTX 4060 Ti", 16_380, False, "GeForce RTX 4060 Ti"),
    ("NVIDIA GeForce RTX 5090", 32_607, False, "GeForce RTX 5090"),
    ("NVIDIA TITAN X (Pascal)", 12_196, False, "TITAN X (Pascal)"),
    ("Tesla T4", 15_109, True, "Tesla T4"),
    ("NVIDIA T4", 15_360, True, "Tesla T4"),
    ("Tesla P40", 22_919, True, "Tesla P40"),
    ("Tesla P100-PCIE-16GB", 16_280, True, "Tesla P100-PCIE-16GB"),
    ("Tesla V100-SXM2-16GB", 16_160, True, "Tesla V100-SXM2-16GB"),
    ("NVIDIA RTX A6000", 49_140, False, "RTX A6000"),
    ("NVIDIA RTX 6000 Ada Generation", 46_068, True, "RTX 6000 Ada Generation"),
    ("NVIDIA A10G", 22_731, True, "A10G"),
    ("NVIDIA A2", 15_356, True, "A2"),
    ("NVIDIA L4", 22_478, True, "L4"),
    ("NVIDIA L40S", 45_589, True, "L40S"),
    ("NVIDIA A100-SXM4-40GB", 40_536, True, "A100-SXM4-40GB"),
    ("NVIDIA A100-SXM4-80GB", 81_920, True, "A100-SXM4-80GB"),
    ("NVIDIA A100 80GB PCIe", 81_251, True, "A100 80GB PCIe"),
    ("NVIDIA H100 80GB HBM3", 81_559, True, "H100 80GB HBM3"),
    ("NVIDIA H100 PCIe", 81_559, True, "H100 PCIe"),
    ("NVIDIA H100 NVL", 95_830, True, "H100 NVL"),
    ("NVIDIA H200", 143_771, True, "H200"),
    ("NVIDIA GH200 480GB", 97_871, True, "GH200 480GB"),
    ("NVIDIA B200", 183_359, True, "B200"),
    ("AMD Instinct MI300X OAM", 196_592, True, "Instinct MI300X"),
    ("AMD Instinct MI250X / MI250", 65_520, True, "Instinct MI250X"),
    ("AMD Radeon RX 7900 XTX", 24_560, False, "Radeon RX 7900 XTX"),
    ("Navi 33 [Radeon RX 7600]", 8_176, False, "Radeon RX 7600"),
]
"""Names and memory as drivers report them, with error correction on or off."""

UNKNOWN = [
    "",
    "NVIDIA",
    "NVIDIA GeForce RTX 3080 Laptop GPU",
    "NVIDIA GeForce RTX 3090 Ti SUPER",
    "NVIDIA GeForce RTX 309",
    "NVIDIA GeForce RTX ３０９０",
    "GRID A100-10C",
    "NVIDIA A100-SXM4-80GB MIG 1g.10gb",
    "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900 GRE]",
    "[" * 10_000,
]


@pytest.mark.parametrize(("reported", "memory_mib", "ecc", "name"), REPORTED)
def test_what_drivers_report_is_recognised_and_fits(reported: str, memory_mib: int, ecc: bool, name: str) -> None:
    gpu = recognised(reported, memory_mib)
    assert gpu
    assert gpu.name == name
    assert memory_fits(gpu, memory_mib, ecc=ecc)


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_only_resembles_a_model_is_unknown(name: str) -> None:
    assert recognised(name, 24_576) is None


@given(st.text(max_size=200), st.integers(0, 2**31))
def test_any_name_at_all_has_an_answer(name: str, memory_mib: int) -> None:
    assert recognised(name, memory_mib) in (None, *CATALOGUE)


def test_a_name_with_two_sizes_is_the_one_whose_memory_is_nearest() -> None:
    assert [gpu.memory_mib for gpu in types_named("GeForce RTX 3060")] == [8_192, 12_288]
    assert _cores("GeForce RTX 3080", 10_010) == 8_704
    assert _cores("GeForce RTX 3080", 12_053) == 8_960


@pytest.mark.parametrize(
    ("name", "memory_mib", "ecc"),
    [
        ("GeForce RTX 3060", 24_576, False),
        ("GeForce RTX 3060", 10_240, False),
        ("GeForce RTX 3090", 25_400, False),
        ("GeForce RTX 3090", 23_028, False),
        ("A100-SXM4-80GB", 76_800, True),
        ("Tesla T4", 14_000, True),
    ],
)
def test_memory_that_a_model_cannot_have_does_not_fit(name: str, memory_mib: int, ecc: bool) -> None:
    gpu = recognised(name, memory_mib)
    assert gpu
    assert not memory_fits(gpu, memory_mib, ecc=ecc)


@pytest.mark.parametrize("gpu", CATALOGUE, ids=lambda gpu: f"{gpu.name}-{gpu.memory_mib}")
def test_every_row_can_be(gpu: GpuType) -> None:
    assert 3_072 <= gpu.memory_mib <= 300_000
    assert gpu.memory_mib % 1_024 == 0
    assert gpu.cores % 64 == 0
    two_a_cycle_ghz = gpu.fp32_tflops * 1_000 / (2 * gpu.cores)
    assert 0.85 <= two_a_cycle_ghz <= (3.2 if gpu in NVIDIA else 6.4), "newer cores by AMD do four operations a cycle"
    assert gpu.fp32_tflops / 70 <= gpu.fp16_tflops <= gpu.fp32_tflops * 30
    assert 128 <= gpu.memory_gb_per_s <= 8_192
    assert gpu.memory_gb_per_s >= (500 if gpu.memory is MemoryKind.HBM else 0)
    assert gpu.memory is MemoryKind.HBM or gpu.memory_gb_per_s < 2_000


@pytest.mark.parametrize("gpu", [gpu for gpu in CATALOGUE if gpu.nvlink], ids=lambda gpu: gpu.name)
def test_every_nvlink_can_be(gpu: GpuType) -> None:
    assert gpu.nvlink
    most_gb_per_s = {1: 160, 2: 300, 3: 600, 4: 900, 5: 1_800}
    assert 50 <= gpu.nvlink.gb_per_s <= most_gb_per_s[gpu.nvlink.generation]
    assert gpu not in AMD


def test_no_two_models_share_a_name_unless_their_memory_tells_them_apart() -> None:
    names = [(key(name), gpu) for gpu in CATALOGUE for name in {key(n): n for n in (gpu.name, *gpu.also)}.values()]
    shared = [
        (one.name, other.name)
        for (name, one), (other_name, other) in combinations(names, 2)
        if name == other_name and min(one.memory_mib, other.memory_mib) * 1.1 > max(one.memory_mib, other.memory_mib)
    ]
    assert not shared
    assert all(name for name, _ in names)


def test_no_name_of_one_maker_is_a_name_of_the_other() -> None:
    names = [{key(name) for gpu in makers for name in (gpu.name, *gpu.also)} for makers in (NVIDIA, AMD)]
    assert not names[0] & names[1]


def _cores(name: str, memory_mib: int) -> int:
    gpu = recognised(name, memory_mib)
    assert gpu
    return gpu.cores
