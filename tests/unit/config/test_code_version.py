"""The version of a spider's code: what changes it, and what does not."""

from pathlib import Path

import pytest

from trotline.config.code_version import code_version


def test_the_code_version_changes_with_what_the_spider_imports_from_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shop = tmp_path / "shops_of_this_test"
    (shop / "parts").mkdir(parents=True)
    files = {name: shop / name for name in ("__init__.py", "tea.py", "prices.py", "parts/__init__.py", "parts/cup.py")}
    for file in files.values():
        file.write_text("")
    files["tea.py"].write_text("import json\nfrom . import prices\nfrom .parts.cup import handle\n")
    files["prices.py"].write_text("import tea\n")
    (tmp_path / "elsewhere.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    by_module = "shops_of_this_test.tea:tea"

    before = code_version(by_module)
    for name, file in files.items():
        file.write_text(file.read_text() + "\n# changed")
        after = code_version(by_module)
        assert after != before, name
        before = after
    (shop / "nobody_asks_for_it.py").write_text("")
    (tmp_path / "elsewhere.py").write_text("x = 1")
    assert code_version(by_module) == before

    # A file's own folder is where its imports are looked for, as when Python runs it.
    files["tea.py"].write_text("import prices\nimport missing, parts.cup\n")
    before = code_version(str(files["tea.py"]))
    files["parts/cup.py"].write_text("x = 2")
    assert code_version(str(files["tea.py"])) != before


def test_a_file_that_is_no_python_has_a_version_too(tmp_path: Path):
    file = tmp_path / "shop.py"
    for source in (b"def (", b"\0", b"\xff"):
        file.write_bytes(source)
        assert len(code_version(str(file))) == 12


def test_the_code_version_changes_with_the_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "shop_of_this_test.py"
    file.write_text("a = 1\n")
    before = code_version(str(file))
    assert len(before) == 12
    assert code_version(f"{file}:shop") == before
    file.write_text("a = 2\n")
    assert code_version(str(file)) != before
    monkeypatch.syspath_prepend(tmp_path)
    assert code_version("shop_of_this_test:shop") == code_version(str(file)), "a module has a file, too"
    assert code_version("there_is_no_such_module:shop") == ""
