/* events.js - EventTarget, and the global object as an event target.
 *
 * There is no tree here: an event reaches the listeners of one target, first those that capture,
 * then the others, each group in the order in which they were added.
 *
 *   1. A dispatch uses a copy of the list.  It does not call listeners that are added or removed
 *      meanwhile.
 *   2. An exception in a listener is passed to host.report(); the other listeners still run.
 *   3. An on-handler has a fixed position in the order, from when it is first set until it is
 *      set to a value that cannot be called.
 */
(function (host, need) {
"use strict";

const { DOMException } = need("exception");
const { Event, CustomEvent, ErrorEvent, PromiseRejectionEvent, stateOf, expose } =
	need("event");
const { defineProperty: define, hasOwn } = Object;
const { apply } = Reflect;
const uncurry = (method) => Function.prototype.call.bind(method);
const slice = uncurry(Array.prototype.slice);
const splice = uncurry(Array.prototype.splice);
const push = uncurry(Array.prototype.push);
const mapGet = uncurry(Map.prototype.get);
const mapSet = uncurry(Map.prototype.set);
const mapDelete = uncurry(Map.prototype.delete);

/* If a target has this method, it is called when the target gets its first listener of a type
 * (true), and when it loses the last one (false). */
const listening = Symbol("listening");

function listenerOptions(options) {
	if (typeof options !== "object" && typeof options !== "function")
		return { capture: !!options };
	if (options === null)
		return { capture: false };
	return {
		capture: !!options.capture,
		once: !!options.once,
		passive: !!options.passive,
		signal: options.signal,
	};
}

/* A callback as WebIDL defines it: an object, or null or undefined. */
function isCallback(callback) {
	if (callback === undefined || callback === null)
		return false;
	if (typeof callback !== "object" && typeof callback !== "function")
		throw new TypeError("A listener must be a function or an object");
	return true;
}

let tableOf;
let handlersOf;

class EventTarget {
	#table = new Map(); /* type -> listeners, in order */
	#handlers = new Map(); /* type -> { callback, record } of an on-handler */

	static {
		tableOf = (target) => target.#table;
		handlersOf = (target) => target.#handlers;
	}

	addEventListener(type, callback, options) {
		if (arguments.length < 2)
			throw new TypeError("addEventListener needs a type and a listener");
		add(this, `${type}`, callback, listenerOptions(options));
	}

	removeEventListener(type, callback, options) {
		if (arguments.length < 2)
			throw new TypeError("removeEventListener needs a type and a listener");
		const list = mapGet(this.#table, type = `${type}`);
		const { capture } = listenerOptions(options);
		const found = list && find(list, callback, capture);

		if (found)
			remove(this, type, found);
	}

	dispatchEvent(event) {
		return dispatchOn(this, this, event);
	}
}

expose(EventTarget, "addEventListener", "removeEventListener", "dispatchEvent");

function find(list, callback, capture) {
	for (let i = 0; i < list.length; i++)
		if (list[i].callback === callback && list[i].capture === capture)
			return list[i];
}

function add(target, type, callback, options) {
	const table = tableOf(target);
	const list = mapGet(table, type);
	const { signal } = options;

	if (signal !== undefined && need("abort").isAborted(signal))
		return;
	if (!isCallback(callback) || (list && find(list, callback, options.capture)))
		return;
	const record = { callback, capture: options.capture, once: !!options.once,
		passive: !!options.passive, removed: false };
	insert(target, type, record);
	if (signal === undefined)
		return;
	record.signal = signal;
	record.algorithm = () => remove(target, type, record);
	need("abort").addAlgorithm(signal, record.algorithm);
}

function insert(target, type, record) {
	const table = tableOf(target);
	const list = mapGet(table, type);

	if (list)
		return void push(list, record);
	mapSet(table, type, [record]);
	target[listening]?.(type, true);
}

function remove(target, type, record) {
	const table = tableOf(target);
	const list = mapGet(table, type);

	if (record.removed)
		return;
	record.removed = true;
	if (record.signal)
		need("abort").removeAlgorithm(record.signal, record.algorithm);
	for (let i = 0; i < list.length; i++)
		if (list[i] === record)
			splice(list, i--, 1);
	if (list.length > 0)
		return;
	mapDelete(table, type);
	target[listening]?.(type, false);
}

/* Call the listeners of `target`; events report `self` as their target. */
function dispatchOn(target, self, event, trusted = false) {
	const table = tableOf(target); /* first, because this throws unless it is a target */

	if (!(event instanceof Event))
		throw new TypeError("dispatchEvent needs an Event");
	const state = stateOf(event);

	if (state.phase !== 0)
		throw new DOMException("The event is being dispatched", "InvalidStateError");
	const list = mapGet(table, state.type);

	state.trusted = trusted;
	state.target = state.current = self;
	state.phase = 2;
	if (list) {
		const copy = slice(list);

		runAll(copy, target, event, state, true);
		runAll(copy, target, event, state, false);
	}
	state.current = null;
	state.phase = 0;
	state.stopped = state.stoppedNow = false;
	return !state.canceled;
}

function runAll(list, target, event, state, capture) {
	if (state.stopped)
		return;
	for (let i = 0; i < list.length && !state.stoppedNow; i++) {
		const record = list[i];

		if (record.removed || record.capture !== capture)
			continue;
		if (record.once)
			remove(target, state.type, record);
		state.passive = record.passive;
		run(record.callback, event, state.current);
		state.passive = false;
	}
}

function run(callback, event, self) {
	try {
		if (typeof callback === "function")
			return void apply(callback, self, [event]);
		const method = callback.handleEvent;

		if (typeof method !== "function")
			throw new TypeError("The listener has no method handleEvent");
		apply(method, callback, [event]);
	} catch (error) {
		host.report(error);
	}
}

/* Add an attribute on<type> to a class (rule 3). */
function defineHandler(type, name) {
	define(type.prototype, `on${name}`, {
		configurable: true,
		enumerable: true,
		get() {
			return mapGet(handlersOf(this), name)?.callback ?? null;
		},
		set(callback) {
			setHandler(this, name, callback);
		},
	});
}

function setHandler(target, name, callback) {
	const handlers = handlersOf(target);
	const old = mapGet(handlers, name);
	const usable = typeof callback === "function";

	if (old && usable) {
		old.callback = callback;
	} else if (old) {
		mapDelete(handlers, name);
		remove(target, name, old.record);
	} else if (usable) {
		const entry = { callback };

		entry.record = { capture: false, once: false, passive: false, removed: false,
			callback: (event) => runHandler(entry, target, event) };
		mapSet(handlers, name, entry);
		insert(target, name, entry.record);
	}
}

function runHandler(entry, target, event) {
	if (apply(entry.callback, target, [event]) === false)
		event.preventDefault();
}

/* The global object: its listeners, and handlers that a script has assigned as properties. */
const listeners = new EventTarget();
const globalTarget = {
	addEventListener(...args) {
		listeners.addEventListener(...args);
	},
	removeEventListener(...args) {
		listeners.removeEventListener(...args);
	},
	dispatchEvent(event) {
		return dispatchOn(listeners, globalThis, event);
	},
};

/* Returns whether a script has called preventDefault(). */
function dispatchGlobal(event, callHandler) {
	const name = `on${event.type}`;

	dispatchOn(listeners, globalThis, event, true);
	if (!hasOwn(globalThis, name) || typeof globalThis[name] !== "function")
		return event.defaultPrevented;
	try {
		callHandler(globalThis[name]);
	} catch (error) {
		host.report(error);
	}
	return event.defaultPrevented;
}

let reporting = false; /* an error is being dispatched; errors of its listeners are not */

function dispatchError(message, filename, lineno, colno, error) {
	const event = new ErrorEvent("error",
		{ cancelable: true, message, filename, lineno, colno, error });

	if (reporting)
		return false;
	reporting = true;
	dispatchGlobal(event, (handler) => {
		if (apply(handler, globalThis, [message, filename, lineno, colno, error]) === true)
			event.preventDefault();
	});
	reporting = false;
	return event.defaultPrevented;
}

function dispatchRejection(type, promise, reason) {
	const event = new PromiseRejectionEvent(type,
		{ cancelable: type === "unhandledrejection", promise, reason });

	return dispatchGlobal(event, (handler) => {
		if (apply(handler, globalThis, [event]) === false)
			event.preventDefault();
	});
}

const dispatchTrusted = (target, event) => dispatchOn(target, target, event, true);

return { DOMException, Event, CustomEvent, ErrorEvent, PromiseRejectionEvent, EventTarget,
	globalTarget, dispatchError, dispatchRejection, dispatchTrusted, defineHandler,
	listening };
})
