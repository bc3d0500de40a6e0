"""What invented sciences speak of: places, things, what can be read off them, what acts on them."""

from __future__ import annotations

from typing import NamedTuple


class Quantity(NamedTuple):
    """Something that can be read off a thing."""

    phrase: str
    """In full: ``night-time glow``."""
    noun: str
    """In short: ``glow``."""
    unit: str
    low: int
    high: int
    """Range of its resting value."""


class Thing(NamedTuple):
    """A kind of thing that carries quantities; ``{}`` stands for its invented name, ``{N}`` for that with a capital."""

    form: str
    units: str
    """What is counted in a sample."""


class Factor(NamedTuple):
    """Something from outside that may act; braces stand for its invented name."""

    form: str
    short: str
    unit: str
    top: int
    """Its highest dose."""


class Field(NamedTuple):
    """One science: all quantities go with all things."""

    scene: str
    subject: str
    quantities: tuple[Quantity, ...]
    things: tuple[Thing, ...]
    factors: tuple[Factor, ...]
    tools: tuple[str, ...]


def _quantities(*rows: tuple[str, str, str, int, int]) -> tuple[Quantity, ...]:
    return tuple(Quantity(*row) for row in rows)


def _things(*rows: tuple[str, str]) -> tuple[Thing, ...]:
    return tuple(Thing(*row) for row in rows)


def _factors(*rows: tuple[str, str, str, int]) -> tuple[Factor, ...]:
    return tuple(Factor(*row) for row in rows)


