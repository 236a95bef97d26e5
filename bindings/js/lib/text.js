/* text.js - TextEncoder and TextDecoder.
 *
 * The host converts complete texts.  This file handles streams: bytes at the end of a chunk that
 * start a character are kept for the next chunk.
 */
(function (host, need) {
"use strict";

const uncurry = (method) => Function.prototype.call.bind(method);
const charCodeAt = uncurry(String.prototype.charCodeAt);
const sliceText = uncurry(String.prototype.slice);
const lower = uncurry(String.prototype.toLowerCase);
const trim = uncurry(String.prototype.replace);
const subarray = uncurry(Uint8Array.prototype.subarray);
const set = uncurry(Uint8Array.prototype.set);
const { isView } = ArrayBuffer;
const { fromCharCode } = String;
const { apply } = Reflect;
const define = Object.defineProperty;
const PIECE = 4096; /* code units converted to a string at once */
const BOM = 0xfeff;

const LABELS = {
	__proto__: null,
	"unicode-1-1-utf-8": "utf-8", "unicode11utf8": "utf-8", "unicode20utf8": "utf-8",
	"utf-8": "utf-8", "utf8": "utf-8", "x-unicode20utf8": "utf-8",
	"csunicode": "utf-16le", "iso-10646-ucs-2": "utf-16le", "ucs-2": "utf-16le",
	"unicode": "utf-16le", "unicodefeff": "utf-16le", "utf-16": "utf-16le",
	"utf-16le": "utf-16le",
};

class TextEncoder {
	#brand;

	get encoding() {
		void this.#brand;
		return "utf-8";
	}

	encode(text = "") {
		void this.#brand;
		return host.utf8Encode(`${text}`);
	}

	encodeInto(text, into) {
		void this.#brand;
		if (!(into instanceof Uint8Array))
			throw new TypeError("encodeInto needs a Uint8Array");
		const [read, written] = host.utf8EncodeInto(`${text}`, into);

		return { read, written };
	}
}

/* The bytes of a buffer or of any view, not copied. */
function bytesOf(input) {
	if (input === undefined)
		return new Uint8Array(0);
	if (isView(input))
		return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
	if (input instanceof ArrayBuffer || input instanceof SharedArrayBuffer)
		return new Uint8Array(input);
	throw new TypeError("decode needs a buffer or a view of one");
}

function join(first, second) {
	if (first.length === 0)
		return second;
	const both = new Uint8Array(first.length + second.length);

	set(both, first, 0);
	set(both, second, first.length);
	return both;
}

function openUtf16(bytes) {
	const odd = bytes.length % 2;
	const high = bytes.length - odd - 1;

	return high > 0 && (bytes[high] & 0xfc) === 0xd8 ? odd + 2 : odd;
}

function bad(fatal) {
	if (fatal)
		throw new TypeError("The encoded data was not valid");
	return 0xfffd;
}

function decodeUtf16(bytes, fatal) {
	const count = bytes.length >> 1;
	const unit = (i) => i < count ? bytes[2 * i] | bytes[2 * i + 1] << 8 : 0;
	let text = "";
	let units = [];

	for (let i = 0; i < count; i++) {
		const one = unit(i);
		const pair = (one & 0xfc00) === 0xd800 && (unit(i + 1) & 0xfc00) === 0xdc00;

		if (pair)
			units[units.length] = one;
		units[units.length] = pair ? unit(++i)
			: (one & 0xf800) === 0xd800 ? bad(fatal) : one;
		if (units.length >= PIECE) {
			text += apply(fromCharCode, null, units);
			units = [];
		}
	}
	if (bytes.length % 2)
		units[units.length] = bad(fatal);
	return text + apply(fromCharCode, null, units);
}

class TextDecoder {
	#encoding;
	#fatal;
	#ignoreBOM;
	#open = new Uint8Array(0); /* bytes of an incomplete character */
	#began = false; /* some text of this stream was returned */

	constructor(label = "utf-8", options) {
		const name = lower(trim(`${label}`, /^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, ""));

		if (LABELS[name] === undefined)
			throw new RangeError(`The "${label}" encoding is not supported`);
		this.#encoding = LABELS[name];
		this.#fatal = !!options?.fatal;
		this.#ignoreBOM = !!options?.ignoreBOM;
	}

	get encoding() {
		return this.#encoding;
	}

	get fatal() {
		return this.#fatal;
	}

	get ignoreBOM() {
		return this.#ignoreBOM;
	}

	decode(input, options) {
		const more = !!options?.stream;
		const wide = this.#encoding === "utf-16le";
		let bytes = join(this.#open, bytesOf(input));
		const open = !more ? 0 : wide ? openUtf16(bytes) : host.utf8Open(bytes);
		const end = bytes.length - open;

		/* A copy, because the caller may change the buffer before the next call. */
		this.#open = new Uint8Array(subarray(bytes, end));
		bytes = open > 0 ? subarray(bytes, 0, end) : bytes;
		try {
			return this.#begin(wide ? decodeUtf16(bytes, this.#fatal)
				: host.utf8Decode(bytes, this.#fatal), more);
		} catch (error) {
			this.#open = new Uint8Array(0);
			this.#began = false;
			throw error;
		}
	}

	#begin(text, more) {
		const strip = !this.#began && !this.#ignoreBOM && text.length > 0
			&& charCodeAt(text, 0) === BOM;

		this.#began = more && (this.#began || text.length > 0);
		return strip ? sliceText(text, 1) : text;
	}
}

for (const [type, names] of [[TextEncoder, ["encoding", "encode", "encodeInto"]],
	[TextDecoder, ["encoding", "fatal", "ignoreBOM", "decode"]]]) {
	for (const name of names)
		define(type.prototype, name, { enumerable: true });
	define(type.prototype, Symbol.toStringTag, { value: type.name, configurable: true });
}

return { TextEncoder, TextDecoder };
})
