#!/usr/bin/env python3
"""Draws a trace as an OpenTelemetry Collector received it: a waterfall, as SVG.

Place: makes the picture of docs/opentelemetry.md (`make waterfall`). A real
Collector takes what the daemon sends of a recorded run, its file exporter
writes it down, and this draws that file and nothing else.

    waterfall.py OUT.svg [RECORDED_RUN]     examples/logs/hot_key/4.3.0 if not said
    waterfall.py OUT.svg --received FILE    a file that a Collector wrote

Needs the program (cargo build) and tests/parts/collector, or FILE alone.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Kinds of spans, outermost first, with the color of their bars.
KINDS = {
    "application": ("application", "#475569"),
    "sql": ("SQL execution", "#7c3aed"),
    "job": ("job", "#0284c7"),
    "stage": ("stage attempt", "#0d9488"),
    "task": ("one of its slowest tasks", "#94a3b8"),
}
SEVERITIES = {"info": "#0369a1", "warning": "#c2410c", "critical": "#b91c1c"}
FAILED = "#dc2626"

WIDTH, NAMES, RIGHT = 1100, 330, 74
ROW, BAR = 24, 13
NOTE_LINE, NOTE_WIDTH = 17, 108
FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def plain(value):
    """Any value of OTLP's JSON."""
    kind, inner = next(iter(value.items()), ("", ""))
    if kind == "arrayValue":
        return [plain(one) for one in inner.get("values", [])]
    return int(inner) if kind == "intValue" else inner


def attributes(holder):
    return {pair["key"]: plain(pair["value"]) for pair in holder.get("attributes", [])}


class Span:
    def __init__(self, resource, span):
        self.resource = resource
        self.trace = span["traceId"]
        self.id = span["spanId"]
        self.parent = span.get("parentSpanId", "")
        self.name = span["name"]
        self.start = int(span["startTimeUnixNano"]) / 1e9
        self.end = int(span["endTimeUnixNano"]) / 1e9
        self.attributes = attributes(span)
        self.failed = span.get("status", {}).get("code") == 2
        self.findings = [
            (int(event["timeUnixNano"]) / 1e9, attributes(event))
            for event in span.get("events", [])
            if event["name"] == "spark.finding"
        ]
        self.children = []

    @property
    def title(self):
        """Its name; of a task with what tells it from the others."""
        if self.kind != "task":
            return self.name
        return f"task {self.attributes['spark.task.id']}, executor {self.attributes['spark.executor.id']}"

    @property
    def records(self):
        """What a task read; None of others."""
        read = [self.attributes.get(f"spark.task.{way}_records") for way in ("input", "shuffle_read")]
        return sum(filter(None, read)) if self.kind == "task" else None

    @property
    def kind(self):
        told = {
            "spark.task.id": "task",
            "spark.stage.id": "stage",
            "spark.job.id": "job",
            "spark.sql_execution.id": "sql",
        }
        return next((kind for key, kind in told.items() if key in self.attributes), "application")


def received(file):
    """The spans of a file that the Collector's file exporter wrote."""
    spans = []
    for line in Path(file).read_text().splitlines():
        try:
            batch = json.loads(line)
        except json.JSONDecodeError:
            continue  # the last line is being written
        for part in batch.get("resourceSpans", []):
            resource = attributes(part["resource"])
            for scope in part["scopeSpans"]:
                spans += [Span(resource, span) for span in scope["spans"]]
    return spans


def tree(spans):
    """The root of the trace with most spans, its children beneath it."""
    traces = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(span)
    trace = max(traces.values(), key=len)
    by_id = {span.id: span for span in trace}
    roots = []
    for span in sorted(trace, key=lambda span: (span.start, -span.end, span.id)):
        above = by_id.get(span.parent)
        (above.children if above else roots).append(span)
    if len(roots) != 1:
        sys.exit(f"{len(roots)} spans of trace {trace[0].trace} have no parent there")
    return roots[0], len(trace)


def told(span):
    """Whether there is something to say of it or of what is beneath it."""
    return bool(span.findings) or span.failed or any(map(told, span.children))


