/* page.js - start: the page's own stream of events, its header, and recording a trace. */
(function () {
"use strict";

const { find, setText, set, span } = globalThis.weft;

const STATES = { connecting: "connecting", live: "live", lost: "lost, reconnecting",
	paused: "paused" };

/* --- the header ----------------------------------------------------------- */

function showHead(snapshot) {
	setText(find("title"), snapshot.title || snapshot.program);
	document.title = snapshot.title || snapshot.program;
	setText(find("uptime"), `up ${span(snapshot.uptime_ns)}`);
	setText(find("process"), `pid ${snapshot.pid} · ${weft.processText(snapshot.process)}`);
	setText(find("version"), `${snapshot.program} runs on weft ${snapshot.version}`);
}

/* The text is set once, with the time: screen readers would repeat a text that keeps changing. */
function showLost() {
	const time = new Date().toLocaleTimeString("en-GB");

	setText(find("lost"), `The program does not respond. This page shows its state at ${time} `
		+ "and continues when the program responds again.");
}

function showState(state) {
	const lost = state === "lost";

	weft.live = state === "live";
	set(find("state"), "data-state", state);
	setText(find("state-text"), STATES[state]);
	document.body.classList.toggle("stale", lost);
	if (lost)
		showLost();
	find("lost").hidden = !lost;
}

/* --- the trace ------------------------------------------------------------ */

function save(blob, name) {
	const link = weft.make("a", { href: URL.createObjectURL(blob), download: name });

	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

async function record(seconds) {
	const url = weft.url(`debug/trace?seconds=${seconds}`);
	const answer = await fetch(url, { cache: "no-store" });

	if (answer.status === 409)
		throw new Error("a trace is already being recorded");
	if (!answer.ok)
		throw new Error(`the program answered ${answer.status}`);
	save(await answer.blob(), "trace.json");
}

async function takeTrace() {
	const button = find("trace"), seconds = find("trace-seconds").value;

	button.disabled = true;
	setText(find("trace-state"), `Recording for ${seconds} s …`);
	try {
		await record(seconds);
		setText(find("trace-state"), "Saved as trace.json. Open it in ui.perfetto.dev.");
	} catch (error) {
		setText(find("trace-state"), `No trace: ${error.message}.`);
	}
	button.disabled = false;
}

/* --- start ---------------------------------------------------------------- */

document.addEventListener("DOMContentLoaded", () => {
	const loops = weft.startLoops(), threadlets = weft.startThreadlets();
	let pid = null;

	weft.startGraphs();
	weft.stream("events", { loops: (snapshot) => {
		if (pid !== null && pid !== snapshot.pid)
			loops.forget();
		pid = snapshot.pid;
		showHead(snapshot);
		loops.show(snapshot);
		threadlets.showLoops(snapshot.loops);
	} }, showState);
	find("trace").addEventListener("click", takeTrace);
	for (const link of document.querySelectorAll("a[href^='debug/'], a[href='metrics']"))
		link.href = weft.url(link.getAttribute("href"));
});
})();
