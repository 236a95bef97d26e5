/* Clearing timers and immediates, from everywhere.  Checks itself; prints "ok" at its
 * end. */
"use strict";

const failed = (what) => () => {
	throw new Error(`not cleared: ${what}`);
};
function same(got, want, what) {
	if (!Object.is(got, want))
		throw new Error(`${what}: ${String(got)} instead of ${String(want)}`);
}
let open = 0;
const expect = (what, run) => {
	open++;
	let times = 0;
	return (...args) => {
		same(++times, 1, `calls of ${what}`);
		open--;
		run?.(...args);
	};
};

/* Immediately, with each of the functions, twice, with the ID as a text. */
clearTimeout(setTimeout(failed("at once"), 1));
clearInterval(setTimeout(failed("timeout by clearInterval"), 1));
clearTimeout(setInterval(failed("interval by clearTimeout"), 1));
clearImmediate(setImmediate(failed("immediate")));
const twice = setTimeout(failed("twice"), 1);
clearTimeout(twice);
clearTimeout(twice);
clearTimeout(`${setTimeout(failed("number as a text"), 1)}`);

/* Arguments that are not the ID of a timer. */
for (const wrong of [undefined, null, 0, -1, NaN, Infinity, -Infinity, 1e300, "", "text", {},
	[], true, () => {}, 2 ** 53,
	-(2 ** 53), 0.5, "-1", Symbol.iterator, 5n, new Date(), /x/])
	for (const clear of [clearTimeout, clearInterval, clearImmediate])
		try {
			clear(wrong);
		} catch (error) {
			same(error instanceof TypeError, true, `clearing ${String(wrong)}`);
		}
clearTimeout();
clearInterval();
clearImmediate();

/* From its own callback: no effect on a timeout, the end of an interval. */
const own = setTimeout(expect("own timeout", () => clearTimeout(own)), 1);
const interval = setInterval(expect("own interval", () => clearInterval(interval)), 1);
const immediate = setImmediate(expect("own immediate", () => clearImmediate(immediate)));
const byTimeout = setInterval(expect("interval ended by clearTimeout", () =>
	clearTimeout(byTimeout)), 1);

/* An interval that ends itself in a microtask, in a tick, after an await. */
const inJob = setInterval(expect("interval ended in a job", () => Promise.resolve().then(() =>
	clearInterval(inJob))), 1);
const inTick = setInterval(expect("interval ended in a tick", () => process.nextTick(() =>
	clearInterval(inTick))), 1);
const afterAwait = setInterval(expect("interval ended after an await", async () => {
	await null;
	clearInterval(afterAwait);
}), 1);

/* A sibling of the same loop iteration, before and after it in order. */
let sibling;
setTimeout(expect("clears its sibling", () => clearTimeout(sibling)), 3);
sibling = setTimeout(failed("sibling"), 3);
const elder = setTimeout(expect("elder"), 3);
setTimeout(expect("clears one that has run", () => clearTimeout(elder)), 3);
setTimeout(expect("clears a sibling from a microtask", () => queueMicrotask(() =>
	clearTimeout(young))), 3);
const young = setTimeout(failed("sibling, from a microtask"), 3);
let laterInterval;
setTimeout(expect("clears an interval of the same turn", () => clearInterval(laterInterval)), 3);
laterInterval = setInterval(failed("interval of the same turn"), 3);

/* Immediates of the same loop iteration, and of the next. */
setImmediate(expect("clears the next immediate", () => clearImmediate(nextImmediate)));
const nextImmediate = setImmediate(failed("next immediate"));
setImmediate(expect("sets and clears one", () => {
	clearImmediate(setImmediate(failed("immediate of an immediate")));
	const nested = setImmediate(expect("immediate of an immediate", () =>
		clearImmediate(nested)));
}));
setImmediate(expect("clears a timer", () => clearTimeout(forImmediate)));
const forImmediate = setTimeout(failed("timer cleared by an immediate"), 20);
setTimeout(expect("clears an immediate", () => {
	const one = setImmediate(failed("immediate cleared by a timer"));
	process.nextTick(() => clearImmediate(one));
}), 1);

/* An interval that is cleared and set again in its callback. */
let rounds = 0;
let again = setInterval(function round() {
	clearInterval(again);
	if (++rounds < 3)
		again = setInterval(round, 1);
}, 1);

/* Clearing every second timer: the others still run. */
const many = Array.from({ length: 1000 }, (_, i) => setTimeout(() => {
	if (i % 2)
		throw new Error("an odd one ran");
}, 4));
many.forEach((id, i) => i % 2 && clearTimeout(id));
const half = setTimeout(expect("the first of the rest", () => many.forEach((id) =>
	clearTimeout(id))), 4);
same(typeof half, "number", "a number");

/* When all expected callbacks have run: wait some time for those that must not run. */
(function wait() {
	if (open > 0 || rounds < 3)
		return setTimeout(wait, 20);
	setTimeout(() => {
		same(open, 0, "left open");
		same(rounds, 3, "rounds");
		console.log("ok");
	}, 80);
})();
