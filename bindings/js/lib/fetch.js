/* fetch.js - fetch, Request and Response, based on weft's HTTP client.
 *
 * The host creates an exchange, opens it, reads its body in pieces, and ends it, at any point.
 *
 *   1. An exchange is ended by the end of its body, by cancel(), by its signal, or with the
 *      engine.
 *   2. A fetch that a signal ends is rejected with the signal's reason.  A network failure is a
 *      TypeError with the error as its cause.
 */
(function (host, need) {
"use strict";

const { AbortSignal } = need("abort");
const { TextDecoder } = need("text");
const { Headers } = need("headers");
const { ReadableStream, makeStream, isDisturbed } = need("stream");

/* --- bodies --------------------------------------------------------- */

/* The bytes of a body that a script provides.  A text sets the content type, if there is none. */
function takeBody(body, headers) {
	if (body instanceof ArrayBuffer)
		return new Uint8Array(body.slice(0));
	if (ArrayBuffer.isView(body))
		return new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice();
	const bytes = host.utf8Encode(String(body));

	if (!headers.has("content-type"))
		headers.set("content-type", "text/plain;charset=UTF-8");
	return bytes;
}

function streamOf(bytes) {
	let rest = bytes;

	return makeStream({
		async read() {
			const piece = rest;

			rest = null;
			return piece && piece.length > 0 ? piece : null;
		},
		cancel() {
			rest = null;
		},
	});
}

async function gather(stream) {
	const pieces = [];
	let size = 0, at = 0;

	for await (const piece of stream) {
		pieces.push(piece);
		size += piece.length;
	}
	if (pieces.length === 1)
		return pieces[0];
	const all = new Uint8Array(size);

	for (const piece of pieces) {
		all.set(piece, at);
		at += piece.length;
	}
	return all;
}

/* The common base of Request and Response. */
class Body {
	#stream = null;

	constructor(stream) {
		this.#stream = stream;
	}

	get body() {
		return this.#stream;
	}

	get bodyUsed() {
		return this.#stream !== null && isDisturbed(this.#stream);
	}

	async bytes() {
		if (this.bodyUsed || this.#stream?.locked)
			throw new TypeError("Body is unusable: it has already been read");
		return this.#stream ? gather(this.#stream) : new Uint8Array(0);
	}

	async arrayBuffer() {
		const { buffer, byteOffset, byteLength } = await this.bytes();

		return buffer.slice(byteOffset, byteOffset + byteLength);
	}

	async text() {
		return new TextDecoder().decode(await this.bytes());
	}

	async json() {
		return JSON.parse(await this.text());
	}
}

/* --- options ---------------------------------------------------------- */

const objectPrototype = Object.prototype;
const { getPrototypeOf, hasOwn } = Object;

/* Reads a member of an options object.  Members of Object.prototype are ignored: another script
 * may have put them there by prototype pollution. */
function member(init, name) {
	for (let from = Object(init ?? null); from && from !== objectPrototype;
		from = getPrototypeOf(from))
		if (hasOwn(from, name))
			return init[name];
	return undefined;
}

/* --- requests --------------------------------------------------------- */

const METHODS = /^(delete|get|head|options|post|put)$/i;
const FORBIDDEN = /^(connect|trace|track)$/i;
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

function takeMethod(method) {
	method = String(method);
	if (!NAME.test(method) || FORBIDDEN.test(method))
		throw new TypeError(`'${method}' is not a method of fetch`);
	return METHODS.test(method) ? method.toUpperCase() : method;
}

function takeUrl(url) {
	url = String(url);
	if (!/^(https?|http\+unix):\/\/[^/?#]/i.test(url))
		throw new TypeError(`Invalid URL: ${url}`);
	return url;
}

function takeRedirect(redirect) {
	if (!["follow", "manual", "error"].includes(redirect))
		throw new TypeError(`'${redirect}' is not a redirect mode`);
	return redirect;
}

function takeSignal(signal) {
	if (signal !== null && !(signal instanceof AbortSignal))
		throw new TypeError("signal is not an AbortSignal");
	return signal;
}

let stateOf; /* the state of a request, including the bytes of its body */

class Request extends Body {
	#state;

	constructor(input, init) {
		const from = input instanceof Request ? input.#state
			: { __proto__: null };
		const method = takeMethod(member(init, "method") ?? from.method ?? "GET");
		const headers = new Headers(member(init, "headers") ?? from.headers);
		const body = member(init, "body") ?? null;
		let bytes = from.bytes ?? null;

		if (from.bytes && input.bodyUsed)
			throw new TypeError("Body is unusable: it has already been read");
		if (body !== null)
			bytes = takeBody(body, headers);
		if (bytes && (method === "GET" || method === "HEAD"))
			throw new TypeError(`A ${method} request has no body`);
		super(bytes && streamOf(bytes));
		this.#state = {
			method, headers, bytes,
			url: from.url ?? takeUrl(input),
			redirect: takeRedirect(member(init, "redirect") ?? from.redirect
				?? "follow"),
			signal: takeSignal(member(init, "signal") ?? from.signal ?? null),
		};
	}

	get method() { return this.#state.method; }
	get url() { return this.#state.url; }
	get headers() { return this.#state.headers; }
	get redirect() { return this.#state.redirect; }
	get signal() { return this.#state.signal; }
	get [Symbol.toStringTag]() { return "Request"; }

	static {
		stateOf = (request) => request.#state;
	}
}

/* --- responses -------------------------------------------------------- */

const NO_BODY = [101, 204, 205, 304];

let place; /* sets the URL of a response */

class Response extends Body {
	#state;

	constructor(body = null, init) {
		const headers = new Headers(member(init, "headers"));
		const status = Number(member(init, "status") ?? 200);
		let stream = null;

		if (!(status >= 200 && status <= 599))
			throw new RangeError(`${member(init, "status")} is not a status`);
		if (body !== null && NO_BODY.includes(status))
			throw new TypeError(`A response of ${status} has no body`);
		if (body instanceof ReadableStream)
			stream = body;
		else if (body !== null)
			stream = streamOf(takeBody(body, headers));
		super(stream);
		this.#state = {
			status, headers, url: "", redirected: false, type: "default",
			statusText: String(member(init, "statusText") ?? ""),
		};
	}

	static json(value, init) {
		const response = new Response(JSON.stringify(value), init);

		if (!new Headers(member(init, "headers")).has("content-type"))
			response.headers.set("content-type", "application/json");
		return response;
	}

	get status() { return this.#state.status; }
	get ok() { return this.status >= 200 && this.status <= 299; }
	get statusText() { return this.#state.statusText; }
	get headers() { return this.#state.headers; }
	get url() { return this.#state.url; }
	get redirected() { return this.#state.redirected; }
	get type() { return this.#state.type; }
	get [Symbol.toStringTag]() { return "Response"; }

	static {
		place = (response, url, redirected) => {
			Object.assign(response.#state, { url, redirected, type: "basic" });
			return response;
		};
	}
}

/* --- fetch ------------------------------------------------------------ */

const REDIRECTS = [301, 302, 303, 307, 308];

/* The client does not keep the reason phrase of a response. */
const PHRASES = {
	200: "OK", 201: "Created", 202: "Accepted", 204: "No Content",
	206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
	304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect",
	400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
	405: "Method Not Allowed", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
	413: "Content Too Large", 429: "Too Many Requests", 500: "Internal Server Error",
	501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
	504: "Gateway Timeout",
};

/* The reason with which a failed exchange is rejected.  Invariant 2. */
function failureOf(signal, error) {
	if (signal?.aborted)
		return signal.reason;
	return new TypeError("fetch failed", { cause: error });
}

/* The body of an exchange.  Invariant 1. */
function streamFrom(exchange, signal, done) {
	const end = () => {
		host.fetchEnd(exchange);
		done();
	};

	return makeStream({
		async read() {
			let piece;

			try {
				signal?.throwIfAborted();
				piece = await host.fetchRead(exchange);
			} catch (error) {
				end();
				throw failureOf(signal, error);
			}
			if (piece === undefined)
				end();
			return piece ?? null;
		},
		cancel: end,
	});
}

function responseOf(request, exchange, reply, done) {
	const [status, url, fields] = reply;
	const hasBody = request.method !== "HEAD" && !NO_BODY.includes(status);
	const headers = new Headers();

	for (let i = 0; i < fields.length; i += 2)
		headers.append(fields[i], fields[i + 1]);
	if (!hasBody) {
		host.fetchEnd(exchange);
		done();
	}
	const response = new Response(
		hasBody ? streamFrom(exchange, request.signal, done) : null,
		{ status, statusText: PHRASES[status], headers });

	return place(response, url, url !== request.url.replace(/#.*/, ""));
}

async function open(request, exchange) {
	const { method, url, headers, bytes, redirect } = request;
	const reply = await host.fetchOpen(exchange, method, url, [...headers].flat(),
		bytes ?? undefined, redirect === "follow");

	if (redirect === "error" && REDIRECTS.includes(reply[0]))
		throw new Error(`${url} redirects`);
	return reply;
}

/* Fails if the network is not granted, or out of memory. */
function begin() {
	try {
		return host.fetchBegin();
	} catch (error) {
		throw failureOf(null, error);
	}
}

async function fetch(input, init) {
	const request = stateOf(new Request(input, init));
	const { signal } = request;

	signal?.throwIfAborted();
	const exchange = begin();
	/* Weak, so that a long-lived signal does not keep the exchange alive. */
	const weak = new WeakRef(exchange);
	const onAbort = () => host.fetchEnd(weak.deref());
	const done = () => signal?.removeEventListener("abort", onAbort);

	signal?.addEventListener("abort", onAbort);
	try {
		return responseOf(request, exchange, await open(request, exchange), done);
	} catch (error) {
		host.fetchEnd(exchange);
		done();
		throw failureOf(signal, error);
	}
}

return { fetch, Request, Response };
})
