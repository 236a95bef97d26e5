/* stream.js - a stream of byte chunks, limited to what fetch needs.
 *
 *   1. A stream ends once: by its last chunk, by an error, or by cancel(), which notifies the
 *      source.  After that a read returns the end, or throws the error.
 *   2. A stream has at most one reader.  While it has one, only the reader can read and cancel
 *      it.
 */
(function (host, need) {
"use strict";

/* Scripts cannot construct streams. */
const KEY = {};

class ReadableStreamDefaultReader {
	#stream;
	#ways;

	constructor(key, stream, ways) {
		if (key !== KEY)
			throw new TypeError("Illegal constructor");
		this.#stream = stream;
		this.#ways = ways;
	}

	async read() {
		return this.#checked().read();
	}

	async cancel(reason) {
		this.#checked().cancel(reason);
	}

	releaseLock() {
		if (this.#stream)
			this.#ways.release();
		this.#stream = null;
	}

	#checked() {
		if (!this.#stream)
			throw new TypeError("This reader has released its stream");
		return this.#ways;
	}
}

let isDisturbed;

class ReadableStream {
	#source; /* read() returns a promise of bytes, or of null at the end; cancel(reason) */
	#reader = null;
	#turn = Promise.resolve(); /* serializes reads */
	#ended = false;
	#error = null; /* { reason } of a read that failed */
	#disturbed = false;

	constructor(key, source) {
		if (key !== KEY)
			throw new TypeError("Illegal constructor");
		this.#source = source;
	}

	static {
		isDisturbed = (stream) => stream.#disturbed;
	}

	get locked() {
		return this.#reader !== null;
	}

	getReader() {
		this.#checkUnlocked();
		this.#reader = new ReadableStreamDefaultReader(KEY, this, {
			read: () => this.#read(),
			cancel: (reason) => this.#cancel(reason),
			release: () => { this.#reader = null; },
		});
		return this.#reader;
	}

	async cancel(reason) {
		this.#checkUnlocked();
		this.#cancel(reason);
	}

	async *values({ preventCancel = false } = {}) {
		const reader = this.getReader();

		try {
			for (;;) {
				const { done, value } = await reader.read();

				if (done)
					return;
				yield value;
			}
		} finally {
			if (!preventCancel)
				await reader.cancel();
			reader.releaseLock();
		}
	}

	[Symbol.asyncIterator](options) {
		return this.values(options);
	}

	get [Symbol.toStringTag]() {
		return "ReadableStream";
	}

	#checkUnlocked() {
		if (this.#reader)
			throw new TypeError("ReadableStream is locked");
	}

	#read() {
		const piece = this.#turn.then(() => this.#next());

		this.#disturbed = true;
		this.#turn = piece.then(() => {}, () => {});
		return piece;
	}

	async #next() {
		const value = this.#ended ? null : await this.#pull();

		if (this.#error)
			throw this.#error.reason;
		return this.#ended ? { value: undefined, done: true }
			: { value, done: false };
	}

	/* A cancel during the read has ended the stream, whatever the read returns.  Invariant
	 * 1. */
	async #pull() {
		let value = null;

		try {
			value = await this.#source.read();
		} catch (reason) {
			if (!this.#ended)
				this.#error = { reason };
		}
		this.#ended ||= value === null;
		return value;
	}

	#cancel(reason) {
		this.#disturbed = true;
		if (!this.#ended)
			this.#source.cancel(reason);
		this.#ended = true;
	}
}

const makeStream = (source) => new ReadableStream(KEY, source);

return { ReadableStream, ReadableStreamDefaultReader, makeStream, isDisturbed };
})
