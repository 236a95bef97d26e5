#!/usr/bin/env python3
"""Make the manual pages: of section 3 from the comments of the public headers, and weft(1) from
the tables of options of the verbs.

    scripts/man.py OUTDIR [HEADER...]   write the pages; of all headers if none is named
    scripts/man.py --check              every public function has a page that says what it does,
                                        and every option of the program is in weft(1)
    scripts/man.py --self-test          plant functions without comments and find them

A header timer.h becomes weft_timer.3, and each function in it a one-line page that includes it;
weft.h becomes weft.3, the list of all headers.  A comment above a group of functions has three
parts: the effect; the return values, which begin on a new line ("Returns", "Return", "lock
returns"); and the line of `Thread:`, `Blocks:` and `Since:`.

weft.1 has a section for each `struct args_verb` in tools/*.c (tools/base/args.h), in the order of
the list in tools/weft.c.
"""
import argparse
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

sys.dont_write_bytecode = True
from tidy import ATTRIBUTE, PUBLIC, Source, items, public_groups, public_name  # noqa: E402

HIDDEN_MACROS = {"WEFT_API", "WEFT_INLINE", "WEFT_BEGIN", "WEFT_END", "WEFT_STATIC_ASSERT"}
FACTS = re.compile(r"^Thread:\s*(.*?)\.\s+Blocks:\s*(.*?)\.\s+Since:\s*(.*?)\.?\s*\Z",
                   re.M | re.S)
RETURNS = re.compile(r"Returns?\b|[a-z]\w* (?:takes .* and )?returns?\b")
PRIVATE = re.compile(r"/\* --- private from here on")  # in a header-only part
NUMBERED = re.compile(r"\s+(\d+)\.\s+(.*)")

Doc = namedtuple("Doc", "effect returns facts")  # two lists of lines, three strings


class Header(Source):
    """A public header with the name and summary of its page."""

    def __init__(self, name, text):
        super().__init__(name, text)
        stem = self.pure.stem
        self.page = "weft" if stem == "weft" else f"weft_{stem}"
        self.include = f"weft/{self.pure.name}"
        self.items = items(self)
        self.groups = public_groups(self)
        self.names = [public_name(f) for g in self.groups for f in g.functions]
        top = self.items[0] if self.items else None
        lines = comment_lines(top.text) if top and top.kind == "comment" else [""]
        end = lines.index("") if "" in lines else len(lines)
        self.summary = " ".join(lines[:end]).partition(" - ")[2].rstrip(".")
        self.about = lines[end + 1:]


# --- from comments to roff ---------------------------------------------------

