/* exception.js - DOMException, the error type of web APIs.
 *
 * Name and message are fixed at creation; the code is the legacy number of the name, or 0.  The
 * stack starts at the caller of the constructor.
 */
(function (host, need) {
"use strict";

const NAMES = ["IndexSizeError", "", "HierarchyRequestError", "WrongDocumentError",
	"InvalidCharacterError", "", "NoModificationAllowedError", "NotFoundError",
	"NotSupportedError", "InUseAttributeError", "InvalidStateError", "SyntaxError",
	"InvalidModificationError", "NamespaceError", "InvalidAccessError", "",
	"TypeMismatchError", "SecurityError", "NetworkError", "AbortError",
	"URLMismatchError", "QuotaExceededError", "TimeoutError", "InvalidNodeTypeError",
	"DataCloneError"];

/* The constants without their suffix _ERR. */
const CONSTANTS = ["INDEX_SIZE", "DOMSTRING_SIZE", "HIERARCHY_REQUEST", "WRONG_DOCUMENT",
	"INVALID_CHARACTER", "NO_DATA_ALLOWED", "NO_MODIFICATION_ALLOWED", "NOT_FOUND",
	"NOT_SUPPORTED", "INUSE_ATTRIBUTE", "INVALID_STATE", "SYNTAX", "INVALID_MODIFICATION",
	"NAMESPACE", "INVALID_ACCESS", "VALIDATION", "TYPE_MISMATCH", "SECURITY", "NETWORK",
	"ABORT", "URL_MISMATCH", "QUOTA_EXCEEDED", "TIMEOUT", "INVALID_NODE_TYPE",
	"DATA_CLONE"];

const define = Object.defineProperty;
const indexOf = Function.prototype.call.bind(Array.prototype.indexOf);
const replace = Function.prototype.call.bind(String.prototype.replace);

class DOMException extends Error {
	#name;
	#message;

	constructor(message = "", options = "Error") {
		super(`${message}`);
		const named = typeof options === "object" && options !== null;
		const name = named ? options.name : options;

		this.#message = this.message;
		this.#name = name === undefined ? "Error" : `${name}`;
		delete this.message; /* the prototype has a read-only accessor */
		if (typeof this.stack === "string") /* drop the frame of this constructor */
			define(this, "stack", { configurable: true, writable: true,
				value: replace(this.stack, /^ +at DOMException \(weft:.*\n/, "") });
		if (named && "cause" in options)
			define(this, "cause", { value: options.cause, configurable: true,
				enumerable: false, writable: true });
	}

	get name() {
		return this.#name;
	}

	get message() {
		return this.#message;
	}

	get code() {
		return this.#name === "" ? 0 : indexOf(NAMES, this.#name) + 1;
	}
}

for (const name of ["name", "message", "code"])
	define(DOMException.prototype, name, { enumerable: true });
define(DOMException.prototype, Symbol.toStringTag,
	{ value: "DOMException", configurable: true });
for (let i = 0; i < CONSTANTS.length; i++) {
	const constant = { value: i + 1, enumerable: true };

	define(DOMException, `${CONSTANTS[i]}_ERR`, constant);
	define(DOMException.prototype, `${CONSTANTS[i]}_ERR`, constant);
}

return { DOMException };
})
