/* Limits and unusual uses of the built-in APIs.  Checks itself. */
"use strict";

function same(got, want, what) {
	if (!Object.is(got, want))
		throw new Error(`${what}: ${String(got)} instead of ${String(want)}`);
}

/* Performance entries: the oldest are dropped. */
for (let i = 0; i < 25000; i++)
	performance.mark(`m${i}`, { startTime: i });
const kept = performance.getEntriesByType("mark");
same(kept.length, 10000, "entries");
same(kept[0].name, "m15000", "the oldest entry");
same(kept.at(-1).name, "m24999", "the newest entry");
performance.clearMarks();
same(performance.getEntries().length, 0, "cleared");

/* Signals that depend on a live one: they and their listeners can be collected. */
const living = new AbortController();
const quiet = () => {};
const signals = [];
for (let i = 0; i < 5000; i++) {
	const made = AbortSignal.any([living.signal]);
	const target = new EventTarget();

	made.addEventListener("abort", quiet);
	made.removeEventListener("abort", quiet);
	made.onabort = quiet;
	made.onabort = null;
	target.addEventListener("x", quiet, { signal: made });
	target.removeEventListener("x", quiet);
	living.signal.addEventListener("abort", quiet);
	living.signal.removeEventListener("abort", quiet);
	signals.push(new WeakRef(made));
}
for (let i = 0; i < 20; i++) { /* references that a WeakRef keeps for one iteration are released */
	await new Promise((resolve) => setImmediate(resolve));
	void Array.from({ length: 10000 }, (_, n) => ({ n }));
}
const left = signals.filter((ref) => ref.deref()).length;
same(left < 2500, true, `${left} of 5000 signals are left`);

/* A signal without references, but with a listener, is notified. */
let heard = 0;
(() => AbortSignal.any([living.signal]).addEventListener("abort", () => heard++))();
living.abort();
same(heard, 1, "a signal that only its source holds");

/* Changes that scripts make to prototypes have no effect. */
const { map, slice, push, splice } = Array.prototype;
const { get, set } = Map.prototype;
const gone = () => { throw new Error("a changed prototype was used"); };
const target = new EventTarget();
let calls = 0;
new Event("x"); /* everything is loaded now */
AbortSignal.abort();
Array.prototype.slice = Array.prototype.push = Array.prototype.splice = gone;
Map.prototype.get = Map.prototype.set = gone;
target.addEventListener("x", () => calls++);
target.addEventListener("x", () => calls++, { once: true });
target.dispatchEvent(new Event("x"));
target.dispatchEvent(new Event("x"));
const controller = new AbortController();
controller.signal.onabort = () => calls++;
controller.abort();
Object.assign(Array.prototype, { map, slice, push, splice });
Object.assign(Map.prototype, { get, set });
for (const name of ["map", "slice", "push", "splice"])
	Object.defineProperty(Array.prototype, name, { enumerable: false });
for (const name of ["get", "set"])
	Object.defineProperty(Map.prototype, name, { enumerable: false });
same(calls, 4, "calls");

/* Jobs and promise chains of any length. */
let chain = Promise.resolve(0);
for (let i = 0; i < 100000; i++)
	chain = chain.then((n) => n + 1);
chain.then((n) => {
	same(n, 100000, "links");
	let left = 100000;
	const next = () => --left > 0 ? queueMicrotask(next) : console.log("ok");
	next();
});

/* The console accepts unusual values. */
let deep = [];
for (let i = 0; i < 100; i++)
	deep = [deep];
console.log(deep, Object.create({ toString: null }), new Proxy(() => {}, {}));
