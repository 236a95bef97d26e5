/* inspect_error.js - formats errors: message, stack, and properties.
 *
 * QuickJS stacks contain only the frames.  Stacks that begin with the error text are handled,
 * too.
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

/* "TypeError: message"; with the class name if it differs from the name. */
function headOf(error, constructor) {
	const name = read(error, "name", "Error");
	const message = read(error, "message", "");
	const both = constructor && constructor !== name && /Error$/.test(name);
	const shown = both ? `${constructor} [${name}]` : name;

	return message === "" ? shown : shown === "" ? message : `${shown}: ${message}`;
}

/* The message and the stack; in brackets if there is no stack. */
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

/* Keys that the first line already shows. */
const isShown = (error, key) => ["name", "message", "stack"].includes(key)
	&& typeof error[key] === "string";

/* Keys that are shown although they are not enumerable. */
const errorKeys = (error) => ["cause", "errors"].filter((key) => {
	const found = describe(error, key);

	return found !== undefined && !found.enumerable;
});

return { describeError, errorKeys, isShown };
})
