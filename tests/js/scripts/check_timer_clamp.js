/* Timers that set timers: from the sixth level on they wait at least 4 ms, as HTML
 * requires.  The script checks only minimum times: a busy machine makes waits longer. */
"use strict";

function same(got, want, what) {
	if (!Object.is(got, want))
		throw new Error(`${what}: ${String(got)} instead of ${String(want)}`);
}

const LEVELS = 20;
const SLACK = 0.001; /* the clock is read as a floating-point number */

function chain(level, times, done) {
	times.push(performance.now());
	if (level === LEVELS)
		done(times);
	else
		setTimeout(chain, 0, level + 1, times, done);
}

function repeated(done) {
	const times = [performance.now()];
	const id = setInterval(() => {
		times.push(performance.now());
		if (times.length < LEVELS)
			return;
		clearInterval(id);
		done(times);
	}, 0);
}

const waits = (times) => times.slice(1).map((time, i) => time - times[i]);

chain(0, [], (times) => {
	for (const [level, wait] of waits(times).entries())
		same(wait + SLACK >= (level >= 6 ? 4 : 0), true,
			`wait of level ${level}: ${wait}`);
	repeated((beats) => {
		for (const [level, wait] of waits(beats).entries())
			same(wait + SLACK >= (level >= 7 ? 4 : 0), true,
				`wait of call ${level}: ${wait}`);
		immediates(0);
	});
});

/* Immediates have no clamp, and timers that they set start at the first level. */
function immediates(count) {
	if (count < 1000)
		setImmediate(immediates, count + 1);
	else
		console.log("ok");
}
