/* Events and their targets. */
"use strict";

const log = (...words) => console.log(...words);
const target = new EventTarget();

/* --- events --- */
const event = new Event("x", { cancelable: true, bubbles: true });
log(event.type, event.bubbles, event.cancelable, event.composed, event.defaultPrevented);
log(event.target, event.currentTarget, event.eventPhase, event.isTrusted, event.returnValue);
log(typeof event.timeStamp, event.composedPath(), event.cancelBubble, event.srcElement);
log(Event.NONE, Event.CAPTURING_PHASE, Event.AT_TARGET, Event.BUBBLING_PHASE);
log(Object.prototype.toString.call(event), Object.prototype.toString.call(target));
event.preventDefault();
log(event.defaultPrevented, event.returnValue);
const firm = new Event("y");
firm.preventDefault();
log(firm.defaultPrevented);
log(new CustomEvent("c", { detail: [1] }).detail, new CustomEvent("c").detail);
for (const make of [() => new Event(), () => Event("x"), () => new Event("x", 1),
	() => target.dispatchEvent({}), () => target.dispatchEvent(), () =>
		target.addEventListener(),
	() => target.addEventListener("x", "text"), () => EventTarget(), () =>
		new Event(Symbol("s"))]) {
	try {
		make();
		log("nothing thrown");
	} catch (error) {
		log(error instanceof TypeError);
	}
}
log(new Event(undefined).type, new Event(null).type, new Event(12).type);

/* --- listeners --- */
function order(name, ...args) {
	return (given) => log(name, given.type, ...args);
}
const twice = order("the same twice");
target.addEventListener("a", twice);
target.addEventListener("a", twice);
target.addEventListener("a",
	{ handleEvent(given) { log("object", this !== target, given.type); } });
target.addEventListener("a", function (given) {
	log("this", this === target, given.target === target);
});
target.addEventListener("a", order("once"), { once: true });
target.addEventListener("b", order("other type"));
log(target.dispatchEvent(new Event("a")));
log(target.dispatchEvent(new Event("a")));
log(target.dispatchEvent(new Event("nobody")));
target.removeEventListener("a", twice);
target.removeEventListener("a", twice);
target.removeEventListener("nobody", twice);
target.dispatchEvent(new Event("a"));

/* --- during a dispatch --- */
const changing = new EventTarget();
const second = order("removed meanwhile");
changing.addEventListener("x", () => {
	log("removes the second");
	changing.removeEventListener("x", second);
});
changing.addEventListener("x", second);
changing.dispatchEvent(new Event("x"));
changing.dispatchEvent(new Event("x"));

const stopping = new EventTarget();
stopping.addEventListener("x", (given) => { log("stops"); given.stopPropagation(); });
stopping.addEventListener("x",
	(given) => { log("stops now"); given.stopImmediatePropagation(); });
stopping.addEventListener("x", order("never"));
stopping.dispatchEvent(new Event("x"));

const nested = new EventTarget();
nested.addEventListener("x", (given) => {
	log("outer");
	nested.dispatchEvent(new Event("y"));
	try {
		nested.dispatchEvent(given);
	} catch (error) {
		log("refused");
	}
});
nested.addEventListener("y", order("inner"));
nested.addEventListener("x", order("after"));
const again = new Event("x");
nested.dispatchEvent(again);
log("and again");
nested.dispatchEvent(again);
log(again.target === nested, again.currentTarget, again.eventPhase);

const preventing = new EventTarget();
preventing.addEventListener("x", (given) => given.preventDefault());
log(preventing.dispatchEvent(new Event("x", { cancelable: true })));
log(preventing.dispatchEvent(new Event("x")));

/* --- signals --- */
const controller = new AbortController();
const signalled = new EventTarget();
signalled.addEventListener("x", order("with a signal"), { signal: controller.signal });
signalled.addEventListener("x", order("without"));
signalled.dispatchEvent(new Event("x"));
controller.abort();
signalled.dispatchEvent(new Event("x"));
signalled.addEventListener("x", order("too late"), { signal: controller.signal });
signalled.dispatchEvent(new Event("x"));
try {
	signalled.addEventListener("x", () => {}, { signal: {} });
} catch (error) {
	log(error instanceof TypeError);
}

/* --- subclasses --- */
class Tap extends EventTarget {
	open() {
		this.dispatchEvent(new CustomEvent("drop", { detail: 3 }));
	}
}
const tap = new Tap();
tap.addEventListener("drop", (given) => log("drops", given.detail, given instanceof Event));
tap.open();
log(tap instanceof EventTarget);

/* --- exceptions --- */
const exception = new DOMException("said", "AbortError");
log(exception.name, exception.message, exception.code, `${exception}`);
log(exception instanceof Error, exception instanceof DOMException, typeof exception.stack);
log(new DOMException().name, new DOMException().message === "", new DOMException("a").code);
log(DOMException.ABORT_ERR, DOMException.TIMEOUT_ERR, exception.DATA_CLONE_ERR);
log(["NotFoundError", "SyntaxError", "InvalidStateError", "TimeoutError", "Unknown",
	"DataCloneError"]
	.map((name) => new DOMException("", name).code));
log(new DOMException("m", { name: "N", cause: 5 }).cause, Object.keys(exception));
log(Object.prototype.toString.call(exception));
