/* Text to bytes and back. */
"use strict";

const log = (...words) => console.log(...words);
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
const units = (text) => Array.from(text, (char) => char.codePointAt(0).toString(16)).join(" ");

log(encoder.encoding, hex(encoder.encode("aé€😀")), encoder.encode().length,
	encoder.encode(undefined).length);
log(hex(encoder.encode(null)), hex(encoder.encode("\ud800a")), hex(encoder.encode("a\udc00")),
	hex(encoder.encode("\0")));
log(encoder.encode("x") instanceof Uint8Array);
for (const [text, size] of [["abc", 2], ["é", 1], ["é", 2], ["€x", 3], ["😀", 3], ["a😀", 5],
	["\ud800", 3], ["", 0]]) {
	const into = new Uint8Array(size);
	const { read, written } = encoder.encodeInto(text, into);

	log(read, written, hex(into));
}
const inside = new Uint8Array(8);
encoder.encodeInto("hi", inside.subarray(3, 7));
log(hex(inside));

log(decoder.encoding, decoder.fatal, decoder.ignoreBOM);
log(decoder.decode(), decoder.decode(new Uint8Array(0)) === "");
log(decoder.decode(encoder.encode("aé€😀")));
log(decoder.decode(encoder.encode("buffer").buffer),
	decoder.decode(new DataView(encoder.encode("view").buffer)));
log(decoder.decode(encoder.encode("part of it").subarray(5)),
	decoder.decode(new Uint16Array([0x6261, 0x6463])));

const wrong = [[0x80], [0xff], [0xc0, 0x80], [0xc3], [0xc3, 0x41], [0xe2, 0x82],
	[0xe2, 0x82, 0x41], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x98],
	[0xf0, 0x9f, 0x41], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80], [0x61, 0x80, 0x62],
	[0xf0, 0x80, 0x80, 0x80], [0xf8, 0x88, 0x80, 0x80, 0x80], [0xe2, 0xe2, 0x82, 0xac]];
for (const bytes of wrong) {
	let strict = "taken";

	try {
		new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes));
	} catch (error) {
		strict = error.name;
	}
	log(hex(bytes), "->", units(decoder.decode(new Uint8Array(bytes))), strict);
}

/* Every way to cut the bytes into two pieces, and byte by byte; also for invalid input. */
const samples = [[...encoder.encode("aé€😀\ufeffz")], ...wrong, [0xef, 0xbb, 0xbf, 0x61], [0xef,
	0xbb, 0xbf]];
for (const bytes of samples) {
	const whole = units(decoder.decode(new Uint8Array(bytes)));
	const streamed = new Set();

	for (let cut = 0; cut <= bytes.length; cut++) {
		const stream = new TextDecoder();

		streamed.add(units(stream.decode(new Uint8Array(bytes.slice(0, cut)),
			{ stream: true })
			+ stream.decode(new Uint8Array(bytes.slice(cut)))));
	}
	const single = new TextDecoder();
	const text = bytes.map((byte) => single.decode(new Uint8Array([byte]),
		{ stream: true })).join("");
	streamed.add(units(text + single.decode()));
	log(whole, streamed.size, streamed.has(whole));
}
const stream = new TextDecoder();
log([0xf0, 0x9f, 0x98, 0x80].map((byte) => stream.decode(new Uint8Array([byte]),
	{ stream: true }).length));
log(units(stream.decode(new Uint8Array([0xe2]), { stream: true }) + stream.decode()));
for (const bytes of [[0xe0, 0x80], [0xed, 0xa0], [0xf4, 0x90], [0xf0, 0x8f], [0xc1], [0xe2, 0x41]])
	log(stream.decode(new Uint8Array(bytes), { stream: true }).length, stream.decode().length);
const shared = new Uint8Array([0xe2]);
stream.decode(shared, { stream: true });
shared[0] = 0;
log(stream.decode(new Uint8Array([0x82, 0xac])));

/* Byte order marks. */
const marked = new Uint8Array([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf, 0x61]);
log(units(decoder.decode(marked)),
	units(new TextDecoder("utf-8", { ignoreBOM: true }).decode(marked)));
log(units(decoder.decode(marked)));

/* Labels. */
for (const label of ["utf8", "UTF-8", " utf-8\n", "unicode-1-1-utf-8", "utf-16le", "utf-16",
	"ucs-2", undefined])
	log(new TextDecoder(label).encoding);
for (const label of ["nothing", "", "utf-7"])
	try {
		log(new TextDecoder(label).encoding);
	} catch (error) {
		log(error.name);
	}
const wide = new TextDecoder("utf-16le");
log(wide.decode(new Uint8Array([0x61, 0, 0xac, 0x20, 0x3d, 0xd8, 0, 0xde])));
log(units(wide.decode(new Uint8Array([0xff, 0xfe, 0x61, 0]))),
	units(wide.decode(new Uint8Array([0x61, 0, 0x62]))));
log(units(wide.decode(new Uint8Array([0, 0xd8, 0x61, 0]))),
	units(wide.decode(new Uint8Array([0, 0xdc]))));
const wideStream = new TextDecoder("utf-16le");
log([0x3d, 0xd8, 0, 0xde, 0x61, 0].map((byte) => wideStream.decode(new Uint8Array([byte]),
	{ stream: true })).join(""));
const large = "aé€😀".repeat(20000);
log(decoder.decode(encoder.encode(large)) === large);
for (const input of [1, "text", null, {}])
	try {
		decoder.decode(input);
		log("taken");
	} catch (error) {
		log(error.name);
	}
