/* check_engine.js - published memory errors of QuickJS that a script without grants
 * could cause.  The engine must survive them. */
let failures = 0;

function check(what, ok) {
	if (ok)
		return;
	console.log(`${what}: wrong`);
	failures++;
}

/* A variable changes during an addition to it: a number was used as a pointer. */
function addToChangingVariable() {
	var sum = "x";
	var changes = { toString() { sum = 0x41414141; return "y"; } };

	sum += changes;
	return sum;
}
check("a variable that changes while it is added to",
	typeof addToChangingVariable() === "string");

/* A backward search that starts before the first element: it read out of bounds. */
for (let size = 8; size < 4096; size += 8) {
	const zeros = new Uint8Array(size);

	for (let value = 1; value < 256; value++)
		if (zeros.lastIndexOf(value, -1e-20) !== -1) {
			check(`lastIndexOf in ${size} zeros`, false);
			break;
		}
}

/* Conversion between text and BigInt, with many lengths and bases: it wrote out of
 * bounds. */
let length = 0, rest = 0;

for (let bits = 1; bits < 2200; bits += 7)
	for (const base of [2, 3, 7, 8, 10, 16, 32, 36]) {
		length += ((1n << BigInt(bits)) - 1n).toString(base).length;
		length += (-(1n << BigInt(bits))).toString(base).length;
	}
check("BigInt to text", length === 2267634);
for (let digits = 1; digits < 3000; digits += 13)
	for (const [start, digit] of [["", "9"], ["0x", "f"], ["0b", "1"], ["0o", "7"]])
		rest += Number(BigInt(start + digit.repeat(digits)) % 7n);
check("text to BigInt", rest === 1194);

/* So many digits that the number of bits overflowed. */
try {
	check("a BigInt of 79536432 digits", BigInt("9".repeat(79536432)) > 0n);
} catch (error) {
	check("the error of too many digits", error instanceof RangeError);
}

if (failures === 0)
	console.log("ok");
