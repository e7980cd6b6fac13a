"""Files and options that make no sense: each gets one clear sentence and an exit code, and nothing is started."""

import json
from pathlib import Path

import pytest

from tests.sim.test_days import small_pool
from tidemill.cli.main import run
from tidemill.sim.days.worlds.world_files import lines_of

SAID_NO = {1, 2, 5}
"""Declined, wrongly asked, or the world failing: as other commands answer. A bug would be 70."""

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
TIMES = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"
FITS = "dataset,avail_weibull_shape,avail_weibull_scale_h,unavail_weibull_shape,unavail_weibull_scale_h\n"
BYTES = bytes(range(256)) * 1000

BAD_NODES = {
    "empty": "", "bytes": BYTES, "utf-16": f"{NODES}n,64000,9999,1,T4\n".encode("utf-16"), "json": '{"a": 1}',
    "no rows": NODES, "no such columns": "sn,gpu\nn,1\n", "a short row": f"{NODES}n,64000\n",
    "no number": f"{NODES}n,many,9999,1,T4\n", "a fraction": f"{NODES}n,64000.5,9999,1,T4\n",
    "below zero": f"{NODES}n,-64000,9999,1,T4\n", "memory below zero": f"{NODES}n,64000,-9999,1,T4\n",
    "gpus below zero": f"{NODES}n,64000,9999,-1,T4\n", "a billion gpus": f"{NODES}n,64000,9999,1000000000,T4\n",
    "beyond numbers": f"{NODES}n,{'9' * 5000},9999,1,T4\n", "a long field": f"{NODES}n,64000,9999,1,{'x' * 200_000}\n",
    "an open quote": f'{NODES}n,"64000,9999,1,T4\n', "only processors": f"{NODES}n,64000,9999,0,\n",
}  # fmt: skip

BAD_PODS = {
    "empty": "", "bytes": BYTES, "no rows": PODS, "no such columns": "name\np\n", "a short row": f"{PODS}p,1\n",
    "no name": "cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1000\n", "no number": f"{PODS}p,x,1,1,1000,\n",
    "below zero": f"{PODS}p,-1,1,1,1000,\n", "memory below zero": f"{PODS}p,1,-1,1,1000,\n",
    "gpus below zero": f"{PODS}p,1,1,-1,1000,\n", "a part below zero": f"{PODS}p,1,1,1,-5,\n",
    "no part": f"{PODS}p,1,1,1,0,\n", "more than one": f"{PODS}p,1,1,1,1500,\n",
    "too many gpus": f"{PODS}p,1,1,999999999999,1000,\n", "beyond numbers": f"{PODS}p,{'9' * 30},1,1,1000,\n",
}  # fmt: skip

BAD_TIMES = ("x,y", "0,nan", "0,inf", "-1e300,5", "500,-9")

BAD_ARRIVALS = {
    "bytes": BYTES, "words": "a,b\n", "one column": "0\n", "rates below zero": "0,-5\n600,-1\n", "no rate": "0,nan\n",
    "endless rates": "0,inf\n", "no time": "nan,1\n", "all time": "-1e308,1\n1e308,1\n", "far apart": "0,1\n1e15,1\n",
    "ages": "TIMESTAMP\n0001-01-01 00:00:00\n9999-01-01 00:00:00\n", "no stamps": "TIMESTAMP\n", "empty": "",
}  # fmt: skip

BAD_FITS = {
    "empty": "", "bytes": BYTES, "others": f"{FITS}y,1,1,1,1\n", "a short row": f"{FITS}x,1\n",
    "below zero": f"{FITS}x,-1,1,1,1\n", "no number": f"{FITS}x,nan,1,1,1\n", "endless": f"{FITS}x,1,inf,1,1\n",
    "hardly a shape": f"{FITS}x,0.001,1,1,1\n", "flicker": f"{FITS}x,1,1e-12,1,1e-12\n",
    "latin": f"{FITS}é,1,1,1,1\n".encode("latin-1"),
}  # fmt: skip

BAD_FACTS = [
    ("success", 1e308), ("success", 1.5), ("device_ops_per_s", 1e308), ("core_ops_per_s", -1), ("cpu_milli", -1),
    ("nvlink_pct", 10**9), ("house", "yes"), ("kinds", "script"), ("kinds", {"script": 1}), ("windows", None),
    ("windows", [1]), ("windows", [{"begins": 0, "ends": 1, "days": [True]}]), ("devices", "abc"),
    ("utc_offset_s", True),
]  # fmt: skip

