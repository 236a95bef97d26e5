/* modules.js - a program of several files. */
import greet, { languages } from "./modules/greet.js";
import * as units from "./modules/units/index.js";

console.log(greet("weft"));
console.log(greet("weft", "de"));
console.log("languages:", languages);
console.log("20 km are", units.toMiles(20).toFixed(2), "miles");
console.log(units);

const { default: late } = await import("./modules/late.js");
console.log(late());
console.log("the same module:", (await import("./modules/late.js")).default === late);

try {
	await import("./modules/missing.js");
} catch (error) {
	console.log("missing:", error instanceof Error);
}
