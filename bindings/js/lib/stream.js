/* stream.js - what is read as pieces of bytes, as far as fetch needs it.
 *
 *   1. A stream ends once: by its last piece, by an error, or by cancel, which tells the
 *      source.  After that reads find its end, or the error.
 *   2. It has at most one reader, through which alone it is read and cancelled then.
 */
(function (host, need) {
"use strict";

/* Scripts get streams, and make none. */
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
	#source; /* read() gives a promise of bytes, or of null; cancel(reason) */
	#reader = null;
	#turn = Promise.resolve(); /* reads go one after the other */
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

	/* Who cancels meanwhile has ended it, whatever comes of the read.  Invariant 1. */
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
