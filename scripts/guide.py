#!/usr/bin/env python3
"""Check that the guide matches the examples, and the pages on internals the sources.

    scripts/guide.py [--root DIR]   print `path:line: message`; exit 1 if any
    scripts/guide.py --self-test    plant each mistake and find it

It checks docs/guide/*.md and README.md:

  1. Every block of C, JavaScript, Python or a DAG file is a run of whole lines of the example that
     the line above it names.
  2. README.md has at most 120 lines.  An example that is shown has at most 100, each chapter shows
     at least one, and README.md of the guide links to every chapter.
  3. A name that begins with weft_ or WEFT_ is in a public header, or in the store's header.
  4. A link to a file leads to an existing file.

And docs/architecture.md and docs/internals/*.md:

  5. A block `path` shows one call per line, indented by depth: the name of a function, the file
     that has it, and a remark.  The file exists and has that name.
  6. A name that begins with weft_ or weft__, and a file name in backquotes, is in the sources.
  7. A link to a file leads to an existing file.
"""
import argparse
import re
import sys
import tempfile
from pathlib import Path

LINES_MAX, README_MAX = 100, 120
EXAMPLE = re.compile(r"examples/(?:\w+\.(?:c|dag)|js/\w+\.js|python/\w+\.py)\b")
LANGUAGES = ("c", "js", "dag", "python")
NAME = re.compile(r"\b(?:weft|WEFT)_\w+")
SOURCE = re.compile(r"\bweft__?\w+\w\b(?!\.)")
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:c|h|S|py|js|sh|cmake|html))`")
FOLDERS = "include src proto bindings tools tests fuzz bench scripts cmake".split()
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def blocks(lines):
    """Yield (line number of the fence, language, lines inside, line above)."""
    start = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = i
            continue
        above = next((text for text in reversed(lines[:start]) if text.strip()), "")
        yield start + 1, lines[start][3:].strip(), lines[start + 1:i], above
        start = None
    if start is not None:
        yield start + 1, "unclosed", [], ""


def is_run_of(part, whole):
    size = len(part)
    return size > 0 and any(whole[i:i + size] == part
                            for i in range(len(whole) - size + 1))


def check_block(root, block):
    """Yield a message for each mistake in one block of code."""
    _, _, inside, above = block
    named = EXAMPLE.search(above)
    if not named:
        yield "the line above the block names no example"
        return
    path = root / named.group()
    if not path.is_file():
        yield f"there is no {named.group()}"
        return
    whole = path.read_text().splitlines()
    if not is_run_of(inside, whole):
        yield f"this is not in {named.group()}"
    if len(whole) > LINES_MAX:
        yield f"{named.group()} has more than {LINES_MAX} lines"


def check_text(root, path, names):
    """Yield (line, message) for one document."""
    text = path.read_text()
    shown = list(blocks(text.splitlines()))
    for block in shown:
        if block[1] == "unclosed":
            yield block[0], "the block has no end"
        elif block[1] in LANGUAGES:
            for message in check_block(root, block):
                yield block[0], message
    for number, line in enumerate(text.splitlines(), 1):
        for name in NAME.findall(line):
            if name not in names:
                yield number, f"{name} is in no public header"
        for target in LINK.findall(line):
            if not (path.parent / target).exists():
                yield number, f"{target} is not there"


class Sources:
    """The files that the pages on internals describe."""

    def __init__(self, root):
        self.paths = [p for folder in FOLDERS for p in (root / folder).rglob("*") if p.is_file()]
        self.text = {}
        self.names = {name for p in self.paths if p.suffix in (".c", ".h", ".S")
                      for name in SOURCE.findall(self.read(p))}

    def read(self, path):
        if path not in self.text:
            self.text[path] = path.read_text(errors="replace")
        return self.text[path]

    def find(self, name):
        """A file whose path ends with that name, or None."""
        return next((p for p in self.paths if p.as_posix().endswith("/" + name)), None)


def check_call(sources, line):
    """Yield a message for each mistake in one line of a path."""
    words = line.split()
    if len(words) < 2:
        yield "want a function, its file, and a remark"
        return
    path = sources.find(words[1])
    if not path:
        yield f"there is no {words[1]}"
    elif not re.search(rf"\b{re.escape(words[0])}\b", sources.read(path)):
        yield f"{words[1]} has no {words[0]}"


def check_internals(sources, path):
    """Yield (line, message) for a page on internals."""
    lines = path.read_text().splitlines()
    for number, language, inside, _ in blocks(lines):
        for i, line in enumerate(inside if language == "path" else (), number + 1):
            for message in check_call(sources, line) if line.strip() else ():
                yield i, message
    for number, line in enumerate(lines, 1):
        for name in SOURCE.findall(line):
            if name not in sources.names:
                yield number, f"{name} is in no source"
        for name in FILE.findall(line):
            if not sources.find(name):
                yield number, f"there is no {name}"
        for target in LINK.findall(line):
            if not (path.parent / target).exists():
                yield number, f"{target} is not there"


def check_guide(guide):
    """Yield (path, line, message) for what the guide as a whole lacks."""
    index = guide / "README.md"
    text = index.read_text() if index.is_file() else ""
    for path in sorted(guide.glob("*.md")):
        if path == index:
            continue
        if f"({path.name})" not in text:
            yield index, 1, f"no link to {path.name}"
        if not any(b[1] in LANGUAGES for b in blocks(path.read_text().splitlines())):
            yield path, 1, "no example is shown"


def findings(root):
    guide = root / "docs" / "guide"
    paths = [*sorted((root / "include").rglob("*.h")), *root.glob("tools/store/store.h")]
    headers = "\n".join(p.read_text() for p in paths)
    names = set(NAME.findall(headers))
    found = []
    for path in [root / "README.md", *sorted(guide.glob("*.md"))]:
        found += [(path, line, message) for line, message in check_text(root, path, names)]
    found += check_guide(guide)
    length = len((root / "README.md").read_text().splitlines())
    if length > README_MAX:
        found.append((root / "README.md", README_MAX + 1, f"more than {README_MAX} lines"))
    sources = Sources(root)
    docs = root / "docs"
    for path in [docs / "architecture.md", *sorted((docs / "internals").glob("*.md"))]:
        found += [(path, line, message) for line, message in check_internals(sources, path)]
    return [f"{path.relative_to(root)}:{line}: {message}" for path, line, message in found]


# --- self-test ---------------------------------------------------------------

CHAPTER, PAGE = "docs/guide/a.md", "docs/internals/loop.md"
CLEAN = {
    "include/weft/base.h": "int weft_go(void);\n",
    "examples/a.c": "int a;\nint b;\n\nint c;\n",
    "examples/long.c": "int a;\n" * 101,
    "examples/js/s.js": "let s;\nlet t;\n",
    "README.md": "See [the guide](docs/guide/README.md#top) and https://example.org/(x).\n"
                 "From `examples/js/s.js`:\n\n```js\nlet t;\n```\n",
    "docs/guide/README.md": "[a](a.md)\n",
    "src/loop/core/turn.c": "void weft__turn(void)\nwait();\n",
    "docs/architecture.md": "`turn.c` has weft__turn. [Loop](internals/loop.md)\n",
    PAGE: "```path\nweft__turn  loop/core/turn.c  one iteration\n  wait  loop/core/turn.c\n```\n",
    CHAPTER: "`weft_go` in `examples/a.c`:\n\n```c\nint b;\n\nint c;\n```\n\n```\nnot C\n```\n",
}
PLANTED = [
    (CHAPTER, "int b;\n", "int b ;\n", "this is not in"),
    (CHAPTER, "int b;\n\n", "int b;\n", "this is not in"),
    (CHAPTER, "int b;\n\nint c;\n", "nt b;\n", "this is not in"),
    (CHAPTER, "int b;\n\nint c;\n", "", "this is not in"),
    ("README.md", "let t;\n", "let u;\n", "this is not in"),
    (CHAPTER, "examples/a.c", "examples/z.c", "there is no"),
    (CHAPTER, "examples/a.c", "a.c", "names no example"),
    (CHAPTER, "examples/a.c`:\n\n```c\nint b;\n\nint c;\n", "examples/long.c`:\n\n```c\nint a;\n",
     "more than 100 lines"),
    (CHAPTER, "weft_go", "weft_gone", "is in no public header"),
    (CHAPTER, "```\nnot C\n```", "```\nnot C", "has no end"),
    (CHAPTER, "```c\n", "```\n", "no example is shown"),
    ("examples/a.c", "int c;", "int d;", "this is not in"),
    ("docs/guide/README.md", "(a.md)", "(b.md)", "no link to a.md"),
    ("README.md", "guide/README.md", "guide/index.md", "is not there"),
    ("README.md", "See [", "\n" * 120 + "See [", "more than 120 lines"),
    (PAGE, "wait ", "sleep ", "has no sleep"),
    (PAGE, "wait  loop/core/turn.c", "wait  loop/run.c", "there is no loop/run.c"),
    (PAGE, "wait  loop/core/turn.c", "wait", "want a function"),
    ("src/loop/core/turn.c", "weft__turn", "weft__run", "weft__turn is in no source"),
    ("docs/architecture.md", "`turn.c`", "`run.c`", "there is no run.c"),
    ("docs/architecture.md", "loop.md", "turn.md", "is not there"),
]


def findings_of(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return findings(Path(folder))


def self_test():
    bad = [f"found in a clean tree: {text}" for text in findings_of(CLEAN)]
    for name, old, new, message in PLANTED:
        assert old in CLEAN[name]
        found = findings_of({**CLEAN, name: CLEAN[name].replace(old, new)})
        if not any(message in text for text in found):
            bad.append(f"not found: {message}, by {new!r} for {old!r} in {name}")
    print("\n".join(bad + [f"guide self-test: {len(PLANTED)} planted, {len(bad)} wrong"]))
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    found = findings(args.root)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
