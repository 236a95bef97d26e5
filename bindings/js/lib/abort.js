/* abort.js - AbortController and AbortSignal.
 *
 *   1. A signal aborts once.  Its algorithms run first (those of the host, and of listeners
 *      added with a signal), then its listeners.
 *   2. A signal made by any() depends only on plain signals: for a source that is itself made by
 *      any(), it uses that signal's sources.  So one step reaches all dependents, and all have
 *      their reason before the first listener runs.
 *   3. A source refers to its dependents weakly; otherwise a long-lived source would accumulate
 *      dead ones.  A dependent that has listeners is held by its sources.
 */
(function (host, need) {
"use strict";

const { DOMException, Event, EventTarget, dispatchTrusted, defineHandler, listening } =
	need("events");
const { expose, attributes, shown } = need("event");
const inspectCustom = Symbol.for("nodejs.util.inspect.custom");
const uncurry = (method) => Function.prototype.call.bind(method);
const setAdd = uncurry(Set.prototype.add);
const setDelete = uncurry(Set.prototype.delete);
const setClear = uncurry(Set.prototype.clear);
const setEach = uncurry(Set.prototype.forEach);
const push = uncurry(Array.prototype.push);
const deref = uncurry(WeakRef.prototype.deref);
const DELAY_MAX = 0x7fffffff; /* longest timer of the host, in milliseconds */

const key = Symbol("AbortSignal"); /* required to construct a signal */
const forgotten = new FinalizationRegistry(({ source, ref }) => {
	setDelete(source.dependents, ref);
});

let stateOf;

class AbortSignal extends EventTarget {
	#state = {
		aborted: false,
		reason: undefined,
		algorithms: new Set(),
		sources: null, /* states of plain signals; null for a plain signal */
		dependents: new Set(), /* WeakRef of signals */
		strong: new Set(), /* dependents that have listeners */
		heard: false, /* it has listeners */
	};

	static {
		stateOf = (signal) => signal.#state;
	}

	constructor(given) {
		if (given !== key)
			throw new TypeError("Illegal constructor");
		super();
	}

	static abort(reason) {
		const signal = new AbortSignal(key);

		signalAbort(signal, reason);
		return signal;
	}

	static timeout(milliseconds) {
		const signal = new AbortSignal(key);

		later(delayOf(milliseconds), () => signalAbort(signal,
			new DOMException("The operation was aborted due to timeout",
				"TimeoutError")));
		return signal;
	}

	static any(signals) {
		const list = [...signals];
		const result = new AbortSignal(key);
		const state = stateOf(result);

		for (let i = 0; i < list.length; i++)
			if (isAborted(list[i])) {
				state.aborted = true;
				state.reason = stateOf(list[i]).reason;
				return result;
			}
		state.sources = new Set();
		for (let i = 0; i < list.length; i++)
			depend(result, stateOf(list[i]));
		return result;
	}

	throwIfAborted() {
		if (this.#state.aborted)
			throw this.#state.reason;
	}

	[listening](type, any) {
		if (type !== "abort")
			return;
		this.#state.heard = any;
		updateStrong(this, this.#state);
	}

	[inspectCustom](...args) {
		return shown(this, "AbortSignal", { aborted: this.aborted }, ...args);
	}
}

attributes(AbortSignal, stateOf, ["aborted", "reason"]);
expose(AbortSignal, "throwIfAborted");
defineHandler(AbortSignal, "abort");

function delayOf(milliseconds) {
	const delay = Math.trunc(+milliseconds);

	if (!(delay >= 0 && delay <= Number.MAX_SAFE_INTEGER))
		throw new TypeError("The delay of AbortSignal.timeout is out of range");
	return delay;
}

/* Call `fn` after `delay`, by a timer that does not keep the loop alive. */
function later(delay, fn) {
	if (delay <= DELAY_MAX)
		host.timeout(fn, delay, true);
	else
		host.timeout(() => later(delay - DELAY_MAX, fn), DELAY_MAX, true);
}

/* Rule 2. */
function depend(signal, source) {
	if (source.sources)
		setEach(source.sources, (plain) => dependOnPlain(signal, plain));
	else
		dependOnPlain(signal, source);
}

function dependOnPlain(signal, source) {
	const ref = new WeakRef(signal);

	setAdd(stateOf(signal).sources, source);
	setAdd(source.dependents, ref);
	forgotten.register(signal, { source, ref });
}

/* Rule 3. */
function updateStrong(signal, state) {
	const wanted = !state.aborted && (state.heard || state.algorithms.size > 0);

	if (!state.sources)
		return;
	setEach(state.sources, (source) => {
		if (wanted)
			setAdd(source.strong, signal);
		else
			setDelete(source.strong, signal);
	});
}

function setReason(state, reason) {
	state.aborted = true;
	state.reason = reason;
}

function signalAbort(signal, reason) {
	const state = stateOf(signal);
	const dependents = [];

	if (state.aborted)
		return;
	setReason(state, reason !== undefined ? reason
		: new DOMException("This operation was aborted", "AbortError"));
	setEach(state.dependents, (ref) => {
		const dependent = deref(ref);

		if (!dependent || dependent.aborted)
			return;
		setReason(stateOf(dependent), state.reason);
		push(dependents, dependent);
	});
	setClear(state.dependents);
	setClear(state.strong);
	runAbortSteps(signal, state);
	for (let i = 0; i < dependents.length; i++)
		runAbortSteps(dependents[i], stateOf(dependents[i]));
}

/* Rule 1. */
function runAbortSteps(signal, state) {
	const algorithms = [];

	updateStrong(signal, state);
	setEach(state.algorithms, (algorithm) => push(algorithms, algorithm));
	setClear(state.algorithms);
	for (let i = 0; i < algorithms.length; i++)
		algorithms[i]();
	dispatchTrusted(signal, new Event("abort"));
}

class AbortController {
	#signal = new AbortSignal(key);

	get signal() {
		return this.#signal;
	}

	abort(reason) {
		signalAbort(this.#signal, reason);
	}

	[inspectCustom](...args) {
		return shown(this, "AbortController", { signal: this.signal },
			...args);
	}
}

expose(AbortController, "signal", "abort");

function checked(signal) {
	if (!(signal instanceof AbortSignal))
		throw new TypeError("The signal must be an AbortSignal");
	return stateOf(signal);
}

/* For the host and for listeners: add or remove a function that is called when the signal
 * aborts.  A signal that has aborted already calls nothing. */
const isAborted = (signal) => checked(signal).aborted;

function addAlgorithm(signal, algorithm) {
	const state = checked(signal);

	if (state.aborted)
		return;
	setAdd(state.algorithms, algorithm);
	updateStrong(signal, state);
}

function removeAlgorithm(signal, algorithm) {
	const state = checked(signal);

	setDelete(state.algorithms, algorithm);
	updateStrong(signal, state);
}

return { AbortController, AbortSignal, isAborted, addAlgorithm, removeAlgorithm };
})
