/* rate_limiter.js - at most so many calls in a span of time; the others wait their turn. */

class RateLimiter {
	#tokens;
	#waiting = [];
	#timer = null;

	constructor(count, ms) {
		this.count = count;
		this.ms = ms;
		this.#tokens = count;
	}

	async enter() {
		if (this.#tokens > 0 && this.#waiting.length === 0)
			this.#tokens--;
		else
			await new Promise((resolve) => this.#waiting.push(resolve));
		this.#timer ??= setTimeout(() => this.#refill(), this.ms);
	}

	#refill() {
		this.#timer = null;
		this.#tokens = this.count;
		while (this.#tokens > 0 && this.#waiting.length > 0) {
			this.#tokens--;
			this.#waiting.shift()();
		}
	}
}

const limiter = new RateLimiter(3, 30);
const began = performance.now();

await Promise.all(Array.from({ length: 10 }, async (_, i) => {
	await limiter.enter();
	console.log("call", i);
}));

console.log("ten calls took three spans:", performance.now() - began >= 90);
