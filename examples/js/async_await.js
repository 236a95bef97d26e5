/* async_await.js - several slow things at once, and what to do when one of them fails. */

const sleep = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));

async function price(name) {
	const prices = { apple: 3, pear: 4, plum: 2 };

	await sleep(10);
	if (!(name in prices))
		throw new RangeError(`no price for ${name}`);
	return prices[name];
}

async function total(...names) {
	const prices = await Promise.all(names.map(price));

	return prices.reduce((sum, one) => sum + one, 0);
}

console.log("total:", await total("apple", "pear", "plum"));

try {
	await total("apple", "stone");
} catch (error) {
	console.log(`${error.name}: ${error.message}`);
}

for (const { status, value, reason } of await Promise.allSettled([price("plum"), price("stone")]))
	console.log(status, value ?? reason.message);

console.log("first:", await Promise.race([sleep(500, "slow"), sleep(5, "quick")]));
console.log("any:", await Promise.any([price("stone"), price("pear")]));
