// adapter.js - promises of weft as the suite wants them: { deferred }.
//
// With WEFT_CALLS=far, calls are made where the suite makes them, which is outside of the
// loop's turns: as another thread would.  With WEFT_CALLS=near, those are kept, and made
// by the loop in its next turn, in order.  Turns are immediates of Node.  WEFT_PLANT has
// one made at once after each call instead, which the suite must find.
'use strict';

const native = require(process.env.WEFT_ADDON);
const near = process.env.WEFT_CALLS === 'near';
const planted = Boolean(process.env.WEFT_PLANT);

let kept = []; // calls for the next turn
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

// What a value is; `then` is looked at once.
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

// The handle is settled by the first of these; later ones do nothing.
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
