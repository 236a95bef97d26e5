/* event.js - Event and its subclasses.
 *
 * The data that a dispatch needs is in the event's private state, which only events.js can
 * access.
 */
(function (host, need) {
"use strict";

const { defineProperty: define, getOwnPropertyDescriptor: describe } = Object;
const inspectCustom = Symbol.for("nodejs.util.inspect.custom");

/* Converts a dictionary argument as WebIDL does. */
function dictionary(value, what) {
	if (value === undefined || value === null)
		return {};
	if (typeof value !== "object" && typeof value !== "function")
		throw new TypeError(`${what} must be an object`);
	return value;
}

/* Makes the attributes and methods of a class enumerable, as WebIDL requires, and sets its
 * toStringTag. */
function expose(type, ...names) {
	for (const name of names)
		define(type.prototype, name, { enumerable: true });
	define(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
}

/* Adds read-only attributes to a class.  Each shows a member of the private state, which `stateOf`
 * returns, of the same name or of the name in `members`. */
function attributes(type, stateOf, names, members = {}) {
	for (const name of names) {
		const member = members[name] ?? name;
		const accessor = { get [name]() { return stateOf(this)[member]; } };

		define(type.prototype, name, { ...describe(accessor, name), enumerable: true });
	}
}

/* The text of an object for inspect(): its class and some attributes. */
const shown = (object, otherwise, values, depth, options, inspect) => {
	const name = object.constructor?.name || otherwise;

	return depth < 0 ? `[${name}]` : `${name} ${inspect(values, options)}`;
};

let stateOf;

class Event {
	#state;

	static {
		stateOf = (event) => event.#state;
	}

	constructor(type, init) {
		if (arguments.length === 0)
			throw new TypeError("Event needs a type");
		init = dictionary(init, "The init of an event");
		this.#state = {
			type: `${type}`,
			bubbles: !!init.bubbles,
			cancelable: !!init.cancelable,
			composed: !!init.composed,
			time: host.now(),
			target: null,
			current: null,
			phase: 0,
			canceled: false,
			stopped: false,
			stoppedNow: false,
			passive: false,
			trusted: false,
		};
	}

	get returnValue() {
		return !this.#state.canceled;
	}

	set returnValue(value) {
		if (!value)
			this.preventDefault();
	}

	get cancelBubble() {
		return this.#state.stopped;
	}

	set cancelBubble(value) {
		if (value)
			this.#state.stopped = true;
	}

	composedPath() {
		return this.#state.current === null ? [] : [this.#state.current];
	}

	stopPropagation() {
		this.#state.stopped = true;
	}

	stopImmediatePropagation() {
		this.#state.stopped = true;
		this.#state.stoppedNow = true;
	}

	preventDefault() {
		if (this.#state.cancelable && !this.#state.passive)
			this.#state.canceled = true;
	}

	[inspectCustom](depth, options, inspect) {
		const { type, defaultPrevented, cancelable, timeStamp } = this;

		return shown(this, "Event", { type, defaultPrevented, cancelable, timeStamp },
			depth, options, inspect);
	}
}

attributes(Event, stateOf, ["type", "target", "srcElement", "currentTarget", "eventPhase",
	"bubbles", "cancelable", "composed", "defaultPrevented", "isTrusted", "timeStamp"],
{ srcElement: "target", currentTarget: "current", eventPhase: "phase",
	defaultPrevented: "canceled", isTrusted: "trusted", timeStamp: "time" });
expose(Event, "returnValue", "cancelBubble", "composedPath", "stopPropagation",
	"stopImmediatePropagation", "preventDefault");
for (const [i, name] of ["NONE", "CAPTURING_PHASE", "AT_TARGET", "BUBBLING_PHASE"].entries()) {
	define(Event, name, { value: i, enumerable: true });
	define(Event.prototype, name, { value: i, enumerable: true });
}

class CustomEvent extends Event {
	#detail;

	constructor(type, init) {
		super(...arguments);
		this.#detail = init?.detail ?? null;
	}

	get detail() {
		return this.#detail;
	}
}

expose(CustomEvent, "detail");

class ErrorEvent extends Event {
	#init;

	constructor(type, init) {
		super(...arguments);
		this.#init = {
			message: `${init?.message ?? ""}`,
			filename: `${init?.filename ?? ""}`,
			lineno: init?.lineno >>> 0,
			colno: init?.colno >>> 0,
			error: init?.error,
		};
	}

	static {
		attributes(ErrorEvent, (event) => event.#init,
			["message", "filename", "lineno", "colno", "error"]);
	}
}

expose(ErrorEvent);

class PromiseRejectionEvent extends Event {
	#init;

	constructor(type, init) {
		super(...arguments);
		if (init === undefined || init === null || !("promise" in init))
			throw new TypeError("PromiseRejectionEvent needs a promise");
		this.#init = { promise: init.promise, reason: init.reason };
	}

	static {
		attributes(PromiseRejectionEvent, (event) => event.#init, ["promise", "reason"]);
	}
}

expose(PromiseRejectionEvent);

return { Event, CustomEvent, ErrorEvent, PromiseRejectionEvent, stateOf, dictionary, expose,
	attributes, shown };
})
