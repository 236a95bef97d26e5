/* inspect_name.js - the prefix of a formatted object: its class and its tag. */
(function (host, need) {
"use strict";

const { getPrototypeOf, getOwnPropertyDescriptor: describe, hasOwn } = Object;
const uncurry = (method) => Function.prototype.call.bind(method);
const has = uncurry(Object.prototype.propertyIsEnumerable);
const functionText = uncurry(Function.prototype.toString);

/* The name of its class; null if there is none. */
function constructorName(value) {
	for (let from = value; from !== null; from = getPrototypeOf(from)) {
		const found = describe(from, "constructor");

		if (found && typeof found.value === "function" && found.value.name !== "")
			return `${found.value.name}`;
	}
	return null;
}

/* The tag, if it differs from the name of the class. */
function tagOf(value, name) {
	let tag = "";

	if (has(value, Symbol.toStringTag)) /* then it is shown as a key */
		return "";
	try {
		tag = value[Symbol.toStringTag];
	} catch {
		return "";
	}
	return typeof tag === "string" && tag !== "" && tag !== name ? tag : "";
}

/* The text before the opening brace. */
function prefix(value, name, kind, size = "") {
	const tag = tagOf(value, name);
	const shown = tag ? ` [${tag}]` : "";

	if (name === null)
		return `[${kind}${size}: null prototype]${shown} `;
	return `${name}${size}${shown} `;
}

/* "[class B extends A]", "[AsyncFunction: f]". */
function functionHead(value, name) {
	const text = functionText(value);
	const kind = tagOf(value, "") || (name ?? "Function");
	let head;

	if (/^class[\s{]/.test(text)) {
		const base = getPrototypeOf(value);

		head = `[class ${hasOwn(value, "name") && value.name || "(anonymous)"}`;
		if (name !== "Function" && name !== null)
			head += ` [${name}]`;
		if (typeof base === "function" && base.name)
			head += ` extends ${base.name}`;
		return `${head}]`;
	}
	head = `[${/Function$/.test(kind) ? kind : "Function"}`;
	if (name === null)
		head += " (null prototype)";
	return `${head}${value.name ? `: ${value.name}` : " (anonymous)"}]`;
}

return { constructorName, tagOf, prefix, functionHead };
})
