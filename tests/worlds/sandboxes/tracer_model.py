"""The tracer of light in plain Python, one ray at a time: what the tracer in numpy must agree with, bit by bit."""

from math import floor, sqrt
from typing import Any

FAR = 1e30
NEAR = 1e-6
WORD = 2**64
GOLDEN, ODD = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93

Vector = tuple[float, float, float]


def model_pixel(work: dict[str, Any], column: int, row: int) -> tuple[int, int, int]:
    """Three bytes of one pixel of the whole picture."""
    totals = [0.0, 0.0, 0.0]
    for sample in range(work["samples"]):
        for part, light in enumerate(_Path(work, column, row, sample).light()):
            totals[part] += light
    red, green, blue = (floor(sqrt(min(max(total / work["samples"], 0.0), 1.0)) * 255.0 + 0.5) for total in totals)
    return red, green, blue


class _Path:
    def __init__(self, work: dict[str, Any], column: int, row: int, sample: int) -> None:
        self.work, self.scene, self.sample = work, work["scene"], sample
        self.pixel = row * work["width"] + column
        self.column, self.row = column, row
        self.things = [*self.scene["spheres"], *self.scene["planes"]]

    def draw(self, bounce: int, slot: int) -> float:
        key = _mixed((self.pixel * GOLDEN + self.work["seed"] * ODD) % WORD)
        count = ((self.sample * 32 + bounce) * 64 + slot + 1) * ODD
        return float(_mixed((key + count) % WORD) >> 11) * 2.0**-53

    def light(self) -> Vector:
        seen, share = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
        origin, direction = self.camera_ray()
        for bounce in range(self.work["bounces"] + 1):
            distance, number = self.first_hit(origin, direction)
            if number < 0:
                return add(seen, times(share, rgb(self.scene["sky"])))
            surface, normal = self.things[number]["surface"], self.normal(origin, direction, distance, number)
            colour, is_mirror = rgb(surface["colour"]), self.draw(bounce, 24) < surface.get("mirror", 0) / 1000
            seen = add(seen, times(share, scaled(colour, surface.get("glow", 0) / 1000)))
            origin = add(origin, scaled(direction, distance))
            lit = times(times(share, colour), self.lit(origin, normal))
            seen = add(seen, scaled(lit, 0.0 if is_mirror else 1.0))
            share = share if is_mirror else times(share, colour)
            direction = self.onwards(direction, normal, is_mirror, bounce)
        return seen

    def camera_ray(self) -> tuple[Vector, Vector]:
        camera, width, height = self.scene["camera"], self.work["width"], self.work["height"]
        at = xyz(camera["at"])
        ahead = unit(minus(xyz(camera["towards"]), at))
        right = unit((ahead[2], 0.0, -ahead[0]))
        (a, b, c), (x, y, z) = ahead, right
        up = (b * z - c * y, c * x - a * z, a * y - b * x)
        across = camera["view"] / 1000 / width
        x = (self.column + self.draw(0, 62) - width / 2) * across
        y = (height / 2 - self.row - self.draw(0, 63)) * across
        return at, unit(tuple(a + x * r + y * u for a, r, u in zip(ahead, right, up, strict=True)))  # type: ignore[arg-type]

    def first_hit(self, origin: Vector, direction: Vector) -> tuple[float, int]:
        best, which = FAR, -1
        for number, thing in enumerate(self.things):
            distance = to_sphere(origin, direction, thing) if "radius" in thing else to_plane(origin, direction, thing)
            if distance < best:
                best, which = distance, number
        return best, which

    def normal(self, origin: Vector, direction: Vector, distance: float, number: int) -> Vector:
        thing, place = self.things[number], add(origin, scaled(direction, distance))
        if "radius" in thing:
            radius = thing["radius"] / 1000
            offset = minus(place, xyz(thing["centre"]))
            found = (offset[0] / radius, offset[1] / radius, offset[2] / radius)
        else:
            found = unit(xyz(thing["normal"]))
        return scaled(found, -1.0 if dot(found, direction) > 0 else 1.0)

    def lit(self, place: Vector, normal: Vector) -> Vector:
        total = (0.0, 0.0, 0.0)
        for light in self.scene["lights"]:
            to_light = minus(xyz(light["at"]), place)
            square = max(dot(to_light, to_light), 1e-12)
            distance = sqrt(square)
            direction = (to_light[0] / distance, to_light[1] / distance, to_light[2] / distance)
            is_hidden = self.first_hit(place, direction)[0] < distance
            given = 0.0 if is_hidden else max(dot(direction, normal), 0.0) / square
            colour = scaled(rgb(light["colour"]), light["brightness"] / 1000)
            total = add(total, scaled(colour, given))
        return total

    def onwards(self, direction: Vector, normal: Vector, is_mirror: bool, bounce: int) -> Vector:
        if is_mirror:
            return unit(add(direction, scaled(normal, -2.0 * dot(direction, normal))))
        scattered = add(normal, self.anywhere(bounce))
        return unit(normal if dot(scattered, scattered) < 1e-12 else scattered)

    def anywhere(self, bounce: int) -> Vector:
        for attempt in range(8):
            x, y, z = (self.draw(bounce, 3 * attempt + axis) * 2.0 - 1.0 for axis in range(3))
            square = dot((x, y, z), (x, y, z))
            if 1e-6 < square <= 1.0:
                root = sqrt(square)
                return (x / root, y / root, z / root)
        return (0.0, 1.0, 0.0)


def to_sphere(origin: Vector, direction: Vector, sphere: dict[str, Any]) -> float:
    radius, offset = sphere["radius"] / 1000, minus(origin, xyz(sphere["centre"]))
    half = dot(offset, direction)
    inside = half * half - (dot(offset, offset) - radius * radius)
    if inside <= 0.0:
        return FAR
    root, near = sqrt(inside), NEAR * max(1.0, radius)
    first, second = -half - root, root - half
    return first if first > near else second if second > near else FAR


def to_plane(origin: Vector, direction: Vector, plane: dict[str, Any]) -> float:
    normal = unit(xyz(plane["normal"]))
    slant = dot(normal, direction)
    if abs(slant) < 1e-12:
        return FAR
    distance = dot(minus(xyz(plane["point"]), origin), normal) / slant
    return FAR if distance < NEAR else distance


def add(one: Vector, other: Vector) -> Vector:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


def minus(one: Vector, other: Vector) -> Vector:
    return (one[0] - other[0], one[1] - other[1], one[2] - other[2])


def times(one: Vector, other: Vector) -> Vector:
    return (one[0] * other[0], one[1] * other[1], one[2] * other[2])


def scaled(one: Vector, factor: float) -> Vector:
    return (one[0] * factor, one[1] * factor, one[2] * factor)


def dot(one: Vector, other: Vector) -> float:
    return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]


def unit(one: Vector) -> Vector:
    length = sqrt(dot(one, one))
    return (one[0] / length, one[1] / length, one[2] / length)


def xyz(one: dict[str, int]) -> Vector:
    return (one["x"] / 1000, one["y"] / 1000, one["z"] / 1000)


def rgb(one: dict[str, int]) -> Vector:
    return (one["red"] / 1000, one["green"] / 1000, one["blue"] / 1000)


def _mixed(word: int) -> int:
    word ^= word >> 30
    word = word * 0xBF58476D1CE4E5B9 % WORD
    word ^= word >> 27
    word = word * 0x94D049BB133111EB % WORD
    return word ^ word >> 31
