from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from trotline.rules.svg_charts import HEIGHT, Point, bar_chart, line_chart

VALUES = st.floats(0, 1e9)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=30))
def test_every_chart_is_well_formed_and_inside_its_frame(values: list[tuple[float, float]]):
    points = [Point(x, y, "<b>&") for x, y in values]

    for chart in (line_chart("a < b", points, points), bar_chart('"x"', points)):
        root = ET.fromstring(chart)  # noqa: S314 - our own
        assert root[0].text in ("a < b", '"x"')
        for bar in root.iter("{http://www.w3.org/2000/svg}rect"):
            assert -1 <= float(bar.attrib["y"]) <= HEIGHT


def test_labels_are_text():
    assert "<script>" not in bar_chart("t", [Point(0, 1, "<script>alert(1)</script>")])
    assert "style=" not in line_chart("t", [Point(0, 1), Point(1, 2)])
