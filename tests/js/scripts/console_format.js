/* Format specifiers, groups, counters and assertions of the console. */
"use strict";

class Own {
	toString() {
		return "own text";
	}
}
class Plain {
	constructor() {
		this.a = { b: {} };
	}
}
const circular = {};
circular.self = circular;

console.log();
console.log("");
console.log("a", "b", 1, { a: 1 }, ["x"]);
console.log("%s and %s", "one", "two", "three");
console.log("%s %s %s", 1, -0, 2n);
console.log("%s %s %s", null, undefined, true);
console.log("%s", Symbol("s"));
console.log("%s|%s", new Own(), new Plain());
console.log("%s|%s", [1, [2, [3]]], { a: { b: 1 } });
console.log("%s", () => 1);
console.log("%s", class A {});
console.log("%s", new Date(0));
console.log("%s|%s", /x/g, new Map([[1, { a: 1 }]]));
console.log("%d %d %d %d", 1.5, "42", "x", 10n);
console.log("%d %d", {}, Symbol("s"));
console.log("%i %i %i", 3.9, "12px", 7n);
console.log("%i %i", [], null);
console.log("%f %f %f", 1.5, "2.5x", "y");
console.log("%f", Symbol("s"));
console.log("%j %j", { a: [1, "b"] }, undefined);
console.log("%j", circular);
console.log("%o", { a: [1, 2], f: { g: { h: { i: {} } } } });
console.log("%O", { a: { b: { c: { d: 1 } } } });
console.log("%o", [1, [2]]);
console.log("%cstyled%c plain", "color: red", "");
console.log("100%", 1, "%%", "%s");
console.log("100%% %s", "sure");
console.log("%%");
console.log("%s");
console.log("%s %d", "only one");
console.log("%x %s", 1, 2);
console.log("%", 1);
console.log(1, "%s", 2);
console.log("a\nb", ["a\nb"]);

console.info("info %d", 1);
console.debug("debug");
console.group("outer");
console.log("one\ntwo");
console.group();
console.log({ a: 1, b: "x".repeat(80) });
console.groupEnd();
console.log("back");
console.groupEnd();
console.groupEnd();
console.log("out");
console.count();
console.count("x");
console.count();
console.count("x");
console.countReset();
console.count();
console.assert(true, "not seen");
console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });
console.dir({ a: { b: { c: { d: 1 } } } }, { depth: null });
console.dir("text");
const { log } = console;
log("without this");
