/* Abort controllers and signals. */
"use strict";

const log = (...words) => console.log(...words);

const controller = new AbortController();
const { signal } = controller;
log(signal.aborted, signal.reason, signal.onabort, signal === controller.signal);
log(signal instanceof EventTarget, Object.prototype.toString.call(signal));
log(signal.throwIfAborted());
signal.onabort = function (event) {
	log("handler", event.type, this === signal, event.isTrusted, event.target === signal);
};
signal.addEventListener("abort", () => log("listener"));
signal.addEventListener("abort", () => log("once"), { once: true });
controller.abort();
controller.abort("again");
log(signal.aborted, signal.reason.name, signal.reason.message, signal.reason.code);
log(signal.reason instanceof DOMException, signal.reason instanceof Error);
try {
	signal.throwIfAborted();
} catch (error) {
	log("thrown", error === signal.reason);
}
signal.addEventListener("abort", () => log("never"));

/* A replaced handler keeps its position among the listeners. */
const placed = new AbortController();
placed.signal.onabort = () => log("replaced");
placed.signal.addEventListener("abort", () => log("second"));
placed.signal.onabort = () => log("handler first");
placed.abort();
const cleared = new AbortController();
cleared.signal.onabort = () => log("not called");
cleared.signal.onabort = null;
cleared.abort();

/* Reasons. */
for (const reason of [null, 0, "", false, "text", new Error("e")]) {
	const one = new AbortController();

	one.abort(reason);
	log(one.signal.reason === reason);
}
log(AbortSignal.abort().reason.name, AbortSignal.abort(5).reason, AbortSignal.abort().aborted);
for (const make of [() => new AbortSignal(), () => AbortController(), () => AbortSignal.any(),
	() => AbortSignal.any(5), () => AbortSignal.any([1])])
	try {
		make();
		log("nothing thrown");
	} catch (error) {
		log(error instanceof TypeError);
	}

/* Any of several. */
const a = new AbortController();
const b = new AbortController();
const any = AbortSignal.any([a.signal, b.signal]);
const anyOfAny = AbortSignal.any([any]);
const none = AbortSignal.any([]);
any.addEventListener("abort", () => log("any", any.reason));
anyOfAny.addEventListener("abort", () => log("any of any"));
b.signal.addEventListener("abort", () => log("source"));
log(any.aborted, anyOfAny.aborted, none.aborted);
b.abort("why");
a.abort("too late");
log(any.reason, anyOfAny.reason, a.signal.reason);
const dead = AbortSignal.any([new AbortController().signal, AbortSignal.abort("x"),
	AbortSignal.abort("y")]);
log(dead.aborted, dead.reason);
const diamond = new AbortController();
const left = AbortSignal.any([diamond.signal]);
const right = AbortSignal.any([diamond.signal]);
const bottom = AbortSignal.any([left, right, diamond.signal]);
for (const [name, each] of Object.entries({ bottom, right, left }))
	each.addEventListener("abort", () => log(name));
diamond.abort();

/* A listener that aborts another. */
const first = new AbortController();
const then = new AbortController();
first.signal.addEventListener("abort", () => {
	log("first begins");
	then.abort();
	log("first ends");
});
then.signal.addEventListener("abort", () => log("then"));
first.abort();

/* With timeouts. */
const timeout = AbortSignal.timeout(5);
timeout.addEventListener("abort", () => {
	log(timeout.reason.name, timeout.reason.code, timeout.reason.message);
	log(timeout.reason instanceof DOMException);
});
const both = AbortSignal.any([timeout, new AbortController().signal]);
both.onabort = () => log("both", both.reason === timeout.reason);
setTimeout(() => {
	log("after the timeout", timeout.aborted);
	sleepAll();
}, 60);
AbortSignal.timeout(1e6); /* does not keep the loop alive */
log(timeout.aborted, "at the end of the script");

function sleep(ms, { signal: stop } = {}) {
	return new Promise((resolve, reject) => {
		stop?.throwIfAborted();
		const id = setTimeout(resolve, ms, "slept");

		stop?.addEventListener("abort", () => {
			clearTimeout(id);
			reject(stop.reason);
		}, { once: true });
	});
}
async function sleepAll() {
	log(await sleep(1));
	const limit = new AbortController();

	setTimeout(() => limit.abort(new Error("enough")), 2);
	try {
		await sleep(1e6, limit);
	} catch (error) {
		log(error.message);
	}
	await sleep(1, { signal: AbortSignal.abort("at once") }).catch((reason) => log(reason));
}
