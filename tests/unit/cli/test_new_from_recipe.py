"""`trotline new --from-recipe`, and the file that `trotline trace` finds: recipes are spiders like others."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from trotline.cli.new import command
from trotline.cli.suggested_commands import file_here


@pytest.mark.parametrize(("host", "option"), [("127.0.0.1:8000", " --allow-private"), ("shop.example", "")])
def test_the_command_that_is_suggested_can_visit_the_start(tmp_path: Path, monkeypatch, host: str, option: str):
    monkeypatch.chdir(tmp_path)
    Path("tea.toml").write_text(f"start = 'http://{host}/'\n[fields]\na = 'h1'")
    said = CliRunner().invoke(command, ["tea", "--from-recipe", "tea.toml"]).output
    assert f"trotline try tea.py{option}    fetches" in said


def test_a_recipe_is_found_by_the_name_of_its_spider(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert file_here("tea") == ""
    Path("tea.toml").touch()
    assert file_here("tea") == "tea.toml"
    Path("tea.py").touch()
    assert file_here("tea") == "tea.py"
