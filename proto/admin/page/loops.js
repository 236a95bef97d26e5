/* loops.js - a card for each loop, charts of all, and the program's metrics. */
(function () {
"use strict";

const { make, find, reconcile, setText, number, rate, duration, bytes, percent } = globalThis.weft;
const LINES_MAX = 6; /* loops with a line in the charts */
const PHASES = ["timers", "inbox", "threadlets", "done", "immediates", "closing",
	"microtasks"];
const PHASE_TEXT = { done: "completed operations", inbox: "posts" };
const QUANTILES = ["p50", "p99", "max"];
const COUNTERS = ["turns", "wakes", "syscalls", "polls_skipped", "posts_accepted",
	"posts_executed", "posts_refused", "ops_started", "ops_finished", "timers_fired", "fds",
	"alive", "accepted", "accepts_paused", "accepts_shed", "connected", "connects_failed",
	"handshakes", "handshakes_failed", "peers_dropped"];

const nameOf = (loop) => loop.name ? `${loop.name}` : `loop ${loop.id}`;

/* --- one card ------------------------------------------------------------- */

/* A list of terms; the values are set by key later. */
function facts(terms, values) {
	return make("dl", { class: "facts-grid" }, ...Object.entries(terms).map(([key, text]) =>
		make("div", {}, make("dt", { text }), values[key] = make("dd", { text: "–" }))));
}

class Card {
	constructor() {
		this.values = {};
		this.name = make("h3");
		this.state = make("span", { class: "chip" });
		this.backend = make("p", { class: "hint" });
		this.bar = make("div", { class: "phases", role: "img" });
		this.parts = new Map(PHASES.map((phase, i) =>
			[phase, make("i", { "data-phase": i })]));
		this.bar.append(...this.parts.values());
		this.phaseList = make("ul", { class: "legend" });
		this.counters = {};
		this.element = make("article", { class: "card loop" },
			make("header", {}, this.name, this.state), this.backend, this.figures(),
			this.bar, this.phaseList, this.more());
	}

	figures() {
		return make("div", {}, this.quantiles(), facts({ callbacks: "callbacks/s",
			turns: "iterations/s", threadlets: "threadlets", inbox: "pending posts",
			microtasks: "pending microtasks", busy: "busy" }, this.values));
	}

	quantiles() {
		const cell = (key) => this.values[key] = make("td", { class: "number", text: "–" });
		const head = (text) => make("th", { scope: "col", class: "number", text });
		const row = (key) => make("tr", {}, make("th", { scope: "row", text: key }),
			...QUANTILES.map((q) => cell(key + q)));

		return make("table", { class: "quantiles" },
			make("thead", {}, make("tr", {}, make("td"), ...QUANTILES.map(head))),
			make("tbody", {}, row("turn"), row("lag")));
	}

	more() {
		const terms = Object.fromEntries(COUNTERS.map((key) =>
			[key, key.replaceAll("_", " ")]));

		return make("details", {}, make("summary", { text: "All counters" }),
			facts(terms, this.counters));
	}

	show(loop) {
		setText(this.name, nameOf(loop));
		setText(this.state, `${loop.state}`);
		setText(this.backend,
			`${loop.backend || "no backend yet"} · ${loop.backend_reason}`);
		this.showFigures(loop);
		this.showPhases(loop.phase_ns);
		for (const [key, element] of Object.entries(this.counters))
			setText(element, number(loop[key]));
	}

	showFigures(loop) {
		const texts = {
			callbacks: rate(loop.callbacks_per_s), turns: rate(loop.turns_per_s),
			threadlets: number(loop.threadlets), inbox: depth(loop.inbox),
			microtasks: depth(loop.microtasks),
		};

		for (const key of ["turn", "lag"])
			for (const q of QUANTILES)
				texts[key + q] = loop[key].count ? duration(loop[key][q]) : "–";
		for (const [key, text] of Object.entries(texts))
			setText(this.values[key], text);
	}

	/* The times only grow: show the increase since the last snapshot. */
	showPhases(phases) {
		const before = this.before ?? phases;
		const grown = new Map(Object.entries(phases).map(([key, ns]) =>
			[key, Math.max(0, ns - (before[key] ?? 0))]));
		const all = [...grown.values()].reduce((a, b) => a + b, 0);

		this.before = phases;
		if (all === 0)
			return;
		const shares = PHASES.map((phase) => [phase, (grown.get(phase) ?? 0) / all]);
		const busy = shares.reduce((sum, [, share]) => sum + share, 0);

		for (const [phase, share] of shares)
			this.parts.get(phase).style.width = `${share * 100}%`;
		setText(this.values.busy, percent(busy));
		this.bar.setAttribute("aria-label", `${percent(busy)} busy, else waiting`);
		this.listPhases(shares);
	}

	listPhases(shares) {
		const seen = shares.filter(([, share]) => share >= 0.0005);

		this.phaseList.replaceChildren(...seen.map(([phase, share]) => make("li", {},
			make("i", { class: "swatch", "data-phase": PHASES.indexOf(phase) }),
			`${PHASE_TEXT[phase] ?? phase} `, make("b", { text: percent(share) }))),
			make("li", {}, make("i", { class: "swatch idle" }), "waiting"));
	}
}

const depth = (queue) => `${number(queue.now)} · max ${number(queue.max)}`;

/* --- charts of all loops -------------------------------------------------- */

const CHARTS = [
	{ title: "Callbacks per second", format: rate, of: (loop) => loop.callbacks_per_s },
	{ title: "Iteration, p99", format: duration, log: true,
		of: (loop) => loop.turn.count ? loop.turn.p99 : NaN },
	{ title: "Lag, p99", format: duration, log: true,
		of: (loop) => loop.lag.count ? loop.lag.p99 : NaN },
];

class LoopCharts {
	constructor(container) {
		this.container = container;
	}

	/* Another set of loops needs other lines: start the charts again. */
	build(loops) {
		const shape = loops.map(nameOf).join("\n");

		if (shape === this.shape)
			return;
		this.shape = shape;
		this.cpu = null;
		this.container.replaceChildren();
		this.charts = CHARTS.map((options) => weft.chart(this.container, { ...options,
			series: loops.map((loop, i) => ({ name: nameOf(loop), colour: `--line-${i}`,
				fill: loops.length === 1 })) }));
		this.process = weft.chart(this.container, {
			title: "Process CPU", format: percent,
			series: [{ name: "of one core", colour: "--line-0", fill: true }] });
	}

	push(at, snapshot) {
		const loops = snapshot.loops.slice(0, LINES_MAX);

		this.build(loops);
		this.charts.forEach((chart, i) => chart.push(at, loops.map(CHARTS[i].of)));
		this.pushProcess(at, snapshot);
	}

	pushProcess(at, { now_ns: now, process: { cpu_ns: cpu } }) {
		if (this.cpu && now > this.cpu.now)
			this.process.push(at, [(cpu - this.cpu.cpu) / (now - this.cpu.now)]);
		this.cpu = { now, cpu };
	}
}

/* --- metrics of the program ----------------------------------------------- */

function valueText(unit, value) {
	if (unit === "bytes")
		return bytes(value);
	return unit === "seconds" ? duration(value * 1e9) : number(value);
}

class Value {
	constructor({ name, help, type, unit }) {
		this.unit = unit;
		this.value = make("b", { class: "big" });
		this.more = make("span", { class: "hint" });
		this.grows = type !== "gauge";
		const canvas = make("canvas", { class: "spark" });

		this.element = make("article", { class: "card value" },
			make("h3", { text: name }), make("p", { class: "hint", text: help }),
			make("p", {}, this.value, " ", this.more), canvas);
		this.line = weft.spark(canvas, { colour: "--line-0" });
	}

	/* The line of a counter or a histogram is its rate. */
	show(at, { value, quantiles }) {
		const grown = this.before
			? (value - this.before.value) / (at - this.before.at) * 1000 : 0;
		const rate = Math.max(0, grown);

		if (quantiles)
			this.showQuantiles(quantiles, rate);
		else
			setText(this.value, valueText(this.unit, value));
		if (!quantiles && this.grows && this.before)
			setText(this.more, `${valueText(this.unit, rate)} per second`);
		if (!this.grows || this.before)
			this.line.push(at, [this.grows ? rate : value]);
		this.before = { at, value };
	}

	/* Of all values since the start.  Times are nanoseconds. */
	showQuantiles({ count, p50, p99, max }, rate) {
		const text = (value) =>
			valueText(this.unit, this.unit === "seconds" ? value / 1e9 : value);

		setText(this.value, `p99 ${text(p99)}`);
		setText(this.more, `p50 ${text(p50)} · max ${text(max)} · ${number(count)} values, `
			+ `${number(rate)} per second`);
	}
}

/* --- all of it ------------------------------------------------------------ */

weft.startLoops = function () {
	const cards = new Map(), values = new Map(), charts = new LoopCharts(find("loop-charts"));

	/* The server's times: a value that arrives late is drawn where it belongs. */
	function show(snapshot) {
		const at = snapshot.now_ns / 1e6;

		reconcile(find("loop-cards"), cards, snapshot.loops, (loop) => loop.id,
			() => new Card());
		snapshot.loops.forEach((loop) => cards.get(loop.id).show(loop));
		charts.push(at, snapshot);
		find("values").hidden = snapshot.values.length === 0;
		reconcile(find("value-list"), values, snapshot.values, (value) => value.name,
			(value) => new Value(value));
		snapshot.values.forEach((value) => values.get(value.name).show(at, value));
	}

	/* A new process serves the page: the old one's counters say nothing about it. */
	function forget() {
		for (const part of [...cards.values(), ...values.values()])
			part.element.remove();
		cards.clear();
		values.clear();
		charts.shape = null;
	}

	return { show, forget };
};

weft.processText = ({ rss_bytes: rss, fds, threads }) =>
	`${bytes(rss)} · ${number(threads)} threads · ${number(fds)} descriptors`;
})();
