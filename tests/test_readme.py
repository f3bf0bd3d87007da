"""The README is true: its Python blocks run, top to bottom, and print what they say they print."""

import re
from codeop import compile_command
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINT = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


def python_blocks() -> list[str]:
    """The README's Python, each block padded so that a traceback shows the README's own line numbers."""
    return ["\n" * README.count("\n", 0, match.start(1)) + match[1] for match in BLOCK.finditer(README)]


def test_readme_blocks_run_in_order_and_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "readme"}
    blocks = python_blocks()
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
        assert capsys.readouterr().out.splitlines() == PRINT.findall(block), block.strip()


def test_readme_tells_what_every_print_prints() -> None:
    for block in python_blocks():
        assert len(PRINT.findall(block)) == block.count("print("), block.strip()


def test_readme_blocks_can_be_pasted_into_a_prompt_line_by_line() -> None:
    for block in BLOCK.findall(README):
        waiting: list[str] = []
        for line in [*block.splitlines(), ""]:
            waiting.append(line)
            if compile_command("\n".join(waiting)) is not None:
                waiting.clear()
        assert waiting == []


def test_readme_links_lead_to_files_that_exist() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_readme_commands_are_targets_of_the_makefile() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    commands = re.findall(r"(?:^|`)make ([a-z]+)", README, re.MULTILINE)
    assert commands
    assert set(commands) <= set(targets)
