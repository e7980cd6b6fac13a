"""The GPUs we know, with the figures of their public data sheets.

One row is one model with one size of memory; a name that was sold with two sizes has two rows. Memory is what is
soldered on, before error correction takes its part. FP16 is the fastest dense rate, of the tensor cores where there are
any. Where one name and size was sold with slower and faster memory, the row has the faster. So each figure is a ceiling
that no honest device exceeds. For a card with two dies that its driver shows as two devices, a row is one die.
"""

from dataclasses import dataclass
from enum import Enum


class MemoryKind(Enum):
    """Kinds of memory. Error correction takes a sixteenth of GDDR; HBM has room of its own for it."""

    GDDR = "GDDR"
    HBM = "HBM"


@dataclass(frozen=True)
class NvLink:
    """Links to other GPUs: their generation, and what all of them carry together, both ways added up."""

    generation: int
    gb_per_s: float


@dataclass(frozen=True)
class GpuType:
    """One model. `also` are other names that drivers have for it."""

    name: str
    memory_mib: int
    memory: MemoryKind
    cores: int
    fp32_tflops: float
    fp16_tflops: float
    memory_gb_per_s: int
    nvlink: NvLink | None = None
    also: tuple[str, ...] = ()


_GDDR = MemoryKind.GDDR
_HBM = MemoryKind.HBM