def rows(span, depth=0):
    """Spans in order, with their depth. Tasks of stages of which there is
    nothing to say are left out: a number says how many."""
    tasks = [child for child in span.children if child.kind == "task"]
    shown = told(span) or not tasks
    hidden = 0 if shown else len(tasks)
    yield span, depth, hidden
    children = span.children if shown else [child for child in span.children if child not in tasks]
    for child in children:
        yield from rows(child, depth + 1)


def seconds(value):
    if value < 1:
        return f"{value * 1000:.0f} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def ticks(span):
    """About eight moments, round ones."""
    for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600):
        if span / step <= 9:
            break
    return [step * number for number in range(int(span / step) + 1)]


class Drawing:
    def __init__(self):
        self.parts = []

    def text(self, x, y, text, size=12, color="#1e293b", weight=400, anchor="start"):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" '
            f'fill="{color}" text-anchor="{anchor}">{escape(text, quote=False)}</text>'
        )

    def box(self, x, y, width, height, color, radius=0, more=""):
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius}" fill="{color}"{more}/>'
        )

    def line(self, x1, y1, x2, y2, color, more=""):
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{more}/>'
        )

    def diamond(self, x, y, size, color):
        points = f"{x:.1f},{y - size:.1f} {x + size:.1f},{y:.1f} {x:.1f},{y + size:.1f} {x - size:.1f},{y:.1f}"
        self.parts.append(f'<polygon points="{points}" fill="{color}" stroke="#fff" stroke-width="1.5"/>')

    def svg(self, height, title):
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
                f'width="{WIDTH}" height="{height:.0f}" font-family="{FONT}" role="img">',
                f"<title>{escape(title, quote=False)}</title>",
                *self.parts,
                "</svg>\n",
            ]
        )


def notes(span):
    """What is wrong with a span: color and lines of each finding."""
    for _, finding in span.findings:
        severity = finding["spark.finding.severity"]
        about = f"{finding['spark.finding.rule']}"
        if cause := finding.get("spark.finding.cause"):
            about += f", {cause}"
        lines = textwrap.wrap(finding["spark.finding.headline"], NOTE_WIDTH)
        if advice := finding.get("spark.finding.advice"):
            lines += textwrap.wrap(f"→ {advice}", NOTE_WIDTH)
        yield severity, about, lines


