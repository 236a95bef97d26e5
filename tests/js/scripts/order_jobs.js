/* Order of ticks, promise jobs and microtasks. */
"use strict";

const log = (...words) => console.log(...words);

log("script begins");
process.nextTick(() => log("tick 1"));
Promise.resolve().then(() => log("job 1"));
queueMicrotask(() => log("microtask 1"));
process.nextTick((a, b) => log("tick with arguments", a, b), 1, 2);
Promise.resolve().then(() => {
	log("job 2");
	process.nextTick(() => log("tick of a job waits for the jobs"));
	queueMicrotask(() => log("microtask of a job"));
	Promise.resolve().then(() => log("job of a job"));
});
queueMicrotask(() => {
	log("microtask 2");
	queueMicrotask(() => log("microtask of a microtask"));
	process.nextTick(() => log("tick of a microtask"));
});
process.nextTick(() => {
	log("tick 3");
	process.nextTick(() => log("tick of a tick"));
	Promise.resolve().then(() => log("job of a tick"));
	queueMicrotask(() => log("microtask of a tick"));
});

/* How many jobs each way of waiting takes. */
const steps = [];
let chain = Promise.resolve();
for (let i = 1; i <= 12; i++)
	chain = chain.then(() => steps.push(`step ${i}`));
const note = (text) => () => steps.push(text);

Promise.resolve(1).then(note("then"));
Promise.resolve(Promise.resolve(1)).then(note("resolve of a promise"));
new Promise((resolve) => resolve(Promise.resolve(1))).then(note("adopted promise"));
Promise.resolve().then(() => Promise.resolve()).then(note("promise from a handler"));
Promise.resolve({ then(resolve) { resolve(1); } }).then(note("thenable"));
(async () => {})().then(note("async"));
(async () => 1)().then(note("async with a value"));
(async () => Promise.resolve(1))().then(note("async with a promise"));
(async () => ({ then(resolve) { resolve(1); } }))().then(note("async with a thenable"));
(async () => { await 1; })().then(note("await of a value"));
(async () => { await Promise.resolve(1); })().then(note("await of a promise"));
(async () => { await { then(resolve) { resolve(1); } }; })().then(note("await of a thenable"));
(async () => { try { await Promise.reject(1); } catch {} })().then(note("await of a rejection"));
(async () => { for await (const x of [1, 2]) void x; })().then(note("for await of values"));
(async () => { for await (const x of [Promise.resolve(1)]) void x; })()
	.then(note("for await of a promise"));
Promise.reject(1).catch(note("catch"));
Promise.reject(1).then(null, null).catch(note("passed on"));
Promise.resolve(1).finally(() => {}).then(note("finally"));
Promise.all([1, Promise.resolve(2)]).then(note("all"));
Promise.allSettled([1, Promise.reject(2)]).then(note("all settled"));
Promise.race([1, Promise.resolve(2)]).then(note("race"));
Promise.any([Promise.reject(1), 2]).then(note("any"));
Promise.all([]).then(note("all of none"));
setTimeout(() => log(steps.join("\n")), 5);

async function numbers(name) {
	for (let i = 0; i < 3; i++) {
		log(`${name} ${i}`);
		await null;
	}
}
numbers("first");
numbers("second");

async function* produce() {
	for (let i = 0; i < 3; i++)
		yield i;
	log("producer ends");
}
(async () => {
	for await (const value of produce()) {
		log("got", value);
	}
	log("consumer ends");
})();

const late = { get then() { log("then is read"); return undefined; } };
Promise.resolve(late).then((value) => log("no thenable", value === late));
Promise.resolve({ then() { throw new Error("thrown by then"); } })
	.catch((error) => log("caught", error.message));
Promise.resolve({ then(resolve) { resolve("first"); resolve("second"); throw 1; } })
	.then((value) => log("settled once", value));
const own = new Promise((resolve) => queueMicrotask(() => resolve(own)));
own.catch((error) => log("itself", error instanceof TypeError));
queueMicrotask(function (...args) { log("microtask gets", args.length, typeof this); });
log("script ends");
