#!/usr/bin/env python3
"""Check the tree against the rules of docs/style.md that a program can check.

    scripts/tidy.py [--root DIR]    print `path:line: rule: message`; exit 1 if any
    scripts/tidy.py --self-test     plant a violation of every rule and find it

A rule is a function that takes a Tree and yields (path, line, message); its name is the name of
the rule.  Before rules inspect calls, braces and directives, comments and strings are replaced by
spaces, which keeps every offset.  Only the standard library is used.

tidy: long file, because it carries a planted violation of each rule.
"""
import argparse
import bisect
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path, PurePosixPath

LAYERS = "base timer backend loop threadlet promise work net runtime dag".split()
OUTSIDE = ("proto", "bindings", "tools", "examples")
LOOPS_OWN = "src/loop/"  # the only folder that names members of struct weft_loop
BACKEND_USERS = ("src/backend/", LOOPS_OWN)
OPS = "src/backend/backend_op.h"  # the contract of ops: every layer may use what it declares
SHARED = ["proto/base/", "src/base/utf8.h"]  # private code that protocols and bindings share
LIBRARIES = "admin dag hiredis http js redis".split()  # headers of the libraries beside the core
CORE_FUNCTIONS_MAX, LIBRARY_FUNCTIONS_MAX, OTHER_FUNCTIONS_MAX = 220, 90, 33
COLUMNS_MAX, NESTING_MAX, PARAMETERS_MAX = 100, 4, 6
FUNCTION_MAX, RATCHET_MAX, FILE_MAX, FILE_HARD_MAX = 70, 72, 800, 1200
SUBJECT_MAX, SUBJECTS = 72, 50

CODE_SUFFIXES = {".c", ".h", ".cc", ".go", ".S", ".py", ".sh", ".js", ".cmake"}
TEXT_SUFFIXES = CODE_SUFFIXES | {".md", ".yml", ".yaml", ".toml", ".map"}
CODE_NAMES = {"CMakeLists.txt", "Makefile", "dev"}

BANNED = "strcpy strcat sprintf gets atoi alloca signal".split()
BANNED_IN_TESTS = "sleep usleep nanosleep".split()
BANNED_IN_SRC = "printf fprintf puts exit malloc calloc realloc free".split()

CXX_KEYWORDS = ("class delete explicit friend mutable namespace new operator private protected "
                "public template this throw try typename using virtual").split()