BAD_WORDS = [
    ["--nodes", "0"], ["--nodes", "-5"], ["--tasks", "-1"], ["--hours", "nan"], ["--fill", "-1"], ["--fill", "nan"],
    ["--seed", "-1"], ["--seeds", "0"], ["--load", "+nan%"], ["--without", "nobody"], ["--policy", "luck"],
    ["--policy", ""], ["--world", "/nowhere"], ["--world", "/"], ["--arrivals", "/nowhere"], ["--fit", "x"],
    ["--html", "/nowhere/report.html"], ["--html", "/"],
]  # fmt: skip


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> None:
    """One sentence on the way out, which says what is wrong and spills nothing of a file."""
    code = run(["sim", *map(str, words)])
    told = capsys.readouterr()
    assert code in SAID_NO, told.err
    assert not told.out
    assert "Traceback" not in told.err
    assert len(told.err) < 1000
    assert told.err.isprintable() or set(told.err) & {"\n"}
    assert "\\x" not in told.err


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return written(tmp_path / "good-nodes.csv", f"{NODES}n,64000,262144,4,T4\n")


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    return written(tmp_path / "good-pods.csv", f"{PODS}p,4000,8192,1,1000,\n")


@pytest.mark.parametrize("what", BAD_NODES)
def test_a_list_of_nodes_that_is_none(
    tmp_path: Path, pods: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = written(tmp_path / "nodes.csv", BAD_NODES[what])
    refused(capsys, "openb", "--nodes", bad, "--pods", pods)
    refused(capsys, "run", "--nodes-list", bad, "--pods", pods)


@pytest.mark.parametrize("what", BAD_PODS)
def test_a_list_of_pods_that_is_none(
    tmp_path: Path, nodes: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = written(tmp_path / "pods.csv", BAD_PODS[what])
    refused(capsys, "openb", "--nodes", nodes, "--pods", bad)
    refused(capsys, "run", "--nodes-list", nodes, "--pods", bad)


@pytest.mark.parametrize("times", BAD_TIMES)
def test_pods_whose_times_are_none(tmp_path: Path, nodes: Path, times: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = written(tmp_path / "pods.csv", f"{TIMES}p,1,1,1,1000,{times}\n")
    refused(capsys, "run", "--nodes-list", nodes, "--pods", bad)


@pytest.mark.parametrize("what", BAD_ARRIVALS)
def test_arrivals_that_are_none(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "run", "--nodes", 20, "--arrivals", written(tmp_path / "arrivals.csv", BAD_ARRIVALS[what]))


@pytest.mark.parametrize("what", BAD_FITS)
def test_fits_that_are_none(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = written(tmp_path / "fits.csv", BAD_FITS[what])
    refused(capsys, "run", "--nodes", 20, "--churn", bad, "--fit", "x")


@pytest.mark.parametrize(("fact", "value"), BAD_FACTS)
def test_a_node_of_a_world_that_cannot_be(
    tmp_path: Path, fact: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    head, good, *_ = lines_of(small_pool(1))
    bad = json.dumps({**json.loads(good), fact: value})
    refused(capsys, "run", "--world", written(tmp_path / "world", f"{head}\n{bad}\n"))


@pytest.mark.parametrize("line", ["[" * 100_000, "{", "5", '{"owner": "a"}', ""])
def test_a_line_of_a_world_that_is_none(tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    head, *_ = lines_of(small_pool(1))
    refused(capsys, "run", "--world", written(tmp_path / "world", f"{head}\n{line}\n"))


@pytest.mark.parametrize("words", BAD_WORDS, ids=" ".join)
def test_options_that_make_no_sense(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(capsys, "run", *([] if "--nodes" in words else ["--nodes", 20]), *words)


def test_lists_that_are_not_there_and_policies_that_are_none(
    tmp_path: Path, nodes: Path, pods: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "openb", "--nodes", tmp_path / "nowhere", "--pods", pods)
    refused(capsys, "openb", "--nodes", nodes, "--pods", tmp_path)
    refused(capsys, "openb", "--nodes", nodes)
    refused(capsys, "openb", "--nodes", nodes, "--pods", pods, "--policy", "luck")
    refused(capsys, "openb", "--nodes", nodes, "--pods", pods, "--seeds", "0")


def test_an_export_that_cannot_be_written_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(capsys, "export", tmp_path)
    refused(capsys, "export", tmp_path / "nowhere" / "pool.jsonl")
    refused(capsys, "export", written(tmp_path / "there", "already"))
    refused(capsys, "export", tmp_path / "pool.jsonl", "--who", tmp_path / "pool.jsonl")


def test_an_export_of_a_pool_that_is_not_running_makes_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMILL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TIDEMILL_DATABASE_URL", raising=False)
    assert run(["sim", "export", str(tmp_path / "pool.jsonl")]) == 4
    assert "tidemill up" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "pool.jsonl").exists()
