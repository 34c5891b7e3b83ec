"""Sphinx configuration that builds a site from docs/ with MyST.

The sources are plain Markdown. Everything else is added here when Sphinx reads
them: the navigation comes from the lists of links in the index pages, and the
markers in reference pages are replaced by the output of the fanfare binary.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import operations  # noqa: E402

DOCS = pathlib.Path(__file__).resolve().parents[1]
BINARY = os.environ["FANFARE_BINARY"]

project = "Fanfare"
author = "The Fanfare authors"
copyright = "The Fanfare authors, Apache License 2.0"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site"]
myst_heading_anchors = 4
myst_enable_extensions = ["strikethrough"]
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "monokai"
suppress_warnings = ["myst.header"]
html_theme = "furo"
html_title = "Fanfare"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None


def run_fanfare(*arguments: str) -> str:
    return subprocess.run([BINARY, *arguments], check=True, capture_output=True, text=True).stdout


def commands(*path: str) -> str:
    """Returns the help of a command and its subcommands, one section for each."""
    text = run_fanfare("help", *path) if path else run_fanfare("--help")
    out = "" if not path else f"\n{'##' if len(path) == 1 else '###'} fanfare {' '.join(path)}\n\n```text\n{text.split('Global Flags:')[0].rstrip()}\n```\n"
    names = re.findall(r"^  ([a-z][a-z-]*)  +\S", text.split("\nFlags:")[0], re.M)
    for name in names:
        if name not in ("help", "completion"):
            out += commands(*path, name)
    return out


MARKERS = {
    "<!-- operations -->": lambda: operations.markdown(json.loads(run_fanfare("openapi"))),
    "<!-- commands -->": commands,
    "<!-- configuration -->": lambda: f"```yaml\n{run_fanfare('config', 'reference')}```\n",
}


def on_source(app, name: str, source: list[str]) -> None:
    text = source[0]
    for marker, make in MARKERS.items():
        if marker in text:
            text = text.replace(marker, make())
    text = text.replace("```mermaid", "```text")  # drawing diagrams would need a script of three megabytes
    here = (DOCS / name).parent

    def inside(match: re.Match) -> str:
        """Points links to folders at their index page, and turns links out of docs/ into plain text."""
        words, target, fragment = match.group(1), match.group(2), match.group(3) or ""
        place = (here / target).resolve()
        if not place.is_relative_to(DOCS):
            return words
        if place.is_dir():
            return f"[{words}]({target.rstrip('/')}/index.md{fragment})"
        return match.group(0)

    text = re.sub(r"\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)", inside, text)
    if name.endswith("index"):
        listed = re.findall(r"^- \[[^\]]*\]\(([^)#:]+)\.md\)", text, re.M)
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(listed) + "\n```\n"
    source[0] = text


def setup(app) -> None:
    app.connect("source-read", on_source)
