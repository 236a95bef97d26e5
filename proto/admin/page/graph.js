/* graph.js - graphs drawn in layers, with the times of their nodes.
 *
 * A node is one layer behind the last of its inputs.  An edge that crosses layers has a bend in
 * each, which is ordered like a node, so that lines run between boxes and not below them.  The
 * order within a layer follows the mean position of the neighbors, in several sweeps in both
 * directions.  On wide pages layers run from left to right, on narrow ones from top to bottom.
 */
(function () {
"use strict";

const { make, find, setText, set, number, duration } = globalThis.weft;
const WIDE = { across: false, box: [116, 58], bend: 14, layerGap: 28, gap: 14 };
const TALL = { across: true, box: [112, 58], bend: 14, layerGap: 34, gap: 10 };
const NARROW = 640; /* pixels; below this, layers run from top to bottom */
const LARGE = 1.6; /* times the available width; above this, full size with scrolling */
const SWEEPS = 6;
const HEATS = 6;
const NAME_MAX = 15;
const SVG = "http://www.w3.org/2000/svg";

/* --- layers --------------------------------------------------------------- */

/* Ignores names that no node has. */
function inputsOf(node, byName) {
	return (node.inputs ?? []).map((name) => byName.get(name)).filter(Boolean);
}

/* The layer of each node.  The server sends no cycles. */
function depths(nodes) {
	const byName = new Map(nodes.map((node) => [node.name, node])), depth = new Map();

	function of(node) {
		if (!depth.has(node)) {
			depth.set(node, 0);
			depth.set(node, inputsOf(node, byName).reduce((most, one) =>
				Math.max(most, of(one) + 1), 0));
		}
		return depth.get(node);
	}

	nodes.forEach(of);
	return { byName, depth };
}

/* Spots of nodes and bends, by layer, linked with their neighbors. */
function spotsOf(nodes) {
	const { byName, depth } = depths(nodes), layers = [], spots = new Map(), edges = [];
	const add = (layer, node) => {
		const spot = { node, layer, before: [], after: [] };

		(layers[layer] ??= []).push(spot);
		return spot;
	};
	const link = (from, to) => {
		from.after.push(to);
		to.before.push(from);
	};

	for (const node of nodes)
		spots.set(node, add(depth.get(node), node));
	for (const node of nodes)
		for (const input of inputsOf(node, byName)) {
			const path = [spots.get(input)];

			for (let layer = depth.get(input) + 1; layer < depth.get(node); layer++)
				path.push(add(layer, null));
			path.push(spots.get(node));
			path.slice(1).forEach((spot, i) => link(path[i], spot));
			edges.push(path);
		}
	return { layers: layers.map((layer) => layer ?? []), edges };
}

function sortByMiddle(layer, side) {
	const middle = (spot) => spot[side].length === 0 ? spot.position
		: spot[side].reduce((sum, one) => sum + one.position, 0) / spot[side].length;
	const keys = new Map(layer.map((spot) => [spot, middle(spot)]));

	layer.sort((a, b) => keys.get(a) - keys.get(b));
	renumber(layer);
}

/* Positions are counted from the middle, so that layers of different sizes compare. */
function renumber(layer) {
	layer.forEach((spot, i) => spot.position = i - (layer.length - 1) / 2);
}

function order(layers) {
	layers.forEach(renumber);
	for (let sweep = 0; sweep < SWEEPS; sweep++) {
		const down = sweep % 2 === 0;

		for (const layer of down ? layers : layers.toReversed())
			sortByMiddle(layer, down ? "before" : "after");
	}
}

/* Set the center of each spot in pixels.  Returns the total size. */
function arrange(layers, form) {
	const [w, h] = form.box, along = form.across ? h : w, thick = form.across ? w : h;
	const sizeOf = (spot) => spot.node ? thick : form.bend;
	const lengths = layers.map((layer) => layer.reduce((sum, spot) => sum + sizeOf(spot), 0)
		+ form.gap * (layer.length - 1));
	const step = along + form.layerGap, depth = layers.length * step - form.layerGap;
	const most = Math.max(...lengths);

	layers.forEach((layer, i) => {
		let at = (most - lengths[i]) / 2;

		for (const spot of layer) {
			const middle = at + sizeOf(spot) / 2, front = i * step + along / 2;

			[spot.x, spot.y] = form.across ? [middle, front] : [front, middle];
			at += sizeOf(spot) + form.gap;
		}
	});
	return form.across ? [most, depth] : [depth, most];
}

/* --- drawing -------------------------------------------------------------- */

function svg(tag, attributes = {}, ...children) {
	const element = document.createElementNS(SVG, tag);

	for (const [name, value] of Object.entries(attributes))
		element.setAttribute(name, value);
	element.append(...children);
	return element;
}

/* From the front of a box to the back of another, through the bends between. */
function edgePath(path, form) {
	const half = (form.across ? form.box[1] : form.box[0]) / 2;
	const shift = (spot, by) => form.across ? [spot.x, spot.y + by] : [spot.x + by, spot.y];
	const points = path.flatMap((spot, i) => {
		const back = shift(spot, -half), front = shift(spot, half);

		return i === 0 ? [front] : i === path.length - 1 ? [back] : [back, front];
	});

	return points.slice(1).reduce((text, [x, y], i) => {
		const [fromX, fromY] = points[i], midX = (fromX + x) / 2, midY = (fromY + y) / 2;

		return text + (form.across ? `C${fromX} ${midY} ${x} ${midY} ${x} ${y}`
			: `C${midX} ${fromY} ${midX} ${y} ${x} ${y}`);
	}, `M${points[0].join(" ")}`);
}

const short = (name) => name.length > NAME_MAX ? `${name.slice(0, NAME_MAX - 1)}…` : name;

function drawNode(spot, form) {
	const { node } = spot, [w, h] = form.box, x = spot.x - w / 2, y = spot.y - h / 2;
	const time = svg("text", { x: x + 12, y: y + 36, class: "time" });
	const count = svg("text", { x: x + 12, y: y + 50, class: "count" });
	const name = svg("text", { x: x + 12, y: y + 18, class: "name" }, short(node.name));
	const title = svg("title");
	const group = svg("g", { class: `node ${node.place}` }, title,
		svg("rect", { x, y, width: w, height: h, rx: 8, class: "box" }),
		svg("rect", { x, y: y + 8, width: 3, height: h - 16, rx: 1.5, class: "edge" }),
		name, time, count);

	if (node.place === "input")
		name.setAttribute("y", y + h / 2 + 4);
	return { group, title, time, count };
}

const placeText = { loop: "on a loop", cpu: "on the CPU pool", blocking: "on blocking threads",
	input: "an input" };

function updateNode(drawn, node, most) {
	if (node.place === "input")
		return setText(drawn.title, `${node.name}: an input`);
	const heat = node.count && most ? Math.ceil(node.mean_ns / most * (HEATS - 1)) : 0;

	set(drawn.group, "data-heat", heat);
	set(drawn.group, "data-failed", node.failed > 0);
	setText(drawn.time, node.count ? duration(node.mean_ns) : "not timed yet");
	setText(drawn.count, !node.count ? "" : node.failed ? `${number(node.failed)} failed`
		: `${number(node.count)} times`);
	setText(drawn.title, `${node.name}: ${placeText[node.place] ?? node.place}, mean `
		+ `${duration(node.mean_ns)}, longest ${duration(node.max_ns)}`);
}

/* --- one graph ------------------------------------------------------------ */

class Graph {
	constructor() {
		this.title = make("h3");
		this.facts = make("p", { class: "hint" });
		this.frame = make("div", { class: "graph-frame", tabindex: 0, role: "group" });
		this.rows = make("tbody");
		this.legend = make("div");
		this.element = make("article", { class: "graph card" }, this.title, this.facts,
			this.frame, this.legend, this.table());
		new ResizeObserver(() => this.build()).observe(this.frame);
	}

	table() {
		const heads = ["Node", "Place", "Mean", "Longest", "Last", "Times", "Failed"];
		const row = make("tr", {}, ...heads.map((text, i) =>
			make("th", { scope: "col", class: i > 1 && "number", text })));

		return make("details", {}, make("summary", { text: "Table" }),
			make("div", { class: "scroll" },
				make("table", {}, make("thead", {}, row), this.rows)));
	}

	show(dag) {
		const shape = JSON.stringify(dag.nodes.map(({ name, place, inputs }) =>
			[name, place, inputs]));

		this.dag = dag;
		if (shape !== this.shape) {
			this.form = null;
			this.legend.replaceChildren(legend(dag.nodes));
		}
		this.shape = shape;
		setText(this.title, dag.name || `graph ${dag.id}`);
		setText(this.facts, facts(dag));
		set(this.frame, "aria-label", `The graph ${dag.name}: ${dag.nodes.length} nodes, `
			+ "also listed in the table below");
		this.build();
		this.update();
	}

	/* Redraw if the graph or the layout has changed. */
	build() {
		const form = this.frame.clientWidth < NARROW ? TALL : WIDE;

		if (!this.dag || form === this.form)
			return;
		this.form = form;
		const { layers, edges } = spotsOf(this.dag.nodes);

		order(layers);
		const [w, h] = arrange(layers, form);
		const spots = layers.flat().filter((spot) => spot.node);

		set(this.frame, "data-large", w > this.frame.clientWidth * LARGE);
		this.drawn = new Map(spots.map((spot) => [spot.node.name, drawNode(spot, form)]));
		this.frame.replaceChildren(svg("svg", { viewBox: `-1 -1 ${w + 2} ${h + 2}`,
			"width": w + 2, "height": h + 2, "aria-hidden": "true" },
			...edges.map((path) =>
				svg("path", { class: "link", d: edgePath(path, form) })),
			...[...this.drawn.values()].map(({ group }) => group)));
		this.update();
	}

	update() {
		const { nodes } = this.dag;
		const most = nodes.reduce((max, node) => Math.max(max, node.mean_ns ?? 0), 0);

		for (const node of nodes)
			if (this.drawn?.has(node.name))
				updateNode(this.drawn.get(node.name), node, most);
		this.rows.replaceChildren(...nodes.filter(isTimed).map(row));
	}
}

const isTimed = (node) => node.place !== "input";

function facts(dag) {
	const parts = [`${number(dag.started)} runs`, `${number(dag.running)} now`];

	for (const name of ["failed", "retries", "late"])
		if (dag[name])
			parts.push(`${number(dag[name])} ${name}`);
	return parts.join(" · ");
}

function row(node) {
	const cells = [duration(node.mean_ns), duration(node.max_ns), duration(node.last_ns),
		number(node.count), number(node.failed)];

	return make("tr", {}, make("th", { scope: "row", text: node.name }),
		make("td", { text: node.place }),
		...cells.map((text) => make("td", { class: "number", text })));
}

function legend(nodes) {
	const list = weft.placeLegend(nodes);

	list.append(make("li", {}, make("i", { class: "ramp" }),
		"stronger color: longer mean time"));
	return list;
}

/* --- all graphs ----------------------------------------------------------- */

weft.svg = svg;

weft.startGraphs = function () {
	const section = find("graphs"), list = find("graph-list"), graphs = new Map();

	/* A section without graphs shows nothing but stays in the layout, so that it is
	 * observed. */
	weft.poll(section, 2000, async () => {
		const { dags } = await weft.json("debug/dag");

		section.classList.toggle("empty", dags.length === 0);
		weft.reconcile(list, graphs, dags, (dag) => dag.id, () => new Graph());
		dags.forEach((dag) => graphs.get(dag.id).show(dag));
	});
};
})();
