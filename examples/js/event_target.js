/* event_target.js - an object that tells others what happens to it. */

class Thermometer extends EventTarget {
	#degrees = 20;

	get degrees() {
		return this.#degrees;
	}

	set degrees(value) {
		const event = new CustomEvent("change", {
			cancelable: true,
			detail: { from: this.#degrees, to: value },
		});

		if (this.dispatchEvent(event))
			this.#degrees = value;
	}
}

const room = new Thermometer();
const watching = new AbortController();

room.addEventListener("change", ({ detail }) => console.log(`${detail.from} -> ${detail.to}`),
	{ signal: watching.signal });
room.addEventListener("change", () => console.log("the first change"), { once: true });
room.addEventListener("change", (event) => {
	if (event.detail.to > 30)
		event.preventDefault();
});

room.degrees = 22;
room.degrees = 45;
console.log("it is", room.degrees);
watching.abort();
room.degrees = 18;
console.log("it is", room.degrees);