def comment_lines(comment):
    """The text of a comment, without its delimiters."""
    text = re.sub(r"\s*\*/\Z", "", re.sub(r"\A/\*+ ?", "", comment))
    lines = [re.sub(r"^\s*\*(?: |(?=\t)|$)", "", line) for line in text.split("\n")]
    lines = [line.expandtabs(8).rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def parse_doc(comment):
    """The parts of the comment above a group of functions."""
    text = "\n".join(comment_lines(comment or ""))
    facts = FACTS.search(text)
    lines = text[:facts.start() if facts else None].rstrip().split("\n")
    cut = len(lines)
    for i, line in enumerate(lines):
        if RETURNS.match(line) and (i == 0 or not lines[i - 1] or lines[i - 1][-1] in ".:)"):
            cut = i
            break
    words = [" ".join(word.split()) for word in facts.groups()] if facts else []
    return Doc(lines[:cut], lines[cut:], words)


def escape(text):
    """The text, escaped so that roff finds no request and no escape in it."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = re.sub(r"[^\x00-\x7f]", lambda m: f"\\[u{ord(m[0]):04X}]", text)
    return "\\&" + text if text.startswith((".", "'")) else text


def literal(line):
    """A line of code, escaped so that its quotes stay unchanged."""
    line = escape(line)
    for char, name in (("'", "aq"), ("`", "ga"), ("^", "ha"), ("~", "ti")):
        line = line.replace(char, f"\\({name}")
    return line


def prose(lines):
    """Running text, one sentence per line."""
    text = " ".join(re.sub(r"([.?!])$", r"\1 ", line.strip()) for line in lines)
    out = []
    for sentence in re.split(r"(?<=[.:;?!)])  +", text):
        sentence = escape(" ".join(sentence.split()))
        sentence = re.sub(r"`([^`]+)`", r"\\fI\1\\fR", sentence)
        out.append(re.sub(r"\b(\w+)(\((?:\d\w?)?\))", r"\\fB\1\\fR\2", sentence))
    return [line for line in out if line]


def code(lines):
    return [".EX", *[literal(line) if line else ".sp" for line in lines], ".EE"]


def paragraphs(lines):
    """Text with paragraphs and numbered lists; indented lines stay unchanged."""
    out, i = [], 0
    while i < len(lines):
        if not lines[i]:
            i += 1
            continue
        indented, start = lines[i].startswith("  "), i
        while i < len(lines) and lines[i] and lines[i].startswith("  ") == indented:
            i += 1
        block = lines[start:i]
        if not indented:
            out += [".PP", *prose(block)]
        elif NUMBERED.match(block[0]):
            out += numbered(block)
        else:
            out += [".PP", *code(block)]
    return out


def numbered(block):
    entries = []
    for line in block:
        m = NUMBERED.match(line)
        if m:
            entries.append((m[1], [m[2]]))
        else:
            entries[-1][1].append(line)
    return [line for number, text in entries
            for line in (f".IP {number}. 4", *prose(text))]


# --- the parts of a page -----------------------------------------------------

def declaration_lines(item):
    """A declaration as in the synopsis, with function names in bold."""
    text = re.sub(r"\s*" + ATTRIBUTE.pattern, "", item.text)
    lines = [line.expandtabs(8) for line in text.split("\n")]
    mark = re.match(r"WEFT_(?:API|INLINE) ", lines[0])
    if mark:
        width = mark.end()
        lines = [line[width:] if line.startswith((mark[0], " " * width)) else line
                 for line in lines]
    lines = [literal(line) for line in lines]
    name = public_name(item)
    if name:
        lines = [re.sub(rf"\b{name}(?=\s*\()", rf"\\fB{name}\\fP", line) for line in lines]
    return lines


def shown_items(header):
    """What the synopsis shows: types, macros, functions, and the comments of the first two."""
    docs = {g.doc for g in header.groups}
    skipping = False  # inside the C++ branch of a condition
    for item in header.items[1:]:
        if item.kind == "comment" and PRIVATE.match(item.text):
            break
        if item.kind == "directive":
            word, _, rest = item.text[1:].strip().partition(" ")
            skipping = (word == "ifdef" and "__cplusplus" in rest
                        or skipping and word not in ("else", "endif"))
            macro = re.match(r"\w+", rest.strip())
            if (word != "define" or macro[0] in HIDDEN_MACROS
                    or re.fullmatch(r"\w+_H", rest.strip())):
                continue
        if (skipping or item.kind == "marker" or item.text in docs
                or item.text.startswith("WEFT_STATIC_ASSERT")):
            continue
        yield item


def synopsis(header):
    out, last = [".EX", f"\\fB#include <{header.include}>\\fP"], None
    for item in shown_items(header):
        near = last and header.text[last.end:item.start].count("\n") == 1
        out += [] if near else [".sp"]
        out += [line or ".sp" for line in declaration_lines(item)]
        last = item
    return out + [".EE"]


def group_section(group):
    doc = parse_doc(group.doc)
    out = [".SS " + ", ".join(f"{public_name(f)}()" for f in group.functions)]
    out += paragraphs(doc.effect)
    if doc.returns:
        out += [".TP 14", ".B RETURN VALUE", *prose(doc.returns)]
    for i, (label, word) in enumerate(zip(("THREAD", "BLOCKS", "SINCE"), doc.facts)):
        out += [".PD 0"] if i == 1 else []
        out += [".TP 14", f".B {label}", *prose([word])]
    return out + ([".PD"] if doc.facts else [])


def see_also(header, headers):
    """Pages that this page refers to: by include, by header, or by function."""
    pages = {h.include: h.page for h in headers}
    pages |= {name: h.page for h in headers for name in h.names}
    named = re.findall(r"\bweft/\w+\.h|\bweft_\w+(?=\(\))", header.text)
    found = {pages[name] for name in named if name in pages} | {"weft"}
    found = sorted((found & set(pages.values())) - {header.page})
    return [f".BR {page} (3){'' if page == found[-1] else ','}" for page in found]


def header_list(header, headers):
    """For weft.h: every header that it includes, with its summary."""
    out = []
    for _, _, name in header.includes:
        out += [line for h in headers if h.include == name
                for line in (".TP", f".BR {h.page} (3)", *prose([h.summary + "."]))]
    return out


def full_page(header, headers, version):
    names = ", ".join([header.page] + [n for n in header.names if n != header.page])
    out = [f'.\\" Generated from {header.include} by scripts/man.py.',
           f'.TH {header.page} 3 "" "weft {version}" "weft manual"',
           ".ad l", ".nr HY 0", ".nh",
           ".SH NAME", f"{names} \\- {escape(header.summary)}",
           ".SH SYNOPSIS", *synopsis(header)]
    about = paragraphs(header.about)
    if header.page == "weft":
        about += header_list(header, headers)
    out += [".SH DESCRIPTION", *about] if about else []
    if header.groups:
        out += [".SH FUNCTIONS"]
    for group in header.groups:
        out += group_section(group)
    also = see_also(header, headers)
    out += [".SH SEE ALSO", *also] if also else []
    return "\n".join(out) + "\n"


def version_of(headers):
    return ".".join(m[1] for h in headers for m in re.finditer(
        r"#define WEFT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", h.text))


def make_pages(headers, wanted=None):
    """Every page of section 3, or those of the wanted headers, by file name.  Full pages come
    first, so that no link replaces one."""
    version = version_of(headers)
    wanted = headers if wanted is None else wanted
    pages = {f"{h.page}.3": full_page(h, headers, version) for h in wanted}
    for h in wanted:
        for name in h.names:
            pages.setdefault(f"{name}.3", f".so man3/{h.page}.3\n")
    return pages


# --- the program ---------------------------------------------------------------

STRING = r'"(?:[^"\\]|\\.)*"'
TEXT = rf"(?:{STRING}|[A-Z_]+)(?:\s*(?:{STRING}|[A-Z_]+))*"  # literals and macros of literals
MEMBER = re.compile(rf"\.(name|usage|summary|about|notes) =\s*({TEXT})")
OPTION = re.compile(rf'\{{\s*("-[^"]*"),\s*(NULL|{STRING}),\s*({TEXT}),')

Verb = namedtuple("Verb", "name usage summary about notes options")


def c_text(text, macros):
    """The value of adjacent string literals and macros."""
    words = re.findall(rf"{STRING}|[A-Z_]+", text)
    return "".join(re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), word[1:-1])
                   if word.startswith('"') else macros[word] for word in words)


def verbs_of(text):
    """The verbs that a source file defines, by the names of their variables."""
    macros = {m[1]: m[2] for m in re.finditer(r'#define (\w+) "(.*)"', text)}
    options = [(c_text(name, macros), None if value == "NULL" else c_text(value, macros),
                c_text(about, macros)) for name, value, about in OPTION.findall(text)]
    out = {}
    for m in re.finditer(r"^const struct args_verb (\w+) = \{\n(.*?)^\};", text, re.M | re.S):
        members = {name: c_text(value, macros) for name, value in MEMBER.findall(m[2])}
        out[m[1]] = Verb(**{"notes": None, **members},
                         options=options if ".options" in m[2] else [])
    return out


def program_verbs(folder):
    found = {}
    for path in sorted(folder.glob("*.c")):
        found |= verbs_of(path.read_text(encoding="utf-8"))
    listed = re.findall(r"&(verb_\w+)", (folder / "weft.c").read_text(encoding="utf-8"))
    return [found[name] for name in listed]


def verb_section(verb):
    out = [f".SS weft {verb.name}", ".EX"]
    out += [literal(f"weft {line}") for line in verb.usage.split("\n")] + [".EE"]
    out += paragraphs(verb.about.split("\n"))
    for name, value, about in verb.options:
        head = f"\\fB{escape(name)}\\fR"
        out += [".TP", f"{head} \\fI{escape(value)}\\fR" if value else head,
                *prose(about.split("\n"))]
    return out + (paragraphs(verb.notes.split("\n")) if verb.notes else [])


def program_page(verbs, version):
    out = ['.\\" Generated from tools/*.c by scripts/man.py.',
           f'.TH weft 1 "" "weft {version}" "weft manual"', ".ad l", ".nr HY 0", ".nh",
           ".SH NAME", "weft \\- run scripts, graphs of commands, and tools of the weft runtime",
           ".SH SYNOPSIS", "\\fBweft\\fR \\fIVERB\\fR [\\fIARGUMENT\\fR...]", ".br",
           "\\fBweft\\fR \\-\\-version | \\-\\-help", ".SH DESCRIPTION"]
    for verb in verbs:
        out += [".TP", f"\\fB{verb.name}\\fR", *prose([verb.summary])]
    out += [".PP", "\\fBweft\\fR \\fIVERB\\fR \\fB\\-\\-help\\fR prints the options of a verb.",
            "A wrong command line ends with status 2 and a text that says what is wrong.",
            ".SH VERBS"]
    for verb in verbs:
        out += verb_section(verb)
    return "\n".join([*out, ".SH SEE ALSO", ".BR weft (3)"]) + "\n"


def check_program(folder, page):
    """Every option and verb is in the page.  They are found by a separate search of the source."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.c")))
    wanted = re.findall(r'\{\s*"(-[\w-]+)"|\.name = "(\w+)",\n\t\.run', text)
    return [f"weft.1: {name} is missing" for name in map("".join, wanted)
            if f"\\fB{escape(name)}\\fR" not in page]


