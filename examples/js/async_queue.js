/* async_queue.js - a queue between who makes and who takes, with a bound. */

class Queue {
	#items = [];
	#takers = [];
	#putters = [];
	#closed = false;

	constructor(room) {
		this.room = room;
	}

	async put(item) {
		while (this.#items.length >= this.room)
			await new Promise((resolve) => this.#putters.push(resolve));
		this.#items.push(item);
		this.#takers.shift()?.();
	}

	close() {
		this.#closed = true;
		this.#takers.forEach((wake) => wake());
	}

	async *[Symbol.asyncIterator]() {
		for (;;) {
			while (this.#items.length === 0) {
				if (this.#closed)
					return;
				await new Promise((resolve) => this.#takers.push(resolve));
			}
			yield this.#items.shift();
			this.#putters.shift()?.();
		}
	}
}

const queue = new Queue(2);
let most = 0;
let ahead = 0;

async function produce() {
	for (let i = 1; i <= 6; i++) {
		await queue.put(i * i);
		most = Math.max(most, ++ahead);
	}
	queue.close();
}

async function consume() {
	let sum = 0;

	for await (const item of queue) {
		ahead--;
		console.log("took", item);
		await new Promise((resolve) => setTimeout(resolve, 1));
		sum += item;
	}
	return sum;
}

const [sum] = await Promise.all([consume(), produce()]);
console.log("sum", sum, "- never far ahead:", most <= 3);
