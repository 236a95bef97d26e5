/* console.js - the console object: formats its arguments and writes them to stdout or stderr.
 *
 * log, info, debug, dir, count and the timers write to stdout; error, warn, trace and assert
 * write to stderr.  There is no table().
 */
(function (host, need) {
"use strict";

/* Most programs print only strings, so inspect is loaded when another value is printed. */
const inspect = (value, options) => need("inspect").inspect(value, options);
const { getPrototypeOf } = Object;
const uncurry = (method) => Function.prototype.call.bind(method);
const hasMethod = uncurry(Object.prototype.hasOwnProperty);
const SPECIFIER = /%[sdifjoOc%]/g;
const STEP = "  "; /* indentation of a group */

const counts = new Map();
const times = new Map();
let margin = "";

function write(fd, text) {
	if (margin !== "")
		text = margin + text.replaceAll("\n", `\n${margin}`);
	host.write(fd, `${text}\n`);
}

const number = (value) => Object.is(value, -0) ? "-0" : `${value}`;

/* Whether the value has its own conversion to a string. */
function hasOwnText(value) {
	for (let from = value; from !== null; from = getPrototypeOf(from))
		if (hasMethod(from, "toString") || hasMethod(from, Symbol.toPrimitive))
			return !BUILTIN.has(from);
	return false;
}

const BUILTIN = new Set([Object, Array, Function, Error, Date, RegExp, Number, String,
	Boolean, BigInt, Symbol, getPrototypeOf(Uint8Array)].map((type) => type.prototype));

function asString(value) {
	switch (typeof value) {
	case "number":
		return number(value);
	case "bigint":
		return `${value}n`;
	case "function":
		return hasOwnText(value) ? String(value) : Function.prototype.toString.call(value);
	case "object":
		if (value !== null && !hasOwnText(value))
			return inspect(value, { depth: 0, compact: 3 });
		return String(value);
	default:
		return String(value);
	}
}

function asNumber(value, convert) {
	if (typeof value === "bigint")
		return `${value}n`;
	return typeof value === "symbol" ? "NaN" : number(convert(value));
}

function asJson(value) {
	try {
		return `${JSON.stringify(value)}`;
	} catch (error) {
		if (error instanceof TypeError && /circular/i.test(error.message))
			return "[Circular]";
		throw error;
	}
}

/* %d and %i show an object as NaN; %f converts it. */
const SHOW = {
	__proto__: null,
	s: asString,
	d: (value) => asNumber(value, typeof value === "object" ? () => NaN : Number),
	i: (value) => asNumber(value, typeof value === "object" ? () => NaN : parseInt),
	f: (value) => typeof value === "symbol" ? "NaN" : number(parseFloat(value)),
	j: asJson,
	o: (value) => inspect(value, { showHidden: true, depth: 4 }),
	O: (value) => inspect(value),
	c: () => "",
};

function format(args) {
	let used = 0;
	let text = "";

	if (args.length > 1 && typeof args[0] === "string") {
		used = 1;
		text = args[0].replace(SPECIFIER, (found) => {
			if (found === "%%")
				return "%";
			return used < args.length ? SHOW[found[1]](args[used++]) : found;
		});
	}
	for (; used < args.length; used++) {
		const value = args[used];

		text += used > 0 ? " " : "";
		text += typeof value === "string" ? value : inspect(value);
	}
	return text;
}

const out = (...args) => write(1, format(args));
const err = (...args) => write(2, format(args));

function elapsed(ms) {
	if (ms >= 60000) {
		const seconds = (ms % 60000 / 1000).toFixed(3).padStart(6, "0");

		return `${Math.floor(ms / 60000)}:${seconds} (m:ss.mmm)`;
	}
	return ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${+ms.toFixed(3)}ms`;
}

/* Print the time since time() was called.  Returns false if the label does not exist. */
function printTime(label, method, args) {
	const began = times.get(label);

	if (began === undefined) {
		err(`Warning: No such label '${label}' for console.${method}()`);
		return false;
	}
	out("%s", [`${label}: ${elapsed(host.now() - began)}`, format(args)]
		.filter((text) => text !== "").join(" "));
	return true;
}

const console = {
	log: out,
	info: out,
	debug: out,
	error: err,
	warn: err,

	trace(...args) {
		const text = format(args);
		const places = new Error().stack.split("\n").filter((line) => /^ +at /.test(line));

		err("%s", [`Trace${text ? `: ${text}` : ""}`, ...places.slice(1)].join("\n"));
	},

	assert(condition, ...args) {
		if (condition)
			return;
		if (typeof args[0] === "string")
			args[0] = `Assertion failed: ${args[0]}`;
		else
			args.unshift(args.length ? "Assertion failed:" : "Assertion failed");
		err(...args);
	},

	dir(value, options) {
		write(1, inspect(value, options));
	},

	count(label = "default") {
		const count = (counts.get(label = `${label}`) ?? 0) + 1;

		counts.set(label, count);
		out("%s", `${label}: ${count}`);
	},

	countReset(label = "default") {
		if (!counts.delete(`${label}`))
			err(`Warning: Count for '${label}' does not exist`);
	},

	time(label = "default") {
		if (times.has(label = `${label}`))
			err(`Warning: Label '${label}' already exists for console.time()`);
		else
			times.set(label, host.now());
	},

	timeLog(label = "default", ...args) {
		printTime(`${label}`, "timeLog", args);
	},

	timeEnd(label = "default") {
		if (printTime(`${label}`, "timeEnd", []))
			times.delete(`${label}`);
	},

	group(...args) {
		if (args.length > 0)
			out(...args);
		margin += STEP;
	},

	groupEnd() {
		margin = margin.slice(STEP.length);
	},
};

console.groupCollapsed = console.group;
console.dirxml = (...args) => out(...args.map((value) => inspect(value)));
Object.defineProperty(console, Symbol.toStringTag,
	{ value: "console", configurable: true });

return { console, format };
})