# --- checks ------------------------------------------------------------------

def effect_in(page, name):
    """The text of a function on a page, up to the first tagged paragraph."""
    for section in re.split(r"^(?=\.S[SH] )", page, flags=re.M):
        head, _, body = section.partition("\n")
        if head.startswith(".SS ") and re.search(rf"\b{name}\(\)", head):
            body = body.partition("\n.TP")[0] if not body.startswith(".TP") else ""
            return "\n".join(line for line in body.split("\n") if not line.startswith("."))
    return None


def check(headers):
    """(number of public functions, problems).  Functions are counted by a separate search, so that
    a function which the page generator overlooks is noticed."""
    pages, problems, count = make_pages(headers), [], 0
    for h in headers:
        for m in re.finditer(r"\bWEFT_(?:API|INLINE)\b[^;]*;", ATTRIBUTE.sub("", h.flat)):
            function = PUBLIC.match(m[0])
            if not function:
                continue
            count += 1
            page = pages.get(f"{function[1]}.3", "")
            link = re.fullmatch(r"\.so man3/(\S+)\n", page)
            effect = effect_in(pages.get(link[1], "") if link else page, function[1])
            if effect is None:
                problems.append(f"{h.include}: {function[1]}: no page")
            elif not re.search(r"\w", effect):
                problems.append(f"{h.include}: {function[1]}: its page does not say what it does")
    return count, problems


