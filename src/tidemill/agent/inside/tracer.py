"""Light followed backwards through a scene, in an arithmetic that gives the same bits on every machine.

Only additions, multiplications, divisions and square roots of float64, which every machine rounds alike, number by
number and in a fixed order; no sum over an array, no sine, no power. Random numbers come from the seed, the pixel's
place in the whole picture, the sample and the bounce. So a pixel is the same in whatever tile it is made.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidemill.core.matrices.seeded_matrices import mix

NEAR = 1e-6
FAR = 1e30
TRIES = 8
_GOLDEN = 0x9E3779B97F4A7C15
_ODD = 0xD6E8FEB86659FD93
_SLOTS = 64
"""Random numbers a bounce may take: three for each try, one to choose, two for the place within the pixel."""

Vectors = tuple[Any, ...]
"""Always three: for x, y and z, or for red, green and blue."""


@dataclass(frozen=True)
class Rays:
    """Where light comes from, a number each for x, y and z; directions have length one."""

    origins: Vectors
    directions: Vectors

    def at(self, distances: Any) -> Vectors:
        return _add(self.origins, _scaled(self.directions, distances))

    def of(self, chosen: Any) -> "Rays":
        return Rays(_of(self.origins, chosen), _of(self.directions, chosen))


@dataclass(frozen=True)
class Hits:
    """What each ray meets first: how far away, which object (or −1), and the surface's direction there."""

    distances: Any
    objects: Any
    normals: Vectors


class TracedScene:
    """A scene as the kind `render` describes it, in floating-point numbers."""

    def __init__(self, scene: dict[str, Any]) -> None:
        things = [*scene["spheres"], *scene["planes"]]
        self.spheres = [(_vector(one["centre"]), one["radius"] / 1000) for one in scene["spheres"]]
        self.planes = [(_vector(one["point"]), _unit(_vector(one["normal"]))) for one in scene["planes"]]
        self.lights = [(_vector(one["at"]), _light(one)) for one in scene["lights"]]
        self.camera = scene["camera"]
        self.sky = _colour(scene["sky"])
        surfaces = [one["surface"] for one in things] or [{"colour": scene["sky"], "mirror": 0, "glow": 0}]
        colours = (_colour(one["colour"]) for one in surfaces)
        self.colours = tuple(np.array(column) for column in zip(*colours, strict=True))
        self.mirrors = np.array([one["mirror"] / 1000 for one in surfaces])
        self.glows = np.array([one["glow"] / 1000 for one in surfaces])

    def first_hits(self, rays: Rays) -> Hits:
        distances = np.full(rays.origins[0].shape, FAR)
        objects = np.full(distances.shape, -1)
        for number, (centre, radius) in enumerate(self.spheres):
            _nearer(distances, objects, _to_sphere(rays, centre, radius), number)
        for number, (point, normal) in enumerate(self.planes):
            _nearer(distances, objects, _to_plane(rays, point, normal), len(self.spheres) + number)
        return Hits(distances, objects, self._normals(rays, distances, objects))

    def _normals(self, rays: Rays, distances: Any, objects: Any) -> Vectors:
        """Turned towards where the ray came from."""
        places, count = rays.at(distances), len(self.spheres)
        found = tuple(np.zeros(distances.shape) for _ in range(3))
        for number, (centre, radius) in enumerate(self.spheres):
            _put(found, objects == number, tuple((p - c) / radius for p, c in zip(places, centre, strict=True)))
        for number, (_, normal) in enumerate(self.planes):
            _put(found, objects == count + number, tuple(np.full(distances.shape, n) for n in normal))
        facing = np.where(_dot(found, rays.directions) > 0, -1.0, 1.0)
        return _scaled(found, facing)


