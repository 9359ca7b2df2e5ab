"""What a feed sends as the geometry of a line or an area, and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest

from planetwire.geometry import VERTICES_MAX, BadGeometry, Geometries, geometry

Positions = list[list[float]]
SQUARE: Positions = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]


def line(*positions: list[Any]) -> dict[str, Any]:
    return {"type": "LineString", "coordinates": list(positions)}


def area(*rings: Any) -> dict[str, Any]:
    return {"type": "Polygon", "coordinates": list(rings)}


def code(value: object, kind: str) -> str:
    with pytest.raises(BadGeometry) as refused:
        geometry(value, kind)
    return refused.value.code


def test_a_line_lies_where_it_is_half_done() -> None:
    made, lat, lon = geometry(line([0, 0], [0, 10], [0, 30]), "line")
    assert made == {"type": "LineString", "coordinates": [[0.0, 0.0], [0.0, 10.0], [0.0, 30.0]]}
    assert (lat, lon) == (15.0, 0.0)


def test_a_line_across_the_date_line_goes_the_short_way() -> None:
    made, lat, lon = geometry(line([170, 0], [-170, 0]), "line")
    assert made["coordinates"] == [[170.0, 0.0], [-170.0, 0.0]]
    assert (lat, abs(lon)) == (0.0, 180.0)


def test_a_line_over_a_pole_goes_over_it() -> None:
    assert geometry(line([0, 80], [180, 80]), "line")[1] == 90.0


def test_longitudes_are_wrapped_heights_left_out_and_what_repeats_itself_too() -> None:
    made = geometry(line([190, 1, 500], [190, 1, 600], [200.00000004, 1], [-160, 1]), "line")[0]
    assert made["coordinates"] == [[-170.0, 1.0], [-160.0, 1.0]]


def test_of_several_lines_the_longest_says_where_the_fact_lies() -> None:
    several = {"type": "MultiLineString", "coordinates": [[[50, 0], [51, 0]], [[0, 0], [10, 0]]]}
    made, lat, lon = geometry(several, "line")
    assert (made["type"], len(made["coordinates"]), lat, lon) == ("MultiLineString", 2, 0.0, 5.0)


def test_a_ring_is_closed_and_runs_round_its_inside_counter_clockwise_whoever_wrote_it() -> None:
    for ring in (SQUARE, SQUARE[:-1], SQUARE[::-1]):
        made = geometry(area(ring), "area")[0]
        [[*positions, last]] = made["coordinates"]
        assert last == positions[0]
        assert positions[(positions.index([0.0, 0.0]) + 1) % 4] == [10.0, 0.0]


def test_a_hole_stays_a_hole_and_is_not_where_the_fact_lies() -> None:
    hole = [[1, 1], [9, 1], [9, 9], [1, 9], [1, 1]]
    made, lat, lon = geometry(area(SQUARE, hole), "area")
    assert made["coordinates"][1] == [[float(x), float(y)] for x, y in hole[::-1]]
    assert not (1 < lat < 9 and 1 < lon < 9)
    assert 0 < lat < 10 and 0 < lon < 10


def test_a_box_across_the_date_line_is_the_narrow_one() -> None:
    made, lat, lon = geometry(area([[170, -10], [190, -10], [190, 10], [170, 10]]), "area")
    assert made["coordinates"][0][:2] == [[170.0, -10.0], [-170.0, -10.0]]
    assert abs(lat) < 10 and abs(lon) > 170


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "ring",
    [
        [[0, 60], [90, 60], [180, 60], [-90, 60]],  # round the pole
        [[-180, 60], [0, 60], [180, 60], [180, 90], [-180, 90]],  # cut at ±180° and led to the pole, as RFC 7946 asks
        [[-180, 60], [180, 60], [180, 90], [-180, 90]],  # a box
        [[0, 60], [360, 60], [360, 90], [0, 90]],
    ],
)
def test_what_lies_around_a_pole_holds_the_pole(ring: Positions, sign: int) -> None:
    _, lat, _ = geometry(area([[lon, sign * lat] for lon, lat in ring]), "area")
    assert sign * lat > 80


def test_a_box_that_ends_at_the_pole_keeps_both_its_meridians() -> None:
    made = geometry(area([[0, 60], [90, 60], [90, 90], [0, 90]]), "area")[0]
    assert [90.0, 90.0] in made["coordinates"][0] and [0.0, 90.0] in made["coordinates"][0]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (line(), "line"),
        (line([1, 1]), "line"),
        (line([1, 1], [1, 1]), "line"),
        (line([180, 5], [-180, 5]), "line"),
        (line([10, 90], [70, 90]), "line"),
        ({"type": "MultiLineString", "coordinates": []}, "line"),
        (area(), "area"),
        (area([]), "area"),
        (area([[0, 0], [10, 10]]), "area"),
        (area([[0, 0], [10, 0], [20, 0], [0, 0]]), "area"),
        (area([[170, 0], [-170, 0], [-160, 0]]), "area"),
        (area([[-180, -30], [180, -30], [180, 30], [-180, 30]]), "area"),  # a belt has no side that is its inside
        (area([[-180, -90], [180, -90], [180, 90], [-180, 90]]), "area"),  # neither has all the Earth
    ],
)
def test_what_has_no_length_or_no_inside_is_refused(value: object, kind: str) -> None:
    assert code(value, kind) == "degenerate"


def test_a_part_without_an_inside_is_left_out_alone() -> None:
    several = {"type": "MultiPolygon", "coordinates": [[[[5, 5], [5, 5], [5, 5]]], [SQUARE, [[1, 1], [1, 1], [1, 1]]]]}
    made = geometry(several, "area")[0]
    assert (made["type"], len(made["coordinates"])) == ("Polygon", 1)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "line"),
        ([], "area"),
        ({}, "line"),
        (line([0, 0], [1, 1]), "area"),
        (area(SQUARE), "line"),
        ({"type": "Point", "coordinates": [1, 2]}, "line"),
        ({"type": ["LineString"], "coordinates": [[0, 0], [1, 1]]}, "line"),
        ({"type": "LineString"}, "line"),
        ({"type": "LineString", "coordinates": "[[0,0],[1,1]]"}, "line"),
        (line([0, 0], [1]), "line"),
        (line([0, 0], ["1", 1]), "line"),
        (line([0, 0], [True, 1]), "line"),
        (line([0, 0], [None, 1]), "line"),
        ({"type": "Polygon", "coordinates": [[0, 0], [1, 1]]}, "area"),
    ],
)
def test_what_is_no_geometry_of_the_kind_is_refused(value: object, kind: str) -> None:
    assert code(value, kind) == "bad_geometry"


@pytest.mark.parametrize("bad", [[0, 90.1], [361, 0], [float("nan"), 0], [0, float("inf")], [10**400, 0]])
def test_a_position_off_the_earth_is_refused(bad: list[Any]) -> None:
    assert code(line([0, 0], bad), "line") == "out_of_range"


def test_a_fact_and_a_body_have_so_many_vertices() -> None:
    most = line(*([n % 2, 1] for n in range(VERTICES_MAX)))
    assert geometry(most, "line")
    assert code(line(*most["coordinates"], [0, 2]), "line") == "too_large"
    body = Geometries(most=5)
    three = line([0, 0], [1, 1], [2, 2])
    assert body.read(three, "line") == geometry(three, "line")
    with pytest.raises(BadGeometry, match="of a body together") as refused:
        body.read(three, "line")
    assert refused.value.code == "too_large"
    assert body.read(line([0, 0], [1, 1]), "line"), "what has room is still taken"
