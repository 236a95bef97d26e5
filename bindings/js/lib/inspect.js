/* inspect.js - formats values as text, as Node does.
 *
 * A value is shown on one line if that is short and has at most three levels; otherwise each
 * part has its own line.  Long arrays of short items are laid out in columns.  Getters are named
 * and not called, except for tags and the texts of errors.  A method
 * Symbol.for("nodejs.util.inspect.custom") is called if there is one.
 *
 * A `view` is the state of one call: { options, seen, circular, level, depth, indent }.  `seen`
 * holds the objects that enclose the current one, `circular` numbers those that contain
 * themselves, `level` is the level of the current object, `depth` the level of the object that
 * was last entered, and `indent` the column.
 */
(function (host, need) {
"use strict";

const { quote, layOut } = need("layout");
const { constructorName, tagOf, prefix, functionHead } = need("inspect_name");
const { describeError, errorKeys, isShown } = need("inspect_error");
const { getPrototypeOf, getOwnPropertyDescriptor: describe, hasOwn } = Object;
const { ownKeys, apply } = Reflect;
const uncurry = (method) => Function.prototype.call.bind(method);
const has = uncurry(Object.prototype.propertyIsEnumerable);
const symbolText = uncurry(Symbol.prototype.toString);
const regexpText = uncurry(RegExp.prototype.toString);
const dateText = uncurry(Date.prototype.toISOString);
const dateValue = uncurry(Date.prototype.getTime);
const mapSize = uncurry(describe(Map.prototype, "size").get);
const mapEach = uncurry(Map.prototype.forEach);
const setSize = uncurry(describe(Set.prototype, "size").get);
const setEach = uncurry(Set.prototype.forEach);
const bufferLength = uncurry(describe(ArrayBuffer.prototype, "byteLength").get);
const TypedArray = getPrototypeOf(Uint8Array);
const typedName = uncurry(describe(TypedArray.prototype, Symbol.toStringTag).get);
const typedLength = uncurry(describe(TypedArray.prototype, "length").get);
const custom = Symbol.for("nodejs.util.inspect.custom");
const generator = getPrototypeOf(function* () {}).prototype;
const asyncGenerator = getPrototypeOf(async function* () {}).prototype;

const DEFAULTS = { depth: 2, showHidden: false, breakLength: 80, compact: 3,
	maxArrayLength: 100, maxStringLength: 10000 };
const PLAIN_KEY = /^[a-zA-Z_][a-zA-Z_0-9]*$/;
const BOXES = [["Number", Number], ["String", String], ["Boolean", Boolean],
	["Symbol", Symbol], ["BigInt", BigInt]];

/* Whether `test` accepts the value: methods of a built-in type throw for any other value. */
function takes(test, value) {
	try {
		test(value);
		return true;
	} catch {
		return false;
	}
}

const is = (type, test, value) => value instanceof type && takes(test, value);

function primitive(value, view) {
	switch (typeof value) {
	case "string":
		return quote(value, view);
	case "number":
		return Object.is(value, -0) ? "-0" : `${value}`;
	case "bigint":
		return `${value}n`;
	case "symbol":
		return symbolText(value);
	default:
		return `${value}`;
	}
}

function keysOf(value, view, isList) {
	return ownKeys(value).filter((key) => {
		if (isList && typeof key === "string" && `${key >>> 0}` === key)
			return false;
		if (typeof key === "symbol" || !view.options.showHidden)
			return has(value, key);
		return true;
	});
}

function keyText(key, hidden) {
	if (typeof key === "symbol")
		return `[${symbolText(key)}]`;
	if (hidden)
		return `[${key}]`;
	return PLAIN_KEY.test(key) ? key : quote(key, null);
}

function property(value, key, view) {
	const found = describe(value, key) ?? { value: value[key], enumerable: true };
	let text;

	if (found.get)
		text = found.set ? "[Getter/Setter]" : "[Getter]";
	else if (found.set)
		text = "[Setter]";
	else
		text = part(found.value, view, 2);
	return `${keyText(key, !found.enumerable)}: ${text}`;
}

/* A part of the current object, indented by `by` columns. */
function part(value, view, by) {
	view.indent += by;
	const text = show(value, view, view.level + 1);
	view.indent -= by;
	return text;
}

const more = (count, what) => `... ${count} more ${what}${count > 1 ? "s" : ""}`;

function arrayParts(value, view) {
	const parts = [];
	const max = view.options.maxArrayLength;
	let i = 0;

	while (i < value.length && parts.length < max) {
		let end = i;

		while (end < value.length && !hasOwn(value, end))
			end++;
		if (end === i)
			parts.push(part(value[i++], view, 2));
		else
			parts.push(`<${end - i} empty item${end - i > 1 ? "s" : ""}>`);
		i = end > i ? end : i;
	}
	if (i < value.length)
		parts.push(more(value.length - i, "item"));
	return parts;
}

function typedParts(value, view) {
	const length = typedLength(value);
	const count = Math.min(length, view.options.maxArrayLength);
	const parts = [];

	for (let i = 0; i < count; i++)
		parts.push(primitive(value[i], view));
	if (length > count)
		parts.push(more(length - count, "item"));
	return parts;
}

function mapParts(value, view) {
	const parts = [];

	mapEach(value, (item, key) => {
		parts.push(`${part(key, view, 2)} => ${part(item, view, 2)}`);
	});
	return cut(parts, view);
}

function setParts(value, view) {
	const parts = [];

	setEach(value, (item) => {
		parts.push(part(item, view, 2));
	});
	return cut(parts, view);
}

function cut(parts, view) {
	const max = view.options.maxArrayLength;
	const left = parts.length - max;

	return left > 0 ? [...parts.slice(0, max), more(left, "item")] : parts;
}

function bufferParts(value, view) {
	const length = bufferLength(value);
	const bytes = new Uint8Array(value, 0, Math.min(length, 50));
	const text = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
	const rest = length > 50 ? ` ${more(length - 50, "byte")}` : "";

	return [`[Uint8Contents]: <${text}${rest}>`, `byteLength: ${length}`];
}

function promiseParts(value, view) {
	const [state, result] = host.promiseState(value);

	if (state === "pending")
		return ["<pending>"];
	const text = part(result, view, 2);

	return [state === "rejected" ? `<rejected> ${text}` : text];
}

/* How an object is shown: { open, close, parts, base, isList }.  An object with a base and no
 * keys is shown as the base alone. */
function shapeOf(value, name, view) {
	if (Array.isArray(value)) {
		const head = name === "Array" && !tagOf(value, name) ? ""
			: prefix(value, name, "Array", `(${value.length})`);

		return { open: `${head}[`, close: "]", isList: true, parts: arrayParts,
			empty: value.length === 0 };
	}
	if (typeof value === "function")
		return { base: functionHead(value, name) };
	for (const kind of KINDS)
		if (is(kind.type, kind.test, value))
			return kind.shape(value, name, view);
	return plainShape(value, name, view);
}

function sized(kind, size, parts) {
	return (value, name) => ({
		open: `${prefix(value, name, kind, `(${size(value)})`)}{`, parts,
		empty: size(value) === 0 });
}

const fixed = (kind, parts) => (value, name) => ({
	open: `${prefix(value, name, kind)}{`, parts });

/* If the class is not the built-in type itself, its name comes first. */
const named = (kind, text) => (value, name) => ({
	base: name === kind ? text(value) : `${prefix(value, name, kind)}${text(value)}` });

const KINDS = [
	{ type: TypedArray, test: typedLength, shape: (value, name) => ({ isList: true,
		open: `${prefix(value, name, typedName(value), `(${typedLength(value)})`)}[`,
		close: "]", parts: typedParts, empty: typedLength(value) === 0 }) },
	{ type: Map, test: mapSize, shape: sized("Map", mapSize, mapParts) },
	{ type: Set, test: setSize, shape: sized("Set", setSize, setParts) },
	{ type: Date, test: dateValue, shape: named("Date", (value) =>
		Number.isNaN(dateValue(value)) ? "Invalid Date" : dateText(value)) },
	{ type: RegExp, test: regexpText, shape: named("RegExp", regexpText) },
	{ type: Error, test: () => {}, shape: (value, name, view) => ({
		base: describeError(value, name, view), isError: true,
		empty: errorKeys(value).length === 0,
		parts: (error, inner) =>
			errorKeys(error).map((key) => property(error, key, inner)) }) },
	{ type: Promise, test: host.promiseState, shape: fixed("Promise", promiseParts) },
	{ type: ArrayBuffer, test: bufferLength, shape: fixed("ArrayBuffer", bufferParts) },
	{ type: DataView, test: () => {}, shape: fixed("DataView", (value, view) =>
		["byteLength", "byteOffset", "buffer"].map((key) =>
			`${key}: ${part(value[key], view, 2)}`)) },
	{ type: WeakMap, test: () => {}, shape: fixed("WeakMap", () => ["<items unknown>"]) },
	{ type: WeakSet, test: () => {}, shape: fixed("WeakSet", () => ["<items unknown>"]) },
	...BOXES.map(([kind, type]) => ({
		type,
		test: uncurry(type.prototype.valueOf),
		shape: (value, name, view) => {
			const inner = primitive(apply(type.prototype.valueOf, value, []), view);
			const from = name === kind ? "" : ` (${name ?? "null prototype"})`;

			return { base: `[${kind}${from}: ${inner}]`, isList: kind === "String" };
		},
	})),
];

function plainShape(value, name, view) {
	const isArguments = Object.prototype.toString.call(value) === "[object Arguments]"
		&& name === "Object" && hasOwn(value, "callee");

	if (isArguments)
		return { open: "[Arguments] {" };
	if (generator.isPrototypeOf(value))
		return { open: "Object [Generator] {" };
	if (asyncGenerator.isPrototypeOf(value))
		return { open: "Object [AsyncGenerator] {" };
	if (name === null && tagOf(value, "") === "Module")
		return { open: "[Module: null prototype] {" };
	if (name === "Object" && !tagOf(value, name))
		return { open: "{" };
	return { open: `${prefix(value, name, "Object")}{` };
}

function tooDeep(value, name) {
	if (Array.isArray(value))
		return name === "Array" ? "[Array]" : `[${name ?? "Array: null prototype"}]`;
	const tag = tagOf(value, name);

	return `[${name ?? "Object: null prototype"}${tag ? ` [${tag}]` : ""}]`;
}

function object(value, view, level) {
	const name = constructorName(value);
	const shape = shapeOf(value, name, view);
	const { open = "{", close = "}", base = "", isList = false } = shape;
	const keys = keysOf(value, view, isList)
		.filter((key) => !shape.isError || !isShown(value, key));

	if (keys.length === 0 && (!shape.parts || shape.empty))
		return base || `${open}${close}`;
	if (view.options.depth !== null && level > view.options.depth)
		return tooDeep(value, name);
	const outer = view.level;

	view.seen.push(value);
	view.level = view.depth = level;
	const parts = shape.parts ? shape.parts(value, view) : [];
	for (const key of keys)
		parts.push(property(value, key, view));
	view.seen.pop();
	view.level = outer;
	return finish(value, view, level, { open, close, base, isList, parts });
}

/* Joins the parts; adds a reference number if the object contains itself. */
function finish(value, view, level, shape) {
	const number = view.circular.get(value);
	const reference = number === undefined ? "" : `<ref *${number}> `;

	if (shape.base !== "")
		shape.base = `${reference}${shape.base} `;
	else
		shape.open = `${reference}${shape.open}`;
	return layOut(value, view, level, shape);
}

function circular(value, view) {
	if (!view.circular.has(value))
		view.circular.set(value, view.circular.size + 1);
	return `[Circular *${view.circular.get(value)}]`;
}

function show(value, view, level) {
	if ((typeof value !== "object" && typeof value !== "function") || value === null)
		return primitive(value, view);
	const method = value[custom];

	if (typeof method === "function" && method !== inspect) {
		const depth = view.options.depth === null ? null : view.options.depth - level;
		const text = method.call(value, depth, { ...view.options, depth }, inspect);

		if (text !== value)
			return typeof text === "string"
				? text.replaceAll("\n", `\n${" ".repeat(view.indent)}`)
				: show(text, view, level);
	}
	if (view.seen.includes(value))
		return circular(value, view);
	return object(value, view, level);
}

function inspect(value, options) {
	const view = { options: { ...DEFAULTS, ...options }, seen: [], circular: new Map(),
		depth: 0, level: 0, indent: 0 };

	if (view.options.depth === Infinity)
		view.options.depth = null;
	return show(value, view, 0);
}

return { inspect };
})
