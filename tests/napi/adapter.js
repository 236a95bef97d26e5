// adapter.js - weft's promises in the form that the suite needs: { deferred }.
//
// With WEFT_CALLS=far, calls are made where the suite makes them, outside of the loop's
// iterations, as another thread would make them.  With WEFT_CALLS=near, calls are queued,
// and the loop makes them in its next iteration, in order.  Loop iterations run as
// immediates of Node.  WEFT_PLANT plants a mistake: the loop runs an iteration right after
// each call, which the suite must detect.
'use strict';

const native = require(process.env.WEFT_ADDON);
const near = process.env.WEFT_CALLS === 'near';
const planted = Boolean(process.env.WEFT_PLANT);

let kept = []; // calls for the next iteration
let turning = false;
let due = false;

function make_calls() {
	for (let i = 0; i < kept.length; i++)
		kept[i]();
	kept = [];
}

function turn() {
	turning = true;
	due = native.run(make_calls);
	turning = false;
	if (due)
		setImmediate(turn);
}

function call(fn) {
	if (near && (!turning || kept.length > 0))
		kept.push(fn);
	else
		fn();
	if (planted && !turning) {
		turn();
	} else if (!due && !turning) {
		due = true;
		setImmediate(turn);
	}
}

class Promised {
	then(fulfilled, rejected) {
		const next = new Promised();

		call(() => {
			next.handle = native.then(this.handle, handler(fulfilled),
				handler(rejected));
		});
		return next;
	}
}

// Describes a value; reads `then` once.
function lift(x) {
	if (x instanceof Promised)
		return { promise: x.handle };
	if (x === null || (typeof x !== 'object' && typeof x !== 'function'))
		return { value: x };
	const then = x.then;

	if (typeof then !== 'function')
		return { value: x };
	return { then: (handle) => settle_by(handle, x, then) };
}

// The first of these calls settles the promise of the handle; later ones do nothing.
function settle_by(handle, x, then) {
	try {
		then.call(x, (y) => resolve(handle, y), (reason) => reject(handle, reason));
	} catch (thrown) {
		reject(handle, thrown);
	}
}

function resolve_now(handle, x) {
	let box;

	try {
		box = lift(x);
	} catch (thrown) {
		native.reject(handle, { value: thrown });
		return;
	}
	native.resolve(handle, box);
}

function resolve(handle, x) {
	call(() => resolve_now(handle, x));
}

function reject(handle, reason) {
	call(() => native.reject(handle, { value: reason }));
}

function handler(fn) {
	return typeof fn === 'function' ? (box) => lift(fn(box.value)) : null;
}

exports.deferred = () => {
	const promise = new Promised();

	call(() => {
		promise.handle = native.make();
	});
	return {
		promise,
		resolve: (x) => call(() => resolve_now(promise.handle, x)),
		reject: (reason) => call(() => native.reject(promise.handle, { value: reason })),
	};
};
