/* performance_marks.js - how long did it take? */

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const observer = new PerformanceObserver((list) => {
	for (const entry of list.getEntries())
		console.log(`observed ${entry.entryType} "${entry.name}"`, entry.detail);
	observer.disconnect();
});
observer.observe({ entryTypes: ["measure"] });

performance.mark("begin");
await sleep(20);
performance.mark("loaded");
await sleep(20);
performance.measure("loading", { start: "begin", end: "loaded", detail: { files: 3 } });
performance.measure("all of it", "begin");

const [loading] = performance.getEntriesByName("loading");
const [all] = performance.getEntriesByName("all of it");
console.log("at least as long as it slept:", loading.duration >= 20, all.duration >= 40);
console.log("the parts fit in the whole:", loading.duration <= all.duration);
console.log(performance.getEntriesByType("mark").map((mark) => mark.name));
performance.clearMarks();
performance.clearMeasures();
console.log("left:", performance.getEntries());