FIELDS: dict[str, Field] = {
    "botany": Field(
        "the {N} marshes",
        "plants",
        _quantities(
            ("night-time glow", "glow", "lux", 20, 60),
            ("root depth", "root depth", "cm", 15, 80),
            ("seed weight", "seed weight", "mg", 10, 90),
            ("sap pressure", "sap pressure", "kPa", 60, 240),
            ("strength of scent", "scent", "points", 12, 70),
            ("thickness of bark", "bark thickness", "mm", 11, 40),
            ("pollen yield", "pollen yield", "mg", 15, 95),
            ("survival rate in frost", "frost survival", "%", 20, 45),
            ("time to ripening", "ripening time", "days", 20, 90),
            ("sugar stored in the stem", "stem sugar", "mg/g", 15, 80),
            ("droop of leaves at noon", "leaf droop", "degrees", 12, 40),
            ("hourly spore release", "spore release", "spores", 100, 600),
            ("redness of petals", "petal redness", "points", 20, 70),
        ),
        _things(
            ("{} moss", "tufts"), ("{} reed", "stalks"), ("{} willow", "trees"), ("{} orchid", "plants"),
            ("{} vine", "shoots"), ("{} fern", "fronds"), ("{} lily", "bulbs"), ("{} thistle", "rosettes"),
            ("{} berries", "bushes"), ("{} mangrove", "saplings"), ("{} fungus", "caps"),
        ),
        _factors(
            ("{}ine dissolved in the soil water", "{}ine", "mg/l", 50),
            ("grazing by {} snails", "{} grazing", "snails", 30),
            ("smoke from burning {} wood", "{} smoke", "minutes", 60),
            ("flooding by the river {N}", "{N} flooding", "days", 20),
            ("shade cast by {} trees", "{} shade", "hours", 10),
            ("{}ite dust on the leaves", "{}ite dust", "mg", 80),
            ("infection with {} mould", "{} mould", "spots", 40),
            ("the dry wind called {N}", "{N} wind", "km/h", 60),
        ),
        ("dark-field meter", "pressure probe", "hand lens", "field balance", "colour chart"),
    ),
    "zoology": Field(
        "the {N} coast",
        "animals",
        _quantities(
            ("length of dives", "dive length", "s", 20, 200),
            ("clutch size in spring", "clutch size", "eggs", 11, 60),
            ("loudness of courtship songs", "song loudness", "dB", 20, 60),
            ("hardness of shells", "shell hardness", "points", 15, 80),
            ("distance wandered by night", "night wandering", "m", 50, 400),
            ("beat of the resting heart", "heart rate", "beats", 20, 90),
            ("fat stored before winter", "fat store", "g", 12, 80),
            ("memory for hiding places", "place memory", "sites", 11, 40),
            ("readiness to share food", "food sharing", "gifts", 12, 50),
            ("brightness of crests", "crest brightness", "lux", 15, 60),
            ("sharpness of smell", "smell", "points", 20, 70),
            ("duration of sleep", "sleep", "minutes", 90, 500),
            ("aggression towards strangers", "aggression", "attacks", 12, 50),
        ),
        _things(
            ("{} gulls", "flocks"), ("{} crabs", "crates"), ("{} seals", "rookeries"), ("{} squid", "shoals"),
            ("{} otters", "families"), ("{} beetles", "jars"), ("{} eels", "baskets"), ("{} bats", "colonies"),
            ("{} tortoises", "clutches"), ("{} foxes", "dens"), ("{} shrimp", "tanks"),
        ),
        _factors(
            ("{}ol leaking from seaweed", "{}ol", "mg/l", 50),
            ("parasitism by {} mites", "{} mites", "mites", 40),
            ("a diet of {} kelp", "{} diet", "g", 90),
            ("moonlight on {N} nights", "{N} moonlight", "hours", 10),
            ("crowding on the {N} banks", "{N} crowding", "animals", 60),
            ("noise from the {N} surf", "{N} surf noise", "dB", 70),
            ("warming by the {N} current", "{N} warming", "degrees", 10),
            ("the call of {} hawks", "{} calls", "calls", 30),
        ),
        ("tracking collar", "listening post", "tide camera", "feeding table", "heart monitor"),
    ),
    "mineralogy": Field(
        "the {N} mine",
        "crystals and melts",
        _quantities(
            ("electrical conductance", "conductance", "mS", 15, 90),
            ("melting point", "melting point", "kelvin", 300, 900),
            ("rate of crystal growth", "growth rate", "nm/s", 12, 70),
            ("hardness against scratching", "hardness", "points", 20, 80),
            ("magnetic pull", "magnetism", "mT", 20, 150),
            ("depth of violet colour", "violet colour", "points", 15, 70),
            ("uptake of water vapour", "vapour uptake", "mg/g", 12, 60),
            ("ringing time after a blow", "ringing time", "ms", 50, 400),
            ("leakage of trapped gas", "gas leakage", "ml/h", 11, 50),
            ("heat given off on cooling", "heat release", "J/g", 40, 200),
            ("brittleness under load", "brittleness", "cracks", 12, 60),
            ("afterglow in darkness", "afterglow", "lux", 15, 60),
            ("stickiness of powder", "stickiness", "mN", 20, 90),
        ),
        _things(
            ("{}ite needles", "bundles"), ("{} quartz", "slabs"), ("{} amber", "lumps"), ("{} salt", "grains"),
            ("{} glass", "beads"), ("{} alloy", "rods"), ("{} clay", "tiles"), ("{} basalt", "cores"),
            ("{} garnet", "stones"), ("{} slag", "blocks"), ("{} chalk", "discs"),
        ),
        _factors(
            ("traces of {}ium", "{}ium", "ppm", 80),
            ("vibration from the {N} drill", "{N} vibration", "Hz", 90),
            ("steam from the {N} vent", "{N} steam", "bar", 20),
            ("light of {} lamps", "{} light", "hours", 12),
            ("squeezing in the {N} press", "{N} pressing", "kbar", 30),
            ("washing with {}ic acid", "{}ic acid", "percent", 40),
            ("age of the {N} seam", "{N} age", "centuries", 60),
            ("cold from {} brine", "{} cold", "degrees", 50),
        ),
        ("contact probe", "heating stage", "ring gauge", "polished anvil", "vapour cell"),
    ),
    "weather": Field(
        "the skies of {N}",
        "winds, clouds and seas",
        _quantities(
            ("height of the cloud base", "cloud height", "m", 200, 900),
            ("thunder activity", "thunder", "strokes", 12, 80),
            ("salt carried inland", "salt load", "mg", 15, 90),
            ("haze over the horizon", "haze", "points", 20, 70),
            ("size of hailstones", "hail size", "mm", 11, 40),
            ("yearly rainfall", "rainfall", "mm", 200, 900),
            ("thickness of sea ice", "ice thickness", "cm", 20, 120),
            ("pace of the evening breeze", "breeze", "km/h", 12, 50),
            ("green flash at sunset", "green flash", "s", 11, 40),
            ("wave height in winter", "wave height", "dm", 15, 70),
            ("dust fall on the plains", "dust fall", "g", 20, 90),
            ("duration of fog", "fog duration", "hours", 12, 60),
            ("warmth of the night air", "night warmth", "kelvin", 230, 300),
        ),
        _things(
            ("the {N} monsoon", "seasons"), ("the {N} gyre", "buoys"), ("the {N} plateau", "stations"),
            ("the {N} strait", "crossings"), ("the {N} trade winds", "balloons"), ("the {N} storm belt", "storms"),
            ("the {N} glacier", "stakes"), ("the {N} lagoon", "moorings"), ("the {N} desert", "masts"),
            ("the {N} archipelago", "islands"), ("the {N} moon tide", "tides"),
        ),
        _factors(
            ("ash from the {N} volcano", "{N} ash", "kt", 60),
            ("plankton bloom called {N} milk", "{N} milk", "mg", 40),
            ("clearing of the {N} forest", "{N} clearing", "percent", 50),
            ("nearness of the moon {N}", "{N} nearness", "degrees", 30),
            ("outflow of the river {N}", "{N} outflow", "km", 80),
            ("flares on the sun {N}", "{N} flares", "flares", 20),
            ("meltwater from {N} peaks", "{N} meltwater", "cm", 70),
            ("pollen from {N} steppe", "{N} pollen", "grains", 90),
        ),
        ("tethered balloon", "drifting buoy", "sky camera", "rain radar", "tide staff"),
    ),
    "physiology": Field(
        "the {N} colony",
        "organs and nerves",
        _quantities(
            ("nerve firing in darkness", "dark firing", "spikes/s", 12, 70),
            ("healing of small wounds", "wound healing", "mm", 11, 50),
            ("daily secretion of tears", "tear flow", "ul", 15, 80),
            ("tolerance towards thirst", "thirst tolerance", "hours", 12, 60),
            ("grip strength", "grip", "N", 20, 90),
            ("swelling after a sting", "swelling", "mm", 12, 45),
            ("recall of learnt mazes", "maze recall", "turns", 11, 40),
            ("body heat at dawn", "dawn heat", "points", 20, 60),
            ("shedding of scales", "scale shedding", "scales", 20, 120),
            ("clotting time", "clotting", "s", 30, 200),
            ("startle at loud clicks", "startle", "mV", 15, 75),
            ("appetite for bitter food", "bitter appetite", "g", 12, 60),
            ("speed of blinking", "blinking", "ms", 60, 300),
        ),
        _things(
            ("{} newts", "tanks"), ("{} hamsters", "litters"), ("{} lizards", "boxes"), ("{} carp", "shoals"),
            ("{} quail", "broods"), ("{} leeches", "jars"), ("{} voles", "pairs"), ("{} geckos", "cages"),
            ("{} toads", "ponds"), ("{} moths", "trays"), ("{} hedgehogs", "families"),
        ),
        _factors(
            ("injected {}amine", "{}amine", "ug", 80),
            ("a diet of {} root", "{} root", "mg", 60),
            ("rearing under {} lamps", "{} lamps", "weeks", 12),
            ("loss of the gland of {N}", "{N} gland loss", "percent", 90),
            ("stress in the {N} wheel", "{N} stress", "minutes", 40),
            ("the hormone {}in", "{}in", "pg", 70),
            ("inhaled {} vapour", "{} vapour", "ppm", 50),
            ("company of {} nestmates", "{} company", "animals", 20),
        ),
        ("glass electrode", "thermal camera", "force plate", "blood strip", "maze timer"),
    ),
    "engineering": Field(
        "the {N} works",
        "machines and materials",
        _quantities(
            ("wear of bearings", "bearing wear", "um", 15, 90),
            ("hum while idling", "idle hum", "dB", 20, 60),
            ("fuel burnt per shift", "fuel use", "kg", 20, 120),
            ("steadiness of flame", "flame steadiness", "points", 20, 70),
            ("leakage past seals", "seal leakage", "ml", 11, 60),
            ("reach of radio signals", "radio reach", "km", 12, 80),
            ("rust on the frame", "rust", "spots", 15, 80),
            ("time to start from cold", "start time", "s", 15, 120),
            ("charge held overnight", "held charge", "Ah", 12, 70),
            ("accuracy of aim", "aim", "points", 20, 60),
            ("brightness of sparks", "spark brightness", "lux", 30, 200),
            ("sag of the long beam", "beam sag", "mm", 11, 50),
            ("cracking of enamel", "enamel cracking", "cracks", 12, 60),
        ),
        _things(
            ("{} turbines", "sheds"), ("{} lanterns", "batches"), ("{} pumps", "shipments"), ("{} kilns", "rows"),
            ("{} gliders", "squadrons"), ("{} looms", "halls"), ("{} batteries", "racks"), ("{} cranes", "yards"),
            ("{} clocks", "shelves"), ("{} presses", "sets"), ("{} ferries", "fleets"),
        ),
        _factors(
            ("{}ene mixed into the oil", "{}ene", "percent", 20),
            ("lining with {} foil", "{} foil", "layers", 12),
            ("sand of the {N} dunes", "{N} sand", "g", 90),
            ("tuning by the {N} method", "{N} tuning", "steps", 30),
            ("winding with {} wire", "{} wire", "turns", 80),
            ("overload at {N} mill", "{N} overload", "percent", 60),
            ("quenching in {} brine", "{} quenching", "minutes", 40),
            ("jolts on the {N} road", "{N} jolts", "jolts", 50),
        ),
        ("strain gauge", "stroboscope", "test bench", "acoustic horn", "oil assay"),
    ),
}  # fmt: skip
"""The sciences by name."""
