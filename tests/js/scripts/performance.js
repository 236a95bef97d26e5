/* The performance clock, marks, measures and observers. */
"use strict";

const log = (...words) => console.log(...words);
const thrown = (run) => {
	try {
		run();
		return "nothing";
	} catch (error) {
		return error.name;
	}
};

const begin = performance.now();
log(begin > 0, performance.now() >= begin, performance.timeOrigin > 1.6e12);
log(Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000);
log(Object.prototype.toString.call(performance), typeof performance.toJSON().timeOrigin);

const a = performance.mark("a", { startTime: 10, detail: { n: 1 } });
log(a.name, a.entryType, a.startTime, a.duration, a.detail);
log(a instanceof PerformanceMark, a instanceof PerformanceEntry, a);
log(performance.mark("now").startTime >= begin, performance.mark("now").detail);
performance.mark("b", { startTime: 30 });
performance.mark("a", { startTime: 20 });
log(performance.getEntriesByName("a").map((entry) => entry.startTime));

const show = ({ name, startTime, duration, detail }) => log(name, startTime, duration, detail);
show(performance.measure("between", "a", "b"));
show(performance.measure("numbers", { start: 5, end: 12, detail: "d" }));
show(performance.measure("names", { start: "a", end: "b" }));
show(performance.measure("lasting", { start: 5, duration: 3 }));
show(performance.measure("ending", { end: "b", duration: 7 }));
show(performance.measure("backwards", { start: 9, end: 4 }));
const long = performance.measure("from the beginning");
log(long.startTime, long.duration >= begin, long instanceof PerformanceMeasure);
log(performance.measure("from a").startTime, performance.measure("from b", "b").startTime);
log(thrown(() => performance.measure("x", "unknown")), thrown(() =>
	performance.measure("x", "a", "unknown")));
log(thrown(() => performance.measure("x", { start: 1, end: 2, duration: 1 })));
log(thrown(() => performance.measure("x", { start: 1 }, "b")));
log(thrown(() => performance.mark()), thrown(() => performance.mark("x", { startTime: -1 })));
log(thrown(() => new PerformanceEntry()), thrown(() => new PerformanceMeasure()));

log(performance.getEntriesByType("measure").map((entry) => entry.name));
log(performance.getEntries().map((entry) => entry.startTime).every((time, i, all) =>
	i === 0 || all[i - 1] <= time));
log(performance.getEntriesByName("a", "mark").length, performance.getEntriesByName("a",
	"measure").length);
log(performance.getEntriesByType("nothing"), performance.getEntriesByName("nothing"));
performance.clearMarks("a");
log(performance.getEntriesByName("a"), performance.getEntriesByName("b").length);
performance.clearMarks();
log(performance.getEntriesByType("mark").length,
	performance.getEntriesByType("measure").length > 5);
performance.clearMeasures("between");
log(performance.getEntriesByName("between").length);
performance.clearMeasures();
log(performance.getEntries().length);
log(JSON.parse(JSON.stringify(performance.mark("j", { startTime: 1, detail: [1] }))));
log(new PerformanceMark("loose").name, performance.getEntriesByName("loose").length);

const observer = new PerformanceObserver((list, self) => {
	log("observed", list.getEntries().map((entry) => entry.name), self === observer);
	log(list.getEntriesByType("mark").length, list.getEntriesByName("m2").length);
	observer.disconnect();
	performance.mark("unseen");
	setTimeout(observeBuffered, 1);
});
observer.observe({ entryTypes: ["mark", "measure"] });
performance.mark("m1");
performance.measure("m2", { start: 1, end: 2 });
log("before the observer");
queueMicrotask(() => log("a microtask is before it"));

const taker = new PerformanceObserver(() => log("never: taken"));
taker.observe({ type: "mark" });
performance.mark("taken");
log(taker.takeRecords().map((entry) => entry.name), taker.takeRecords());
taker.disconnect();
log(thrown(() => new PerformanceObserver()), thrown(() =>
	new PerformanceObserver(() => {}).observe({})));
log(thrown(() => new PerformanceObserver(() => {}).observe({ entryTypes: ["mark"],
	type: "mark" })));
log(PerformanceObserver.supportedEntryTypes.includes("measure"));

function observeBuffered() {
	const buffered = new PerformanceObserver((list) => {
		log("buffered", list.getEntries().map((entry) => entry.name));
		buffered.disconnect();
	});

	buffered.observe({ type: "measure", buffered: true });
}
