/* Random trees of ticks, jobs, microtasks, awaits, thenables and immediates.  Each
 * callback records its number and starts others.  Only the order is printed, with the
 * seed of the random numbers. */
"use strict";

const ROUNDS = 60;
const THINGS_MAX = 80; /* per round */

let state; /* of the generator: xorshift, so that all engines draw the same numbers */
function draw(below) {
	state ^= state << 13;
	state ^= state >>> 17;
	state ^= state << 5;
	return (state >>> 0) % below;
}

const thenable = (value) => ({ then(resolve) { resolve(value); } });

/* Ways to call a function later. */
const WAYS = {
	tick: (run) => process.nextTick(run),
	microtask: (run) => queueMicrotask(run),
	job: (run) => Promise.resolve().then(run),
	immediate: (run) => setImmediate(run),
	adopted: (run) => new Promise((resolve) => resolve(Promise.resolve())).then(run),
	thenable: (run) => Promise.resolve(thenable(1)).then(run),
	caught: (run) => Promise.reject(1).catch(run),
	finally: (run) => Promise.resolve().finally(run),
	all: (run) => Promise.all([1, Promise.resolve(2), thenable(3)]).then(run),
	race: (run) => Promise.race([thenable(1), Promise.resolve(2)]).then(run),
	async await(run) {
		await null;
		run();
	},
	async awaitThenable(run) {
		await thenable(1);
		run();
	},
	async nested(run) {
		await (async () => { await (async () => {})(); })();
		run();
	},
	async generator(run) {
		for await (const value of (async function* () { yield 1; yield thenable(2); })())
			void value;
		run();
	},
	cancelled(run) {
		const id = setImmediate(() => console.log("cleared, and runs"));

		process.nextTick(() => {
			clearImmediate(id);
			run();
		});
	},
};
const names = Object.keys(WAYS);

function play(seed, done) {
	const order = [];
	let made = 0;
	let open = 0;

	state = seed;
	for (let i = 0; i < 4; i++)
		draw(2);
	function start() {
		const way = names[draw(names.length)];
		const number = made++;

		open++;
		WAYS[way](() => {
			order.push(`${way[0]}${number}`);
			for (let count = draw(4); count > 0 && made < THINGS_MAX; count--)
				start();
			if (--open === 0)
				setImmediate(done, order);
		});
	}
	for (let i = 0; i < 6; i++)
		start();
}

function next(seed) {
	if (seed > ROUNDS)
		return;
	play(seed * 2654435761, (order) => {
		console.log(seed, order.length, order.join(" "));
		setImmediate(next, seed + 1);
	});
}
next(1);
