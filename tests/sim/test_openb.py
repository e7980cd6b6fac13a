"""The inflation experiment, on a small cluster of our own."""

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from tidemill.cli.main import app, run
from tidemill.core.placement.policies import Policy
from tidemill.core.placement.policies.packed import PackedPolicy
from tidemill.core.placement.workload import Workload
from tidemill.sim.openb.experiment import Cluster, UnreadableList, arrivals, inflate, read_cluster
from tidemill.sim.openb.rivals import BestFit, GradientDescent, RandomFit

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
    f"node-{number:03},{cores}000,{memory},{gpus},{model}\n"
    for number, (cores, memory, gpus, model) in enumerate(
        [(96, 393216, 8, "G2")] * 20
        + [(104, 524288, 2, "T4")] * 12
        + [(16, 122880, 2, "P100")] * 8
        + [(64, 9999, 0, "")]
    )
)
PODS = [
    *[(11300, 49152, 1, 1000, "")] * 40, *[(4000, 16384, 1, 1000, "T4|P100")] * 12, *[(18000, 64512, 1, 1000, "")] * 12,
    *[(8000, 24576, 1, 700, "")] * 30, *[(6000, 12288, 1, 300, "")] * 25, *[(5000, 8192, 1, 500, "")] * 20,
    *[(64000, 262144, 8, 1000, "")] * 6, *[(12000, 32768, 0, 0, "")] * 20,
]  # fmt: skip
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"


@pytest.fixture
def lists(tmp_path: Path) -> tuple[Path, Path]:
    rows = [f"pod-{number:04},{','.join(map(str, pod))}\n" for number, pod in enumerate(PODS)]
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(rows))
    return nodes, pods


def mean(cluster: Cluster, policies: Sequence[Policy]) -> tuple[float, float]:
    runs = [inflate(cluster, policy, Random(seed)) for seed, policy in enumerate(policies)]
    return sum(run.at_100_pct for run in runs) / len(runs), sum(run.at_130_pct for run in runs) / len(runs)


def test_packed_hands_out_more_than_the_others(lists: tuple[Path, Path]) -> None:
    cluster = read_cluster(*lists)
    ours = mean(cluster, [PackedPolicy()] * 4)
    for rival in (GradientDescent(Workload.of(cluster.pods)), BestFit()):
        theirs = mean(cluster, [rival] * 4)
        assert ours[0] > theirs[0]
        assert ours[1] > theirs[1]
    assert ours > mean(cluster, [RandomFit(Random(seed)) for seed in range(4)])


def test_the_same_seed_gives_the_same_outcome(lists: tuple[Path, Path]) -> None:
    cluster = read_cluster(*lists)
    assert inflate(cluster, PackedPolicy(), Random(5)) == inflate(cluster, PackedPolicy(), Random(5))


def test_arrivals_are_all_pods_and_then_as_many_as_inflation_takes(lists: tuple[Path, Path]) -> None:
    cluster = read_cluster(*lists)
    assert len(cluster.nodes) == 40  # the one without GPUs is left out
    pods = arrivals(cluster, Random(1))
    assert sorted(map(repr, pods[: len(PODS)])) == sorted(map(repr, cluster.pods))
    asked = [pod.asked_milli for pod in pods]
    assert sum(asked[:-1]) < 1.3 * cluster.gpu_milli <= sum(asked)


@pytest.mark.parametrize("text", ["", "name\n", f"{HEAD}a,x,1,1,1000\n", f"{HEAD}a,1,1,1,1500\n", f"{HEAD}a,1,1,0,0\n"])
def test_a_list_that_cannot_be_used_is_refused_in_a_sentence(lists: tuple[Path, Path], text: str) -> None:
    lists[1].write_text(text)
    with pytest.raises(UnreadableList, match=r"\.$"):
        read_cluster(*lists)


def test_the_command_prints_what_programs_read(lists: tuple[Path, Path]) -> None:
    nodes, pods = map(str, lists)
    done = CliRunner().invoke(app, ["sim", "openb", "--nodes", nodes, "--pods", pods, "--seeds", "2", "--json"])
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["policy"] == "packed"
    assert 0 < printed["allocated_pct_at_100"] <= printed["allocated_pct_at_130"] <= 100
    assert printed["sd"] >= 0


def test_an_unknown_policy_is_told_with_those_there_are(
    lists: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    nodes, pods = map(str, lists)
    assert run(["sim", "openb", "--nodes", nodes, "--pods", pods, "--policy", "magic"]) == 1
    assert "bestfit, fast, fgd, packed, random, trusted, value" in capsys.readouterr().err
