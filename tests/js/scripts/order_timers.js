/* Timers and immediates: order, ties, nesting, clearing. */
"use strict";

const log = (...words) => console.log(...words);

/* Each part begins after the one before has ended, so that parts do not mix.  A part
 * whose timers set timers returns a promise for its end; other parts have ended when
 * their timers are due. */
const parts = [];
const part = (name, run) => parts.push([name, run]);
function next() {
	const [name, run] = parts.shift() ?? [];

	if (!name)
		return;
	log(`-- ${name}`);
	run()?.then(() => setTimeout(next, 5)) ?? setTimeout(next, 40);
}

part("ties run in the order of their start", () => {
	for (let i = 0; i < 5; i++)
		setTimeout(() => log("tie", i), 5);
	setTimeout(() => log("zero"), 0);
	setTimeout(() => log("one"), 1);
	setTimeout(() => log("none"));
	setTimeout(() => log("negative"), -5);
});

part("shorter before longer", () => {
	setTimeout(() => log("20"), 20);
	setTimeout(() => log("10"), 10);
	setTimeout(() => log("2"), 2);
});

part("microtasks and ticks after each timer", () => {
	for (let i = 0; i < 3; i++)
		setTimeout(() => {
			log("timer", i);
			queueMicrotask(() => log("microtask of", i));
			process.nextTick(() => log("tick of", i));
			Promise.resolve().then(() => log("job of", i));
		}, 1);
});

part("microtasks and ticks after each immediate", () => {
	for (let i = 0; i < 3; i++)
		setImmediate(() => {
			log("immediate", i);
			Promise.resolve().then(() => log("job of", i));
			process.nextTick(() => log("tick of", i));
		});
});

part("an immediate of an immediate waits a turn", () => {
	setImmediate(() => {
		log("first");
		setImmediate(() => log("of the first"));
		process.nextTick(() => log("tick"));
	});
	setImmediate(() => log("second"));
});

part("immediates come before timers of a timer", () => new Promise((resolve) => {
	setTimeout(() => {
		setTimeout(() => resolve(log("timer")), 0);
		setImmediate(() => log("immediate"));
		log("outer");
	}, 0);
}));

part("arguments are handed over", () => {
	setTimeout((...args) => log("timeout", ...args), 1, "a", { b: 1 }, undefined);
	setImmediate((...args) => log("immediate", ...args), 1, 2, 3, 4);
	const id = setInterval((...args) => {
		log("interval", ...args);
		clearInterval(id);
	}, 1, "x");
});

part("clearing", () => {
	const a = setTimeout(() => log("not a"), 1);
	const c = setTimeout(() => {
		log("c clears d and itself");
		clearTimeout(d);
		clearTimeout(c);
	}, 2);
	const d = setTimeout(() => log("not d"), 2);
	const e = setImmediate(() => {
		log("e clears f");
		clearImmediate(f);
		clearImmediate(e);
	});
	const f = setImmediate(() => log("not f"));

	clearTimeout(a);
	clearTimeout(a);
	clearTimeout();
	clearTimeout(null);
	clearTimeout(undefined);
	clearTimeout(123456);
	clearTimeout("x");
	clearTimeout({});
	clearInterval(NaN);
	clearImmediate(undefined);
	clearInterval(setTimeout(() => log("not g"), 1));
	clearTimeout(setInterval(() => log("not h"), 1));
});

part("an interval ends itself at the third call", () => new Promise((resolve) => {
	let count = 0;
	const id = setInterval(() => {
		log("call", ++count);
		if (count < 3)
			return;
		clearInterval(id);
		resolve();
	}, 2);
}));

part("an interval that clears itself at once, then works on", () => {
	const id = setInterval(() => {
		clearInterval(id);
		log("only once");
		queueMicrotask(() => log("and its microtask"));
	}, 1);
});

part("a timer that starts another of the same delay", () => new Promise((resolve) => {
	setTimeout(() => {
		log("outer");
		setTimeout(() => resolve(log("inner")), 3);
	}, 3);
	setTimeout(() => log("sibling"), 3);
}));

part("await of timers", async () => {
	const sleep = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));

	log(await sleep(1, "one"));
	log(await Promise.race([sleep(30, "slow"), sleep(2, "quick")]));
	log(await Promise.all([sleep(3, "a"), sleep(1, "b")]));
});

part("a tick before the first immediate", () => {
	setImmediate(() => log("immediate"));
	process.nextTick(() => log("tick"));
	Promise.resolve().then(() => log("job"));
	log("now");
});

part("immediates cleared by a tick", () => {
	const id = setImmediate(() => log("never"));

	process.nextTick(() => clearImmediate(id));
	setImmediate(() => log("the other"));
});

next();