def drawn(root, count):
    table = list(rows(root))
    began, span = root.start, max(root.end - root.start, 1e-3)
    scale = (WIDTH - NAMES - RIGHT) / span
    at = lambda moment: NAMES + (moment - began) * scale
    top = 108
    height = top
    for one, _, _ in table:
        height += ROW + sum(len(lines) * NOTE_LINE + 34 for _, _, lines in notes(one))
    height += 18

    canvas = Drawing()
    canvas.box(0.5, 0.5, WIDTH - 1, height - 1, "#ffffff", 8, ' stroke="#cbd5e1"')
    resource = root.resource
    canvas.text(20, 30, resource["service.name"], 17, "#0f172a", 600)
    about = f"{resource['spark.application.id']} · Spark {resource.get('spark.version', '?')} · {seconds(span)} · {count} spans"
    canvas.text(20, 50, about, 12, "#64748b")
    canvas.text(WIDTH - 20, 30, f"trace {root.trace}", 11, "#64748b", anchor="end")
    x = 20
    for name, color in KINDS.values():
        canvas.box(x, 65, 11, 11, color, 2)
        canvas.text(x + 16, 75, name, 11, "#475569")
        x += 34 + 6.1 * len(name)
    canvas.diamond(x + 6, 70.5, 6, SEVERITIES["warning"])
    canvas.text(x + 17, 75, "finding, an event of its span", 11, "#475569")

    for tick in ticks(span):
        x = at(began + tick)
        canvas.line(x, top - 8, x, height - 14, "#e2e8f0")
        canvas.text(x, top - 13, f"{tick:g} s", 10, "#94a3b8", anchor="middle")

    y = top
    for one, depth, hidden in table:
        color = KINDS[one.kind][1]
        middle = y + ROW / 2
        if one.findings:
            canvas.box(8, y, WIDTH - 16, ROW, "#fff7ed", 4)
        indent = 20 + 15 * depth
        strong = one.kind in ("application",) or one.findings
        name = one.title if len(one.title) < 44 - 2 * depth else one.title[: 43 - 2 * depth] + "…"
        canvas.text(indent, middle + 4, name, 12, "#0f172a" if strong else "#334155", 600 if strong else 400)
        left, right = at(one.start), at(one.end)
        width = max(right - left, 1.5)
        more = f' stroke="{FAILED}" stroke-width="2"' if one.failed else ""
        canvas.box(left, middle - BAR / 2, width, BAR, color, min(2.5, width / 2), more)
        length = seconds(one.end - one.start)
        if one.records:
            length += f" · {one.records:,} records"
        if hidden:
            length += f" · {hidden} task{'s' * (hidden > 1)} not drawn"
        room = 7 + 6.2 * len(length)
        if right + room < WIDTH - 12:
            canvas.text(right + 7, middle + 4, length, 11, "#64748b")
        else:
            canvas.text(left - 7, middle + 4, length, 11, "#64748b", anchor="end")
        for moment, finding in one.findings:
            canvas.diamond(at(min(max(moment, one.start), one.end)), middle, 7, SEVERITIES[finding["spark.finding.severity"]])
        y += ROW
        for severity, about, lines in notes(one):
            color = SEVERITIES[severity]
            box = len(lines) * NOTE_LINE + 28
            canvas.box(NAMES - 4, y + 2, WIDTH - NAMES - 12, box, "#fffaf5", 5, f' stroke="{color}" stroke-opacity="0.45"')
            canvas.box(NAMES - 4, y + 2, 4, box, color, 2)
            canvas.text(NAMES + 10, y + 20, f"{severity.upper()}  {about}", 11, color, 700)
            for number, line in enumerate(lines):
                canvas.text(NAMES + 10, y + 20 + NOTE_LINE * (number + 1), line, 12, "#334155")
            y += box + 6
    return canvas.svg(height, f"A trace of {resource['service.name']}: {seconds(span)}, {count} spans")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def sent_to_a_collector(exporter, run, folder):
    """Lets the daemon read a recorded run and send it to a real Collector; the
    file that the Collector wrote."""
    script = ROOT / "tests/parts/collector"
    program = subprocess.run([script], stdout=subprocess.PIPE, text=True)
    if program.returncode:
        sys.exit(f"{script} failed: it says above why")
    port, out = free_port(), folder / "received.jsonl"
    (folder / "collector.yaml").write_text(
        json.dumps(
            {
                "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{port}"}}}},
                "exporters": {"file": {"path": str(out), "flush_interval": "50ms"}},
                "service": {
                    "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                    "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
                },
            }
        )
    )
    # The run ended when it was recorded: old enough not to be sent, otherwise.
    (folder / "spark-exporter.yml").write_text("otlp: {traces: {max_age: 36500d}}\n")
    started = [
        subprocess.Popen([Path(program.stdout.strip()) / "otelcol", "--config", folder / "collector.yaml"]),
        subprocess.Popen(
            [
                exporter,
                "--config.file", folder / "spark-exporter.yml",
                "--event-log.dir", run,
                "--web.listen-address", "127.0.0.1:0",
                "--log.level", "warn",
            ],
            env=os.environ
            | {
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{port}/v1/traces",
            },
        ),
    ]
    try:
        # Whole once the application's own span is there: it is sent last, or
        # with all the others.
        for _ in range(600):
            time.sleep(0.2)
            if out.exists() and any(not span.parent for span in received(out)):
                time.sleep(0.5)
                return out
        sys.exit("the Collector received no trace within two minutes")
    finally:
        for one in reversed(started):
            one.terminate()
            one.wait()


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("out", type=Path)
    options.add_argument("run", type=Path, nargs="?", default=ROOT / "examples/logs/hot_key/4.3.0")
    options.add_argument("--received", type=Path, help="what a Collector's file exporter wrote")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    options.add_argument("--program", type=Path, default=target / "debug/spark-exporter", help="our own")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = options.received or sent_to_a_collector(options.program, options.run, Path(folder))
        options.out.write_text(drawn(*tree(received(file))))


if __name__ == "__main__":
    main()
