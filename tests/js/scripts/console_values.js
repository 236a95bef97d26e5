/* Values of all kinds, as the console prints them. */
"use strict";

class Point {
	constructor(x, y) {
		this.x = x;
		this.y = y;
	}
}
class Tagged {
	get [Symbol.toStringTag]() {
		return "tag";
	}
}
class List extends Array {}
class Odd extends Map {}
class Failure extends Error {}
class Named extends Error {
	constructor(message) {
		super(message);
		this.name = "Named";
		this.code = 7;
	}
}

const ring = { name: "ring" };
ring.self = ring;
ring.list = [ring, { ring }];
const two = { a: {}, b: {} };
two.a.b = two.b;
two.b.a = two.a;
const rejected = Promise.reject(new RangeError("no"));
rejected.catch(() => {});
const sparse = [1, , , 4];
sparse.extra = "yes";
const frozen = Object.freeze({ a: 1 });
const hidden = Object.defineProperty({}, "secret", { value: 1 });
const accessors = {
	get a() { throw new Error("called"); },
	set b(value) {},
	get c() { return 1; },
	set c(value) {},
};
function withKeys() {}
withKeys.a = 1;
const noPrototype = Object.assign(Object.create(null), { a: 1 });

const values = [
	undefined, null, true, 0, -0, 1.5, 1e21, NaN, -Infinity, 12n, "text", Symbol("s"),
	Symbol(),
	"", [], {}, [[]], [{}], [undefined, null], { a: undefined },
	["it's", 'say "so"', `both ' and "`, `all ' " \``, "new\nline", "\t\u0001\x7f",
		"\ud800", "\u{1f600}"],
	{ a: 1, "b-c": 2, 3: 4, [Symbol("k")]: 5, "d'e": 6, "": 7, $: 8 },
	{ a: { b: { c: { d: 1 } } } }, { a: { b: { c: [] } } }, { a: { b: { c: {} } } },
	[[[[1]]]], { a: [{ b: [{ c: 1 }] }] },
	[1, 2, 3], [1, 2, 3, 4, 5, 6, 7], [[1, 2, 3, 4, 5, 6, 7, 8]],
	sparse, [, ], new Array(5), Array.from({ length: 120 }, (_, i) => i),
	Array.from({ length: 30 }, (_, i) => "x".repeat(i % 7)),
	Array.from({ length: 10 }, (_, i) => i * 1000003),
	Array.from({ length: 8 }, (_, i) => ({ i })),
	Array.from({ length: 7 }, (_, i) => "word ".repeat(i)),
	Array.from({ length: 27 }, (_, i) => i % 2 ? i : `${i}`),
	new Map([["a", 1], [{ b: 2 }, new Map([[1, 2]])]]), new Set([1, "a", [2]]), new Map(),
	new Set(),
	new Odd([[1, 2]]), new Date(0), new Date(NaN), /a+b/gi, new Point(1, 2), new Tagged(),
	new List(1, 2, 3), new List(), new (class {})(),
	new (class Foo { a = new Point(1, [2]); })(),
	function named() {}, () => {}, class {}, Point, List, async () => {},
	async function later() {},
	function* gen() {}, async function* both() {}, withKeys, Math.max,
	Object.assign(() => {}, { b: 2 }),
	new Uint8Array([1, 2, 3]), new Float64Array([0.5, -0]), new BigInt64Array([1n]),
	new Uint8Array(0),
	new Uint8Array(200), new ArrayBuffer(4), new DataView(new ArrayBuffer(2)),
	Promise.resolve(1), Promise.resolve({ a: [1] }), new Promise(() => {}), rejected,
	new Error("plain"), new TypeError(""), new Failure("own class"), new Named("own name"),
	new Error("outer", { cause: "text" }), new Error("outer", { cause: { a: 1 } }),
	new AggregateError([1, 2], "several"), [new Error("inside")],
	{ error: new Error("in\ntwo lines") },
	Object.assign(new Error("with code"), { code: "E1", info: { a: [1, 2] } }),
	new Number(3), new String("abc"), new Boolean(false), Object(Symbol("b")), Object(5n),
	Object.assign(new Number(1), { a: 1 }), noPrototype, Object.create({}),
	Object.create(Point.prototype),
	frozen, hidden, accessors, ring, two, [ring],
	new WeakMap(), new WeakSet(), new WeakRef(new Point(1, 2)),
	(function () { return arguments; })(1, "a"), (function* () {})(), globalThis.Atomics,
	Math, JSON, Reflect,
	{ a: "a".repeat(30), b: "b".repeat(30) }, { a: "a".repeat(31), b: "b".repeat(32), c: 1 },
	{ aaaaaaaaaaaaaaaa: 1, bbbbbbbbbbbbbbbbbbbb: 2, cccccccccccccccc: 3, dddddddddddddd: 4,
		e: 5 },
	["a".repeat(40), "b".repeat(40)], ["long\n".repeat(30)],
	{ text: "first line\nsecond line\n".repeat(5) },
	{ f() {}, g: () => {}, h: class A {}, i: Symbol.iterator, j: /x/, k: new Date(1e12) },
	[[1, 2, [3, 4, [5, [6]]], { a: { b: { c: {} } } }]],
	[new Map([[new Set([1]), [new Map([[1, { a: 1 }]])]]])],
	Object.assign([1, 2], { "-1": 3, name: "list" }), { [Symbol.toStringTag]: "mine", a: 1 },
	{ [Symbol.for("nodejs.util.inspect.custom")]: () => "made\nby itself" },
	[{ [Symbol.for("nodejs.util.inspect.custom")]: (depth) => ({ depth }) }],
	new Proxy({ a: 1 }, {}), new Proxy([1, 2], {}), Object(1n), [1n, -0, "0"],
	{ level1: { level2: { level3: [1, 2, 3], other: new Point(0, 0), map: new Map([[1, 2]]),
		set: new Set() } } },
	[undefined, , null], { undefined: undefined, null: null }, [[], {}, new Map(), ""],
	[[[], [[], [[]]]]],
	Array.from({ length: 101 }, () => "item"),
	new Set(Array.from({ length: 110 }, (_, i) => i)),
	Array.from({ length: 12 }, (_, i) => [i, i * i]), Array.from({ length: 7 }, () =>
		"a".repeat(20)),
];

for (const value of values)
	console.log(value);
console.log(...values.slice(0, 20));
