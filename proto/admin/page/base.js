/* base.js - shared by the parts of the page: elements, numbers as text, streams.
 *
 * Each script adds to `weft`.  Only page.js and panels start something by themselves.  A panel
 * of a program may use everything in this file, and weft.chart(), .spark() and .timeline().
 *
 *   1. Text from the server stays text: it is never parsed as HTML.
 *   2. Nothing is requested while the page is hidden: an idle tab costs the program nothing,
 *      and uses none of the six connections that a browser allows per host.
 */
(function () {
"use strict";

const weft = globalThis.weft = {};
const HIDDEN_MS = 5000; /* a stream stays open this long after its page was hidden */
const SILENCE_MS = 5000; /* after which a stream counts as lost, initially */
const RETRY_MS = [500, 1000, 2000, 4000];

/* --- elements ------------------------------------------------------------- */

weft.find = (id) => document.getElementById(id);

/* make("p", { class: "x", text: "hello" }, child, ...) */
weft.make = function (tag, attributes = {}, ...children) {
	const element = document.createElement(tag);

	for (const [name, value] of Object.entries(attributes)) {
		if (name === "text")
			element.textContent = value;
		else if (value !== null && value !== false)
			element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children);
	return element;
};

/* Change only what differs, to not disturb screen readers and selections. */
weft.setText = function (element, text) {
	if (element.textContent !== text)
		element.textContent = text;
};

weft.set = function (element, name, value) {
	if (element.getAttribute(name) !== String(value))
		element.setAttribute(name, value);
};

/* Keep one part with an element for each key; append new ones in the order of `items`. */
weft.reconcile = function (container, parts, items, keyOf, create) {
	const keys = new Set(items.map(keyOf));

	for (const [key, part] of parts)
		if (!keys.has(key)) {
			part.element.remove();
			parts.delete(key);
		}
	for (const item of items)
		if (!parts.has(keyOf(item))) {
			const part = create(item);

			parts.set(keyOf(item), part);
			container.append(part.element);
		}
};

/* Move a section of the page into a panel. */
weft.moveSection = function (id, target) {
	target.replaceWith(weft.find(id));
};

/* --- numbers -------------------------------------------------------------- */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const digits = [0, 1, 2].map((count) => new Intl.NumberFormat("en",
	{ minimumFractionDigits: count, maximumFractionDigits: count }));

/* Three significant digits, so that a column of numbers does not jump. */
function three(value) {
	const size = Math.abs(value);

	return digits[size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2].format(value);
}

/* The value in the largest unit in which it is at least 1. */
function scaled(value, units) {
	const size = Math.abs(value);
	const [factor, name] = units.find(([least]) => size >= least * 0.9995) ?? units.at(-1);

	return `${three(value / factor)} ${name}`;
}

const COUNTS = [[1e12, "T"], [1e9, "G"], [1e6, "M"]];
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];

weft.number = function (value) {
	if (!Number.isFinite(value))
		return "–";
	if (Math.abs(value) >= 1e6)
		return scaled(value, COUNTS);
	return Number.isInteger(value) || Math.abs(value) >= 100
		? whole.format(value) : three(value);
};

weft.rate = (value) => Number.isFinite(value) && Math.abs(value) < 1e6
	? whole.format(value) : weft.number(value);

weft.bytes = (value) => value < 1024 ? `${whole.format(value)} B` : scaled(value, SIZES);

weft.percent = (share) => Number.isFinite(share) ? `${digits[1].format(share * 100)} %` : "–";

weft.duration = function (ns) {
	if (!Number.isFinite(ns))
		return "–";
	if (ns < 1)
		return "0";
	return ns < 120e9 ? scaled(ns, TIMES) : weft.span(ns);
};

/* Long durations: the two most significant units. */
weft.span = function (ns) {
	const seconds = Math.floor(ns / 1e9);
	const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
	const first = parts.findIndex(([size]) => seconds >= size);

	if (first < 0)
		return "0 s";
	return parts.slice(first, first + 2).map(([size, name], i) => {
		const above = i === 0 ? Infinity : parts[first][0];

		return `${Math.floor(seconds % above / size)} ${name}`;
	}).join(" ");
};

/* --- requests to the server ----------------------------------------------- */

const base = location.pathname.replace(/\/?$/, "/");

/* Routes of the admin endpoint are relative to the page; those of a program begin with "/". */
weft.url = (path) => path.startsWith("/") ? path : base + path;

weft.json = async function (path) {
	const answer = await fetch(weft.url(path), { cache: "no-store" });

	if (!answer.ok)
		throw new Error(`${answer.status} ${(await answer.text()).slice(0, 200)}`);
	return answer.json();
};

/* A stream of server-sent events that reconnects by itself.  `handlers` has a function for each
 * kind of event; `onState` is called with "live", "lost" and "paused". */
class Stream {
	constructor(path, handlers, onState = () => {}) {
		Object.assign(this, { path, handlers, onState });
		this.failures = 0;
		this.heardAt = 0;
		document.addEventListener("visibilitychange", () => this.see());
		setInterval(() => this.listen(), 1000);
		this.open();
	}

	open() {
		this.close();
		this.heardAt = Date.now();
		this.source = new EventSource(weft.url(this.path));
		this.source.addEventListener("error", () => this.fail());
		for (const [name, handler] of Object.entries(this.handlers))
			this.source.addEventListener(name, (event) => this.hear(event, handler));
	}

	close() {
		clearTimeout(this.again);
		this.source?.close();
		this.source = null;
	}

	hear(event, handler) {
		this.failures = 0;
		this.heardAt = Date.now();
		this.setState("live");
		handler(JSON.parse(event.data));
	}

	/* Reconnect after any failure: the server is gone, replies with an error, or is silent. */
	fail() {
		this.close();
		this.setState("lost");
		this.again = setTimeout(() => this.open(), RETRY_MS[this.failures]);
		this.failures = Math.min(this.failures + 1, RETRY_MS.length - 1);
	}

	/* The allowed silence grows with each attempt, to give a slow server a chance. */
	listen() {
		const patience = SILENCE_MS * 2 ** this.failures;

		if (this.source && Date.now() - this.heardAt > patience)
			this.fail();
	}

	see() {
		clearTimeout(this.hiding);
		if (document.hidden)
			this.hiding = setTimeout(() => this.pause(), HIDDEN_MS);
		else if (this.state === "paused")
			this.open();
	}

	pause() {
		this.close();
		this.setState("paused");
	}

	setState(state) {
		if (this.state !== state)
			this.onState(this.state = state);
	}
}

weft.stream = (path, handlers, onState) => new Stream(path, handlers, onState);
weft.live = false; /* state of the page's own stream */

/* Run `task` every `ms` while `element` is visible and the server responds.  Returns a function
 * that runs it at once, for example after the query has changed. */
weft.poll = function (element, ms, task) {
	let seen = false, busy = false, asked = false, timer = 0;

	async function run() {
		clearTimeout(timer);
		asked = busy;
		if (busy || !seen || document.hidden)
			return;
		busy = true;
		if (weft.live)
			await task().catch((error) => console.warn(error.message));
		busy = false;
		timer = setTimeout(run, asked ? 0 : ms);
	}

	new IntersectionObserver((entries) => {
		seen = entries.at(-1).isIntersecting;
		run();
	}, { rootMargin: "200px" }).observe(element);
	document.addEventListener("visibilitychange", run);
	return run;
};

/* --- themes --------------------------------------------------------------- */

let colours = new Map();

/* A color of the style sheet, for canvas drawing. */
weft.colour = function (name) {
	if (!colours.has(name)) {
		const style = getComputedStyle(document.documentElement);

		colours.set(name, style.getPropertyValue(name).trim());
	}
	return colours.get(name);
};

weft.onTheme = function (paint) {
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
		colours = new Map();
		paint();
	});
};
})();
