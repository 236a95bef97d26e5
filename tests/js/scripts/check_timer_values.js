/* How timers convert their arguments: WebIDL's conversions, and HTML's handlers.  Checks
 * itself; prints "ok" at its end. */
"use strict";

function same(got, want, what) {
	if (!Object.is(got, want))
		throw new Error(`${what}: ${String(got)} instead of ${String(want)}`);
}

/* Delays that convert to the minimum: they fire before one of 30 ms, in order. */
const least = [undefined, null, 0, -0, -1, -1e9, NaN, Infinity, -Infinity, "", "text", "-5", {},
	[], false,
	true, 0.9, 2 ** 31, -(2 ** 31), 2 ** 32, 2 ** 33 + 1, "0x1", { valueOf: () => 1 },
		{ toString: () => "1" }, [1]];
const fired = [];

for (const [i, delay] of least.entries())
	setTimeout(() => fired.push(i), delay);
setTimeout(() => {
	same(fired.join(), least.map((_, i) => i).join(), "those of the least delay");
}, 30);

/* Long delays: none of these fires. */
const long = [2 ** 31 - 1, 2 ** 32 + 1e6, "1000000", " 1e6 ", { valueOf: () => 1e6 }, [1e6],
	"0x7fffffff", 1e6 + 0.5];
const never = long.map((delay) => setTimeout(() => {
	throw new Error(`fired: ${String(delay)}`);
}, delay));
setTimeout(() => never.forEach((id) => clearTimeout(id)), 60);

/* A delay is read once, when the timer is set; an exception of its conversion is thrown
 * there. */
let reads = 0;
setTimeout(() => same(reads, 1, "reads of the delay"), { valueOf() { reads++; return 5; } });
for (const delay of [Symbol("s"), 1n, { valueOf() { throw new RangeError("mine"); } }]) {
	let thrown = null;

	try {
		setTimeout(() => { throw new Error("set all the same"); }, delay);
	} catch (error) {
		thrown = error;
	}
	same(thrown instanceof TypeError || thrown instanceof RangeError, true,
		"a delay that throws");
}

/* Handlers. */
let noHandler = null;
try {
	setTimeout();
} catch (error) {
	noHandler = error;
}
same(noHandler instanceof TypeError, true, "no handler at all");
globalThis.texts = [];
setTimeout("texts.push('string')", 1);
setTimeout(new String("texts.push('object')"), 1);
setTimeout({ toString: () => "texts.push('made')" }, 1, "ignored");
setTimeout(undefined, 1); /* runs the text "undefined" */
setTimeout(12, 1);
setTimeout("var declaredByATimer = 5", 1);
const id = setInterval("texts.push('interval')", 2);
setTimeout(() => {
	clearInterval(id);
	same(texts.slice(0, 3).join(), "string,object,made", "handlers that are texts");
	same(texts.includes("interval"), true, "an interval that is a text");
	same(globalThis.declaredByATimer, 5, "a text runs in the global scope");
}, 40);
for (const call of [() => setImmediate("text"), () => setImmediate(), () =>
	queueMicrotask("text"),
	() => queueMicrotask(), () => process.nextTick("text"), () => setTimeout(Symbol("s"))]) {
	let thrown = null;

	try {
		call();
	} catch (error) {
		thrown = error;
	}
	same(thrown instanceof TypeError, true, `${call}`);
}

/* Timer IDs: positive integers that are never reused. */
const numbers = new Set();
for (let i = 0; i < 5000; i++) {
	const number = i % 3 === 0 ? setImmediate(() => {}) : setTimeout(() => {}, 0);

	same(Number.isSafeInteger(number) && number > 0, true, "a positive integer");
	same(numbers.has(number), false, "used once");
	numbers.add(number);
	if (i % 3 === 0)
		clearImmediate(number);
	else
		clearTimeout(number);
}
same(setTimeout.length >= 1, true, "length");

/* No particular receiver (`this`) is needed. */
const { setTimeout: bare } = globalThis;
bare(function () { same(this === undefined || this === globalThis, true, "this"); }, 1);
setTimeout.call({}, () => {}, 1);
setTimeout(() => console.log("ok"), 100);
