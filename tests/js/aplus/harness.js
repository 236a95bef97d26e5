/* harness.js - the environment of the Promises/A+ suite: modules, mocha's functions, the
 * asserts, and the part of sinon that the suite uses.  run.py puts the sources of the
 * suite's files in front of it, in `files`.
 *
 * Tests run one after another.  A test fails if it throws, calls back with an error, or
 * does not call back in time.  With the argument "planted", a planted mistake must be
 * found.
 */
"use strict";

const planted = process.argv.includes("planted");
/* Milliseconds for one test: only a test that hangs takes this long. */
const PATIENCE = planted ? 1000 : 20000;

/* --- mocha ----------------------------------------------------------------------- */

let group = { name: "", parent: null, before: [], after: [] };
const tests = [];

globalThis.describe = (name, body) => {
	const outer = group;

	group = { name, parent: outer, before: [], after: [] };
	body();
	group = outer;
};
globalThis.specify = globalThis.it = (name, body) => tests.push({ name, body, group });
globalThis.beforeEach = (hook) => group.before.push(hook);
globalThis.afterEach = (hook) => group.after.push(hook);

function path(test) {
	const names = [test.name];

	for (let at = test.group; at.parent; at = at.parent)
		names.unshift(at.name);
	return names.join(" > ");
}

function hooks(test, kind) {
	const all = [];

	for (let at = test.group; at; at = at.parent)
		all.unshift(...at[kind]);
	return all;
}

let fail = null; /* fails the current test; called with errors thrown in its callbacks */

function runBody(test) {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(() => reject(new Error("it never called back")), PATIENCE);
		const done = (error) => {
			clearTimeout(timer);
			if (error)
				reject(error);
			else
				resolve();
		};

		fail = done;
		if (test.body.length > 0)
			return test.body.call({}, done);
		test.body.call({});
		done();
	});
}

async function runOne(test) {
	for (const hook of hooks(test, "before"))
		hook();
	await runBody(test);
	for (const hook of hooks(test, "after"))
		hook();
}

addEventListener("error", (event) => {
	fail?.(event.error ?? new Error(event.message));
	event.preventDefault();
});
addEventListener("unhandledrejection", (event) => event.preventDefault());

/* --- assert and sinon ------------------------------------------------------------------ */

function assert(good, what = "an assertion") {
	if (!good)
		throw new Error(`failed: ${what}`);
}
assert.strictEqual = (a, b) => assert(Object.is(a, b) || a === b, `${String(a)} === ${String(b)}`);
assert.notStrictEqual = (a, b) => assert(a !== b, "two that are not the same");

let calls = 0;

/* Returns a function that records its calls. */
function spy(behave = () => undefined) {
	const made = (...args) => {
		made.calls.push({ args, number: calls++ });
		return behave();
	};

	made.calls = [];
	return made;
}

function stub() {
	let behave = () => undefined;
	const made = spy(() => behave());

	made.returns = (value) => (behave = () => value, made);
	made.throws = (value) => (behave = () => { throw value; }, made);
	return made;
}

const sinon = {
	spy,
	stub,
	match: { same: (value) => ({ matches: (given) => given === value }) },
	assert: {
		notCalled: (one) => assert(one.calls.length === 0, "not called"),
		calledWith: (one, ...wanted) => assert(one.calls.some(({ args }) =>
			wanted.every((match, i) => match.matches(args[i]))), "called with"),
		callOrder: (...all) => {
			let last = -1;

			for (const one of all) {
				const next = one.calls.find(({ number }) => number > last);

				assert(next, "called in this order");
				last = next.number;
			}
		},
	},
};

/* --- modules --------------------------------------------------------------------------- */

const loaded = { __proto__: null, assert, sinon };

function load(name) {
	if (name in loaded)
		return loaded[name];
	const module = { exports: {} };

	loaded[name] = module.exports;
	/* Not in the scope of this module: parts of the suite need sloppy mode. */
	Function("require", "module", "exports", "global", files[name])(
		(other) => load(other.replace("./", "")), module, module.exports, globalThis);
	return loaded[name] = module.exports;
}

/* --- the tested promises
 * ---------------------------------------------------------------- */

/* The planted mistake: handlers of a settled promise are called synchronously. */
function hasty(promise, value) {
	promise.then = (fulfilled, rejected) => {
		if (typeof fulfilled === "function")
			fulfilled(value);
		return Promise.prototype.then.call(promise, fulfilled, rejected);
	};
	return promise;
}

globalThis.adapter = {
	resolved: (value) => planted ? hasty(Promise.resolve(value), value)
		: new Promise((resolve) => resolve(value)),
	rejected: (reason) => Promise.reject(reason),
	deferred() {
		const made = {};

		made.promise = new Promise((resolve, reject) => {
			Object.assign(made, { resolve, reject });
		});
		return made;
	},
};

for (const name of Object.keys(files))
	if (!name.startsWith("helpers/"))
		load(name);

let passed = 0;
let failed = 0;
for (const test of planted ? tests.filter((one) => path(one).includes("2.2.4")) : tests)
	try {
		await runOne(test);
		passed++;
	} catch (error) {
		if (++failed <= 10)
			console.log(`failed: ${path(test)}: ${error?.message ?? String(error)}`);
	}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
