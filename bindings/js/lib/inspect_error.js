/* inspect_error.js - errors as text: what it is, where it came from, what it carries.
 *
 * The stack of this engine has the places only; an engine whose stack begins with the
 * error itself is understood, too.
 */
(function (host, need) {
"use strict";

const describe = Object.getOwnPropertyDescriptor;

function read(error, key, otherwise) {
	try {
		const value = error[key];

		return value === undefined || value === null ? otherwise : `${value}`;
	} catch {
		return otherwise;
	}
}

/* "TypeError: text", with the class where the name does not say it. */
function headOf(error, constructor) {
	const name = read(error, "name", "Error");
	const message = read(error, "message", "");
	const both = constructor && constructor !== name && /Error$/.test(name);
	const shown = both ? `${constructor} [${name}]` : name;

	return message === "" ? shown : shown === "" ? message : `${shown}: ${message}`;
}

/* All of it: what, and where.  In brackets if nothing says where. */
function textOf(error, constructor) {
	const head = headOf(error, constructor);
	const stack = read(error, "stack", "");
	const at = stack.search(/^ {4}at /m);

	if (at < 0)
		return `[${stack.trimEnd() || head}]`;
	return `${head}\n${stack.slice(at).trimEnd()}`;
}

const describeError = (error, constructor, view) =>
	textOf(error, constructor).replaceAll("\n", `\n${" ".repeat(view.indent)}`);

/* Keys that the head has said already. */
const isSaid = (error, key) => ["name", "message", "stack"].includes(key)
	&& typeof error[key] === "string";

/* What is shown beside the enumerable keys, although it is hidden. */
const errorKeys = (error) => ["cause", "errors"].filter((key) => {
	const found = describe(error, key);

	return found !== undefined && !found.enumerable;
});

return { describeError, errorKeys, isSaid };
})
