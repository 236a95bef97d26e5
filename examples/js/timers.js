/* timers.js - timeouts, intervals and immediates, and the order in which they come. */

console.log("the script runs first");
queueMicrotask(() => console.log("a microtask: as soon as it has ended"));

setImmediate(() => {
	console.log("an immediate: in this turn of the loop");

	setTimeout(() => console.log("a timeout of 20 ms"), 20);
	setTimeout((who) => console.log(`hello, ${who}`), 5, "timer");

	const cancelled = setTimeout(() => console.log("never"), 10);
	clearTimeout(cancelled);

	let beats = 0;
	const heart = setInterval(() => {
		console.log(`beat ${++beats}`);
		if (beats === 3)
			clearInterval(heart);
	}, 30);
});
