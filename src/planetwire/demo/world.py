"""All simulated providers behind one address, dispatched by path."""

from __future__ import annotations

from importlib.resources import files

from planetwire.demo.providers.answer import GEOJSON, JSON, TEXT, Answer, Query, text
from planetwire.demo.providers.metars import Metars
from planetwire.demo.providers.quakes import Quakes
from planetwire.demo.providers.runways import Runways
from planetwire.demo.providers.satellites import Satellites
from planetwire.demo.providers.simulation import simulations
from planetwire.demo.simclock import SimClock

GP_PATH = "/NORAD/elements/gp.php"
METAR_PATH = "/api/data/metar"
METAR_CACHE_PATH = "/data/cache/metars.cache.csv.gz"
RUNWAYS_PATH = "/runways/readings.json"
QUAKES_FOLDER = "/earthquakes/feed/v1.0/summary/"
SAMPLES_FOLDER = "/_samples/"

_TYPES = {"json": JSON, "geojson": GEOJSON}


def sample_names() -> list[str]:
    """Names of the packaged real samples; SOURCES.md lists their origins."""
    names = [entry.name for entry in (files("planetwire.demo") / "samples").iterdir()]
    return sorted(name for name in names if name not in ("SOURCES.md", "stations.csv") and not name.startswith("_"))


def sample(name: str) -> bytes:
    """The bytes of a packaged real sample. Raises KeyError for an unknown name."""
    if name not in sample_names():
        raise KeyError(name)
    return (files("planetwire.demo") / "samples" / name).read_bytes()


def sample_type(name: str) -> str:
    """Content type of a sample by its suffix."""
    return _TYPES.get(name.rpartition(".")[2], TEXT)


class World:
    """The simulated providers, by seed and clock. `answer` may take a second and is thread-safe."""

    def __init__(self, seed: int, clock: SimClock, *, cadence_s: int = 60, strict: bool = False) -> None:
        self.seed = seed
        self.clock = clock
        self.satellites = Satellites(seed, strict=strict)
        self.quakes = Quakes(seed, clock.start_s)
        self.metars = Metars(seed, clock.start_s, cadence_s)
        self.runways = Runways(seed, clock.start_s, cadence_s)
        self._others = {one.path: one for one in simulations()}

    def answer(self, path: str, query: Query) -> Answer:
        """The provider's answer now; 404 for an unknown path."""
        now_s = self.clock.now_s()
        if path == GP_PATH:
            return self.satellites.answer(query, now_s)
        if path.startswith(QUAKES_FOLDER):
            return self.quakes.answer(path, query, now_s)
        if path == METAR_PATH:
            return self.metars.answer(query, now_s)
        if path == METAR_CACHE_PATH:
            return self.metars.cache_file(now_s)
        if path == RUNWAYS_PATH:
            return self.runways.answer(query, now_s)
        if path in self._others:
            return self._others[path].answer(self.seed, query, now_s)
        name = path.removeprefix(SAMPLES_FOLDER)
        if path.startswith(SAMPLES_FOLDER) and name in sample_names():
            return Answer(sample(name), sample_type(name))
        return text(404, "Not Found")
