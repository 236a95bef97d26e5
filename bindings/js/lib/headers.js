/* headers.js - the headers of a request or a response. */
(function (host, need) {
"use strict";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const BAD_VALUE = /[\0\r\n]|[^\0-\xff]/;

function checkName(name) {
	name = String(name);
	if (!TOKEN.test(name))
		throw new TypeError(`Invalid header name: ${name}`);
	return name.toLowerCase();
}

function checkValue(value) {
	value = String(value).replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, "");
	if (BAD_VALUE.test(value))
		throw new TypeError("Invalid header value");
	return value;
}

class Headers {
	#fields = []; /* [lower-case name, value], in insertion order */

	constructor(init) {
		if (init === undefined)
			return;
		if (init === null || typeof init !== "object")
			throw new TypeError("Headers: not an object");
		if (typeof init[Symbol.iterator] === "function") {
			for (const pair of init) {
				const [name, value, ...more] = pair;

				if (value === undefined || more.length > 0)
					throw new TypeError("Headers: not a pair");
				this.append(name, value);
			}
		} else {
			for (const name of Object.keys(init))
				this.append(name, init[name]);
		}
	}

	append(name, value) {
		this.#fields.push([checkName(name), checkValue(value)]);
	}

	delete(name) {
		name = checkName(name);
		this.#fields = this.#fields.filter((field) => field[0] !== name);
	}

	get(name) {
		const values = this.#all(checkName(name));

		return values.length > 0 ? values.join(", ") : null;
	}

	getSetCookie() {
		return this.#all("set-cookie");
	}

	has(name) {
		return this.#all(checkName(name)).length > 0;
	}

	set(name, value) {
		name = checkName(name);
		value = checkValue(value);
		this.delete(name);
		this.#fields.push([name, value]);
	}

	forEach(fn, self) {
		for (const [name, value] of this)
			fn.call(self, value, name, this);
	}

	/* Sorted by name.  Values of one name are joined, except for Set-Cookie. */
	*entries() {
		const names = [...new Set(this.#fields.map((field) => field[0]))];

		for (const name of names.sort()) {
			if (name === "set-cookie")
				for (const value of this.getSetCookie())
					yield [name, value];
			else
				yield [name, this.get(name)];
		}
	}

	*keys() {
		for (const [name] of this.entries())
			yield name;
	}

	*values() {
		for (const [, value] of this.entries())
			yield value;
	}

	[Symbol.iterator]() {
		return this.entries();
	}

	get [Symbol.toStringTag]() {
		return "Headers";
	}

	#all(name) {
		return this.#fields.filter((field) => field[0] === name)
			.map((field) => field[1]);
	}
}

return { Headers };
})
