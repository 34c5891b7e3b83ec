"""Checks a built site: every internal link must point to an existing page and
anchor, and no page may load anything from another site.

    python check.py build/docs
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        have = {name: value or "" for name, value in attrs}
        if "id" in have:
            self.ids.add(have["id"])
        if tag == "a" and "href" in have:
            self.links.append(have["href"])
        elif tag == "link" and have.get("rel") not in ("author", "copyright", "index", "search", "next", "prev", "canonical"):
            self.loads.append(have.get("href", ""))
        elif "src" in have:
            self.loads.append(have["src"])


def main(site: pathlib.Path) -> int:
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    wrong: list[str] = []
    links = 0
    for path, page in pages.items():
        for target in page.loads:
            at = urllib.parse.urlsplit(target)
            if at.scheme not in ("", "data") or at.netloc:
                wrong.append(f"{path}: loads {target}")
            elif at.scheme == "" and not (path.parent / urllib.parse.unquote(at.path)).exists():
                wrong.append(f"{path}: loads {target}, which does not exist")
        for target in page.links:
            at = urllib.parse.urlsplit(target)
            if at.scheme or at.netloc:
                continue
            links += 1
            to = (path.parent / urllib.parse.unquote(at.path)).resolve() if at.path else path.resolve()
            found = next((p for q, p in pages.items() if q.resolve() == to), None)
            if found is None and not to.is_file():
                wrong.append(f"{path}: broken link to {target}: the page does not exist")
            elif found and at.fragment and urllib.parse.unquote(at.fragment) not in found.ids:
                wrong.append(f"{path}: broken link to {target}: the page has no such anchor")
    for path in site.rglob("*.css"):
        for target in re.findall(r"url\(\s*['\"]?((?:https?:)?//[^)'\"]+)", path.read_text(encoding="utf-8")):
            wrong.append(f"{path}: loads {target}")
    print("\n".join(wrong) if wrong else f"{len(pages)} pages, {links} internal links, no external resources")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
