#!/usr/bin/env node
// All rows of Node in one program: `rows_node ROW` measures that row once and prints one number,
// CPU time of the process per operation.  ../promise_weft.c describes the rows and measures the
// same for weft.
'use strict';

function die(text) {
	process.stderr.write(`${text}\n`);
	process.exit(1);
}

function check(ok, what) {
	if (!ok)
		die(`check failed: ${what}`);
}

// In nanoseconds, of all threads: V8 compiles and collects garbage on its own threads.
function cpu_ns() {
	const used = process.cpuUsage();

	return (used.user + used.system) * 1000;
}

// CPU time per operation: `round(i)` does `size` operations and returns a promise.
async function per_operation(rounds, size, round) {
	for (let i = 0; i <= rounds / 10; i++)
		await round(i);
	const begin = cpu_ns();

	for (let i = 0; i < rounds; i++)
		await round(i);
	return (cpu_ns() - begin) / rounds / size;
}

// --- promises ----------------------------------------------------------------

function add_one(x) {
	return x + 1;
}

async function then_chain_round(i, links) {
	let begin;
	let promise = new Promise((resolve) => { begin = resolve; });

	for (let k = 0; k < links; k++)
		promise = promise.then(add_one);
	begin(i);
	check(await promise === i + links, 'each handler was called');
}

const then_chain = () => per_operation(3, 1000000, (i) => then_chain_round(i, 1000000));
const then_chain_few = () => per_operation(2000, 1000, (i) => then_chain_round(i, 1000));

const MADE = 1000;
let latest; // keeps the promises from being optimized away

async function create_resolve_round(i) {
	for (let k = 0; k < MADE; k++)
		latest = new Promise((resolve) => resolve(i + k));
	check(latest instanceof Promise, 'it is there');
}

const create_resolve = () => per_operation(5000, MADE, create_resolve_round);

const MANY = 1000;

function check_all(values, i) {
	check(values.length === MANY && values[MANY - 1] === i + MANY - 1, 'all values');
}

async function all_round(i) {
	const promises = new Array(MANY);

	for (let k = 0; k < MANY; k++)
		promises[k] = Promise.resolve(i + k);
	check_all(await Promise.all(promises), i);
}

const all_1000 = () => per_operation(2000, MANY, all_round);

async function all_late_round(i) {
	const resolvers = new Array(MANY);
	const promises = new Array(MANY);

	for (let k = 0; k < MANY; k++)
		promises[k] = new Promise((resolve) => { resolvers[k] = resolve; });
	const all = Promise.all(promises);

	for (let k = 0; k < MANY; k++)
		resolvers[k](i + k);
	check_all(await all, i);
}

const all_1000_late = () => per_operation(2000, MANY, all_late_round);

// --- microtasks --------------------------------------------------------------

const NESTED = 50000;

function microtask_round() {
	return new Promise((resolve) => {
		let left = NESTED;

		function step() {
			if (--left > 0)
				queueMicrotask(step);
			else
				setImmediate(resolve);
		}
		queueMicrotask(step);
	});
}

const microtask = () => per_operation(40, NESTED, microtask_round);

// --- timers ------------------------------------------------------------------

const SETS = 1000;

function never() {
	die('a timer that was cleared has fired');
}

async function set_clear_round() {
	for (let k = 0; k < SETS; k++)
		clearTimeout(setTimeout(never, 10000 + k));
}

const set_clear = () => per_operation(1000, SETS, set_clear_round);

// --- the program -------------------------------------------------------------

const ROWS = {
	'promise.then_chain': then_chain,
	'promise.then_chain.1000': then_chain_few,
	'promise.create_resolve': create_resolve,
	'promise.all.1000': all_1000,
	'promise.all.1000.late': all_1000_late,
	'microtask': microtask,
	'timeout.set_clear': set_clear,
};

if (process.argv.length !== 3)
	die('usage: rows_node ROW');
const measure = ROWS[process.argv[2]];

if (!measure)
	die(`no row ${process.argv[2]}`);
measure().then((ns) => process.stdout.write(`${ns.toFixed(3)}\n`));
