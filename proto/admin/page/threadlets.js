/* threadlets.js - the table of threadlets, searched and sorted by the server.
 *
 * The list is requested every two seconds while the table is visible.  Rows are kept by the
 * threadlet's ID, so that focus and open backtraces stay where they are.
 */
(function () {
"use strict";

const { make, find, setText, set, number, duration, bytes } = globalThis.weft;
const PAGE = 50; /* rows requested at first, and added by each "Show more" */
const TYPING_MS = 150;

const keyOf = (threadlet) => `${threadlet.loop}.${threadlet.id}`;

/* A code location such as "serve_request+0x42 (ranking)": the name first, then faint text. */
function codeLocation(text) {
	const [, name, rest] = /^([^+\s]*)(.*)$/s.exec(text ?? "") ?? [];

	return [make("span", { class: "code", text: name || "–" }),
		make("span", { class: "code faint", text: rest ?? "" })];
}

const cell = (label, ...children) => make("td", { "data-label": label }, ...children);

/* --- one row -------------------------------------------------------------- */

class Row {
	constructor(threadlet) {
		this.key = keyOf(threadlet);
		this.frames = make("ol", { class: "frames code", id: `frames-${this.key}` });
		this.button = make("button", { type: "button", class: "open",
			"aria-expanded": "false", "aria-controls": `frames-${this.key}` });
		this.number = make("span", { class: "faint" });
		this.state = make("span", { class: "chip" });
		this.what = make("span");
		this.on = make("span", { class: "faint" });
		this.since = make("td", { class: "number", "data-label": "Since" });
		this.spawned = cell("Spawned at", ...codeLocation(threadlet.spawned_at));
		this.stack = make("td", { class: "number", "data-label": "Stack" });
		this.detail = make("tr", { class: "detail", hidden: true },
			make("td", { colspan: 6 }, this.frames));
		this.element = make("tr", {},
			make("th", { scope: "row" }, this.button, " ", this.number),
			cell("State", this.state), cell("Waits for", this.what, " ", this.on),
			this.since, this.spawned, this.stack);
		this.button.addEventListener("click", () => this.toggle());
	}

	toggle() {
		this.detail.hidden = !this.detail.hidden;
		set(this.button, "aria-expanded", !this.detail.hidden);
		this.showFrames();
	}

	show(threadlet) {
		this.threadlet = threadlet;
		setText(this.button, threadlet.name || threadlet.fn || "threadlet");
		setText(this.number, `#${threadlet.id} · loop ${threadlet.loop}`);
		setText(this.state, threadlet.state);
		set(this.state, "data-kind", threadlet.state);
		setText(this.what, threadlet.waits_for || "–");
		setText(this.on, onText(threadlet));
		setText(this.since, duration(threadlet.waited_ns));
		setText(this.stack, `${bytes(threadlet.stack_used)} of `
			+ bytes(threadlet.stack_bytes));
		this.showFrames();
	}

	/* Only for an open row, to not render thousands of hidden lines. */
	showFrames() {
		if (this.detail.hidden)
			return;
		const { frames = [], fn, left_ns: left, stack_high: high } = this.threadlet;
		const lines = frames.length > 0 ? frames : [`${fn || "?"} (running, no backtrace)`];
		const last = `peak stack ${bytes(high)}${left === null || left === undefined ? ""
			: `, deadline in ${duration(left)}`}`;
		const text = [...lines, last].join("\n");

		if (text !== this.shown)
			this.frames.replaceChildren(
				...lines.map((line) => make("li", {}, ...codeLocation(line))),
				make("li", { class: "note faint", text: last }));
		this.shown = text;
	}
}

/* A file descriptor or threadlet, or the number of an object, the same for all that wait on it. */
function onText({ waits_for: what, waits_on: on }) {
	if (!what || !on)
		return "";
	return on > 0 && on < 1 << 24 ? `${on}` : `#${on}`;
}

function countText(shown, all) {
	if (shown < all)
		return `${number(shown)} of ${number(all)} shown`;
	return all === 1 ? "1 threadlet" : `${number(all)} threadlets`;
}

/* --- the table ------------------------------------------------------------ */

class Table {
	constructor() {
		this.rows = new Map();
		this.max = PAGE;
		this.body = find("threadlet-rows");
		this.more = find("threadlet-more");
		this.loop = find("threadlet-loop");
		this.poll = weft.poll(find("threadlets"), 2000, () => this.load());
		this.listen();
	}

	listen() {
		let typing = 0;

		find("threadlet-form").addEventListener("submit",
			(event) => event.preventDefault());
		find("threadlet-query").addEventListener("input", () => {
			clearTimeout(typing);
			typing = setTimeout(() => this.again(), TYPING_MS);
		});
		for (const id of ["threadlet-sort", "threadlet-loop"])
			find(id).addEventListener("change", () => this.again());
		this.more.addEventListener("click", () => {
			this.max += PAGE;
			this.poll();
		});
	}

	again() {
		this.max = PAGE;
		this.poll();
	}

	query() {
		const query = new URLSearchParams({ format: "json", max: this.max,
			sort: find("threadlet-sort").value });
		const text = find("threadlet-query").value.trim();

		if (text)
			query.set("q", text);
		if (this.loop.value)
			query.set("loop", this.loop.value);
		return query.toString();
	}

	async load() {
		const query = this.query();
		const found = await weft.json(`debug/threadlets?${query}`);

		if (query === this.query()) /* the query was not changed meanwhile */
			this.show(found);
	}

	show({ matched, threadlets, silent = [] }) {
		const keys = new Set(threadlets.map(keyOf));

		for (const [key, row] of this.rows)
			if (!keys.has(key))
				this.drop(key, row);
		threadlets.forEach((threadlet, index) => this.showRow(threadlet, index));
		this.more.hidden = threadlets.length >= matched;
		setText(find("threadlet-count"), countText(threadlets.length, matched)
			+ silent.map((loop) => `. Loop ${loop} is too busy to answer`).join(""));
	}

	drop(key, row) {
		row.element.remove();
		row.detail.remove();
		this.rows.delete(key);
	}

	/* Each threadlet has two rows: its own, and one for its backtrace. */
	showRow(threadlet, index) {
		const key = keyOf(threadlet), row = this.rows.get(key) ?? new Row(threadlet);
		const there = this.body.children[index * 2] ?? null;

		this.rows.set(key, row);
		if (there !== row.element) {
			this.body.insertBefore(row.element, there);
			row.element.after(row.detail);
		}
		row.show(threadlet);
	}

	showLoops(loops) {
		const names = loops.map((loop) => loop.id).join();

		if (names === this.names)
			return;
		this.names = names;
		const value = this.loop.value;

		this.loop.replaceChildren(make("option", { value: "", text: "all" }),
			...loops.map((loop) => make("option",
				{ value: loop.id, text: loop.name || `loop ${loop.id}` })));
		this.loop.value = value;
		if (this.loop.selectedIndex < 0)
			this.loop.selectedIndex = 0;
	}
}

weft.startThreadlets = () => new Table();
})();
