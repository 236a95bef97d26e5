/* timeline.js - one run of a graph as a timeline: when each node began and ended.
 *
 *   weft.timeline(container, { total_us, nodes: [{ name, place, begin_us, end_us, state }] })
 *
 * For a panel that shows a request.  Nodes whose names differ only in numbers share a row, with
 * as many bars above each other as run at once.
 */
(function () {
"use strict";

const { make, duration, svg } = globalThis.weft;
const NARROW = 560; /* pixels; below this, names are above the bars */
const LABELS = 150, TOOK = 74, ROW = 24, HEAD = 22, LANES_MAX = 24, BAR_MIN = 2;
const STEPS = [1, 2, 5];
const US = 1000; /* nanoseconds */

const rowName = (name) => name.replace(/[\s._#[(]*\d+[\])]*$/, "") || name;

/* Rows in the order in which they begin.  Each node gets the first free lane of its row. */
function rowsOf(nodes) {
	const rows = new Map();

	for (const node of nodes.toSorted((a, b) => a.begin_us - b.begin_us)) {
		const name = rowName(node.name);
		const row = rows.get(name) ?? { name, nodes: [], lanes: [] };
		const free = row.lanes.findIndex((end) => end <= node.begin_us);
		const lane = free >= 0 ? free : row.lanes.length;

		row.lanes[lane] = node.end_us;
		row.nodes.push({ ...node, lane });
		rows.set(name, row);
	}
	return [...rows.values()];
}

/* Round times, about five of them. */
function ticks(total) {
	const rough = total / 5, power = 10 ** Math.floor(Math.log10(rough));
	const step = (STEPS.find((one) => one * power >= rough) ?? 10) * power;

	return Array.from({ length: Math.floor(total / step) + 1 }, (_, i) => i * step);
}

function heightOf(row) {
	return Math.max(ROW, Math.min(row.lanes.length, LANES_MAX) * 3 + 10);
}

function drawBar(node, row, form, y) {
	const lanes = Math.min(row.lanes.length, LANES_MAX);
	const thick = row.lanes.length === 1 ? 12 : 2, pitch = row.lanes.length === 1 ? 0 : 3;
	const top = y + (heightOf(row) - (pitch * (lanes - 1) + thick)) / 2;
	const x = form.x(node.begin_us), width = Math.max(BAR_MIN, form.x(node.end_us) - x);
	const failed = node.state === "failed";

	return svg("rect", { x, width, y: top + node.lane % lanes * pitch, height: thick,
		rx: Math.min(3, thick / 2), class: `bar ${node.place}${failed ? " failed" : ""}` },
	svg("title", {}, `${node.name}: ${duration((node.end_us - node.begin_us) * US)}`));
}

/* From the first begin to the last end. */
function took(row) {
	const begin = Math.min(...row.nodes.map((node) => node.begin_us));
	const end = Math.max(...row.nodes.map((node) => node.end_us));

	return duration((end - begin) * US);
}

function drawRow(row, form, y) {
	const middle = y + heightOf(row) / 2 + 4;
	const many = row.nodes.length > 1 ? ` × ${row.nodes.length}` : "";
	const label = svg("text", { x: 0, y: form.above ? y - 2 : middle }, row.name + many);

	return [label, ...row.nodes.map((node) => drawBar(node, row, form, y)),
		svg("text", { x: form.width, y: form.above ? y - 2 : middle, class: "took",
			"text-anchor": "end" }, took(row))];
}

function drawTicks(form, height) {
	return ticks(form.total).flatMap((us) => {
		const x = form.x(us), anchor = us ? "middle" : "start";

		return [svg("line", { x1: x, x2: x, y1: HEAD - 4, y2: height, class: "grid" }),
			svg("text", { x, y: 11, class: "tick", "text-anchor": anchor },
				us ? duration(us * US) : "0")];
	});
}

function formOf(width, total) {
	const above = width < NARROW, left = above ? 0 : LABELS;
	const room = width - left - (above ? 24 : TOOK);

	return { width, total, above, x: (us) => left + us / total * room };
}

function paint(container, { total_us: total, nodes }) {
	const form = formOf(container.clientWidth, Math.max(total, 1));
	const rows = rowsOf(nodes), parts = [];
	let y = HEAD;

	for (const row of rows) {
		y += form.above ? 16 : 0;
		parts.push(...drawRow(row, form, y));
		y += heightOf(row);
	}
	const words = rows.map((row) => `${row.name} ${took(row)}`).join(", ");

	const picture = svg("svg", { class: "timeline", width: form.width, height: y,
		role: "img", "aria-label": words }, ...drawTicks(form, y), ...parts);

	container.replaceChildren(picture, weft.placeLegend(nodes));
}

const shown = new WeakMap(); /* by container, to repaint it for another width */
const resized = new ResizeObserver((entries) => {
	for (const { target } of entries)
		if (target.clientWidth > 0 && target.firstChild?.getAttribute("width")
		    !== String(target.clientWidth))
			paint(target, shown.get(target));
});

weft.timeline = function (container, run) {
	shown.set(container, run);
	paint(container, run);
	resized.observe(container);
};

const PLACES = { loop: "on a loop", cpu: "on the CPU pool", blocking: "on blocking threads" };

/* The legend of the places that occur in `nodes`. */
weft.placeLegend = function (nodes) {
	const names = Object.keys(PLACES).filter((name) =>
		nodes.some(({ place }) => place === name));

	return make("ul", { class: "legend" }, ...names.map((name) =>
		make("li", {}, weft.swatch(`--${name}`), PLACES[name])));
};
})();