NVIDIA: tuple[GpuType, ...] = (
    # GeForce 10: half precision runs at a 64th of the speed
    GpuType("GeForce GTX 1060 3GB", 3_072, _GDDR, 1_152, 3.9, 0.06, 192),
    GpuType("GeForce GTX 1060 6GB", 6_144, _GDDR, 1_280, 4.4, 0.07, 192, also=("GeForce GTX 1060",)),
    GpuType("GeForce GTX 1070", 8_192, _GDDR, 1_920, 6.5, 0.1, 256),
    GpuType("GeForce GTX 1070 Ti", 8_192, _GDDR, 2_432, 8.2, 0.13, 256),
    GpuType("GeForce GTX 1080", 8_192, _GDDR, 2_560, 8.9, 0.14, 320),
    GpuType("GeForce GTX 1080 Ti", 11_264, _GDDR, 3_584, 11.3, 0.18, 484),
    GpuType("TITAN X (Pascal)", 12_288, _GDDR, 3_584, 11.0, 0.17, 480),
    GpuType("TITAN Xp", 12_288, _GDDR, 3_840, 12.1, 0.19, 548, also=("TITAN Xp COLLECTORS EDITION",)),
    GpuType("TITAN V", 12_288, _HBM, 5_120, 14.9, 119.2, 653),
    # GeForce 16 and 20
    GpuType("GeForce GTX 1650", 4_096, _GDDR, 896, 3.0, 6.0, 192),
    GpuType("GeForce GTX 1650 SUPER", 4_096, _GDDR, 1_280, 4.4, 8.8, 192),
    GpuType("GeForce GTX 1660", 6_144, _GDDR, 1_408, 5.0, 10.1, 192),
    GpuType("GeForce GTX 1660 SUPER", 6_144, _GDDR, 1_408, 5.0, 10.1, 336),
    GpuType("GeForce GTX 1660 Ti", 6_144, _GDDR, 1_536, 5.4, 10.9, 288),
    GpuType("GeForce RTX 2060", 6_144, _GDDR, 1_920, 6.5, 51.6, 336),
    GpuType("GeForce RTX 2060", 12_288, _GDDR, 2_176, 7.2, 57.4, 336),
    GpuType("GeForce RTX 2060 SUPER", 8_192, _GDDR, 2_176, 7.2, 57.4, 448),
    GpuType("GeForce RTX 2070", 8_192, _GDDR, 2_304, 7.5, 59.7, 448),
    GpuType("GeForce RTX 2070 SUPER", 8_192, _GDDR, 2_560, 9.1, 72.5, 448, NvLink(2, 50)),
    GpuType("GeForce RTX 2080", 8_192, _GDDR, 2_944, 10.1, 80.5, 448, NvLink(2, 50)),
    GpuType("GeForce RTX 2080 SUPER", 8_192, _GDDR, 3_072, 11.2, 89.2, 496, NvLink(2, 50)),
    GpuType("GeForce RTX 2080 Ti", 11_264, _GDDR, 4_352, 13.4, 107.6, 616, NvLink(2, 100)),
    GpuType("TITAN RTX", 24_576, _GDDR, 4_608, 16.3, 130.5, 672, NvLink(2, 100)),
    # GeForce 30
    GpuType("GeForce RTX 3050", 6_144, _GDDR, 2_304, 6.8, 27.1, 168),
    GpuType("GeForce RTX 3050", 8_192, _GDDR, 2_560, 9.1, 36.4, 224),
    GpuType("GeForce RTX 3060", 8_192, _GDDR, 3_584, 12.7, 51.0, 240),
    GpuType("GeForce RTX 3060", 12_288, _GDDR, 3_584, 12.7, 51.0, 360),
    GpuType("GeForce RTX 3060 Ti", 8_192, _GDDR, 4_864, 16.2, 64.8, 608),
    GpuType("GeForce RTX 3070", 8_192, _GDDR, 5_888, 20.3, 81.3, 448),
    GpuType("GeForce RTX 3070 Ti", 8_192, _GDDR, 6_144, 21.7, 87.0, 608),
    GpuType("GeForce RTX 3080", 10_240, _GDDR, 8_704, 29.8, 119.1, 760),
    GpuType("GeForce RTX 3080", 12_288, _GDDR, 8_960, 30.6, 122.6, 912),
    GpuType("GeForce RTX 3080 Ti", 12_288, _GDDR, 10_240, 34.1, 136.4, 912),
    GpuType("GeForce RTX 3090", 24_576, _GDDR, 10_496, 35.6, 142.3, 936, NvLink(3, 112.5)),
    GpuType("GeForce RTX 3090 Ti", 24_576, _GDDR, 10_752, 40.0, 160.0, 1_008, NvLink(3, 112.5)),
    # GeForce 40
    GpuType("GeForce RTX 4060", 8_192, _GDDR, 3_072, 15.1, 60.5, 272),
    GpuType("GeForce RTX 4060 Ti", 8_192, _GDDR, 4_352, 22.1, 88.3, 288),
    GpuType("GeForce RTX 4060 Ti", 16_384, _GDDR, 4_352, 22.1, 88.3, 288),
    GpuType("GeForce RTX 4070", 12_288, _GDDR, 5_888, 29.1, 116.6, 504),
    GpuType("GeForce RTX 4070 SUPER", 12_288, _GDDR, 7_168, 35.5, 141.9, 504),
    GpuType("GeForce RTX 4070 Ti", 12_288, _GDDR, 7_680, 40.1, 160.4, 504),
    GpuType("GeForce RTX 4070 Ti SUPER", 16_384, _GDDR, 8_448, 44.1, 176.4, 672),
    GpuType("GeForce RTX 4080", 16_384, _GDDR, 9_728, 48.7, 194.9, 717),
    GpuType("GeForce RTX 4080 SUPER", 16_384, _GDDR, 10_240, 52.2, 208.9, 736),
    GpuType("GeForce RTX 4090", 24_576, _GDDR, 16_384, 82.6, 330.3, 1_008),
    GpuType("GeForce RTX 4090 D", 24_576, _GDDR, 14_592, 73.5, 294.2, 1_008),
    # GeForce 50
    GpuType("GeForce RTX 5050", 8_192, _GDDR, 2_560, 13.2, 52.7, 320),
    GpuType("GeForce RTX 5060", 8_192, _GDDR, 3_840, 19.2, 76.7, 448),
    GpuType("GeForce RTX 5060 Ti", 8_192, _GDDR, 4_608, 23.7, 94.8, 448),
    GpuType("GeForce RTX 5060 Ti", 16_384, _GDDR, 4_608, 23.7, 94.8, 448),
    GpuType("GeForce RTX 5070", 12_288, _GDDR, 6_144, 30.9, 123.5, 672),
    GpuType("GeForce RTX 5070 Ti", 16_384, _GDDR, 8_960, 43.9, 175.8, 896),
    GpuType("GeForce RTX 5080", 16_384, _GDDR, 10_752, 56.3, 225.1, 960),
    GpuType("GeForce RTX 5090", 32_768, _GDDR, 21_760, 104.8, 419.0, 1_792),
    # Workstations
    GpuType("Quadro RTX 4000", 8_192, _GDDR, 2_304, 7.1, 57.0, 416),
    GpuType("Quadro RTX 5000", 16_384, _GDDR, 3_072, 11.2, 89.2, 448, NvLink(2, 50)),
    GpuType("Quadro RTX 6000", 24_576, _GDDR, 4_608, 16.3, 130.5, 672, NvLink(2, 100)),
    GpuType("Quadro RTX 8000", 49_152, _GDDR, 4_608, 16.3, 130.5, 672, NvLink(2, 100)),
    GpuType("RTX A2000", 6_144, _GDDR, 3_328, 8.0, 31.9, 288),
    GpuType("RTX A2000 12GB", 12_288, _GDDR, 3_328, 8.0, 31.9, 288),
    GpuType("RTX A4000", 16_384, _GDDR, 6_144, 19.2, 76.7, 448),
    GpuType("RTX A4500", 20_480, _GDDR, 7_168, 23.7, 94.6, 640, NvLink(3, 112.5)),
    GpuType("RTX A5000", 24_576, _GDDR, 8_192, 27.8, 111.1, 768, NvLink(3, 112.5)),
    GpuType("RTX A5500", 24_576, _GDDR, 10_240, 34.1, 136.4, 768, NvLink(3, 112.5)),
    GpuType("RTX A6000", 49_152, _GDDR, 10_752, 38.7, 154.8, 768, NvLink(3, 112.5)),
    GpuType("RTX 2000 Ada Generation", 16_384, _GDDR, 2_816, 12.0, 48.0, 224),
    GpuType("RTX 4000 Ada Generation", 20_480, _GDDR, 6_144, 26.7, 106.9, 360),
    GpuType("RTX 4000 SFF Ada Generation", 20_480, _GDDR, 6_144, 19.2, 76.8, 280),
    GpuType("RTX 4500 Ada Generation", 24_576, _GDDR, 7_680, 39.6, 158.5, 432),
    GpuType("RTX 5000 Ada Generation", 32_768, _GDDR, 12_800, 65.3, 261.1, 576),
    GpuType("RTX 6000 Ada Generation", 49_152, _GDDR, 18_176, 91.1, 364.2, 960),
    GpuType("RTX PRO 6000 Blackwell Workstation Edition", 98_304, _GDDR, 24_064, 125.0, 503.8, 1_792),
    GpuType("RTX PRO 6000 Blackwell Max-Q Workstation Edition", 98_304, _GDDR, 24_064, 110.0, 438.9, 1_792),
    GpuType("RTX PRO 6000 Blackwell Server Edition", 98_304, _GDDR, 24_064, 120.0, 480.0, 1_597),
    # Data centres: Pascal, Volta, Turing
    GpuType("Tesla P4", 8_192, _GDDR, 2_560, 5.5, 0.09, 192),
    GpuType("Tesla P40", 24_576, _GDDR, 3_840, 11.8, 0.18, 347),
    GpuType("Tesla P100-PCIE-12GB", 12_288, _HBM, 3_584, 9.3, 18.7, 549),
    GpuType("Tesla P100-PCIE-16GB", 16_384, _HBM, 3_584, 9.3, 18.7, 732),
    GpuType("Tesla P100-SXM2-16GB", 16_384, _HBM, 3_584, 10.6, 21.2, 732, NvLink(1, 160)),
    GpuType("Tesla V100-PCIE-16GB", 16_384, _HBM, 5_120, 14.0, 112.0, 900),
    GpuType("Tesla V100-PCIE-32GB", 32_768, _HBM, 5_120, 14.0, 112.0, 900),
    GpuType("Tesla V100S-PCIE-32GB", 32_768, _HBM, 5_120, 16.4, 130.0, 1_134),
    GpuType("Tesla V100-SXM2-16GB", 16_384, _HBM, 5_120, 15.7, 125.0, 900, NvLink(2, 300)),
    GpuType("Tesla V100-SXM2-32GB", 32_768, _HBM, 5_120, 15.7, 125.0, 900, NvLink(2, 300)),
    GpuType("Tesla V100-SXM3-32GB", 32_768, _HBM, 5_120, 16.4, 131.0, 981, NvLink(2, 300)),
    GpuType("Tesla T4", 16_384, _GDDR, 2_560, 8.1, 65.0, 320),
    # Data centres: Ampere, Ada
    GpuType("A2", 16_384, _GDDR, 1_280, 4.5, 18.0, 200),
    GpuType("A10", 24_576, _GDDR, 9_216, 31.2, 125.0, 600),
    GpuType("A10G", 24_576, _GDDR, 9_216, 35.0, 140.0, 600),
    GpuType("A16", 16_384, _GDDR, 1_280, 4.5, 18.0, 200),
    GpuType("A30", 24_576, _HBM, 3_584, 10.3, 165.0, 933, NvLink(3, 200)),
    GpuType("A40", 49_152, _GDDR, 10_752, 37.4, 149.7, 696, NvLink(3, 112.5)),
    GpuType("A100-PCIE-40GB", 40_960, _HBM, 6_912, 19.5, 312.0, 1_555, NvLink(3, 600)),
    GpuType("A100-SXM4-40GB", 40_960, _HBM, 6_912, 19.5, 312.0, 1_555, NvLink(3, 600)),
    GpuType("A100 80GB PCIe", 81_920, _HBM, 6_912, 19.5, 312.0, 1_935, NvLink(3, 600), also=("A100-PCIE-80GB",)),
    GpuType("A100-SXM4-80GB", 81_920, _HBM, 6_912, 19.5, 312.0, 2_039, NvLink(3, 600)),
    GpuType("A800 80GB PCIe", 81_920, _HBM, 6_912, 19.5, 312.0, 1_935, NvLink(3, 400)),
    GpuType("A800-SXM4-80GB", 81_920, _HBM, 6_912, 19.5, 312.0, 2_039, NvLink(3, 400)),
    GpuType("L4", 24_576, _GDDR, 7_424, 30.3, 121.0, 300),
    GpuType("L40", 49_152, _GDDR, 18_176, 90.5, 362.1, 864),
    GpuType("L40S", 49_152, _GDDR, 18_176, 91.6, 362.0, 864),
    # Data centres: Hopper, Blackwell
    GpuType("H100 PCIe", 81_920, _HBM, 14_592, 51.2, 756.0, 2_039, NvLink(4, 600)),
    GpuType("H100 80GB HBM3", 81_920, _HBM, 16_896, 67.0, 989.4, 3_352, NvLink(4, 900), also=("H100 SXM5 80GB",)),
    GpuType("H100 NVL", 96_256, _HBM, 16_896, 60.0, 835.5, 3_938, NvLink(4, 600)),
    GpuType("H800", 81_920, _HBM, 16_896, 67.0, 989.4, 3_352, NvLink(4, 400)),
    GpuType("H20", 98_304, _HBM, 9_984, 44.0, 148.0, 4_000, NvLink(4, 900)),
    GpuType("H200", 144_384, _HBM, 16_896, 67.0, 989.4, 4_800, NvLink(4, 900)),
    GpuType("H200 NVL", 144_384, _HBM, 16_896, 60.0, 835.5, 4_800, NvLink(4, 900)),
    GpuType("GH200 480GB", 98_304, _HBM, 16_896, 67.0, 989.4, 4_000, NvLink(4, 900), also=("GH200 120GB",)),
    GpuType("GH200 144G HBM3e", 147_456, _HBM, 16_896, 67.0, 989.4, 4_900, NvLink(4, 900)),
    GpuType("B200", 184_320, _HBM, 18_944, 80.0, 2_250.0, 8_000, NvLink(5, 1_800)),
)

