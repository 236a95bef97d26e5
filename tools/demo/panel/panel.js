/* panel.js - the demo's panel on the admin page: one loop compared with 8 threads, live.
 *
 * The server sends the current settings.  They do not move a slider that the user has just moved,
 * until the server has had time to report the new value.
 */
(function () {
"use strict";

const { find, setText, set, number, rate, duration, colour } = globalThis.weft;
const THREADS = 8;
const LOCK_MS = 1500; /* how long the server does not move a slider that the user moved */
const SEND_MS = 120;
const READ_MS = 900;
const US = 1000; /* nanoseconds */
const MARKED_MAX = 600; /* squares for calls; with more in flight each represents several */

const time = (us) => duration(us * US);

/* --- settings ------------------------------------------------------------- */

/* Sliders for load and delay are finer where values are small. */
const SLIDERS = {
	load: { power: 2, text: (value) => `${rate(value)} requests/s` },
	fan_out: { power: 1, text: number },
	delay_us: { power: 2, text: (value) => value ? time(value) : "none" },
};

const round = (value) => {
	const step = 10 ** Math.max(0, Math.floor(Math.log10(value || 1)) - 1);

	return Math.round(value / step) * step;
};

class Slider {
	constructor(name, { power, text }) {
		Object.assign(this, { name, power, text });
		this.input = find(`demo-${name}`);
		this.output = find(`demo-${name}-text`);
		this.lockedUntil = 0;
		this.range = [0, 1];
		this.input.addEventListener("input", () => this.move());
	}

	/* A slider has 100 steps, or one for each value if its scale is linear. */
	value() {
		const [low, high] = this.range, share = Number(this.input.value) / this.steps();
		const value = low + (high - low) * share ** this.power;

		return Math.min(high, this.power === 1 ? Math.round(value) : round(value));
	}

	steps() {
		return this.power === 1 ? this.range[1] - this.range[0] : 100;
	}

	move() {
		this.lockedUntil = Date.now() + LOCK_MS;
		this.showText(this.value());
		send({ [this.name]: this.value() });
	}

	showText(value) {
		setText(this.output, this.text(value));
		set(this.input, "aria-valuetext", this.text(value));
	}

	show(value, range) {
		this.range = range;
		set(this.input, "min", 0);
		set(this.input, "max", this.steps());
		if (Date.now() < this.lockedUntil)
			return;
		const share = Math.max(value - range[0], 0) / (range[1] - range[0] || 1);

		this.input.value = Math.round(this.steps() * share ** (1 / this.power));
		this.showText(value);
	}
}

let waiting = {}, sending = 0;

/* Combines many small moves into one request. */
function send(settings) {
	Object.assign(waiting, settings);
	clearTimeout(sending);
	sending = setTimeout(post, SEND_MS);
}

async function post() {
	const body = new URLSearchParams(waiting);

	waiting = {};
	try {
		const answer = await fetch("/demo/set", { method: "POST", body });

		refused(answer.ok ? "" : `Not set: ${(await answer.text()).slice(0, 200)
			|| answer.status}`);
	} catch {
		refused("Not set: the program does not answer.");
	}
}

function refused(text) {
	setText(find("demo-refused"), text);
	find("demo-refused").hidden = text === "";
}

/* Three typical situations: both sides keep up, one does, neither does. */
const PRESETS = {
	calm: { load: 50, fan_out: 100, delay_us: 1000, compare: 1 },
	busy: { load: 300, fan_out: 100, delay_us: 1000, compare: 1 },
	overload: { load: 3000 },
};

function startControls() {
	const sliders = Object.entries(SLIDERS).map(([name, kind]) => new Slider(name, kind));
	const compare = find("demo-compare");
	let lockedUntil = 0;

	find("demo-controls").addEventListener("submit", (event) => event.preventDefault());
	compare.addEventListener("change", () => {
		lockedUntil = Date.now() + LOCK_MS;
		send({ compare: compare.checked ? 1 : 0 });
	});
	for (const button of document.querySelectorAll("[data-preset]"))
		button.addEventListener("click", () => send(PRESETS[button.dataset.preset]));
	return (state) => {
		for (const slider of sliders)
			slider.show(state.settings[slider.name], state.limits[slider.name]);
		if (Date.now() > lockedUntil)
			compare.checked = state.settings.compare;
	};
}

/* --- side by side --------------------------------------------------------- */

/* Fills the canvas with `places` squares, the first `taken` of them in color. */
function drawCalls(canvas, taken, places, name) {
	const { clientWidth: width, clientHeight: height } = canvas, ratio = devicePixelRatio || 1;
	const pen = canvas.getContext("2d");

	canvas.width = width * ratio;
	canvas.height = height * ratio;
	pen.scale(ratio, ratio);
	const cell = cellSize(width, height, places), columns = Math.floor((width + 2) / cell);

	for (let i = 0; i < places; i++) {
		const x = i % columns * cell, y = Math.floor(i / columns) * cell;

		pen.fillStyle = colour(i < taken ? name : "--line");
		pen.beginPath();
		pen.roundRect(x, y, cell - 2, cell - 2, Math.min(3, cell / 5));
		pen.fill();
	}
}

/* The largest size, in whole pixels, at which `count` squares fit. */
function cellSize(width, height, count) {
	for (let cell = 26; cell > 5; cell--)
		if (Math.floor((width + 2) / cell) * Math.floor((height + 2) / cell) >= count)
			return cell;
	return 5;
}

let flight = null; /* the last state received, to be painted again */

/* Each square is one call, or as many as needed for all to fit. */
function showFlight(state) {
	flight = state;
	const redis = state.weft.calls, blocked = state.threads.calls;
	const canvas = find("demo-weft-calls");
	const room = Math.min(MARKED_MAX, Math.floor(canvas.clientWidth / 8) * 9);
	const each = Math.max(1, 10 ** Math.ceil(Math.log10(Math.max(redis, 1) / room)));

	drawCalls(canvas, Math.ceil(redis / each), Math.max(Math.ceil(redis / each), THREADS),
		"--weft");
	drawCalls(find("demo-threads-calls"), blocked, THREADS, "--threads");
	setText(find("demo-weft-flight"), number(redis));
	setText(find("demo-weft-scale"), each > 1 ? `, ${each} to a square` : "");
	setText(find("demo-threads-flight"), number(blocked));
	set(canvas, "aria-label", `${redis} calls in flight`);
	set(find("demo-threads-calls"), "aria-label", `${blocked} of 8 threads wait`);
}

const paintAgain = () => flight && showFlight(flight);

new ResizeObserver(paintAgain).observe(find("demo-weft-calls"));
weft.onTheme(paintAgain);

const factor = (value) => `${value >= 9.95 ? Math.round(value) : value.toFixed(1)} times`;

/* The comparison in one sentence. */
function verdict({ weft: ours, threads, settings, redis }) {
	if (redis.state !== "up")
		return "";
	if (!settings.compare)
		return "The comparison is off.";
	if (!ours.p50_us || !threads.p50_us)
		return "Measuring …";
	const more = ours.rps / threads.rps, sooner = threads.p50_us / ours.p50_us;

	if (more >= 1.2)
		return `One loop answers ${factor(more)} as many requests as 8 threads`
			+ (sooner >= 1.2 ? `, each ${factor(sooner)} sooner.` : ".");
	return sooner >= 1.2 ? `Both keep up with this load. One loop answers ${factor(sooner)} `
		+ "sooner: a request’s calls wait together, not one after the other."
		: "At this load both do equally well.";
}

function showSides(state) {
	for (const side of ["weft", "threads"]) {
		const values = state[side];
		const off = side === "threads" && !state.settings.compare;

		setText(find(`demo-${side}-rps`), off ? "off" : rate(values.rps));
		for (const q of ["p50", "p99"])
			setText(find(`demo-${side}-${q}`),
				values.rps && !off ? time(values[`${q}_us`]) : "–");
	}
	document.querySelector(".side.threads").classList.toggle("off", !state.settings.compare);
	setText(find("demo-calls"), state.settings.fan_out === 1 ? "one"
		: number(state.settings.fan_out));
}

function showRedis({ redis }) {
	const element = find("demo-redis"), down = redis.state !== "up";

	set(element, "data-state", redis.state);
	setText(element, down ? `Redis is down (${redis.url}): ${redis.detail || "no connection"}. `
		+ "Requests fail until it is back; weft tries again by itself."
		: `Redis is up: ${redis.url}${redis.detail ? `, ${redis.detail}` : ""}`);
}

/* --- over time ------------------------------------------------------------ */

function startCharts() {
	const place = find("demo-charts");
	const sides = [{ name: "weft", colour: "--weft", fill: true },
		{ name: "8 threads", colour: "--threads" }];
	const requests = weft.chart(place, { title: "Requests per second", format: rate,
		series: sides });
	const latency = weft.chart(place, { title: "Latency", format: time, log: true, series: [
		{ name: "weft p99", colour: "--weft" },
		{ name: "p50", colour: "--weft", thin: true },
		{ name: "8 threads p99", colour: "--threads" },
		{ name: "p50", colour: "--threads", thin: true }] });
	const calls = weft.chart(place, { title: "Redis calls in flight", format: number,
		whole: true, series: sides });
	const open = weft.chart(place, { title: "Requests in flight", format: number,
		whole: true, series: [{ name: "on the loop", colour: "--weft", fill: true }] });

	return (state) => {
		const at = Date.now(), { weft: ours, threads: theirs } = state;
		const on = (value) => state.settings.compare ? value : NaN;
		const q = (of, name) => of.rps ? of[name] : NaN;

		requests.push(at, [ours.rps, on(theirs.rps)]);
		latency.push(at, [q(ours, "p99_us"), q(ours, "p50_us"), on(q(theirs, "p99_us")),
			on(q(theirs, "p50_us"))]);
		calls.push(at, [ours.calls, on(theirs.calls)]);
		open.push(at, [state.in_flight]);
	};
}

let before = null;

const COUNTS = [["ok", "answered"], ["shed", "rejected with 503"], ["errors", "failed"],
	["redis_errors", "failed Redis calls"], ["not_found", "unknown viewers"],
	["bad", "bad requests"]];

/* Shows totals, and whether requests are being rejected right now. */
function showCounts({ counts }) {
	const texts = COUNTS
		.filter(([key]) => counts[key] > 0 || key === "ok")
		.map(([key, text]) => `${number(counts[key])} ${text}`);
	const shedding = before !== null && counts.shed > before.shed;

	if (shedding)
		texts.push("overloaded: requests above the limit are rejected at once, so that "
			+ "the others stay quick");
	before = counts;
	setText(find("demo-counts"), texts.join(" · "));
}

/* --- startup -------------------------------------------------------------- */

weft.moveSection("graphs", find("demo-graphs"));
setText(find("graphs-title"), "Every request is this graph");
const showControls = startControls(), showCharts = startCharts();

/* Text that changes too often cannot be read. */
let readUntil = 0;

function showText(state) {
	if (Date.now() < readUntil)
		return;
	readUntil = Date.now() + READ_MS;
	showSides(state);
	showCounts(state);
	setText(find("demo-verdict"), verdict(state));
}

/* The request comes as a Chrome trace of its steps. */
function showSlowest({ traceEvents }) {
	const nodes = traceEvents.filter(({ ph }) => ph === "X").map((step) => ({
		name: step.name, place: step.cat, state: step.args.state,
		begin_us: step.ts, end_us: step.ts + step.dur }));
	const total = Math.max(...nodes.map(({ end_us: end }) => end));

	setText(find("demo-slow-text"), `It took ${time(total)}. Calls to Redis wait on the loop, `
		+ "scores are computed on the CPU pool.");
	weft.timeline(find("demo-slow"), { total_us: total, nodes });
}

weft.stream("/demo/events", {
	demo(state) {
		showRedis(state);
		showControls(state);
		showFlight(state);
		showCharts(state);
		showText(state);
	},
	slow: showSlowest,
});
})();
