"""nodes.toolbox.current_time: a time zone by its name, as models write it."""

import json

import pytest

from nodes.failures import ToolProblem
from nodes.toolbox import current_time


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("Asia/Shanghai", "Asia/Shanghai"),
        ("asia/shanghai", "Asia/Shanghai"),
        (" America/New York ", "America/New_York"),
        ("europe/berlin", "Europe/Berlin"),
        ("", "UTC"),
    ],
)
def test_a_time_zone_is_known_in_any_case_and_with_blanks(name: str, zone: str):
    assert json.loads(current_time.invoke({"timezone": name}))["timezone"] == zone


@pytest.mark.parametrize("name", ["Mars/Base", "北京", "../etc/passwd", "\0", "a" * 5000])
def test_what_is_no_time_zone_is_told(name: str):
    with pytest.raises(ToolProblem, match="no time zone"):
        current_time.invoke({"timezone": name})
