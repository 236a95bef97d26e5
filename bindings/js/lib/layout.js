/* layout.js - arranges the parts of a formatted value in lines, and quotes strings.
 *
 * The constants are chosen so that the result is the same as Node's.
 */
(function (host, need) {
"use strict";

const ESCAPES = { "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
	"\v": "\\x0B", "\\": "\\\\" };
/* Control characters, the backslash, and lone surrogates. */
const UNSAFE = new RegExp("[\\x00-\\x1f\\\\\\x7f-\\x9f]|[\\ud800-\\udbff](?![\\udc00-\\udfff])"
	+ "|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]", "g");
const MARGIN = 10; /* estimated width of braces, commas and so on in one line */
const LIST_MIN = 6; /* lists with more parts are shown in columns */
const COLUMNS_MAX = 16;
const WIDTH_OF_LINE = 16; /* shorter strings are not split at newlines */

function escape(char) {
	if (ESCAPES[char] !== undefined)
		return ESCAPES[char];
	const code = char.charCodeAt(0);
	const hex = code.toString(16);

	return code < 256 ? `\\x${hex.toUpperCase().padStart(2, "0")}` : `\\u${hex}`;
}

/* Uses the kind of quotes that needs no escapes, if there is one. */
function inQuotes(text) {
	let mark = "'";

	if (text.includes("'"))
		mark = !text.includes('"') ? '"'
			: !text.includes("`") && !text.includes("${") ? "`" : "'";
	const safe = text.replace(UNSAFE, escape);

	return mark + (mark === "'" ? safe.replaceAll("'", "\\'") : safe) + mark;
}

/* Quotes a string that is a value; if `view` is null, a key, which is never split. */
function quote(text, view) {
	let rest = "";

	if (view === null)
		return inQuotes(text);
	const left = text.length - view.options.maxStringLength;

	if (left > 0) {
		text = text.slice(0, view.options.maxStringLength);
		rest = `... ${left} more character${left > 1 ? "s" : ""}`;
	}
	const room = view.options.breakLength - view.indent - 4;

	if (text.length <= WIDTH_OF_LINE || text.length <= room || !text.includes("\n"))
		return inQuotes(text) + rest;
	return text.match(/[^\n]*\n|[^\n]+$/g).map(inQuotes)
		.join(` +\n${" ".repeat(view.indent + 2)}`) + rest;
}

/* The number of columns that makes a list of these widths roughly square; a character is about
 * 2.5 times as high as wide.  Returns 1 if the widths are too uneven for columns. */
function columnsFor(widths, view, total) {
	const cell = Math.max(...widths) + 2;
	const sum = widths.reduce((all, width) => all + width + 2, 0);
	const { breakLength, compact } = view.options;

	if (cell * 3 + view.indent >= breakLength || (sum / cell <= 5 && cell > 8))
		return 1;
	const biased = Math.max(cell - 3 - Math.sqrt(cell - sum / total), 1);

	return Math.min(Math.round(Math.sqrt(2.5 * biased * widths.length) / biased),
		Math.floor((breakLength - view.indent) / cell), compact * 4, COLUMNS_MAX - 1);
}

/* Numbers are aligned to the right, everything else to the left. */
const padFor = (value, count) => {
	for (let i = 0; i < count; i++)
		if (typeof value[i] !== "number" && typeof value[i] !== "bigint")
			return (text, width) => text.padEnd(width);
	return (text, width) => text.padStart(width);
};

function inColumns(value, view, parts, cut) {
	const cells = cut ? parts.slice(0, -1) : parts;
	const widths = cells.map((cell) => cell.length);
	const columns = columnsFor(widths, view, parts.length);

	if (columns <= 1)
		return parts;
	const pad = padFor(value, parts.length);
	const toTheLeft = pad("a", 2) === "a ";
	const wide = [];
	const lines = [];

	for (let i = 0; i < widths.length; i++)
		wide[i % columns] = Math.max(wide[i % columns] ?? 0, widths[i]);
	for (let i = 0; i < cells.length; i += columns) {
		const row = cells.slice(i, i + columns);
		const last = row.length - 1;

		lines.push(row.map((cell, j) => j < last ? pad(`${cell}, `, wide[j] + 2)
			: toTheLeft ? cell : pad(cell, wide[j])).join(""));
	}
	return cut ? [...lines, parts.at(-1)] : lines;
}

function fitsInLine(parts, start, base, view) {
	let length = parts.length + start;

	if (length + parts.length > view.options.breakLength)
		return false;
	for (const text of parts)
		length += text.length;
	return length <= view.options.breakLength && !base.includes("\n")
		&& !parts.some((text) => text.includes("\n"));
}

function layOut(value, view, level, { open, close, base, isList, parts }) {
	let lines = parts;

	if (isList && parts.length > LIST_MIN) {
		const cut = view.options.maxArrayLength < parts.length;

		lines = inColumns(value, view, parts, cut);
	}
	if (view.depth - level < view.options.compact && lines === parts) {
		const start = parts.length + view.indent + open.length + base.length + MARGIN;

		if (fitsInLine(parts, start, base, view))
			return `${base}${open} ${parts.join(", ")} ${close}`;
	}
	const margin = `\n${" ".repeat(view.indent)}`;

	return `${base}${open}${margin}  ${lines.join(`,${margin}  `)}${margin}${close}`;
}

return { quote, layOut };
})
