"""What simulated days are made of: files of worlds, tables of fits and traces; and the commands about them."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.sim.test_days import small_pool
from tidemill.cli.main import app, run
from tidemill.core.nodes.rules.windows import Window
from tidemill.sim.days.worlds.orders import read_profile
from tidemill.sim.days.worlds.presence import Spans, read_churn
from tidemill.sim.days.worlds.synthetic import synthetic
from tidemill.sim.days.worlds.traces import read_task_types
from tidemill.sim.days.worlds.world import WorldFault
from tidemill.sim.days.worlds.world_files import lines_of, read_world

FITS = """dataset,avail_weibull_shape,avail_weibull_scale_h,unavail_weibull_shape,unavail_weibull_scale_h
desks,0.5,8,0.7,3.5
nothing,0,8,0.7,3.5
words,half,8,0.7,3.5
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
n-1,64000,262144,4,T4
n-2,32000,131072,2,V100
n-3,32000,131072,0,
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time
p-1,4000,8192,1,1000,,0,100
p-2,4000,8192,1,1000,,50,950
p-3,2000,4096,1,250,T4,60,160
p-4,8000,16384,2,1000,V100|T4,80,480
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in {"fits.csv": FITS, "nodes.csv": NODES, "pods.csv": PODS}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def asked(*words: object) -> Any:
    """What a small run prints as JSON."""
    small = ("--tasks", "150", "--hours", "3")
    result = CliRunner().invoke(app, ["sim", "run", *map(str, words), *small, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run(["sim", "run", *map(str, words)]) != 0
    return capsys.readouterr().err


def test_a_world_comes_out_of_its_file_as_it_went_in(tmp_path: Path) -> None:
    world = small_pool(2, 0, 8, windows=(Window(22 * 60, 8 * 60, (0, 4)),))
    read = read_world(written(tmp_path / "world", *lines_of(world)))
    assert [one.windows for one in read.members] == [one.windows for one in world.members]
    assert [one.seller.candidate.devices for one in read.members] == [
        one.seller.candidate.devices for one in world.members
    ]
    assert read.owners == world.owners
    assert list(lines_of(read)) == list(lines_of(world))
    made_up = synthetic(50, 1)
    assert list(lines_of(read_world(written(tmp_path / "more", *lines_of(made_up))))) == list(lines_of(made_up))


def test_a_file_of_a_world_names_nobody(tmp_path: Path) -> None:
    text = "\n".join(lines_of(small_pool(2, 1)))
    for member in small_pool(2, 1).members:
        assert str(member.seller.node_id) not in text
        assert str(member.seller.candidate.owner_id) not in text
    assert not {"region", "labels", "id", "name"} & set(json.loads(text.splitlines()[1]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("price_uc", -1), ("price_uc", "1"), ("price_uc", True), ("price_uc", 2**60), ("reputation", 1001),
        ("devices", None), ("devices", [{}]), ("devices", [{"model": "x", "memory_mib": 1, "nvlink_group": 0}] * 257),
        ("device_ops_per_s", float("nan")), ("core_ops_per_s", float("inf")), ("owner", ""), ("owner", "a\x1b[2J"),
        ("windows", [{"begins": 1440, "ends": 0, "days": [0]}]), ("windows", [{"begins": 0, "ends": 0, "days": [7]}]),
        ("utc_offset_s", 10**6), ("utc_offset_s", "0"), ("kinds", 3),
    ],
)  # fmt: skip
def test_a_line_that_is_no_node_is_named(tmp_path: Path, name: str, value: object) -> None:
    head, good, *_ = lines_of(small_pool(1))
    bad = json.dumps({**json.loads(good), name: value})
    with pytest.raises(WorldFault, match="Line 3 of"):
        read_world(written(tmp_path / "world", head, good, bad))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "tidemill world", "version": 2}', "no json", "\x00\xff"])
def test_a_file_that_is_no_world_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "world").write_text(text, "latin-1")
    with pytest.raises(WorldFault):
        read_world(tmp_path / "world")


