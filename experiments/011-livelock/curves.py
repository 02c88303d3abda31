#!/usr/bin/env python3
"""The curves of 011: delivered against offered, a line a variant.

    curves.py ROWS OUT

ROWS: what `make bench` wrote (a JSON object a line). OUT: a directory, which gets a file BENCH.svg for each
livelock bench in the rows (and BENCH-fast.svg for the variants with an app that costs nothing, which lie on
another scale); or a name that ends in .svg, if that is but one. Of several rounds the medians.
"""
import json
import math
import os
import statistics
import sys

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 44, 56
COLOURS = {
    "all": "#1b6ca8", "no-quotas": "#d1495b", "no-early": "#e08e1b", "no-feedback": "#6a4c93",
    "no-share": "#3a7d44", "none": "#222222", "fast": "#4aa3df", "fast-none": "#888888",
}
FALLBACK = "#996633"


def points_of(path):
    """{bench: {variant: [(offered as multiple, offered/s, delivered/s)]}}, sorted, medians of the rounds."""
    found = {}
    with open(path, encoding="utf-8") as rows:
        for line in rows:
            row = json.loads(line)
            if "point" in row:
                key = (row["bench"], row["variant"], row["point"])
                found.setdefault(key, []).append((row["rate_s"], row["delivered_s"]))
    benches = {}
    for (bench, variant, point), values in sorted(found.items()):
        rate = statistics.median(v[0] for v in values)
        delivered = statistics.median(v[1] for v in values)
        bench += "-fast" if variant.startswith("fast") else ""
        benches.setdefault(bench, {}).setdefault(variant, []).append((point, rate, delivered))
    return benches


def round_step(most):
    """A step of 1, 2 or 5 times a power of ten, some five of which reach `most`."""
    power = 10 ** math.floor(math.log10(most / 5))
    return next(power * n for n in (1, 2, 5, 10) if power * n * 6 >= most)


def short(value):
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value / 1e3:g} k" if value >= 1e3 else f"{value:g}"


class Plane:
    """Offered on a logarithmic axis, delivered on a linear one."""

    def __init__(self, rates, most):
        self.low, self.high = math.log10(min(rates)), math.log10(max(rates))
        self.step = round_step(most)
        self.most = self.step * math.ceil(most / self.step)

    def x(self, rate):
        share = (math.log10(rate) - self.low) / ((self.high - self.low) or 1)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - value / self.most * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{words}</text>'


def axes(plane, bench):
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    out = [text(LEFT, 24, f"{bench}: delivered against offered", "start", 'font-size="16"')]
    for n in range(round(plane.most / plane.step) + 1):
        y = plane.y(n * plane.step)
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(text(LEFT - 8, y + 4, short(n * plane.step), "end"))
    for power in range(math.floor(plane.low), math.ceil(plane.high) + 1):
        for n in (1, 2, 5):
            rate = n * 10 ** power
            if plane.low <= math.log10(rate) <= plane.high:
                x = plane.x(rate)
                out.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#eee"/>')
                out.append(text(x, bottom + 18, short(rate)))
    out.append(f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}" '
               'fill="none" stroke="#666"/>')
    out.append(text((LEFT + right) / 2, HEIGHT - 14, "offered a second (logarithmic)"))
    out.append(text(18, (TOP + bottom) / 2, "delivered a second", "middle",
                    f'transform="rotate(-90 18 {(TOP + bottom) / 2:.0f})"'))
    return out


def ideal(plane, most):
    """What is delivered where nothing is lost: all that is offered, up to the most."""
    low, high = 10 ** plane.low, 10 ** plane.high
    steps = [low * (high / low) ** (n / 100) for n in range(101)]
    path = " ".join(f"{plane.x(r):.1f},{plane.y(min(r, most)):.1f}" for r in steps)
    return f'<polyline points="{path}" fill="none" stroke="#bbb" stroke-dasharray="3 4"/>'


def line(plane, variant, points, place):
    colour = COLOURS.get(variant, FALLBACK)
    dash = ' stroke-dasharray="7 3"' if variant.endswith("none") else ""
    path = " ".join(f"{plane.x(rate):.1f},{plane.y(got):.1f}" for _, rate, got in points)
    out = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>']
    out += [f'<circle cx="{plane.x(rate):.1f}" cy="{plane.y(got):.1f}" r="3" fill="{colour}"/>'
            for _, rate, got in points]
    y, x = TOP + 12 + 20 * place, WIDTH - RIGHT + 14
    out.append(f'<line x1="{x}" y1="{y}" x2="{x + 24}" y2="{y}" stroke="{colour}" stroke-width="2"{dash}/>')
    out.append(text(x + 30, y + 4, variant, "start"))
    return out


def order(variant):
    names = list(COLOURS)
    return names.index(variant) if variant in names else len(names)


def curves(bench, variants):
    every = [p for points in variants.values() for p in points]
    most = max(p[2] for p in every)
    plane = Plane([p[1] for p in every], most)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    out += axes(plane, bench)
    out.append(ideal(plane, most))
    for place, variant in enumerate(sorted(variants, key=order)):
        out += line(plane, variant, variants[variant], place)
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: curves.py ROWS OUT")
    benches = points_of(sys.argv[1])
    single = sys.argv[2].endswith(".svg")
    if not benches or (single and len(benches) != 1):
        sys.exit(f"curves.py: {sys.argv[1]} has rows of {len(benches)} livelock benches")
    for bench, variants in benches.items():
        path = sys.argv[2] if single else os.path.join(sys.argv[2], f"{bench}.svg")
        with open(path, "w", encoding="utf-8") as out:
            out.write(curves(bench, variants))


main()
