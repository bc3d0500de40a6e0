"""MkDocs hooks: publish generated pages, those at the root of the repository, and every file that a page links to.

The pages link to each other as files of the repository, so that the links work on its host, too. These hooks rewrite
each link that leaves ``docs/`` to the copy on the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

import cli_options
import tree_pages
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
DOCS = "docs"
ROOT_PAGES = {name: name.lower() for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
"""Pages at the root of the repository, with their names on the site."""
MODULE = re.compile(r"^\| \[`([\w.]+)`\]\((\w+\.md)\)", re.MULTILINE)
"""Row of a module in the table of the API, with the name of its page."""
MEMBERS = {"envs.md": "inherited_members: [runtime, last_transition, reset, render, close]"}
"""Further options of the page of a module."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, the root pages, and the files outside ``docs/`` that a page links to."""
    pages = {posixpath.join(DOCS, page.src_uri): page.content_string for page in files.documentation_pages()}
    added = {f"{DOCS}/trees/{name}": text for name, text in tree_pages.pages().items()}
    added |= {f"{DOCS}/api/{name}": text for name, text in api_pages().items()}
    added |= {name: (ROOT / name).read_text(encoding="utf-8") for name in ROOT_PAGES}
    for path, text in added.items():
        content = rewritten(text, path) if path.endswith(".md") else text
        files.append(File.generated(config, site_uri(path), content=content))
    for page, text in (pages | added).items():
        for target in linked(text, page):
            uri = site_uri(target)
            if (ROOT / target).is_file() and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite the links of a page of ``docs/``, and add the options to that of the command line."""
    if page.file.src_uri == "cli.md":
        markdown = cli_options.with_options(markdown)
    return rewritten(markdown, posixpath.join(DOCS, page.file.src_uri)) if page.file.abs_src_path else markdown


def api_pages() -> dict[str, str]:
    """Return the page of each module in the table of the API that has no page of its own, by name."""
    folder = ROOT / DOCS / "api"
    rows = MODULE.findall((folder / "index.md").read_text(encoding="utf-8"))
    return {name: _module_page(module, name) for module, name in rows if not (folder / name).exists()}


def _module_page(module: str, name: str) -> str:
    options = ["show_root_heading: false", "show_root_toc_entry: false", "heading_level: 2"]
    options += [MEMBERS[name]] if name in MEMBERS else []
    return f"# {module}\n\n::: {module}\n    options:\n" + "".join(f"      {option}\n" for option in options)


def linked(markdown: str, page: str) -> list[str]:
    """Return the files that a page links to, as paths from the root of the repository."""
    return [posixpath.normpath(posixpath.join(posixpath.dirname(page), found[1])) for found in LINK.finditer(markdown)]


def site_uri(path: str) -> str:
    """Return the path on the site of a repository file."""
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    if path == "README.md":
        return "index.md"
    # A Markdown file of the package is offered as it is, not as a page.
    return ROOT_PAGES.get(path) or f"repository/{path}" + (".txt" if path.endswith(".md") else "")


def rewritten(markdown: str, page: str) -> str:
    """Return the page with links that work on the site."""
    folder = posixpath.dirname(site_uri(page))

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), found[1]))
        return posixpath.relpath(site_uri(target), folder or ".") + (found[2] or "")

    return LINK.sub(link, markdown)
