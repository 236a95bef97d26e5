/* performance.js - the clock, marks and measures, and their observers.
 *
 *   1. At most ENTRIES_MAX entries are kept; the oldest are dropped.  So a program can add marks
 *      forever.
 *   2. An observer is called from a task, with all entries since its last call, as in Node.  The
 *      pending task keeps the program alive.
 *   3. The detail of an entry is the value that was given, not a copy.
 */
(function (host, need) {
"use strict";

const { DOMException, EventTarget } = need("events");
const { dictionary, expose, attributes, shown } = need("event");
const inspectCustom = Symbol.for("nodejs.util.inspect.custom");
const uncurry = (method) => Function.prototype.call.bind(method);
const slice = uncurry(Array.prototype.slice);
const filter = uncurry(Array.prototype.filter);
const sort = uncurry(Array.prototype.sort);
const push = uncurry(Array.prototype.push);
const includes = uncurry(Array.prototype.includes);
const setEach = uncurry(Set.prototype.forEach);
const ENTRIES_MAX = 10000;
const TYPES = Object.freeze(["mark", "measure"]);

const key = Symbol("performance"); /* required by constructors that scripts must not call */

let entries = []; /* in order of creation, starting at `first` */
let first = 0;

/* Rule 1.  Old entries are removed in large batches, so each entry is moved only once. */
function record(entry) {
	push(entries, entry);
	if (entries.length - first > ENTRIES_MAX)
		entries[first++] = undefined;
	if (first > ENTRIES_MAX) {
		entries = slice(entries, first);
		first = 0;
	}
	notifyObservers(entry);
}

const recorded = () => slice(entries, first);

function drop(type, name) {
	entries = filter(recorded(), (entry) => entry.entryType !== type
		|| (name !== undefined && entry.name !== name));
	first = 0;
}

/* The entries that match, sorted by start time; equal times keep their order. */
function select(list, name, type) {
	const chosen = filter(list, (entry) => (name === undefined || entry.name === name)
		&& (type === undefined || entry.entryType === type));

	return sort(chosen, (a, b) => a.startTime - b.startTime);
}

let entryOf;

class PerformanceEntry {
	#entry; /* { name, entryType, startTime, duration, detail } */

	static {
		entryOf = (entry) => entry.#entry;
	}

	constructor(given, entry) {
		if (given !== key)
			throw new TypeError("Illegal constructor");
		this.#entry = entry;
	}

	toJSON() {
		return { ...this.#entry };
	}

	[inspectCustom](...args) {
		return shown(this, "PerformanceEntry", this.toJSON(), ...args);
	}
}

attributes(PerformanceEntry, entryOf, ["name", "entryType", "startTime", "duration"]);
expose(PerformanceEntry, "toJSON");

class PerformanceMark extends PerformanceEntry {
	constructor(name, options) {
		if (arguments.length === 0)
			throw new TypeError("A mark needs a name");
		options = dictionary(options, "The options of a mark");
		const start = options.startTime;

		super(key, { name: `${name}`, entryType: "mark",
			startTime: start === undefined ? host.now() : moment(start), duration: 0,
			detail: options.detail ?? null });
	}
}

class PerformanceMeasure extends PerformanceEntry {
	constructor(given, name, start, end, detail) {
		super(given, { name, entryType: "measure", startTime: start, duration: end - start,
			detail: detail ?? null });
	}
}

for (const type of [PerformanceMark, PerformanceMeasure]) {
	attributes(type, entryOf, ["detail"]);
	expose(type);
}

function moment(value) {
	const time = +value;

	if (!Number.isFinite(time) || time < 0)
		throw new TypeError(`"${String(value)}" is not a valid time`);
	return time;
}

/* A time, or the name of a mark: then the time of the latest mark of that name. */
function momentOf(value) {
	if (typeof value === "number")
		return moment(value);
	const name = `${value}`;

	for (let i = entries.length - 1; i >= first; i--)
		if (entries[i].name === name && entries[i].entryType === "mark")
			return entries[i].startTime;
	throw new DOMException(`The "${name}" performance mark has not been set`,
		"SyntaxError");
}

/* The start and end that the options of a measure specify. */
function spanOf({ start, end, duration }) {
	if (start === undefined && end === undefined)
		throw new TypeError("A measure needs a start or an end");
	if (start !== undefined && end !== undefined && duration !== undefined)
		throw new TypeError("A measure takes two of start, end and duration");
	if (end !== undefined)
		end = momentOf(end);
	else if (duration !== undefined)
		end = momentOf(start) + moment(duration);
	else
		end = host.now();
	if (start !== undefined)
		return [momentOf(start), end];
	return [duration === undefined ? 0 : end - moment(duration), end];
}

const hasOptions = (options) => options.start !== undefined || options.end !== undefined
	|| options.duration !== undefined || options.detail !== undefined;

class Performance extends EventTarget {
	constructor(given) {
		if (given !== key)
			throw new TypeError("Illegal constructor");
		super();
	}

	get timeOrigin() {
		return host.timeOrigin;
	}

	now() {
		return host.now();
	}

	mark(name, options) {
		const mark = arguments.length === 0 ? new PerformanceMark()
			: new PerformanceMark(name, options);

		record(mark);
		return mark;
	}

	measure(name, from, to) {
		if (arguments.length === 0)
			throw new TypeError("A measure needs a name");
		const byOptions = typeof from === "object" && from !== null && hasOptions(from);

		if (byOptions && to !== undefined)
			throw new TypeError("A measure with options takes no end mark");
		const plain = typeof from === "object" ? undefined : from;
		const [start, end] = byOptions ? spanOf(from)
			: [plain === undefined ? 0 : momentOf(plain),
				to === undefined ? host.now() : momentOf(to)];
		const measure = new PerformanceMeasure(key, `${name}`, start, end,
			byOptions ? from.detail : null);

		record(measure);
		return measure;
	}

	getEntries() {
		return select(recorded());
	}

	getEntriesByName(name, type) {
		return select(recorded(), `${name}`, type);
	}

	getEntriesByType(type) {
		return select(recorded(), undefined, `${type}`);
	}

	clearMarks(name) {
		drop("mark", name === undefined ? undefined : `${name}`);
	}

	clearMeasures(name) {
		drop("measure", name === undefined ? undefined : `${name}`);
	}

	toJSON() {
		return { timeOrigin: host.timeOrigin };
	}
}

expose(Performance, "timeOrigin", "now", "mark", "measure", "getEntries",
	"getEntriesByName", "getEntriesByType", "clearMarks", "clearMeasures", "toJSON");

/* --- observers --- */

const observers = new Set();
let scheduled = false; /* the task that calls the observers is scheduled */

class PerformanceObserverEntryList {
	#list;

	constructor(given, list) {
		if (given !== key)
			throw new TypeError("Illegal constructor");
		this.#list = list;
	}

	getEntries() {
		return select(this.#list);
	}

	getEntriesByName(name, type) {
		return select(this.#list, `${name}`, type);
	}

	getEntriesByType(type) {
		return select(this.#list, undefined, `${type}`);
	}
}

expose(PerformanceObserverEntryList, "getEntries", "getEntriesByName", "getEntriesByType");

let stateOf;

class PerformanceObserver {
	#state;

	static {
		stateOf = (observer) => observer.#state;
	}

	static get supportedEntryTypes() {
		return TYPES;
	}

	constructor(callback) {
		if (typeof callback !== "function")
			throw new TypeError("An observer needs a function");
		this.#state = { callback, form: null, types: [], buffer: [] };
	}

	observe(options) {
		const { entryTypes, type, buffered } = dictionary(options, "The options");
		const form = entryTypes === undefined ? "single" : "multiple";

		if ((entryTypes === undefined) === (type === undefined))
			throw new TypeError("An observer needs either entryTypes or type");
		if (this.#state.form !== null && this.#state.form !== form)
			throw new DOMException("entryTypes and type cannot be combined",
				"InvalidModificationError");
		this.#state.form = form;
		if (form === "multiple")
			this.#state.types = filter([...entryTypes],
				(name) => includes(TYPES, name));
		else
			this.#add(`${type}`, buffered);
		if (this.#state.types.length > 0)
			observers.add(this);
	}

	#add(type, buffered) {
		if (!includes(TYPES, type))
			return;
		if (!includes(this.#state.types, type))
			push(this.#state.types, type);
		if (!buffered)
			return;
		push(this.#state.buffer, ...select(recorded(), undefined, type));
		callLater();
	}

	disconnect() {
		observers.delete(this);
		this.#state.buffer = [];
		this.#state.types = [];
		this.#state.form = null;
	}

	takeRecords() {
		const list = this.#state.buffer;

		this.#state.buffer = [];
		return list;
	}
}

expose(PerformanceObserver, "observe", "disconnect", "takeRecords");

function notifyObservers(entry) {
	setEach(observers, (observer) => {
		const state = stateOf(observer);

		if (!includes(state.types, entry.entryType))
			return;
		push(state.buffer, entry);
		callLater();
	});
}

/* Rule 2. */
function callLater() {
	if (scheduled)
		return;
	scheduled = true;
	host.timeout(callAll, 0, false);
}

function callAll() {
	scheduled = false;
	for (const observer of [...observers]) {
		const list = observer.takeRecords();

		if (list.length === 0)
			continue;
		try {
			stateOf(observer).callback.call(observer,
				new PerformanceObserverEntryList(key, list), observer);
		} catch (error) {
			host.report(error);
		}
	}
}

return { performance: new Performance(key), Performance, PerformanceEntry, PerformanceMark,
	PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList };
})
