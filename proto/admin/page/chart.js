/* chart.js - line charts of the last two minutes, or since the first value.
 *
 *   weft.chart(container, { title, format, log, whole, series: [{ name, colour, thin, fill }] })
 *   weft.spark(canvas, { colour })
 *
 * Both return an object with push(ms, values); `colour` names a property of the style sheet,
 * `whole` is for counts.  Time runs from left to right, and nothing moves except when a value
 * arrives.  The legend shows the newest values as text.  The pointer or the arrow keys choose
 * older values, which are then shown as text too.
 */
(function () {
"use strict";

const { make, setText, colour } = globalThis.weft;
const SPAN_MS = 120000, SPAN_MIN_MS = 20000;
const GAP_MS = 5000; /* a longer gap between two values is not connected by a line */
const LEAST_MS = 100; /* of values closer than this only the last is kept */
const ROOM = { left: 56, right: 8, top: 10, bottom: 22 };
const BARE = { left: 1, right: 3, top: 3, bottom: 3 };
const STEPS = [1, 2, 2.5, 5, 10];

const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

const charts = new Set();

/* --- scales --------------------------------------------------------------- */

/* Marks from 0 to a round number that is at least `max`. */
function linearMarks(max, whole) {
	const rough = (max || 1) / 4, power = 10 ** Math.floor(Math.log10(rough));
	const fine = STEPS.find((one) => one * power >= rough * 0.9999) * power;
	const step = whole ? Math.max(1, Math.ceil(fine)) : fine;
	const count = Math.ceil((max || 1) / step - 1e-9);

	return Array.from({ length: count + 1 }, (_, i) => i * step);
}

/* Powers of ten around all values; for a single decade 1, 2, 5 and 10 times its lower end. */
function logMarks(min, max) {
	const first = Math.floor(Math.log10(min)), last = Math.ceil(Math.log10(max * 1.0001));

	if (last - first <= 1)
		return [1, 2, 5, 10].map((one) => one * 10 ** first);
	return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

/* "10.0 ms" as "10 ms". */
const markText = (text) => text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");

const agoText = (ms) => ms < 500 ? "now" : `${Math.round(ms / 1000)} s ago`;

function valuesOf(points) {
	return points.flatMap((point) => point.values).filter((value) => Number.isFinite(value));
}

/* The marks of an axis, and a function from a value to its position in 0..1. */
function scaleOf(points, { log, whole }) {
	const values = valuesOf(points);

	if (!log || values.length === 0) {
		const marks = linearMarks(values.reduce((a, b) => Math.max(a, b), 0), whole);

		return { marks, at: (value) => value / marks.at(-1) };
	}
	const above = values.filter((value) => value > 0);
	const marks = logMarks(above.reduce((a, b) => Math.min(a, b), Infinity) || 1,
		above.reduce((a, b) => Math.max(a, b), 0) || 1);
	const low = Math.log10(marks[0]), high = Math.log10(marks.at(-1));

	return { marks, at: (value) =>
		(Math.log10(Math.max(value, marks[0])) - low) / (high - low) };
}

/* --- one chart ------------------------------------------------------------ */

class Chart {
	constructor(canvas, options, room) {
		Object.assign(this, { canvas, options, room });
		this.points = [];
		this.cursor = null; /* index of the point that is being read */
		this.pen = canvas.getContext("2d");
		charts.add(this);
		new ResizeObserver(() => this.paint()).observe(canvas);
	}

	push(at, values) {
		const read = this.points[this.cursor];

		if (at - this.points.at(-1)?.at < LEAST_MS)
			this.points.pop();
		this.points.push({ at, values });
		this.points = this.points.filter((point) => point.at > at - SPAN_MS);
		if (read)
			this.cursor = Math.max(0, this.points.indexOf(read));
		this.onChange?.();
		this.paint();
	}

	/* At most once per frame, however often it is called. */
	paint() {
		if (this.due)
			return;
		this.due = true;
		requestAnimationFrame(() => {
			this.due = false;
			this.draw();
		});
	}

	/* Use the pixels of the screen, so that lines are sharp. */
	fit() {
		const { clientWidth: width, clientHeight: height } = this.canvas;
		const ratio = devicePixelRatio || 1;

		this.width = width;
		this.height = height;
		if (this.canvas.width !== Math.round(width * ratio)
		    || this.canvas.height !== Math.round(height * ratio)) {
			this.canvas.width = Math.round(width * ratio);
			this.canvas.height = Math.round(height * ratio);
		}
		this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.pen.clearRect(0, 0, width, height);
	}

	draw() {
		this.fit();
		if (this.width === 0)
			return;
		this.scale = scaleOf(this.points, this.options);
		this.now = this.points.at(-1)?.at ?? 0;
		this.span = Math.max(SPAN_MIN_MS, this.now - (this.points[0]?.at ?? 0));
		this.span = Math.min(this.span, SPAN_MS);
		if (!this.options.bare)
			this.drawFrame();
		this.options.series.forEach((series, index) => this.drawSeries(series, index));
		if (this.cursor !== null && this.points[this.cursor])
			this.drawCursor(this.points[this.cursor]);
	}

	x(at) {
		const share = 1 - (this.now - at) / this.span;

		return this.room.left + share * (this.width - this.room.left - this.room.right);
	}

	y(value) {
		const floor = this.height - this.room.bottom;

		return floor - this.scale.at(value) * (floor - this.room.top);
	}

	drawFrame() {
		const { pen } = this;

		pen.font = `11px ${getComputedStyle(this.canvas).fontFamily}`;
		pen.fillStyle = colour("--muted");
		pen.strokeStyle = colour("--line");
		pen.lineWidth = 1;
		pen.textBaseline = "middle";
		pen.textAlign = "right";
		for (const mark of this.scale.marks)
			this.drawMark(mark);
		pen.textBaseline = "alphabetic";
		["left", "center", "right"].forEach((align, i) => {
			const ago = this.span * (2 - i) / 2;

			pen.textAlign = align;
			pen.fillText(agoText(ago), this.x(this.now - ago), this.height - 5);
		});
	}

	drawMark(mark) {
		const y = Math.round(this.y(mark)) + 0.5, { format } = this.options;

		this.pen.beginPath();
		this.pen.moveTo(this.room.left, y);
		this.pen.lineTo(this.width - this.room.right, y);
		this.pen.stroke();
		this.pen.fillText(markText(format(mark)), this.room.left - 8, y);
	}

	/* Runs of points without a gap. */
	runs(index) {
		const runs = [];
		let last = -Infinity;

		for (const { at, values } of this.points) {
			if (!Number.isFinite(values[index])) {
				last = -Infinity;
				continue;
			}
			if (at - last > GAP_MS)
				runs.push([]);
			runs.at(-1).push([this.x(at), this.y(values[index])]);
			last = at;
		}
		return runs;
	}

	drawSeries(series, index) {
		const { pen } = this;

		pen.strokeStyle = pen.fillStyle = colour(series.colour);
		pen.lineWidth = series.thin ? 1 : 1.75;
		pen.lineJoin = "round";
		pen.setLineDash(series.thin ? [3, 3] : []);
		for (const run of this.runs(index)) {
			pen.beginPath();
			run.forEach(([x, y]) => pen.lineTo(x, y));
			pen.stroke();
			if (series.fill)
				this.drawArea(run);
			this.lastDot(run.at(-1), series);
		}
		pen.setLineDash([]);
	}

	drawArea(run) {
		const { pen } = this, floor = this.height - this.room.bottom;

		pen.lineTo(run.at(-1)[0], floor);
		pen.lineTo(run[0][0], floor);
		pen.globalAlpha = 0.08;
		pen.fill();
		pen.globalAlpha = 1;
	}

	lastDot([x, y], series) {
		if (series.thin || x < this.width - this.room.right - 1)
			return;
		this.dot(x, y, 2.5);
	}

	dot(x, y, radius) {
		this.pen.beginPath();
		this.pen.arc(x, y, radius, 0, 2 * Math.PI);
		this.pen.fill();
	}

	drawCursor({ at, values }) {
		const { pen } = this, x = Math.round(this.x(at)) + 0.5;

		pen.strokeStyle = colour("--muted");
		pen.lineWidth = 1;
		pen.beginPath();
		pen.moveTo(x, this.room.top);
		pen.lineTo(x, this.height - this.room.bottom);
		pen.stroke();
		this.options.series.forEach((series, index) => {
			if (!Number.isFinite(values[index]))
				return;
			pen.fillStyle = colour(series.colour);
			this.dot(x, this.y(values[index]), 3);
		});
	}
}

weft.onTheme(() => charts.forEach((chart) => chart.paint()));

/* --- reading values ------------------------------------------------------- */

function nearest(chart, x) {
	let best = null;

	chart.points.forEach((point, index) => {
		const away = Math.abs(chart.x(point.at) - x);

		if (best === null || away < best.away)
			best = { index, away };
	});
	return best?.index ?? null;
}

function showTip(chart, tip) {
	const point = chart.points[chart.cursor];

	tip.hidden = !point;
	if (!point)
		return;
	tip.replaceChildren(make("span", { class: "when", text: agoText(chart.now - point.at) }),
		...chart.options.series.map((series, index) => make("span", {},
			swatch(series), `${series.name} `,
			make("b", { text: chart.options.format(point.values[index]) }))));
	const x = chart.x(point.at), left = x > chart.width / 2;

	tip.style.left = left ? "" : `${x + 10}px`;
	tip.style.right = left ? `${chart.width - x + 10}px` : "";
}

function addReading(chart, tip) {
	const { canvas } = chart;
	const move = (index) => {
		chart.cursor = index;
		showTip(chart, tip);
		chart.paint();
	};

	canvas.addEventListener("pointermove", (event) => move(nearest(chart, event.offsetX)));
	canvas.addEventListener("pointerleave", () => move(null));
	canvas.addEventListener("blur", () => move(null));
	canvas.addEventListener("keydown", (event) => {
		const step = KEYS[event.key];
		const last = chart.points.length - 1;

		if (event.key === "Escape")
			move(null);
		if (step === undefined || last < 0)
			return;
		event.preventDefault();
		move(Math.min(Math.max((chart.cursor ?? last) + step, 0), last));
	});
}

/* --- public functions ----------------------------------------------------- */

function swatch(series) {
	const mark = make("i", { class: series.thin ? "swatch thin" : "swatch" });

	mark.style.setProperty("--swatch", `var(${series.colour})`);
	return mark;
}

function addLegend(chart, legend) {
	const { series, format } = chart.options;
	const values = series.map((one) => {
		const value = make("b", { text: "–" });

		legend.append(make("li", {}, swatch(one), `${one.name} `, value));
		return value;
	});

	chart.onChange = () => values.forEach((value, index) =>
		setText(value, format(chart.points.at(-1)?.values[index] ?? NaN)));
}

weft.swatch = (colour) => swatch({ colour });

weft.chart = function (container, options) {
	const canvas = make("canvas", { tabindex: 0, role: "img",
		"aria-label": `${options.title}, the last two minutes; arrow keys read values` });
	const legend = make("ul", { class: "legend" });
	const tip = make("div", { class: "tip", role: "status", hidden: true });
	const chart = new Chart(canvas, options, ROOM);

	addLegend(chart, legend);
	addReading(chart, tip);
	container.append(make("figure", { class: "chart" },
		make("figcaption", {}, make("h3", { text: options.title }), legend),
		make("div", { class: "plot" }, canvas, tip)));
	return chart;
};

weft.spark = function (canvas, { colour: name }) {
	canvas.setAttribute("aria-hidden", "true");
	const series = [{ name: "", colour: name, fill: true }];

	return new Chart(canvas, { bare: true, series }, BARE);
};
})();
