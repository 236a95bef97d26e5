/* text_coding.js - text as bytes, and bytes that come in pieces. */

const text = "naïve café: 3 €, 😀";
const bytes = new TextEncoder().encode(text);

console.log(text.length, "code units,", [...text].length, "characters,", bytes.length, "bytes");
console.log(bytes.subarray(0, 6));
console.log(new TextDecoder().decode(bytes) === text);

/* Cut anywhere, also inside of a character. */
const decoder = new TextDecoder();
let whole = "";
for (let i = 0; i < bytes.length; i += 5)
	whole += decoder.decode(bytes.subarray(i, i + 5), { stream: true });
whole += decoder.decode();
console.log(whole === text);

const broken = new Uint8Array([0x61, 0xff, 0x62]);
console.log(new TextDecoder().decode(broken));
try {
	new TextDecoder("utf-8", { fatal: true }).decode(broken);
} catch (error) {
	console.log(error.name);
}

const small = new Uint8Array(4);
console.log(new TextEncoder().encodeInto("aé€", small), small);
