"""A hook of MkDocs: pages of the repository that lie outside of docs/, and the reference, generated as it builds.

Pages link to each other as they lie in the repository, so that they can be read there; links that lead out of docs/ are
turned here to where the site has the page.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

# Pages outside of docs/: their place in the repository, on the site, and their title.
PROJECT = {
    "README.md": ("project/readme.md", "What kctl does"),
    "CHANGELOG.md": ("project/changelog.md", "Changes"),
    "SECURITY.md": ("project/security.md", "Security"),
    "CONTRIBUTING.md": ("project/contributing.md", "Contributing"),
    "CODE_OF_CONDUCT.md": ("project/conduct.md", "Conduct"),
    "ARCHITECTURE.md": ("project/architecture.md", "Architecture"),
    "benchmarks/RESULTS.md": ("project/measurements.md", "Measurements"),
    "examples/README.md": ("project/examples.md", "The recorded incident"),
}
PLACES = {path: place for path, (place, _) in PROJECT.items()} | {
    "docs/sql": "reference/sql.md",
    "Dockerfile": "project/dockerfile.md",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:)([^)#\s]+)")


def turned(text: str, at: str, page: str) -> str:
    """The text of the repository's file `at`, with its links as the site's page `page` needs them."""

    def one(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(at), link[1]))
        place = PLACES.get(target, target.removeprefix("docs/") if target.startswith("docs/") else None)
        return link[1] if place is None else posixpath.relpath(place, posixpath.dirname(page) or ".")

    return LINK.sub(one, text)


def on_config(config: Any) -> Any:
    from docs.making.reference import navigation

    for section in config["nav"]:
        if "Reference" in section:
            section["Reference"] = navigation()
        if "Project" in section:
            section["Project"] += [{title: place} for place, title in PROJECT.values()]
    return config


def on_files(files: Files, config: Any) -> Files:
    from docs.making.reference import pages

    for path, (place, _) in PROJECT.items():
        files.append(
            File.generated(config, place, content=turned((ROOT / path).read_text("utf-8"), path, place))
        )
    files.append(File.generated(config, "project/dockerfile.md", content=code("Dockerfile")))
    for place, text in pages():
        files.append(File.generated(config, place, content=text))
    return files


def code(path: str) -> str:
    """A file of the repository that is no page, as one."""
    return f"# {path}\n\n````text\n{(ROOT / path).read_text('utf-8')}````\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's links; generated pages have theirs already."""
    if page.file.generated_by:
        return markdown
    return turned(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


# Browsers start no worker from a file. The theme would fetch a stand-in from another host; this one runs the worker's
# script in a frame of the page, so that the search works without any host.
SHIM = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"></script>')
IN_A_FRAME = """<script>
if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(url) {
    super()
    const frame = document.body.appendChild(Object.assign(document.createElement("iframe"), {hidden: true}))
    const inside = this.inside = frame.contentWindow
    inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}))
    this.loaded = new Promise(done => inside.document.body.appendChild(
      Object.assign(inside.document.createElement("script"), {src: url, onload: done})))
  }
  postMessage(data) {
    this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})))
  }
}
</script>"""


def on_post_page(output: str, **_: Any) -> str:
    return SHIM.sub(IN_A_FRAME, output)