def roff_warnings(pages):
    """The warnings of groff about the pages; None without groff."""
    groff = shutil.which("groff")
    if not groff:
        return None
    out = []
    for name, text in sorted(pages.items()):
        if not text.startswith(".so "):
            done = subprocess.run([groff, "-man", "-ww", "-z", "-Tutf8"], input=text.encode(),
                                  stderr=subprocess.PIPE, check=False)
            out += [f"{name}: {line}" for line in done.stderr.decode().splitlines()]
    return out


SAMPLE = r"""/* weft/sample.h - a sample - of all.
 *
 * .leading dot, 'quote, back\slash and -hyphen.  .Second sentence.
 *
 *   1. One
 *      and more.
 *   2. Two.
 *
 *	.code = '\0';
 */
#ifndef WEFT_SAMPLE_H
#define WEFT_SAMPLE_H
#define WEFT_API
#define WEFT_SAMPLE_MAX 3 /* things */

/* A thing. */
struct weft_thing {
	int a; /* caller's */
};

/* Do it to `a`.
 * .EX is no request.  See weft_bare().
 * Returns 0, or -errno.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_good(int a, ...) __attribute__((format(printf, 1, 2)));
WEFT_INLINE int weft_sample(int a,
                            int b);

WEFT_API int weft_bare(void);

/* Returns 0.
 * Thread: any.  Blocks: no.  Since: 0.1. */
WEFT_API int weft_silent(void);

/* Do it.
 * Thread: any.  Blocks: no.  Since: 0.1. */

WEFT_API int weft_apart(void);

/* --- private from here on --- */

static inline int weft__sample_inner(int a) { return a; }

#endif
"""
WANTED = [".so man3/weft_sample.3\n", "\\&.leading dot", "back\\eslash", "\n\\&.Second",
          "\n.IP 1. 4\nOne and more.\n", "\\(aq\\e0\\(aq;", "#define WEFT_SAMPLE_MAX 3",
          "\nstruct weft_thing {\n", "int \\fBweft_good\\fP(int a, ...);\n",
          "int \\fBweft_sample\\fP(int a,\n                int b);\n",
          ".SS weft_good(), weft_sample()\n.PP\nDo it to \\fIa\\fR.\n"
          "\\&.EX is no request.\n",
          ".B RETURN VALUE\nReturns 0, or \\-errno.\n", ".B SINCE\n0.1\n",
          "weft_apart \\- a sample \\- of all\n"]

