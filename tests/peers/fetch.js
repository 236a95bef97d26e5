/* fetch.js - checks of fetch in scripts; the first argument is the part to run, the
 * second the URL. */
const [, , part, base] = process.argv;

function check(what, good) {
	if (!good)
		throw new Error(`not as it should be: ${what}`);
}

async function failure(promise) {
	try {
		await promise;
	} catch (error) {
		return error;
	}
	throw new Error("it should have failed");
}

async function checkReplies() {
	const response = await fetch(`${base}/hello`);

	check("ok", response.ok && response.status === 200 && response.statusText === "OK");
	check("type", response.headers.get("Content-Type") === "text/plain");
	check("url", response.url === `${base}/hello` && !response.redirected);
	check("body", !response.bodyUsed && await response.text() === "hello\n");
	check("used", response.bodyUsed && (await failure(response.text())) instanceof TypeError);
	check("404", !(await fetch(`${base}/nothing`)).ok);
	check("204", (await fetch(`${base}/status/204`)).body === null);
	check("HEAD", await (await fetch(`${base}/fields`, { method: "HEAD" })).text() === "");
	check("json", (await (await fetch(`${base}/stats`)).json()).requests > 0);
}

async function checkRequests() {
	const bytes = new Uint8Array(300_000).map((_, i) => i * 7);
	let response = await fetch(`${base}/mirror`, { method: "post", body: bytes });

	check("bytes", (await response.bytes()).every((byte, i) => byte === bytes[i]));
	response = await fetch(`${base}/echo`, { method: "PUT", body: "grün" });
	check("type", response.headers.get("content-type") === "text/plain;charset=UTF-8");
	check("text", await response.text() === "grün");
	response = await fetch(new Request(`${base}/fields`, { headers: [["X-Two", "1"]] }),
		{ headers: { "x-one": "a, b" } });
	check("fields", (await response.text()).toLowerCase().includes("x-one: a, b\n"));
	response = await fetch(`${base}/bytes`, { headers: { "X-Bytes": "caf\xe9 \xff" } });
	check("bytes in a field", response.headers.get("x-bytes") === "caf\xe9 \xff");
	check("no more than bytes", (await failure(fetch(base, { headers: { a: "\u2713" } })))
		instanceof TypeError);
	check("no init", (await fetch(`${base}/hello`, null)).ok);
	check("framing", (await failure(fetch(`${base}/hello`,
		{ headers: { "Content-Length": "1" } }))).cause.code === "WEFT_EINVAL");
}

async function checkStreams() {
	const response = await fetch(`${base}/chunks?size=5000000`);
	let size = 0, pieces = 0;

	for await (const piece of response.body) {
		for (let i = 0; i < piece.length; i += 997)
			check("letter", piece[i] === 97 + (size + i) % 26);
		size += piece.length;
		pieces++;
	}
	check("all of it, in pieces", size === 5_000_000 && pieces > 10);
	const reader = (await fetch(`${base}/slow?pieces=1000&ms=5`)).body.getReader();
	const first = await reader.read();

	check("the first piece comes before the last", !first.done && first.value.length < 3000);
	const pending = (async () => {
		for (;;)
			if ((await reader.read()).done)
				return "done";
	})();

	await reader.cancel();
	check("the end for who reads", await pending === "done");
	check("no more after that", (await reader.read()).done);
	const cut = (await fetch(`${base}/half`)).body.getReader();
	const read = () => cut.read();

	check("half", (await read()).value.length === 4);
	check("cut short", (await failure(read())) instanceof TypeError);
	check("which it stays", (await failure(read())) instanceof TypeError);
}

async function checkAborts() {
	const controller = new AbortController();
	const { signal } = controller;
	const response = await fetch(`${base}/slow?pieces=10000&ms=5`, { signal });
	const reading = response.text();

	setTimeout(() => controller.abort(), 20);
	check("in the body", (await failure(reading)).name === "AbortError");
	check("before it begins", (await failure(fetch(base, { signal }))).name === "AbortError");
	const late = AbortSignal.timeout(20);
	const events = fetch(`${base}/events`, { signal: late }).then((got) => got.text());

	check("by time", (await failure(events)).name === "TimeoutError");
	const reason = new Error("enough");
	const other = new AbortController();
	const opening = fetch(`${base}/hello`, { signal: other.signal });

	other.abort(reason);
	check("its own reason", await failure(opening) === reason);
}

async function checkRedirects() {
	const to = `${base}/moved?to=${encodeURIComponent(`${base}/hello`)}`;
	const response = await fetch(to);

	check("followed", response.redirected && response.url === `${base}/hello`);
	check("its body", await response.text() === "hello\n");
	const kept = await fetch(to, { redirect: "manual" });

	check("kept", kept.status === 302 && kept.headers.get("location") === `${base}/hello`);
	check("refused", (await failure(fetch(to, { redirect: "error" }))) instanceof TypeError);
}

async function checkManyAtOnce() {
	const replies = await Promise.all(Array.from({ length: 50 }, async (_, i) => {
		const response = await fetch(`${base}/mirror`, { method: "POST", body: `${i}` });

		return response.text();
	}));

	check("each its own", replies.every((text, i) => text === `${i}`));
}

async function checkFailures() {
	const refused = await failure(fetch("http://127.0.0.1:1/"));

	check("refused", refused instanceof TypeError && refused.message === "fetch failed"
		&& refused.cause.code === "WEFT_ECONNREFUSED");
	for (const url of ["/relative", "ftp://localhost/", "", "http://"])
		check(`not a URL: ${url}`, (await failure(fetch(url))) instanceof TypeError);
	check("a GET has no body",
		(await failure(fetch(base, { body: "x" }))) instanceof TypeError);
}

if (part === "all") {
	await checkReplies();
	await checkRequests();
	await checkStreams();
	await checkAborts();
	await checkRedirects();
	await checkManyAtOnce();
	await checkFailures();
	console.log("all is well");
} else if (part === "stranger") {
	console.log((await failure(fetch(base))).cause.message);
} else {
	console.log((await fetch(base)).status);
}
