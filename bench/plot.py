"""Plots of results as plain SVG: one picture per group, for light and dark backgrounds."""
import math
from xml.sax.saxutils import escape

LEFT, RIGHT, WIDTH = 250, 90, 760  # of the plot's area; of the picture
TOP, LINE, BOTTOM = 44, 28, 40
STEPS = (1, 2, 5)

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; font-size: 15px; }
.small { font-size: 11px; fill: #57606a; }
.end { text-anchor: end; }
.mid { text-anchor: middle; }
.grid { stroke: #d0d7de; }
.one { stroke: #24292f; stroke-width: 1.5; }
.bar { fill: #2f81c1; }
.behind { fill: #c4622d; }
.whisker { stroke: #24292f; stroke-width: 1.5; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .one, .whisker { stroke: #e6edf3; }
  .bar { fill: #4493d8; }
  .behind { fill: #e0824f; }
}
"""


def ticks(low, high):
    """..., 0.1, 0.2, 0.5, 1, 2, 5, 10, ... from `low` to `high`."""
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in STEPS:
            value = step * 10 ** power if power >= 0 else step / 10 ** -power
            if low <= value <= high:
                yield value


def bounds(results):
    """Round numbers that enclose 1.0, all ratios and all quartiles."""
    values = [1.0] + [v for r in results for v in (r["ratio"], r["q1"], r["q3"])]
    low, high = min(values), max(values)
    marks = list(ticks(low / 10, high * 10))
    return max(m for m in marks if m <= low), min(m for m in marks if m >= high * 1.01)


def scale(low, high):
    """A function from a ratio to its x coordinate; logarithmic, so that 2 and 1/2 are symmetric."""
    span = math.log(high / low)
    return lambda value: LEFT + (WIDTH - LEFT - RIGHT) * math.log(value / low) / span


def bar(result, x, y):
    one, end = x(1.0), x(result["ratio"])
    q1, q3 = x(result["q1"]), x(result["q3"])
    ahead = result["ratio"] >= 1
    label = escape(f'{result["bench"]}, {result["peer"]}')
    return (
        f'<text class="end" x="{LEFT - 10}" y="{y + 4}">{label}</text>'
        f'<rect class="{"bar" if ahead else "behind"}" x="{min(one, end):.1f}" '
        f'y="{y - 8}" width="{abs(end - one):.1f}" height="16"/>'
        f'<path class="whisker" d="M{q1:.1f} {y - 4}v8m0-4H{q3:.1f}m0-4v8"/>'
        f'<text x="{max(one, end, q3) + 8:.1f}" y="{y + 4}">'
        f'{result["ratio"]:.3g}\u00d7</text>')


def plot(group, results):
    """The SVG of the results of one group; all results have a peer."""
    low, high = bounds(results)
    x = scale(low, high)
    foot = TOP + LINE * len(results)
    parts = [f'<text class="title" x="12" y="24">{escape(group)}: times as good as the '
             "peer</text>"]
    for value in ticks(low, high):
        at = x(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP - 6}V{foot}"/>'
                     f'<text class="small mid" x="{at:.1f}" y="{foot + 16}">{value:g}</text>')
    parts += [bar(r, x, TOP + LINE * i + LINE // 2) for i, r in enumerate(results)]
    parts.append(f'<path class="one" d="M{x(1.0):.1f} {TOP - 6}V{foot}"/>')
    runs = min(r["runs"] for r in results)
    parts.append(f'<text class="small" x="12" y="{foot + 34}">Median of {runs} interleaved '
                 "pairs, whiskers at the quartiles; logarithmic.</text>")
    body = "\n".join(parts)
    height = foot + BOTTOM
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" role="img">\n'
            f"<title>{escape(group)}</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n")


def write(folder, results):
    """Write one file per group; returns their paths."""
    groups = {}
    for r in results:
        if r["ratio"] is not None:
            groups.setdefault(r["bench"].split(".")[0], []).append(r)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for group, members in groups.items():
        paths.append(folder / f"{group}.svg")
        paths[-1].write_text(plot(group, members), encoding="utf-8")
    return paths