SAMPLE_VERB = r"""#define PORT "7070"
static const struct args_option options[] = {
	{ "--port", "N",
	  "of \"it\";\n"
	  "default " PORT,
	  args_number, &opts.port, 0, 0, NULL },
	{ "--once", NULL, "and end", args_flag, &opts.once, 0, 0, NULL },
	{ 0 },
};

const struct args_verb verb_go = {
	.name = "go",
	.run = run_go,
	.usage = "go [OPTION...]\n"
		 "go FILE",
	.summary = "a sample",
	.about = "Do it.",
	.options = options,
};
"""
WANTED_VERB = [".SS weft go\n.EX\nweft go [OPTION...]\nweft go FILE\n.EE\n.PP\nDo it.\n",
               '\\fB\\-\\-port\\fR \\fIN\\fR\nof "it"; default 7070\n',
               "\\fB\\-\\-once\\fR\nand end\n"]


def self_test():
    header = Header("include/weft/sample.h", SAMPLE)
    wrong = []
    count, problems = check([header])
    found = [problem.split(": ")[1] for problem in problems]
    if count != 5 or found != ["weft_bare", "weft_silent", "weft_apart"]:
        wrong.append(f"planted 3 of 5 functions, found {found} of {count}")
    pages = make_pages([header])
    text = "".join(pages.values())
    wrong += [f"not in the pages: {want!r}" for want in WANTED if want not in text]
    wrong += ["private, but in the pages"] if "inner" in text else []
    verbs = list(verbs_of(SAMPLE_VERB).values())
    pages["weft.1"] = program_page(verbs, "0")
    wrong += [f"not in weft.1: {want!r}" for want in WANTED_VERB if want not in pages["weft.1"]]
    warnings = roff_warnings(pages)
    wrong += warnings or []
    if roff_warnings({"a.3": ".TH a 3\n.SH NAME\n\\*[nothing]\n"}) == []:
        wrong.append("planted a page that groff must warn about, found nothing")
    for line in wrong:
        print(f"man self-test: {line}")
    print(f"man self-test: 3 planted, {len(found)} found, groff "
          f"{'not installed, pages not checked' if warnings is None else 'asked'}")
    return 1 if wrong else 0


def report(count, problems, pages):
    problems = problems + (roff_warnings(pages) or [])
    for problem in problems:
        print(problem)
    print(f"man check: {count} functions, {len(pages)} pages, {len(problems)} problems")
    return 1 if problems or not pages else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("outdir", nargs="?", metavar="OUTDIR")
    parser.add_argument("headers", nargs="*", metavar="HEADER")
    parser.add_argument("--root", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not options.outdir and not options.check:
        parser.error("OUTDIR is missing")
    named = [Path(p) for p in options.headers]
    folder = named[0].parent if named else Path(options.root) / "include/weft"
    headers = [Header(f"include/weft/{p.name}", p.read_text(encoding="utf-8"))
               for p in sorted(folder.glob("*.h"))]
    tools = Path(options.root) / "tools"
    program = {"weft.1": program_page(program_verbs(tools), version_of(headers))}
    if options.check:
        count, problems = check(headers)
        return report(count, problems + check_program(tools, program["weft.1"]),
                      make_pages(headers) | program)
    out, names = Path(options.outdir), {p.name for p in named}
    if names - {h.pure.name for h in headers}:
        parser.error(f"not in {folder}: {' '.join(sorted(names))}")
    out.mkdir(parents=True, exist_ok=True)
    wanted = [h for h in headers if not names or h.pure.name in names]
    pages = make_pages(headers, wanted) | ({} if names else program)
    for name, text in pages.items():
        (out / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
