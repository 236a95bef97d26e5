/* errors.js - errors that nobody catches, and where they go. */

class ConfigError extends Error {
	name = "ConfigError";
}

function load() {
	try {
		JSON.parse("{ broken");
	} catch (cause) {
		throw new ConfigError("cannot read the settings", { cause });
	}
}

try {
	load();
} catch (error) {
	console.log(`${error}`, "because of", error.cause.name);
}

/* One that is thrown in a callback arrives here, or else it ends the program. */
addEventListener("error", (event) => {
	console.log("error event:", event.message);
	event.preventDefault();
});
setTimeout(() => { throw new TypeError("thrown by a timer"); }, 1);
queueMicrotask(() => reportError(new Error("reported by hand")));

/* So does a promise that is rejected while nobody looks. */
addEventListener("unhandledrejection", (event) => {
	console.log("unhandled:", event.reason.message);
	event.preventDefault();
});
addEventListener("rejectionhandled", () => console.log("handled after all"));
const late = Promise.reject(new Error("rejected"));
setTimeout(() => late.catch(() => {}), 10);

setTimeout(() => console.log("the program goes on to its end"), 30);
