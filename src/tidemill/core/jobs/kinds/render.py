"""Tiles of a picture: a scene of spheres, planes and lights, traced in an arithmetic that is the same everywhere.

Lengths are whole thousandths of the scene's unit, shares are whole thousandths. A pixel depends only on the scene, the
seed and its position in the picture, so tiles fit together whoever made them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import About, Most, Whole
from tidemill.core.jobs.kinds.kind import CheckMethod, FileForm, NumericClass, OutputFile, TaskKind, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.parameters import malformed, read_parameters, too_large
from tidemill.core.jobs.sandboxes import MIB
from tidemill.core.pictures import png_bytes

PICTURE_MAX = 32_768
TILE_MAX_PIXELS = 16 * 1024 * 1024
RAYS_MAX = 2**36
PROGRAM_MIB = 256
OPERATIONS_PER_SEARCH, OPERATIONS_PER_OBJECT = 6_000.0, 760.0
"""To find the first object on a ray's way, and for each sphere or plane that may be it, as measured: number by number,
a processor is some fifty times slower than when it multiplies matrices."""

Coordinate = Annotated[int, Whole(-1_000_000_000, 1_000_000_000)]
Length = Annotated[int, Whole(1, 1_000_000_000)]
LightShare = Annotated[int, Whole(0, 1000)]
Brightness = Annotated[int, Whole(0, 1_000_000_000)]
Across = Annotated[int, Whole(1, PICTURE_MAX)]


@dataclass(frozen=True)
class Vector:
    x: Coordinate
    y: Coordinate
    z: Coordinate


@dataclass(frozen=True)
class Colour:
    red: LightShare
    green: LightShare
    blue: LightShare


@dataclass(frozen=True)
class Surface:
    """`mirror` is the share of light that is mirrored; the rest is scattered. `glow` is light of its own."""

    colour: Colour
    mirror: LightShare = 0
    glow: Brightness = 0


@dataclass(frozen=True)
class Sphere:
    centre: Vector
    radius: Length
    surface: Surface


@dataclass(frozen=True)
class Plane:
    """All points beside `point` at right angles to `normal`, whose length does not matter."""

    point: Vector
    normal: Vector
    surface: Surface


@dataclass(frozen=True)
class Light:
    """A point; its `brightness` is what a surface one unit away receives."""

    at: Vector
    colour: Colour
    brightness: Brightness


@dataclass(frozen=True)
class Camera:
    """`view` is how wide the picture is one unit in front of the camera. Up is the direction of y."""

    at: Vector
    towards: Vector
    view: Annotated[int, Whole(1, 100_000)] = 1000


@dataclass(frozen=True)
class Scene:
    camera: Camera
    spheres: Annotated[tuple[Sphere, ...], Most(200)] = ()
    planes: Annotated[tuple[Plane, ...], Most(32)] = ()
    lights: Annotated[tuple[Light, ...], Most(32)] = ()
    sky: Colour = Colour(0, 0, 0)


@dataclass(frozen=True)
class Tile:
    x: Annotated[int, Whole(0, PICTURE_MAX - 1)]
    y: Annotated[int, Whole(0, PICTURE_MAX - 1)]
    width: Across
    height: Across


@dataclass(frozen=True)
class Render:
    """`width` and `height` are those of the entire picture; without a tile, all of it is made."""

    scene: Annotated[Scene, About("Camera, spheres, planes, lights and sky; lengths in thousandths.")]
    width: Annotated[Across, About("Of the entire picture, in pixels.")]
    height: Annotated[Across, About("Of the entire picture, in pixels.")]
    tile: Annotated[Tile | None, About("Only this part of the picture.")] = None
    samples: Annotated[int, Whole(1, 4096), About("Rays a pixel.")] = 1
    bounces: Annotated[int, Whole(0, 16), About("How often a ray is mirrored or scattered.")] = 2
    seed: Annotated[int, Whole(0, 2**53 - 1), About("From which the rays are drawn.")] = 0

    @property
    def part(self) -> Tile:
        return self.tile or Tile(0, 0, self.width, self.height)


def read(parameters: Mapping[str, object]) -> Render | TaskObjection:
    work = read_parameters(Render, parameters)
    return work if isinstance(work, TaskObjection) else _objection(work) or work


def needs(work: Render) -> Needs:
    scene, part = work.scene, work.part
    objects = len(scene.spheres) + len(scene.planes)
    paths = float(part.width * part.height * work.samples)
    searches = (1 + work.bounces) * (1 + len(scene.lights))
    size_mib = -(-_size_bytes(work) // MIB)
    return Needs(
        memory_mib=PROGRAM_MIB + 4 * size_mib,
        disk_mib=size_mib + 1,
        operations=paths * searches * (OPERATIONS_PER_SEARCH + objects * OPERATIONS_PER_OBJECT),
    )


def outputs(work: Render) -> tuple[OutputFile, ...]:
    size_bytes = _size_bytes(work)
    return (OutputFile("picture.png", FileForm.PICTURE, size_bytes, exact_bytes=size_bytes),)


def _size_bytes(work: Render) -> int:
    return png_bytes(work.part.width, work.part.height)


def _objection(work: Render) -> TaskObjection | None:
    part, camera = work.part, work.scene.camera
    if part.x + part.width > work.width or part.y + part.height > work.height:
        return malformed("tile must lie within the picture.", "tile")
    if part.width * part.height > TILE_MAX_PIXELS:
        return too_large(f"The tile has {part.width * part.height:,} pixels, and may have {TILE_MAX_PIXELS:,}.", "tile")
    if part.width * part.height * work.samples > RAYS_MAX:
        return too_large(f"The tile takes more than {RAYS_MAX:,} rays.")
    if camera.at.x == camera.towards.x and camera.at.z == camera.towards.z:
        return malformed("scene.camera must not look straight up, straight down or at itself.", "scene.camera")
    if any(plane.normal == Vector(0, 0, 0) for plane in work.scene.planes):
        return malformed("Each plane's normal must have a length.", "scene.planes")
    return None


KIND = TaskKind(
    name="render",
    read=read,
    needs=needs,
    inputs=lambda _: (),
    outputs=outputs,
    numeric_class=lambda _: NumericClass.EXACT,
    check=lambda _: CheckMethod.PIXELS,
    ours=True,
)
