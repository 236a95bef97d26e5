/* rows.js - the rows of scripts, the same for weft and Node.  It prints nanoseconds per
 * operation.
 *
 *     js.set_clear    set a timeout and clear it, while a thousand others are set
 *     js.fire_1e6     a million timeouts of one delay, from the first that fires to the last
 */
const OTHERS = 1000;
const PAIRS = 200_000;
const TIMERS = 1_000_000;

function never() {
	throw new Error("a timeout that was cleared has fired");
}

function setAndClear(count) {
	const begin = performance.now();

	for (let i = 0; i < count; i++)
		clearTimeout(setTimeout(never, 1000 + i % 1000));
	return (performance.now() - begin) * 1e6 / count;
}

function measureSetClear() {
	const others = Array.from({ length: OTHERS }, (_, i) => setTimeout(never, 60_000 + i));

	setAndClear(PAIRS / 10);
	console.log(setAndClear(PAIRS));
	others.forEach((timer) => clearTimeout(timer));
}

function measureFire() {
	let fired = 0, begin;

	function fire() {
		if (fired++ === 0)
			begin = performance.now();
		else if (fired === TIMERS)
			console.log((performance.now() - begin) * 1e6 / (TIMERS - 1));
	}
	for (let i = 0; i < TIMERS; i++)
		setTimeout(fire, 1000);
}

const rows = { "js.set_clear": measureSetClear, "js.fire_1e6": measureFire };

rows[process.argv[2]]();