LEXEME = re.compile(
    r"/\*.*?(?:\*/|\Z)|//(?:\\\n|[^\n])*"
    r'|"(?:\\.|[^"\\\n])*"' r"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
LOGICAL_LINE = re.compile(r"(?:\\\n|[^\n])*")
INCLUDE = re.compile(r'(#[ \t]*include[ \t]*)(["<])([^">\n]*)([">])')
ATTRIBUTE = re.compile(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
LOOP_NAME = re.compile(r"\bweft_loop\s*\*+\s*(?:const\s+)?(\w+)\b(?!\s*\()")
LOOP_CALL = re.compile(r"\bweft_loop\s*\*\s*(\w+)\s*\(")
PUBLIC = re.compile(r"WEFT_(?:API|INLINE)\b[^(;]*?\b(\w+)\s*\(")
LONG_FUNCTION = re.compile(r"tidy:\s+long,\s+because\s+\w")
WIDE_FUNCTION = re.compile(r"tidy:\s+wide,\s+because\s+\w")
LONG_FILE = re.compile(r"tidy:\s+long\s+file,\s+because\s+\w")
SUBJECT = re.compile(r"[a-z0-9_./,-]+( [a-z]+)?: .+")
# Written in pieces, so that this file passes its own rules.
MARK = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b(?!\(#\d+\))")
LOCAL_PATH = re.compile(r"(?<![\w.~*)}>\]-])/(wo" r"rk|ro" r"ot)/")

# Words that hide the actor of a sentence, or for which the field has another word.  Comments, error
# texts and the prose of .md files do without them.
WORDS = {
    "tell": r"\b(?:tells?|telling|told)\b",
    "somebody": r"\b(?:some|no|any|every)body\b",
    "who": r"(?<!engineer )(?<!engineers )(?<!reader )(?<!users )\b(?:who|whom|whoever)\b",
    "stand": r"\b(?:stands?|stood)\b(?! (?:for|alone|by)\b)",
    "lie": r"\b(?:lies?|lain)\b",
    "look on": r"\b(?:looks?|looked|looking) (?:on|at|after)\b",
    "any more": r"\bany more\b",
    "anew": r"\banew\b",
    "for ever": r"\bfor ever\b",
    "oneself": r"\b(?:oneself|one's)\b",
    "by and by": r"\bby and by\b",
    "mend": r"\bmend(?:s|ed)?\b",
    "crew": r"\bcrews?\b",
    "luck": r"\bluck\b",
}
# Members and states may still have such a name: in backquotes, or in capitals.
NAMED = re.compile(r"`[^`\n]*`|\b[A-Z][A-Z_]+\b")
WORDS = {word: re.compile(pattern, re.I) for word, pattern in WORDS.items()}
ERROR_CALL = re.compile(r"\bweft_{1,2}(?:fail|misuse)(?:_in)?\s*\([^;]*;")
# An error text is "call: reason".  The call can be a family (weft_op_*) or an argument (%s), and
# may be followed by what it was about (weft_dgram_open %s); so may a verb (connect %s).
TEXT_OF_ERROR = re.compile(r"\bweft_{1,2}(?:fail|misuse)(_in)?\s*\([^,;{}]*,\s*"
                           r'((?:"(?:\\.|[^"\\\n])*"\s*)+)(,?)')
CALL_AND_REASON = re.compile(r'(?:weft_\w+\*?|%s|%\.\*s|[a-z]+ (?=\\"|%)).*: .|(?:%s|%\.\*s)?$')
CALL = re.compile(r"weft_\w+\*?$")
# Their texts are reasons, which a longer text quotes after the call, the node or the request.
REASONS = ("proto/http/client/", "proto/redis/redis_conn.c", "src/dag/", "src/promise/abort.c",
           "src/threadlet/wait.c", "src/threadlet/waitable.c")
FENCED = re.compile(r"^```.*?^```|^(?: {4}|\t).*?$|`[^`\n]*`", re.M | re.S)

Function = namedtuple("Function", "name start end open close parameters")
Item = namedtuple("Item", "kind text start end line")
Group = namedtuple("Group", "doc line functions")


# --- reading C ---------------------------------------------------------------

def blank(text):
    """Spaces of the same length; line ends are kept."""
    return re.sub(r"[^\n]", " ", text)


class Source:
    """One text file; for C also its text without comments and strings."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.pure = PurePosixPath(path)
        self.top, self.suffix = self.pure.parts[0], self.pure.suffix
        self.is_c = self.suffix in (".c", ".h")
        self.is_code = (self.suffix in CODE_SUFFIXES or self.pure.name in CODE_NAMES
                        or text.startswith("#!"))
        self.is_text = self.is_code or self.suffix in TEXT_SUFFIXES
        self.is_os = self.pure.match("src/base/os_*.c")
        self.lines = text.split("\n")

    @functools.cached_property
    def comments(self):
        """(start, end) of each comment."""
        return [m.span() for m in LEXEME.finditer(self.text) if m[0].startswith("/")]

    @functools.cached_property
    def code(self):
        """The text with comments, contents of strings and include names blanked."""
        def hide(m):
            word = m[0]
            return blank(word) if word[0] == "/" else word[0] + blank(word[1:-1]) + word[-1]

        return INCLUDE.sub(lambda m: m[1] + m[2] + blank(m[3]) + m[4],
                           LEXEME.sub(hide, self.text))

    @functools.cached_property
    def flat(self):
        """The code with preprocessor directives also blanked."""
        return DIRECTIVE.sub(lambda m: blank(m[0]), self.code)

    @functools.cached_property
    def includes(self):
        """(line, quote, name) of each include that is not in a comment."""
        return [(self.line(m.start()), m[2], m[3]) for m in INCLUDE.finditer(self.text)
                if not any(a <= m.start() < b for a, b in self.comments)]

    @functools.cached_property
    def line_starts(self):
        return [0] + [m.end() for m in re.finditer("\n", self.text)]

    def line(self, offset):
        return bisect.bisect_right(self.line_starts, offset)

    def flat_line(self, number):
        start = self.line_starts[number - 1]
        return self.flat[start:start + len(self.lines[number - 1])]

    @functools.cached_property
    def functions(self):
        return list(find_functions(self))


def open_of(text, close):
    """The offset of the parenthesis that text[close] closes, or -1."""
    depth = 0
    for i in range(close, -1, -1):
        depth += (text[i] == ")") - (text[i] == "(")
        if depth == 0:
            return i
    return -1


def count_parameters(inside):
    if inside.strip() in ("", "void"):
        return 0
    depth, commas = 0, 0
    for ch in inside:
        depth += (ch in "([{") - (ch in ")]}")
        commas += ch == "," and depth == 0
    return commas + 1


def signature(head):
    """(offset of the name, name, parameters) of a function's declarator, or None."""
    head = re.sub(r"(?<=\))\s+[A-Z_][A-Z0-9_]*\s*$", "",
                  ATTRIBUTE.sub(lambda m: blank(m[0]), head).rstrip())
    if not head.endswith(")") or "=" in head:
        return None
    start = open_of(head, len(head) - 1)
    name = re.search(r"(\w+)\s*$", head[:max(start, 0)])
    return (name.start(), name[1], count_parameters(head[start + 1:-1])) if name else None


def find_functions(source):
    """Definitions at file scope, whether or not the return type is on its own line."""
    flat, depth, head, found = source.flat, 0, 0, None
    for m in re.finditer(r"[{};]", flat):
        if m[0] == "{":
            if depth == 0 and re.search(r'extern\s+"[^"]*"\s*$', flat[head:m.start()]):
                head = m.end()
                continue
            if depth == 0:
                found = signature(flat[head:m.start()])
                begin, opened = head, m.start()
            depth += 1
        elif m[0] == "}":
            depth -= 1
            if depth == 0 and found:
                start, lowest = source.line(begin + found[0]), source.line(begin)
                while start > lowest and source.flat_line(start - 1).strip():
                    start -= 1
                yield Function(found[1], start, source.line(m.start()), opened,
                               m.start(), found[2])
        if depth <= 0:
            depth, head = 0, m.end()


def opens_block(flat, brace):
    """Whether a brace opens a block of statements and not an initializer."""
    before = flat[:brace].rstrip()
    if before[-1] in "=,[]":
        return False
    if before[-1] != ")":
        return True
    word = re.search(r"(\w+)\s*$", before[:max(open_of(before, len(before) - 1), 0)])
    return bool(word) and word[1] not in ("return", "sizeof")


def deepest_block(flat, function):
    """(depth, offset) of the most nested block; the body itself is depth 0."""
    body, stack, best = flat[:function.close], [], (0, function.open)
    for m in re.finditer(r"[{}]", body[function.open + 1:]):
        at = function.open + 1 + m.start()
        if m[0] == "}":
            stack and stack.pop()
            continue
        stack.append(all(stack) and opens_block(body, at))
        if sum(stack) > best[0]:
            best = (sum(stack), at)
    return best


def items(header):
    """Comments, directives and declarations in order.  A comment that begins on the
    last line of a declaration or directive is part of it."""
    text, flat, spans, found, pos = header.text, header.flat, dict(header.comments), [], 0
    while (m := re.compile(r"\S").search(text, pos)):
        start = m.start()
        if start in spans:
            kind, pos = "comment", spans[start]
            last = found[-1] if found else None
            if last and last.kind != "comment" and "\n" not in text[last.end:start]:
                found[-1] = last._replace(text=text[last.start:pos], end=pos)
                continue
        elif text[start] == "#":
            kind = "directive"
            pos = start + len(LOGICAL_LINE.match(header.code, start)[0].rstrip())
        elif (m := re.compile(r"WEFT_(BEGIN|END)\b").match(text, start)):
            kind, pos = "marker", m.end()
        else:
            kind, pos = "declaration", end_of_declaration(flat, start)
        found.append(Item(kind, text[start:pos], start, pos, header.line(start)))
    return found


def end_of_declaration(flat, start):
    """The offset after the semicolon, or after the body of a function."""
    depth, body = 0, None
    for m in re.compile(r"[{};]").finditer(flat, start):
        depth += (m[0] == "{") - (m[0] == "}")
        if m[0] == "{" and body is None:
            body = signature(flat[start:m.start()]) is not None
        if depth == 0 and (m[0] == ";" or body):
            return m.end()
    return len(flat)


def public_name(item):
    """The name of the public function an item declares, or None."""
    if item.kind != "declaration":
        return None
    m = PUBLIC.match(ATTRIBUTE.sub("", LEXEME.sub(" ", item.text)))
    return m[1] if m else None


def public_groups(header):
    """Public functions, in groups that share the comment directly above them."""
    groups, last = [], None
    for item in items(header):
        if public_name(item):
            near = last and header.text[last.end:item.start].count("\n") <= 1
            if near and public_name(last):
                groups[-1].functions.append(item)
            else:
                doc = last.text if near and last.kind == "comment" else None
                groups.append(Group(doc, item.line, [item]))
        last = item
    return groups


# --- reading the tree --------------------------------------------------------

def git(root, *words, check=True):
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    return subprocess.run(["git", "-C", str(root), *words], env=env, check=check,
                          stdout=subprocess.PIPE).stdout.decode("utf-8", "replace")


class Tree:
    """Every file that is tracked or not ignored; without git, every file."""

    def __init__(self, root):
        self.root = Path(root)
        self.sources = [Source(path, text) for path in sorted(self.list_files())
                        if (text := self.read(path)) is not None]
        self.c = [s for s in self.sources if s.is_c]
        self.src = [s for s in self.c if s.top == "src"]
        self.code = [s for s in self.sources if s.is_code]
        self.headers = [s for s in self.c if s.pure.match("include/weft/*.h")]

    def has_git(self):
        return (self.root / ".git").exists()

    def list_files(self):
        if self.has_git():
            listed = git(self.root, "ls-files", "-coz", "--exclude-standard")
            return {name for name in listed.split("\0") if name}
        return {p.relative_to(self.root).as_posix() for p in self.root.rglob("*")
                if not any(part.startswith((".", "build")) for part in
                           p.relative_to(self.root).parts)}

    def read(self, path):
        """The text, or None if it is not a text file."""
        full = self.root / path
        if full.is_symlink() or not full.is_file():
            return None
        data = full.read_bytes()
        return None if b"\0" in data else data.decode("utf-8", "replace")


# --- the rules ---------------------------------------------------------------

RULES = []


def rule(function):
    RULES.append(function)
    return function


def layer_of(path):
    """The layer of a path below src/, or None."""
    first, slash, _ = path.partition("/")
    return first if slash and first in LAYERS else None


@rule
def layer_order(tree):
    for s in tree.sources:
        if s.top != "src" or s.suffix not in (".c", ".h", ".S"):
            continue
        own = layer_of(s.path[len("src/"):])
        if own is None:
            yield s.path, 1, "not in the folder of a layer"
            continue
        for line, quote, name in s.includes:
            if quote == "<" and not (tree.root / "src" / name).exists():
                continue
            layer = layer_of(name) if "/" in name else own
            if layer is None:
                yield s.path, line, f"{name} names no layer"
            elif LAYERS.index(layer) > LAYERS.index(own):
                yield s.path, line, f"{own} must not include {name}, which is above it"


@rule
def public_only(tree):
    for s in tree.c:
        if s.top not in OUTSIDE:
            continue
        unit = "/".join(s.pure.parts[:-1][:1 if s.top == "examples" else 2])
        for line, quote, name in s.includes:
            if quote == "<":
                if ".." in name or (tree.root / "src" / name).exists():
                    yield s.path, line, f"<{name}> is private to src/"
                continue
            places = [os.path.normpath(f"{base}/{name}")
                      for base in (s.pure.parent, unit, os.path.dirname(unit))]
            units = [unit + "/"]
            if s.top in ("proto", "bindings"):
                units += SHARED
                places += [os.path.normpath(f"{top}/{name}") for top in ("proto", "src")]
            if not any(p.startswith(tuple(units)) and (tree.root / p).exists() for p in places):
                yield s.path, line, f'"{name}" is not in {unit}/: use <weft/...> only'


def left_of_arrow(flat, arrow):
    """(name, bracket, is_member) of what an arrow is applied to: `name`, `name(...)` or
    `name[...]`, which may be a member."""
    before = flat[:arrow].rstrip()[-300:]
    bracket = before[-1] if before.endswith((")", "]")) else ""
    if bracket == ")":
        before = before[:max(open_of(before, len(before) - 1), 0)].rstrip()
    elif bracket:
        before = before[:before.rfind("[")].rstrip()
    name = re.search(r"\w*$", before)
    return name[0], bracket, before[:name.start()].rstrip().endswith(("->", "."))


@rule
def loop_members(tree):
    calls = {name for s in tree.src for name in LOOP_CALL.findall(s.flat)}
    for s in tree.src:
        if s.path.startswith(LOOPS_OWN):
            continue
        names = {"loop", "loops", *LOOP_NAME.findall(s.flat)}
        for m in re.finditer(r"->\s*(\w+)", s.code):
            name, bracket, is_member = left_of_arrow(s.code, m.start())
            known = calls if bracket == ")" else {"loop", "loops"} if is_member else names
            if name in known:
                yield (s.path, s.line(m.start()), f"{name}->{m[1]} is private to {LOOPS_OWN}: use "
                       "a function of its headers")


def declared_names(header):
    """The macros, types, enumerators and functions of a private header."""
    names = set(re.findall(r"#[ \t]*define[ \t]+(\w+)", header.code))
    names -= {m for m in names if m.endswith("_H")}
    for item in items(header):
        text = ATTRIBUTE.sub("", header.flat[item.start:item.end])
        if item.kind != "declaration":
            continue
        names.update(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", text))
        if (m := re.match(r"\s*enum\b[^{;]*\{(.*)\}", text, re.S)):
            names.update(re.findall(r"(?:^|,)\s*(\w+)", m[1]))
        elif (m := re.match(r"[\w\s*]*?\b(\w+)\s*(?:\(|;)", text)):
            names.add(m[1])
    return names


@rule
def backend_private(tree):
    headers = [s for s in tree.src if s.suffix == ".h" and s.path.startswith(BACKEND_USERS[0])]
    names = {name for s in headers if s.path != OPS for name in declared_names(s)}
    for s in tree.src:
        if s.path.startswith(BACKEND_USERS):
            continue
        for line, _, name in s.includes:
            if "backend/" in name:
                yield s.path, line, f"{name} is private to {' and '.join(BACKEND_USERS)}"
        for m in re.finditer(r"\bweft__\w+", s.code, re.I):
            if m[0] in names:
                yield (s.path, s.line(m.start()), f"{m[0]} is private to src/backend: use ops and "
                       "src/loop/io/fd.h")


def has_reason(source, function, reason):
    """Whether a comment in the function, or directly above it, gives the reason."""
    top = function.start
    for start, end in reversed(source.comments):
        if start > function.close:
            continue
        if start < function.open and source.line(end - 1) < top - 1:
            return False
        if reason.search(source.text[start:end]):
            return True
        top = min(top, source.line(start))
    return False


@rule
def function_length(tree):
    for s in tree.c:
        for f in s.functions if s.suffix == ".c" else ():
            length = f.end - f.start + 1
            if FUNCTION_MAX < length <= RATCHET_MAX:
                yield s.path, f.start, f"{f.name} has {length} lines: make it {FUNCTION_MAX}"
            elif length > FUNCTION_MAX and not has_reason(s, f, LONG_FUNCTION):
                yield (s.path, f.start, f"{f.name} has {length} lines, more than "
                       f"{FUNCTION_MAX}, without `tidy: long, because ...`")


@rule
def file_length(tree):
    for s in tree.code:
        length = len(s.lines) - 1
        top = s.text[slice(*s.comments[0])] if s.is_c and s.comments else s.text[:2000]
        if length > FILE_HARD_MAX:
            yield s.path, FILE_HARD_MAX + 1, f"{length} lines, more than {FILE_HARD_MAX}"
        elif length > FILE_MAX and not LONG_FILE.search(top):
            yield (s.path, FILE_MAX + 1, f"{length} lines, more than {FILE_MAX}, without "
                   "`tidy: long file, because ...` in the top comment")


@rule
def line_length(tree):
    for s in tree.code:
        for number, line in enumerate(s.lines, 1):
            width = len(line.rstrip("\r").expandtabs(8))
            if width > COLUMNS_MAX:
                yield s.path, number, f"{width} columns, more than {COLUMNS_MAX}"


@rule
def nesting(tree):
    for s in tree.c:
        if s.flat.count("{") != s.flat.count("}"):
            yield s.path, 1, "braces do not balance, so functions cannot be told apart"
        for f in s.functions:
            depth, at = deepest_block(s.flat, f)
            if depth > NESTING_MAX:
                yield s.path, s.line(at), f"{f.name} nests {depth} blocks, more than {NESTING_MAX}"


@rule
def parameters(tree):
    for s in tree.src:
        for f in s.functions:
            if f.parameters > PARAMETERS_MAX and not has_reason(s, f, WIDE_FUNCTION):
                yield (s.path, f.start, f"{f.name} has {f.parameters} parameters, more than "
                       f"{PARAMETERS_MAX}, without `tidy: wide, because ...`")


@rule
def conditionals(tree):
    for s in tree.src:
        if s.suffix == ".c" and not s.is_os:
            for m in re.finditer(r"^[ \t]*#[ \t]*((?:if|elif)\w*)\b", s.code, re.M):
                yield (s.path, s.line(m.start(1)),
                       f"#{m[1]} belongs in a header, the build or src/base/os_*.c")


@rule
def banned_calls(tree):
    for s in tree.c:
        names = BANNED + (BANNED_IN_TESTS if s.top == "tests" else [])
        if s.top == "src" and not s.is_os:
            names = names + BANNED_IN_SRC
        for m in re.finditer(rf"(?<!->)(?<!\.)\b({'|'.join(names)})\s*\(", s.code):
            yield s.path, s.line(m.start()), f"{m[1]}() is not used here"


@rule
def cxx_keywords(tree):
    for s in tree.c:
        if s.top in ("include", "src", "proto", "bindings", "tools") and s.pure.suffix != ".cc":
            for m in re.finditer(rf"\b(?:{'|'.join(CXX_KEYWORDS)})\b", s.code):
                yield s.path, s.line(m.start()), f"{m[0]} is a keyword of C++"


@rule
def atomics(tree):
    for s in tree.src:
        if s.path != "src/base/atomic.h":
            for m in re.finditer(r"\b(?:__atomic_|atomic_|__sync_)\w*", s.code):
                yield s.path, s.line(m.start()), f"{m[0]}: use base/atomic.h"


@rule
def errno_use(tree):
    for s in tree.src:
        for m in re.finditer(r"\berrno\b", "" if s.is_os else s.code):
            yield s.path, s.line(m.start()), "errno is read in src/base/os_*.c only"


@rule
def line_comment(tree):
    for s in tree.c:
        for start, _ in s.comments:
            if s.text.startswith("//", start):
                yield s.path, s.line(start), "write /* */"


@rule
def white_space(tree):
    for s in tree.sources:
        for number, line in enumerate(s.lines if s.is_text else (), 1):
            if "\r" in line:
                yield s.path, number, "carriage return"
            elif line != line.rstrip():
                yield s.path, number, "white space at the end of the line"


@rule
def last_line(tree):
    for s in tree.sources:
        if s.is_text and s.text and (not s.text.endswith("\n") or s.text.endswith("\n\n")):
            yield s.path, len(s.text.rstrip("\n").split("\n")), "must end with one newline"


@rule
def indent(tree):
    """Spaces may align continuation lines, inside parentheses or at an operator."""
    for s in tree.c:
        inside = {n for a, b in s.comments for n in range(s.line(a) + 1, s.line(b - 1) + 1)}
        depth, before = 0, ""
        for number, line in enumerate(s.code.split("\n"), 1):
            depth = 0 if line[:1].strip() else depth
            aligned = (depth > 0 or before[-1:] in tuple('=|&+-*/?<^%"\\')
                       or line.lstrip()[:1] in tuple("|&?:+"))
            if s.lines[number - 1].startswith(" " * 8) and number not in inside and not aligned:
                yield s.path, number, "indent with tabs"
            depth += sum(line.count(c) for c in "([") - sum(line.count(c) for c in ")]")
            before = line.rstrip() or before


@rule
def top_comment(tree):
    for s in tree.c:
        if s.top not in ("src", "include", "tests"):
            continue
        want = s.path[len("include/"):] if s.top == "include" else s.pure.name
        m = re.match(r"/\* (\S+) - \S", s.text)
        if not m or not ("/" + m[1]).endswith("/" + want):
            yield s.path, 1, f"begin with `/* {want} - what it is`"


@rule
def public_comment(tree):
    for s in tree.headers:
        for group in public_groups(s):
            missing = [w for w in ("Thread:", "Blocks:", "Since:") if w not in (group.doc or "")]
            for f in group.functions if missing else ():
                what = f"no {' '.join(missing)} in" if group.doc else "no"
                yield s.path, f.line, f"{public_name(f)}: {what} comment directly above"


@rule
def public_test(tree):
    words = set()
    for s in tree.sources:
        if s.top == "tests":
            words.update(re.findall(r"\w+", s.code if s.is_c else s.text))
    for s in tree.headers:
        for f in (f for group in public_groups(s) for f in group.functions):
            if public_name(f) not in words:
                yield s.path, f.line, f"{public_name(f)} is in no test"


@rule
def public_use(tree):
    """A definition, at the start of a line, and a struct of the same name are no use."""
    used = set()
    for s in tree.c:
        if s.top in OUTSIDE:
            used.update(re.findall(r"(?<!struct )(?<![\w\n])weft_\w+", s.flat))
    for s in tree.headers:
        for f in (f for group in public_groups(s) for f in group.functions):
            if public_name(f) not in used:
                yield s.path, f.line, (f"{public_name(f)} is used by no protocol, binding, tool "
                                       "or example")


def with_includes(headers, name):
    """The headers of weft that `name` includes, itself among them, as a list of names."""
    found, queue = [], [name]
    while queue:
        name = queue.pop()
        if name in headers and name not in found:
            found.append(name)
            queue += [m[3][len("weft/"):-len(".h")] for m in INCLUDE.finditer(headers[name].text)
                      if m[3].startswith("weft/")]
    return found


@rule
def public_count(tree):
    headers = {s.pure.stem: s for s in tree.headers}
    core = with_includes(headers, "weft")
    libraries = [n for n in LIBRARIES if n in headers]
    others = [n for n in headers if n not in core + libraries]
    for names, most in ((core, CORE_FUNCTIONS_MAX), (libraries, LIBRARY_FUNCTIONS_MAX),
                        (others, OTHER_FUNCTIONS_MAX)):
        count = sum(len(g.functions) for n in names for g in public_groups(headers[n]))
        if count > most:
            yield headers[names[0]].path, 1, f"{count} public functions, more than {most}"


def those_that_wait(group):
    """The functions with a deadline; if there are none, all, if their comment says that they
    suspend."""
    timed = [f for f in group.functions
             if re.search(r"\bdeadline_ns\b", LEXEME.sub(" ", f.text))]
    suspends = re.search(r"Blocks:\s+(?:suspends|waits)", group.doc or "")
    return timed or (group.functions if suspends else [])


@rule
def late_table(tree):
    named = set()
    for s in tree.c:
        if s.pure.match("tests/late/*.c"):
            named.update(re.findall(r"\b(?:ROW|EXCEPT)\((weft_\w+)", s.code))
    for s in tree.headers:
        for group in public_groups(s):
            for f in those_that_wait(group):
                if public_name(f) not in named:
                    yield s.path, f.line, (f"{public_name(f)} waits, and is no ROW of tests/late "
                                           "and no EXCEPT with a reason")


@rule
def open_mark(tree):
    for s in tree.code:
        for m in MARK.finditer(s.text):
            yield s.path, s.line(m.start()), f"{m[1]} without the number of an issue: (#1)"


@rule
def local_path(tree):
    for s in tree.sources:
        for m in LOCAL_PATH.finditer(s.text):
            yield s.path, s.line(m.start()), f"{m[0]} is a path of one machine"


def prose(source):
    """(offset, text) of what is written for readers: comments and error texts of C, and .md files
    without code."""
    if source.is_c:
        yield from ((a, NAMED.sub(lambda m: blank(m[0]), source.text[a:b]))
                    for a, b in source.comments)
        for call in ERROR_CALL.finditer(source.text if source.top != "tests" else ""):
            yield from ((call.start() + m.start(), m[0]) for m in LEXEME.finditer(call[0])
                        if m[0].startswith('"'))
    elif source.suffix == ".md":
        yield 0, FENCED.sub(lambda m: blank(m[0]), source.text)


@rule
def words(tree):
    for s in tree.sources:
        for start, text in prose(s):
            for word, pattern in WORDS.items():
                for m in pattern.finditer(text):
                    yield s.path, s.line(start + m.start()), f"avoid `{m[0]}` ({word})"


@rule
def error_text(tree):
    for s in tree.sources:
        if not s.is_c or s.top not in ("include", "src", "proto") or s.path.startswith(REASONS):
            continue
        for m in TEXT_OF_ERROR.finditer(s.text):
            text = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', m[2]))
            want = CALL if m[1] and m[3] else CALL_AND_REASON
            if not want.match(text):
                yield s.path, s.line(m.start(2)), f'want "call: reason", not "{text}"'


@rule
def commit_subject(tree):
    if not tree.has_git() or not git(tree.root, "rev-parse", "-q", "--verify", "HEAD",
                                     check=False):
        return
    log = git(tree.root, "log", f"-{SUBJECTS}", "--format=%h %p%x00%s")
    for line in log.splitlines():
        hashes, _, subject = line.partition("\0")
        commit, *parents = hashes.split()
        if len(parents) > 1:
            continue
        if not SUBJECT.fullmatch(subject):
            yield f"commit {commit}", 1, f"want `area: change`, not `{subject}`"
        elif len(subject) > SUBJECT_MAX:
            yield f"commit {commit}", 1, f"{len(subject)} characters, more than {SUBJECT_MAX}"


def check(root):
    """All findings as (path, line, rule, message), in order."""
    tree = Tree(root)
    return sorted((path, line, r.__name__.replace("_", "-"), message)
                  for r in RULES for path, line, message in r(tree))


# --- the self-test -----------------------------------------------------------

def c_file(name, *lines):
    return "\n".join([f"/* {name} - a sample. */", *lines, ""])


def c_function(lines, first="work();", note="", head="static int\nf(void)"):
    filler = ["\twork();"] * (lines - head.count("\n") - 4)
    return "\n".join([*([note] if note else []), head, "{", "\t" + first, *filler, "}"])


def nested(depth):
    return c_function(3 + depth * 2, first="if (a) { " * depth + "}" * depth)


REASON = "/* tidy: long, because it is one flat table. */"
PUBLIC_DOC = "/* Start it.\n * Thread: any.  Blocks: no.  Since: 0.1. */"
CLEAN = {
    "README.md": "A table may be wide. " * 8 + "X\n",
    "include/weft/timer.h": "\n".join([
        "/* weft/timer.h - timers. */", "#define WEFT_API", "#include <weft/base.h>", "",
        "static inline int twice(int a) { return 2 * a; }", "", PUBLIC_DOC,
        "WEFT_API int weft_timer_start(int a,", " " * 30 + "int b);",
        "WEFT_API int weft_timer_stop(void) __attribute__((format(printf, 1, 2)));", "",
        "WEFT_API extern const int weft_timer_type; /* a variable */", ""]),
    "tests/timer_test.c": c_file("timer_test.c", "TEST(timers_start)", "{",
                                 "\tweft_timer_start(1, 2);", "\tweft_timer_stop();",
                                 "\tweft_unused();", "}"),
    "src/base/atomic.h": c_file("atomic.h", "#define GET(p) __atomic_load_n(p, 0)"),
    "src/base/os_linux.c": c_file("os_linux.c", "#if 1", "#include <errno.h>", "#endif",
                                  "void *", "get(void)", "{", "\treturn errno ? 0 : malloc(1);",
                                  "}"),
    "src/base/switch/go.h": c_file("go.h", "void go(void);"),
    "src/base/sim.h": c_file("base/sim.h", '#include "base/switch/go.h"'),
    "src/backend/backend.h": c_file(
        "backend.h", "#define WEFT__EVENTS 1", "enum { WEFT__FD_OWN, WEFT__FD_PLAIN = 1 << 3 };",
        "struct weft__backend {", "\tint fd;", "};", "static inline struct weft__backend *",
        "weft__backend_of(int a)", "{", "\treturn weft__count(a);", "}",
        "extern const struct weft__poll_ops weft__poll;"),
    "src/backend/backend_op.h": c_file("backend_op.h", "struct weft__op {", "\tint fd;", "};"),
    "src/loop/io/fd.h": c_file("fd.h", '#include "backend/backend.h"', "static inline int",
                            "weft__fd_send(int a)", "{", "\treturn weft__backend_of(a)->fd;", "}"),
    "src/net/send.c": c_file("send.c", '#include "loop/io/fd.h"', "/* weft__backend_of() */",
                             "static struct weft__op op = { weft__count(1) };"),
    "src/loop/core/turn.c": c_file(
        "turn.c", "#include <errno.h>", "#include <net/if.h>", '#include "base/sim.h"',
        '/* #include "dag/dag.h", strcpy(a, b), #if, {{{, TO' 'DO(#12) and src/wo' 'rk/pool.c */',
        "static const char *text = \"strcpy(a, '{') // #if errno \\\" atomic_x\";",
        "static const int mask = 1 |", " " * 24 + "2;", "",
        c_function(73, note=REASON), "", c_function(90, first=REASON), "", c_function(70), "",
        nested(4), "",
        "int g(int a, int b, int c, int (*d)(int, int), int e,", " " * 6 + "int f)", "{",
        "\tstruct s s = { .a = { { { { {{1}} } } } } };",
        "\tloop->a = weft__loop_at(1)->a;", "\tif (a) {", "\t\tfor (;;) {",
        "\t\t\tx->free((struct s){ .a = { { {1} } } });",
        "\t\t}", "\t}", "\tswitch (a) {", "\tcase '{':", "\t\treturn -EINVAL;", "\t}", "}"),
    "tests/long_test.c": "/* long_test.c - a.\n * tidy: long file, because so. */\n" +
                         "int a;\n" * 900,
    "proto/http/parse.h": "void parse(void);\n",
    "proto/base/proto_list.h": "struct weft__link;\n",
    "proto/redis/list.c": '#include "base/proto_list.h"\n#include "base/utf8.h"\n',
    "src/base/utf8.h": "/* utf8.h - a. */\nstatic inline int f(void);\n",
    "bindings/js/list.c": '#include "base/proto_list.h"\n',
    "proto/http/parse.c": '#include <stdio.h>\n#include <weft/timer.h>\n#include "parse.h"\n'
                          "int a = weft_timer_start(1, 2) + weft_timer_stop();\n"
                          "int *b = weft_untested;\n"
                          "/* weft_unused */\nstruct weft_unused *c = \"weft_unused\";\n"
                          "int\nweft_unused(void)\n{\n}\n",
}
ABOVE = "static int f(void);\n"
PLANTS = [  # rule, path, text, line of the first finding
    ("layer-order", "src/timer/a.c", c_file("a.c", '#include "loop/turn.h"'), 2),
    ("layer-order", "src/base/a.h", c_file("a.h", '#include "threadlet/scope.h"'), 2),
    ("layer-order", "src/base/a.c", c_file("a.c", '#include "../loop/turn.h"'), 2),
    ("layer-order", "src/a.c", c_file("a.c"), 1),
    ("public-only", "proto/http/a.c", '#include "base/sim.h"\n', 1),
    ("public-only", "examples/a.c", "#include <base/sim.h>\n", 1),
    ("public-only", "examples/a.c", '#include "base/utf8.h"\n', 1),
    ("public-only", "tools/weft/a.c", '\n#include "../../proto/http/parse.h"\n', 2),
    ("public-only", "tools/weft/a.c", '#include "../../proto/base/proto_list.h"\n', 1),
    ("public-only", "bindings/js/a.c", '#include "http/parse.h"\n', 1),
    ("public-only", "proto/base/a.c", '#include "http/parse.h"\n', 1),
    *[("loop-members", "src/net/a.c", c_file("a.c", "weft_loop *here(int a);",
                                             "int f(weft_loop *home)", "{", line, "}"), 5)
      for line in ("\treturn loop->state;", "\treturn home->state;", "\treturn a->loop->state;",
                   "\treturn loop->backend.ops && a.loops[1]->state;",
                   "\treturn here(g(1))->state;")],
    ("loop-members", "src/threadlet/a.h", c_file("a.h", "#define A a->loop->backend"), 2),
    ("backend-private", "src/net/a.c", c_file("a.c", '#include "backend/backend_op.h"'), 2),
    *[("backend-private", "src/threadlet/a.c", c_file("a.c", "int f(int a)", "{", line, "}"), 4)
      for line in ("\treturn weft__backend_of(a)->fd;", "\treturn WEFT__EVENTS;",
                   "\tstruct weft__backend *backend = g(a);", "\treturn WEFT__FD_PLAIN;",
                   "\treturn h(&weft__poll);")],
    ("function-length", "bench/a.c", ABOVE + c_function(71, note=REASON) + "\n", 3),
    ("function-length", "bench/a.c", c_function(72) + "\n", 1),
    ("function-length", "bench/a.c", c_function(73, head="int f(int a)") + "\n", 1),
    ("function-length", "bench/a.c", f"{REASON}\n\n{c_function(80)}\n", 3),
    ("file-length", "tests/a.c", c_file("a.c", *["int a;"] * 800), 801),
    ("file-length", "tests/a.c", "/* a.c - a.\n * tidy: long file, because so.\n */\n"
     + "int a;\n" * 1200, 1201),
    ("line-length", "src/dag/a.c", c_file("a.c", "\tf();" + " " * 85 + "g();"), 2),
    ("nesting", "src/dag/a.c", c_file("a.c", nested(5)), 5),
    ("nesting", "src/dag/a.c", c_file("a.c", 'extern "C" {', nested(5), "}"), 6),
    ("nesting", "src/dag/a.c", c_file("a.c", "int f(void) {"), 1),
    ("parameters", "src/dag/a.c", c_file(
        "a.c", "int", "f(int a, int b, int c, int d, int e, int f, int g)", "{", "}"), 2),
    ("conditionals", "src/loop/a.c", c_file("a.c", "#ifdef A", "#elif B", "#endif"), 2),
    ("cxx-keywords", "src/net/a.c", c_file("a.c", "int class;"), 2),
    *[("banned-calls", "fuzz/a.c", f"int a;\nint b = {name} (a);\n", 2) for name in BANNED],
    *[("banned-calls", "tests/a.c", c_file("a.c", f"int a = {name}(1);"), 2)
      for name in BANNED_IN_TESTS],
    *[("banned-calls", "src/net/a.c", c_file("a.c", f"int a = {name}(1);"), 2)
      for name in BANNED_IN_SRC],
    *[("atomics", "src/base/a.h", c_file("a.h", f"#define A(p) {name}(p)"), 2)
      for name in ("__atomic_load_n", "atomic_load", "__sync_synchronize")],
    ("errno-use", "src/net/a.c", c_file("a.c", "int a = -errno;"), 2),
    ("line-comment", "fuzz/a.c", "int a; /" "/ why\n", 1),
    ("white-space", "docs/a.md", "Text \n", 1),
    ("white-space", "scripts/a.py", "a = 1\r\n", 1),
    ("last-line", "fuzz/a.c", "int a;", 1),
    ("last-line", "fuzz/a.c", "int a;\n\n", 1),
    ("indent", "fuzz/a.c", "int\nf(void)\n{\n        return 0;\n}\n", 4),
    ("top-comment", "tests/a.c", "/* b.c - another file. */\n", 1),
    ("top-comment", "src/base/a.h", "int a;\n", 1),
    ("top-comment", "include/weft/a.h", "/* a.h - without its folder. */\n", 1),
    ("public-comment", "include/weft/a.h", "/* weft/a.h - a. */\n" + PUBLIC_DOC
     + "\n\nWEFT_API int weft_timer_stop(void);\n", 5),
    ("public-comment", "include/weft/a.h", "/* weft/a.h - a. */\n\n"
     "/* Thread: any.  Since: 0.1. */\nWEFT_API int weft_timer_stop(void);\n", 4),
    ("public-test", "include/weft/a.h", "/* weft/a.h - a. */\n\n" + PUBLIC_DOC
     + "\nWEFT_API int weft_timer_stop(void);\nWEFT_API int weft_untested(void);\n", 6),
    ("public-use", "include/weft/a.h", "/* weft/a.h - a. */\n\n" + PUBLIC_DOC
     + "\nWEFT_API int weft_unused(void);\n", 5),
    *[("public-count", f"include/weft/{name}.h", f"/* weft/{name}.h - a. */\n\n" + PUBLIC_DOC
       + "\nWEFT_API int weft_timer_stop(void);" * (most + 1) + "\n", 1)
      for name, most in (("weft", CORE_FUNCTIONS_MAX), ("redis", LIBRARY_FUNCTIONS_MAX),
                         ("metrics", OTHER_FUNCTIONS_MAX))],
    ("late-table", "include/weft/a.h", "/* weft/a.h - a. */\n\n" + PUBLIC_DOC
     + "\nWEFT_API int weft_timer_stop(int a,\n\tlong deadline_ns);\n", 4 + PUBLIC_DOC.count("\n")),
    ("late-table", "include/weft/a.h", "/* weft/a.h - a. */\n\n/* Thread: loop.  Blocks: "
     "suspends.\n * Since: 0.1. */\nWEFT_API int weft_timer_stop(void);\n", 5),
    *[("open-mark", "scripts/a.py", f"# {mark}: later\n", 1)
      for mark in ("TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK")],
    ("words", "src/base/a.c", c_file("a.c", "/* Whoever waits is woken. */"), 2),
    ("words", "docs/a.md", "A loop stands still.\n", 1),
    ("words", "src/base/a.c", c_file("a.c", 'int a = weft_fail(1,', '\t"weft_go: nobody");'), 3),
    *[("error-text", "src/base/a.c", c_file("a.c", f"int a = {call};"), 2)
      for call in ('weft_fail(1, "weft_go")', 'weft__misuse(1, "no loop")',
                   'weft__fail(1, "go: no" " loop")', 'weft_fail(1, "%s is full", a)',
                   'weft__misuse_in(1, "weft_go: it", a)')],
    ("local-path", "docs/a.txt", "See /wo" "rk/main.\n", 1),
    ("local-path", "dev", "#!/bin/sh\ncd /ro" "ot/x\n", 2),
]
SUBJECTS_GOOD = ["timer: take a delay", "src/base, tests: split lists", "base list: add",
                 "Merge it"]
SUBJECTS_BAD = ["Fix things", "timer take a delay", "timer: " + "x" * 66]


def write_tree(root, files):
    for path, text in files.items():
        full = Path(root) / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(text.encode())


def findings_of(files, subjects=None):
    """The findings in a new directory.  With a list of subjects, even an empty one, the directory
    is a git repository."""
    with tempfile.TemporaryDirectory(prefix="tidy-") as root:
        write_tree(root, files)
        if subjects is not None:
            git(root, "init", "-q")
        for subject in subjects or ():
            commit(root, subject)
        return check(root)


def commit(root, subject):
    """An empty commit; a merge if the subject begins with "Merge"."""
    who = ("-c", "user.name=tidy", "-c", "user.email=tidy@localhost",
           "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
    if subject.startswith("Merge "):
        merge = git(root, *who, "commit-tree", "-p", "HEAD", "-p", "HEAD~1", "-m", subject,
                    "HEAD^{tree}")
        git(root, "update-ref", "HEAD", merge.strip())
    else:
        git(root, *who, "commit", "-q", "--allow-empty", "-m", subject)


def self_test():
    wrong, found = [], set()
    ignored = {".gitignore": "gen/\n", "gen/a.c": "int a; \n"}
    for files, subjects in ((CLEAN, None), (CLEAN, ()), (CLEAN | ignored, SUBJECTS_GOOD)):
        wrong += [f"clean sample: {finding}" for finding in findings_of(files, subjects)]
    for name, path, text, line in PLANTS:
        got = findings_of(CLEAN | {path: text}, () if name == "errno-use" else None)
        if got and {g[2] for g in got} == {name} and got[0][:2] == (path, line):
            found.add(name)
        else:
            wrong.append(f"planted {name} at {path}:{line}, found {got}")
    for subject in SUBJECTS_BAD:
        if [g[2] for g in findings_of({}, SUBJECTS_GOOD + [subject])] == ["commit-subject"]:
            found.add("commit-subject")
        else:
            wrong.append(f"planted commit-subject `{subject}`, not found")
    for line in wrong:
        print(f"tidy self-test: {line}")
    print(f"tidy self-test: {len(RULES)} rules, {len(found)} found")
    return 1 if wrong or len(found) != len(RULES) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    findings = check(options.root)
    for path, line, name, message in findings:
        print(f"{path}:{line}: {name}: {message}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
