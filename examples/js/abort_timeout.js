/* abort_timeout.js - work that can be given up: by hand, by time, by either. */

function sleep(ms, signal) {
	return new Promise((resolve, reject) => {
		signal.throwIfAborted();
		const timer = setTimeout(resolve, ms);

		signal.addEventListener("abort", () => {
			clearTimeout(timer);
			reject(signal.reason);
		}, { once: true });
	});
}

async function attempt(name, signal) {
	try {
		await sleep(60000, signal);
		console.log(`${name}: done`);
	} catch (reason) {
		console.log(`${name}: ${reason.name}: ${reason.message}`);
	}
}

const button = new AbortController();
setTimeout(() => button.abort(), 10);
await attempt("by hand", button.signal);
await attempt("by time", AbortSignal.timeout(10));

const either = AbortSignal.any([new AbortController().signal, AbortSignal.timeout(10)]);
await attempt("by either", either);

const closing = new AbortController();
closing.abort(new Error("we are closing"));
await attempt("with a reason", closing.signal);
