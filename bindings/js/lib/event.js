/* event.js - Event and its subclasses.
 *
 * The data that a dispatch needs is in the event's private state, which only events.js can
 * access.
 */
(function (host, need) {
"use strict";

const define = Object.defineProperty;
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

	get type() {
		return this.#state.type;
	}

	get target() {
		return this.#state.target;
	}

	get srcElement() {
		return this.#state.target;
	}

	get currentTarget() {
		return this.#state.current;
	}

	get eventPhase() {
		return this.#state.phase;
	}

	get bubbles() {
		return this.#state.bubbles;
	}

	get cancelable() {
		return this.#state.cancelable;
	}

	get composed() {
		return this.#state.composed;
	}

	get defaultPrevented() {
		return this.#state.canceled;
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

	get isTrusted() {
		return this.#state.trusted;
	}

	get timeStamp() {
		return this.#state.time;
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
		const name = this.constructor?.name || "Event";

		if (depth < 0)
			return `[${name}]`;
		return `${name} ${inspect({
			type: this.type,
			defaultPrevented: this.defaultPrevented,
			cancelable: this.cancelable,
			timeStamp: this.timeStamp,
		}, options)}`;
	}
}

expose(Event, "type", "target", "srcElement", "currentTarget", "eventPhase", "bubbles",
	"cancelable", "composed", "defaultPrevented", "returnValue", "cancelBubble",
	"isTrusted", "timeStamp", "composedPath", "stopPropagation",
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

	get message() {
		return this.#init.message;
	}

	get filename() {
		return this.#init.filename;
	}

	get lineno() {
		return this.#init.lineno;
	}

	get colno() {
		return this.#init.colno;
	}

	get error() {
		return this.#init.error;
	}
}

expose(ErrorEvent, "message", "filename", "lineno", "colno", "error");

class PromiseRejectionEvent extends Event {
	#promise;
	#reason;

	constructor(type, init) {
		super(...arguments);
		if (init === undefined || init === null || !("promise" in init))
			throw new TypeError("PromiseRejectionEvent needs a promise");
		this.#promise = init.promise;
		this.#reason = init.reason;
	}

	get promise() {
		return this.#promise;
	}

	get reason() {
		return this.#reason;
	}
}

expose(PromiseRejectionEvent, "promise", "reason");

return { Event, CustomEvent, ErrorEvent, PromiseRejectionEvent, stateOf, dictionary, expose };
})
