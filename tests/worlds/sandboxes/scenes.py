"""A small scene with everything in it: dull, mirroring and glowing spheres, a plane, two lights."""

from typing import Any


def vector(x: int, y: int, z: int) -> dict[str, int]:
    return {"x": x, "y": y, "z": z}


def colour(red: int, green: int, blue: int) -> dict[str, int]:
    return {"red": red, "green": green, "blue": blue}


SCENE: dict[str, Any] = {
    "camera": {"at": vector(0, 1500, -5000), "towards": vector(0, 800, 0), "view": 1000},
    "spheres": [
        {"centre": vector(0, 1000, 0), "radius": 1000, "surface": {"colour": colour(900, 300, 200)}},
        {
            "centre": vector(-1900, 700, -300),
            "radius": 700,
            "surface": {"colour": colour(900, 900, 900), "mirror": 800},
        },
        {"centre": vector(1600, 500, -900), "radius": 500, "surface": {"colour": colour(300, 500, 900), "glow": 500}},
    ],
    "planes": [
        {"point": vector(0, 0, 0), "normal": vector(0, 2000, 0), "surface": {"colour": colour(700, 700, 600)}},
    ],
    "lights": [
        {"at": vector(-3000, 5000, -4000), "colour": colour(1000, 950, 900), "brightness": 25_000},
        {"at": vector(3000, 2000, -1000), "colour": colour(200, 300, 1000), "brightness": 3_000},
    ],
    "sky": colour(300, 450, 700),
}