AMD: tuple[GpuType, ...] = (
    GpuType("Instinct MI50", 16_384, _HBM, 3_840, 13.4, 26.8, 1_024),
    GpuType("Instinct MI50", 32_768, _HBM, 3_840, 13.4, 26.8, 1_024, also=("Instinct MI50 32GB",)),
    GpuType("Instinct MI60", 32_768, _HBM, 4_096, 14.7, 29.5, 1_024),
    GpuType("Instinct MI100", 32_768, _HBM, 7_680, 23.1, 184.6, 1_229),
    GpuType("Instinct MI210", 65_536, _HBM, 6_656, 22.6, 181.0, 1_638),
    GpuType("Instinct MI250", 65_536, _HBM, 6_656, 22.6, 181.0, 1_638),
    GpuType("Instinct MI250X", 65_536, _HBM, 7_040, 23.9, 191.5, 1_638, also=("Instinct MI250X / MI250",)),
    GpuType("Instinct MI300A", 131_072, _HBM, 14_592, 122.6, 980.6, 5_300),
    GpuType("Instinct MI300X", 196_608, _HBM, 19_456, 163.4, 1_307.4, 5_300),
    GpuType("Instinct MI325X", 262_144, _HBM, 19_456, 163.4, 1_307.4, 6_000),
    GpuType("Radeon VII", 16_384, _HBM, 3_840, 13.8, 27.7, 1_024),
    GpuType("Radeon RX 6600", 8_192, _GDDR, 1_792, 8.9, 17.9, 224),
    GpuType("Radeon RX 6600 XT", 8_192, _GDDR, 2_048, 10.6, 21.2, 256),
    GpuType("Radeon RX 6650 XT", 8_192, _GDDR, 2_048, 10.8, 21.6, 280),
    GpuType("Radeon RX 6700", 10_240, _GDDR, 2_304, 11.3, 22.6, 320),
    GpuType("Radeon RX 6700 XT", 12_288, _GDDR, 2_560, 13.2, 26.4, 384),
    GpuType("Radeon RX 6750 XT", 12_288, _GDDR, 2_560, 13.3, 26.6, 432),
    GpuType("Radeon RX 6800", 16_384, _GDDR, 3_840, 16.2, 32.3, 512),
    GpuType("Radeon RX 6800 XT", 16_384, _GDDR, 4_608, 20.7, 41.5, 512),
    GpuType("Radeon RX 6900 XT", 16_384, _GDDR, 5_120, 23.0, 46.1, 512),
    GpuType("Radeon RX 6950 XT", 16_384, _GDDR, 5_120, 23.7, 47.3, 576),
    GpuType("Radeon RX 7600", 8_192, _GDDR, 2_048, 21.8, 43.5, 288),
    GpuType("Radeon RX 7600 XT", 16_384, _GDDR, 2_048, 22.6, 45.1, 288),
    GpuType("Radeon RX 7700 XT", 12_288, _GDDR, 3_456, 35.2, 70.3, 432),
    GpuType("Radeon RX 7800 XT", 16_384, _GDDR, 3_840, 37.3, 74.7, 624),
    GpuType("Radeon RX 7900 GRE", 16_384, _GDDR, 5_120, 46.0, 91.9, 576),
    GpuType("Radeon RX 7900 XT", 20_480, _GDDR, 5_376, 51.6, 103.2, 800),
    GpuType("Radeon RX 7900 XTX", 24_576, _GDDR, 6_144, 61.4, 122.8, 960),
    GpuType("Radeon RX 9060 XT", 8_192, _GDDR, 2_048, 25.6, 103.0, 322),
    GpuType("Radeon RX 9060 XT", 16_384, _GDDR, 2_048, 25.6, 103.0, 322),
    GpuType("Radeon RX 9070 GRE", 12_288, _GDDR, 3_072, 34.3, 137.0, 432),
    GpuType("Radeon RX 9070", 16_384, _GDDR, 3_584, 36.1, 145.0, 645),
    GpuType("Radeon RX 9070 XT", 16_384, _GDDR, 4_096, 48.7, 195.0, 645),
    GpuType("Radeon PRO W7800", 32_768, _GDDR, 4_480, 45.2, 90.5, 576),
    GpuType("Radeon PRO W7900", 49_152, _GDDR, 6_144, 61.3, 122.6, 864),
)
