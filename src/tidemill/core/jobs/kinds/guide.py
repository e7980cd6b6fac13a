"""What customers are told of each kind of work: in one line, field by field, and by an example that can be ordered as
it stands. A training is told of, too: it can be quoted."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.core.jobs.kinds.container import Container
from tidemill.core.jobs.kinds.embed import Embed
from tidemill.core.jobs.kinds.matmul import Matmul
from tidemill.core.jobs.kinds.render import Render
from tidemill.core.jobs.kinds.script import Script


@dataclass(frozen=True)
class KindGuide:
    """One kind. `shape` declares its parameters; `example` is a job file."""

    about: str
    shape: type[Any]
    example: str


_MATMUL = """\
kind: matmul
name: a product
parameters:
  m: 1024
  n: 1024
  k: 1024
  element: int8
  seed: 1
max_budget: 1
"""

_EMBED = """\
kind: embed
name: two sentences
parameters:
  texts:
    - A tide mill grinds with the sea.
    - Idle GPUs are water that flows away.
max_budget: 1
"""

_SCRIPT = """\
kind: script
name: squares
parameters:
  seconds: 60
  arguments: ["{task}"]
  program: |
    import sys
    number = int(sys.argv[1])
    with open("out/square.txt", "w") as file:
        file.write(f"{number * number}\\n")
tasks: 4
max_budget: 1
"""

_CONTAINER = """\
kind: container
name: a command in an image
parameters:
  image: python:3.12-slim
  command: [python, -c, "open('out/greeting.txt', 'w').write('hello')"]
  seconds: 120
  memory_mib: 512
max_budget: 1
"""

_RENDER = """\
kind: render
name: one sphere
parameters:
  width: 320
  height: 240
  samples: 4
  scene:
    camera:
      at: {x: 0, y: 1000, z: -4000}
      towards: {x: 0, y: 1000, z: 0}
    spheres:
      - centre: {x: 0, y: 1000, z: 0}
        radius: 1000
        surface: {colour: {red: 800, green: 300, blue: 200}}
    planes:
      - point: {x: 0, y: 0, z: 0}
        normal: {x: 0, y: 1000, z: 0}
        surface: {colour: {red: 600, green: 600, blue: 600}, mirror: 200}
    lights:
      - at: {x: 2000, y: 5000, z: -3000}
        colour: {red: 1000, green: 1000, blue: 1000}
        brightness: 30000
    sky: {red: 300, green: 500, blue: 900}
max_budget: 1
"""

TRAINING_ABOUT = "Train a model: an estimate only, since no runner of this pool trains yet."
TRAINING_EXAMPLE = """\
type: fine_tuning
name: a small model
framework: pytorch
model_params: 100M
dataset_size: 100MB
"""

GUIDES: Mapping[str, KindGuide] = {
    "matmul": KindGuide("Multiply two matrices, drawn from a seed or given as inputs.", Matmul, _MATMUL),
    "embed": KindGuide("Embed texts: 384 numbers for each.", Embed, _EMBED),
    "script": KindGuide("Run a Python program of yours, with numpy and without a network.", Script, _SCRIPT),
    "container": KindGuide("Run a command of yours in an image, with GPUs if you like.", Container, _CONTAINER),
    "render": KindGuide("Render a picture of spheres and planes, in bands that fit together.", Render, _RENDER),
}
"""By kind; each kind has one."""
