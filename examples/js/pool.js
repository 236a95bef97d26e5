/* pool.js - many tasks, a few at a time; results in the order of the tasks. */

async function pool(tasks, width) {
	const results = new Array(tasks.length);
	let next = 0;

	async function worker() {
		while (next < tasks.length) {
			const mine = next++;

			try {
				results[mine] = { value: await tasks[mine]() };
			} catch (error) {
				results[mine] = { error: error.message };
			}
		}
	}
	await Promise.all(Array.from({ length: width }, worker));
	return results;
}

let running = 0;
let most = 0;

const task = (i) => async () => {
	most = Math.max(most, ++running);
	await new Promise((resolve) => setTimeout(resolve, (i * 7) % 5 + 1));
	running--;
	if (i === 3)
		throw new Error(`task ${i} failed`);
	return i * 10;
};

console.log(await pool(Array.from({ length: 8 }, (_, i) => task(i)), 3));
console.log("at most at a time:", most);
