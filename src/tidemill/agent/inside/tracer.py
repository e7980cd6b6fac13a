"""Follows light backwards through a scene, with arithmetic that gives the same bits on every machine.

It uses only additions, multiplications, divisions and square roots of float64, which every machine rounds alike, number
by number and in a fixed order; no sum over an array, no sine, no power. Random numbers come from the seed, the pixel's
position in the whole picture, the sample and the bounce. So a pixel is the same in every tile.
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
"""Random numbers a bounce may take: three for each try, one to choose, two for the position within the pixel."""

Vectors = tuple[Any, ...]
"""Always three: for x, y and z, or for red, green and blue."""


@dataclass(frozen=True)
class Rays:
    """Rays along which light comes, with arrays for x, y and z. Directions have length one."""

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
        objects = [*scene["spheres"], *scene["planes"]]
        self.spheres = [(_vector(sphere["centre"]), sphere["radius"] / 1000) for sphere in scene["spheres"]]
        self.planes = [(_vector(plane["point"]), _unit(_vector(plane["normal"]))) for plane in scene["planes"]]
        self.lights = [(_vector(light["at"]), _light(light)) for light in scene["lights"]]
        self.camera = scene["camera"]
        self.sky = _colour(scene["sky"])
        surfaces = [scene_object["surface"] for scene_object in objects] or [
            {"colour": scene["sky"], "mirror": 0, "glow": 0}
        ]
        colours = (_colour(surface["colour"]) for surface in surfaces)
        self.colours = tuple(np.array(column) for column in zip(*colours, strict=True))
        self.mirrors = np.array([surface["mirror"] / 1000 for surface in surfaces])
        self.glows = np.array([surface["glow"] / 1000 for surface in surfaces])

    def first_hits(self, rays: Rays) -> Hits:
        distances = np.full(rays.origins[0].shape, FAR)
        objects = np.full(distances.shape, -1)
        for number, (centre, radius) in enumerate(self.spheres):
            _nearer(distances, objects, _to_sphere(rays, centre, radius), number)
        for number, (point, normal) in enumerate(self.planes):
            _nearer(distances, objects, _to_plane(rays, point, normal), len(self.spheres) + number)
        return Hits(distances, objects, self._normals(rays, distances, objects))

    def _normals(self, rays: Rays, distances: Any, objects: Any) -> Vectors:
        """Normals that point to where the ray came from."""
        points, count = rays.at(distances), len(self.spheres)
        normals = tuple(np.zeros(distances.shape) for _ in range(3))
        for number, (centre, radius) in enumerate(self.spheres):
            _put(normals, objects == number, tuple((p - c) / radius for p, c in zip(points, centre, strict=True)))
        for number, (_, normal) in enumerate(self.planes):
            _put(normals, objects == count + number, tuple(np.full(distances.shape, n) for n in normal))
        facing = np.where(_dot(normals, rays.directions) > 0, -1.0, 1.0)
        return _scaled(normals, facing)


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
    """One ray a pixel, through a random point within it."""
    width, height = size
    at = _vector(scene.camera["at"])
    ahead = _unit(tuple(t - a for t, a in zip(_vector(scene.camera["towards"]), at, strict=True)))
    right = _unit((ahead[2], 0.0, -ahead[0]))
    up = _cross(ahead, right)
    across = scene.camera["view"] / 1000 / width
    x = (columns + dice.draw(0, 62) - width / 2) * across
    y = (height / 2 - rows - dice.draw(0, 63)) * across
    towards = tuple(a + x * r + y * u for a, r, u in zip(ahead, right, up, strict=True))
    return Rays(tuple(np.full(x.shape, coordinate) for coordinate in at), _unit(towards))


def light_along(scene: TracedScene, rays: Rays, dice: Dice, bounces: int) -> Vectors:
    """The light that comes along each ray: red, green and blue."""
    light = tuple(np.zeros(rays.origins[0].shape) for _ in range(3))
    shares = tuple(np.ones(rays.origins[0].shape) for _ in range(3))
    waiting = np.arange(rays.origins[0].size)
    for bounce in range(bounces + 1):
        hits = scene.first_hits(rays)
        met = hits.objects >= 0
        _gather(light, waiting[~met], _times(_of(shares, ~met), scene.sky))
        waiting, rays, shares, dice = waiting[met], rays.of(met), _of(shares, met), dice.of(met)
        hits = Hits(hits.distances[met], hits.objects[met], _of(hits.normals, met))
        if not waiting.size:
            break
        colours = tuple(column[hits.objects] for column in scene.colours)
        mirrors = dice.draw(bounce, 24) < scene.mirrors[hits.objects]
        _gather(light, waiting, _times(shares, _scaled(colours, scene.glows[hits.objects])))
        points = rays.at(hits.distances)
        lit = _times(_times(shares, colours), _lit(scene, points, hits.normals))
        _gather(light, waiting, _scaled(lit, np.where(mirrors, 0.0, 1.0)))
        shares = tuple(np.where(mirrors, share, share * c) for share, c in zip(shares, colours, strict=True))
        rays = Rays(points, _onwards(rays.directions, hits.normals, mirrors, dice, bounce))
    return light


def _lit(scene: TracedScene, points: Vectors, normals: Vectors) -> Vectors:
    """The light that each point gets from the lights it can see."""
    total = tuple(np.zeros(points[0].shape) for _ in range(3))
    for at, colour in scene.lights:
        to_light = tuple(a - p for a, p in zip(at, points, strict=True))
        squares = np.maximum(_dot(to_light, to_light), 1e-12)
        distances = np.sqrt(squares)
        directions = tuple(part / distances for part in to_light)
        hits = scene.first_hits(Rays(points, directions))
        slants = np.maximum(_dot(directions, normals), 0.0)
        shares = np.where(hits.distances < distances, 0.0, slants / squares)
        total = tuple(t + shares * c for t, c in zip(total, colour, strict=True))
    return total


def _onwards(directions: Vectors, normals: Vectors, mirrors: Any, dice: Dice, bounce: int) -> Vectors:
    """Directions after a bounce: mirrored, or scattered by a dull surface, along the normal plus a random direction."""
    mirrored = _add(directions, _scaled(normals, -2.0 * _dot(directions, normals)))
    scattered = _add(normals, _anywhere(dice, bounce))
    lost = _dot(scattered, scattered) < 1e-12
    chosen = tuple(
        np.where(mirrors, m, np.where(lost, n, s)) for m, n, s in zip(mirrored, normals, scattered, strict=True)
    )
    return _unit(chosen)


def _anywhere(dice: Dice, bounce: int) -> Vectors:
    """Random directions of length one: the first of some random points of a cube inside the sphere, else upwards."""
    directions = (np.zeros(dice.pixels.shape), np.ones(dice.pixels.shape), np.zeros(dice.pixels.shape))
    waiting = np.arange(dice.pixels.size)
    for attempt in range(TRIES):
        some = dice.of(waiting)
        points = tuple(some.draw(bounce, 3 * attempt + axis) * 2.0 - 1.0 for axis in range(3))
        squares = _dot(points, points)
        inside = (squares <= 1.0) & (squares > 1e-6)
        roots = np.sqrt(squares[inside])
        for whole, part in zip(directions, points, strict=True):
            whole[waiting[inside]] = part[inside] / roots
        waiting = waiting[~inside]
    return directions


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


def _nearer(distances: Any, objects: Any, other_distances: Any, number: int) -> None:
    closer = other_distances < distances
    distances[closer] = other_distances[closer]
    objects[closer] = number


def _add(left: Vectors, right: Vectors) -> Vectors:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2])


def _times(left: Vectors, right: Vectors) -> Vectors:
    return (left[0] * right[0], left[1] * right[1], left[2] * right[2])


def _scaled(vectors: Vectors, factor: Any) -> Vectors:
    return (vectors[0] * factor, vectors[1] * factor, vectors[2] * factor)


def _dot(left: Vectors, right: Vectors) -> Any:
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


def _cross(left: Vectors, right: Vectors) -> Vectors:
    (a, b, c), (x, y, z) = left, right
    return (b * z - c * y, c * x - a * z, a * y - b * x)


def _unit(vectors: Any) -> Vectors:
    length = np.sqrt(_dot(vectors, vectors))
    return (vectors[0] / length, vectors[1] / length, vectors[2] / length)


def _of(vectors: Vectors, chosen: Any) -> Vectors:
    return (vectors[0][chosen], vectors[1][chosen], vectors[2][chosen])


def _put(into: Any, chosen: Any, values: Any) -> None:
    for whole, part in zip(into, values, strict=True):
        whole[chosen] = part[chosen]


def _gather(into: Any, indices: Any, values: Vectors) -> None:
    for whole, part in zip(into, values, strict=True):
        whole[indices] += part


def _vector(vector: dict[str, int]) -> Vectors:
    return (vector["x"] / 1000, vector["y"] / 1000, vector["z"] / 1000)


def _colour(colour: dict[str, int]) -> Vectors:
    return (colour["red"] / 1000, colour["green"] / 1000, colour["blue"] / 1000)


def _light(light: dict[str, Any]) -> Vectors:
    return _scaled(_colour(light["colour"]), light["brightness"] / 1000)