def test_a_fit_is_read_by_its_name(files: Path) -> None:
    churn = read_churn(files / "fits.csv", "desks")
    assert (churn.there, churn.away) == (Spans(0.5, 8.0), Spans(0.7, 3.5))
    for name in ("nowhere", "nothing", "words"):
        with pytest.raises(WorldFault):
            read_churn(files / "fits.csv", name)
    with pytest.raises(WorldFault, match="table of Weibull fits"):
        read_churn(files / "pods.csv", "desks")


def test_arrivals_are_read_from_rates_and_from_times(tmp_path: Path) -> None:
    rates = written(tmp_path / "rates.csv", "0,1,0.5,Gamma,1,2", "600,3,0.5,,0,0", "1200,0,0,,0,0")
    times = written(
        tmp_path / "times.csv", "TIMESTAMP,Tokens", *[f"2023-11-16 18:1{at}:46.6805900,7" for at in (0, 1, 9)]
    )
    assert read_profile([rates], 0.5).tolist() == [1, 3, 0]
    assert read_profile([times], 0.5).tolist() == [3, 3, 3]
    assert read_profile([rates, times], 0.5).tolist() == [4, 6, 3]
    assert read_profile([rates], 1.0).tolist() == [1, 3, 0, 1, 3, 0]
    for number, lines in enumerate((["a,b"], ["0"], ["TIMESTAMP", "yesterday"], ["0,0"], [""])):
        with pytest.raises(WorldFault):
            read_profile([written(tmp_path / f"bad{number}", *lines)], 1.0)


def test_a_cluster_of_lists_is_a_world_with_its_sorts(files: Path) -> None:
    world, sorts = read_task_types(files / "nodes.csv", files / "pods.csv")
    assert [len(one.seller.candidate.devices) for one in world.members] == [4, 2]
    assert {sort.name: (sort.weight, len(sort.lengths)) for sort in sorts} == {
        "1 devices, 4 cores, 8192 MiB": (2, 2),
        "0.25 of a device of T4, 2 cores, 4096 MiB": (1, 1),
        "2 devices of T4 or V100, 8 cores, 16384 MiB": (1, 1),
    }
    without_times = "\n".join(",".join(line.split(",")[:6]) for line in PODS.splitlines())
    (files / "pods.csv").write_text(without_times)
    assert not any(sort.lengths for sort in read_task_types(files / "nodes.csv", files / "pods.csv")[1])


def test_a_run_is_told_as_json_for_every_seed_and_both_sides(tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    found = asked("--nodes", 30, "--seeds", 2, "--load", "+50%", "--without", "provider-2", "--html", html)
    names = ["as it is", "50 % more load, without provider-2"]
    assert [(one["seed"], one["run"]) for one in found["runs"]] == [(seed, name) for seed in (1, 2) for name in names]
    assert {one["tasks"] for one in found["runs"]} == {150, 225}
    assert set(found["over_seeds"]) == set(names)
    assert found["over_seeds"]["as it is"]["busy_pct_sd"] >= 0
    assert found["peak_rss_mib"] > 10
    assert "What if?" in html.read_text()


def test_a_run_is_told_to_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sim", "run", "--nodes", "20", "--tasks", "60", "--hours", "2", "--no-churn", "--seeds", "2"]) == 0
    told = capsys.readouterr()
    assert "devices busy" in told.out
    assert "over 2 seeds" in told.err


def test_worlds_of_every_source_are_run(files: Path) -> None:
    world = written(files / "world", *lines_of(small_pool(4, 2)))
    assert asked("--world", world)["runs"][0]["nodes"] == 2
    assert asked("--nodes", 7, "--churn", files / "fits.csv", "--fit", "desks")["runs"][0]["nodes"] == 7
    lists = ("--nodes-list", files / "nodes.csv", "--pods", files / "pods.csv")
    assert asked(*lists, "--policy", "packed")["runs"][0]["tasks"] == 150


def test_options_that_do_not_go_together_are_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "choose one" in refused(capsys, "--pods", files / "pods.csv")
    assert "name both" in refused(capsys, "--fit", "desks")
    assert "no policy called" in refused(capsys, "--policy", "luck")
    assert "+20%" in refused(capsys, "--load", "much")
    assert "No node belongs to" in refused(capsys, "--nodes", 20, "--without", "somebody")
