/* Rules of the DOM standard for events that Node does not follow.  Checks itself. */
"use strict";

function same(got, want, what) {
	if (!Object.is(got, want))
		throw new Error(`${what}: ${String(got)} instead of ${String(want)}`);
}
function name(run) {
	try {
		run();
		return "nothing";
	} catch (error) {
		return error.name;
	}
}

const target = new EventTarget();
const event = new Event("x", { cancelable: true });
same(event.AT_TARGET, 2, "constant of an event");
target.addEventListener("x", function (given) {
	same(given.currentTarget, target, "current target");
	same(given.eventPhase, Event.AT_TARGET, "phase");
	same(given.composedPath()[0], target, "path");
	same(name(() => target.dispatchEvent(given)), "InvalidStateError",
		"dispatched inside of itself");
	target.addEventListener("x", () => { throw new Error("added meanwhile"); },
		{ once: true, signal: stop.signal });
});
const stop = new AbortController();
target.dispatchEvent(event);
stop.abort();
same(event.currentTarget, null, "current target afterwards");
same(event.eventPhase, Event.NONE, "phase afterwards");

/* Capturing listeners run first; passive listeners cannot prevent the default. */
const order = [];
const both = new EventTarget();
both.addEventListener("x", () => order.push("plain"));
both.addEventListener("x", () => order.push("capturing"), true);
both.addEventListener("x", (given) => given.preventDefault(), { passive: true });
same(both.dispatchEvent(new Event("x", { cancelable: true })), true, "passive");
same(order.join(), "capturing,plain", "order");
const once = () => order.push("capture and not");
both.addEventListener("y", once);
both.addEventListener("y", once, { capture: true });
both.removeEventListener("y", once);
both.dispatchEvent(new Event("y"));
same(order.length, 3, "the one that captures is left");

/* All dependent signals have their reason before the first event is dispatched. */
const source = new AbortController();
const left = AbortSignal.any([source.signal]);
const right = AbortSignal.any([left]);
let told = 0;
source.signal.onabort = () => {
	same(left.aborted && right.aborted, true, "dependents before the event");
	told++;
};
left.onabort = () => told++;
right.addEventListener("abort", () => told++);
source.abort();
same(told, 3, "told");
same(name(() => AbortSignal.timeout(-1)), "TypeError", "a negative limit");
same(name(() => AbortSignal.timeout(NaN)), "TypeError", "no limit");
same(name(() => AbortSignal.timeout(2 ** 53)), "TypeError", "too long a limit");
same(AbortSignal.timeout(2 ** 40).aborted, false, "a limit of many years");
same(name(() => performance.measure("x", { detail: 1 })), "TypeError", "a measure of nothing");

/* An exception of a listener is reported to the global object; the other listeners run. */
const seen = [];
const failing = new EventTarget();
failing.addEventListener("x", () => { throw new RangeError("from a listener"); });
failing.addEventListener("x", {});
failing.addEventListener("x", () => seen.push("the last"));
addEventListener("error", (given) => {
	seen.push(given.error.name, given.message.includes(given.error.message),
		given.target === globalThis);
	same(given instanceof ErrorEvent, true, "an ErrorEvent");
	given.preventDefault();
});
same(failing.dispatchEvent(new Event("x")), true, "dispatch goes on");
same(seen.join(), "RangeError,true,true,TypeError,true,true,the last", "errors of listeners");
reportError(new SyntaxError("reported"));
same(seen.at(-3), "SyntaxError", "reportError");

/* The global onerror handler, with its own arguments. */
globalThis.onerror = (message, file, line, column, error) => {
	seen.push("handler", typeof message, typeof file, line > 0, column >= 0, error.message);
	return true;
};
setTimeout(() => { throw new Error("in a timer"); }, 1);
queueMicrotask(() => { throw new Error("in a microtask"); });
setTimeout(() => {
	same(seen.filter((word) => word === "handler").length, 2, "calls of the handler");
	same(seen.at(-1), "in a timer", "the last error");
	globalThis.onerror = null;
	rejections();
}, 30);

/* Rejections: reported once no handler was added in time, and again when one is added
 * late. */
function rejections() {
	const words = [];
	const early = Promise.reject(1);
	const late = Promise.reject(new Error("late"));

	early.catch(() => {});
	addEventListener("unhandledrejection", (given) => {
		words.push(given.type, given.reason.message, given.promise === late);
		given.preventDefault();
	}, { once: true });
	addEventListener("rejectionhandled", (given) => words.push(given.type,
		given.promise === late));
	setTimeout(() => late.catch(() => {}), 5);
	setTimeout(() => {
		same(words.join(), "unhandledrejection,late,true,rejectionhandled,true",
			"rejections");
		globalThis.onunhandledrejection = (given) => given.reason !== "last";
		Promise.reject("last");
		setTimeout(() => console.log("ok"), 5);
	}, 30);
}