@dataclass(frozen=True)
class Dice:
    """Random numbers of some pixels in one sample."""

    seed: int
    pixels: Any
    sample: int

    def draw(self, bounce: int, slot: int) -> Any:
        """From 0 up to, not including, 1; in steps of 2^−53."""
        keys = mix(self.pixels * np.uint64(_GOLDEN) + np.uint64((self.seed * _ODD) % 2**64))
        count = ((self.sample * 32 + bounce) * _SLOTS + slot + 1) * _ODD % 2**64
        return (mix(keys + np.uint64(count)) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def of(self, chosen: Any) -> "Dice":
        return Dice(self.seed, self.pixels[chosen], self.sample)


def camera_rays(scene: TracedScene, columns: Any, rows: Any, size: tuple[int, int], dice: Dice) -> Rays:
    """One ray a pixel, through a random place within it."""
    width, height = size
    at = _vector(scene.camera["at"])
    ahead = _unit(tuple(t - a for t, a in zip(_vector(scene.camera["towards"]), at, strict=True)))
    right = _unit((ahead[2], 0.0, -ahead[0]))
    up = _cross(ahead, right)
    across = scene.camera["view"] / 1000 / width
    x = (columns + dice.draw(0, 62) - width / 2) * across
    y = (height / 2 - rows - dice.draw(0, 63)) * across
    towards = tuple(a + x * r + y * u for a, r, u in zip(ahead, right, up, strict=True))
    return Rays(tuple(np.full(x.shape, one) for one in at), _unit(towards))


def light_along(scene: TracedScene, rays: Rays, dice: Dice, bounces: int) -> Vectors:
    """The light that comes along each ray: red, green and blue."""
    seen = tuple(np.zeros(rays.origins[0].shape) for _ in range(3))
    shares = tuple(np.ones(rays.origins[0].shape) for _ in range(3))
    waiting = np.arange(rays.origins[0].size)
    for bounce in range(bounces + 1):
        hits = scene.first_hits(rays)
        met = hits.objects >= 0
        _gather(seen, waiting[~met], _times(_of(shares, ~met), scene.sky))
        waiting, rays, shares, dice = waiting[met], rays.of(met), _of(shares, met), dice.of(met)
        hits = Hits(hits.distances[met], hits.objects[met], _of(hits.normals, met))
        if not waiting.size:
            break
        colours = tuple(column[hits.objects] for column in scene.colours)
        mirrors = dice.draw(bounce, 24) < scene.mirrors[hits.objects]
        _gather(seen, waiting, _times(shares, _scaled(colours, scene.glows[hits.objects])))
        places = rays.at(hits.distances)
        lit = _times(_times(shares, colours), _lit(scene, places, hits.normals))
        _gather(seen, waiting, _scaled(lit, np.where(mirrors, 0.0, 1.0)))
        shares = tuple(np.where(mirrors, share, share * c) for share, c in zip(shares, colours, strict=True))
        rays = Rays(places, _onwards(rays.directions, hits.normals, mirrors, dice, bounce))
    return seen


def _lit(scene: TracedScene, places: Vectors, normals: Vectors) -> Vectors:
    """What the lights that can be seen from these places give them."""
    total = tuple(np.zeros(places[0].shape) for _ in range(3))
    for at, colour in scene.lights:
        to_light = tuple(a - p for a, p in zip(at, places, strict=True))
        squares = np.maximum(_dot(to_light, to_light), 1e-12)
        distances = np.sqrt(squares)
        directions = tuple(part / distances for part in to_light)
        hits = scene.first_hits(Rays(places, directions))
        slants = np.maximum(_dot(directions, normals), 0.0)
        given = np.where(hits.distances < distances, 0.0, slants / squares)
        total = tuple(t + given * c for t, c in zip(total, colour, strict=True))
    return total


def _onwards(directions: Vectors, normals: Vectors, mirrors: Any, dice: Dice, bounce: int) -> Vectors:
    """Mirrored, or scattered as a dull surface does: along the normal plus a random direction."""
    mirrored = _add(directions, _scaled(normals, -2.0 * _dot(directions, normals)))
    scattered = _add(normals, _anywhere(dice, bounce))
    lost = _dot(scattered, scattered) < 1e-12
    chosen = tuple(
        np.where(mirrors, m, np.where(lost, n, s)) for m, n, s in zip(mirrored, normals, scattered, strict=True)
    )
    return _unit(chosen)


def _anywhere(dice: Dice, bounce: int) -> Vectors:
    """Directions of length one: the first of some random points of a cube that is inside the sphere, else upwards."""
    found = (np.zeros(dice.pixels.shape), np.ones(dice.pixels.shape), np.zeros(dice.pixels.shape))
    waiting = np.arange(dice.pixels.size)
    for attempt in range(TRIES):
        some = dice.of(waiting)
        points = tuple(some.draw(bounce, 3 * attempt + axis) * 2.0 - 1.0 for axis in range(3))
        squares = _dot(points, points)
        inside = (squares <= 1.0) & (squares > 1e-6)
        roots = np.sqrt(squares[inside])
        for whole, part in zip(found, points, strict=True):
            whole[waiting[inside]] = part[inside] / roots
        waiting = waiting[~inside]
    return found


def _to_sphere(rays: Rays, centre: Vectors, radius: float) -> Any:
    """How far each ray goes until it meets the sphere; `FAR` if it does not."""
    offsets = tuple(o - c for o, c in zip(rays.origins, centre, strict=True))
    halves = _dot(offsets, rays.directions)
    insides = halves * halves - (_dot(offsets, offsets) - radius * radius)
    roots = np.sqrt(np.maximum(insides, 0.0))
    first, second = -halves - roots, roots - halves
    near = NEAR * max(1.0, radius)
    reached = np.where(first > near, first, np.where(second > near, second, FAR))
    return np.where(insides > 0.0, reached, FAR)


def _to_plane(rays: Rays, point: Vectors, normal: Vectors) -> Any:
    slants = _dot(normal, rays.directions)
    level = np.abs(slants) < 1e-12
    heights = _dot(tuple(p - o for p, o in zip(point, rays.origins, strict=True)), normal)
    distances = heights / np.where(level, 1.0, slants)
    return np.where(level | (distances < NEAR), FAR, distances)


def _nearer(distances: Any, objects: Any, others: Any, number: int) -> None:
    closer = others < distances
    distances[closer] = others[closer]
    objects[closer] = number


def _add(one: Vectors, other: Vectors) -> Vectors:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


def _times(one: Vectors, other: Vectors) -> Vectors:
    return (one[0] * other[0], one[1] * other[1], one[2] * other[2])


def _scaled(one: Vectors, factor: Any) -> Vectors:
    return (one[0] * factor, one[1] * factor, one[2] * factor)


def _dot(one: Vectors, other: Vectors) -> Any:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def _cross(one: Vectors, other: Vectors) -> Vectors:
    (a, b, c), (x, y, z) = one, other
    return (b * z - c * y, c * x - a * z, a * y - b * x)


def _unit(one: Any) -> Vectors:
    length = np.sqrt(_dot(one, one))
    return (one[0] / length, one[1] / length, one[2] / length)


def _of(one: Vectors, chosen: Any) -> Vectors:
    return (one[0][chosen], one[1][chosen], one[2][chosen])


def _put(into: Any, chosen: Any, values: Any) -> None:
    for whole, part in zip(into, values, strict=True):
        whole[chosen] = part[chosen]


def _gather(into: Any, places: Any, values: Vectors) -> None:
    for whole, part in zip(into, values, strict=True):
        whole[places] += part


def _vector(one: dict[str, int]) -> Vectors:
    return (one["x"] / 1000, one["y"] / 1000, one["z"] / 1000)


def _colour(one: dict[str, int]) -> Vectors:
    return (one["red"] / 1000, one["green"] / 1000, one["blue"] / 1000)


def _light(one: dict[str, Any]) -> Vectors:
    return _scaled(_colour(one["colour"]), one["brightness"] / 1000)
