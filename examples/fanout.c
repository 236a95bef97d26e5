/* fanout.c - query three shops at once; after half a second use the answers. */
#include <stdio.h>
#include <weft/weft.h>

struct shop {
	const char *name;
	uint64_t delay_ns;
	int price;
};

static int
ask(void *arg)
{
	const struct shop *shop = arg;
	int rc = weft_sleep(shop->delay_ns); /* the network */

	return rc < 0 ? rc : shop->price;
}

static int
run(void *arg)
{
	struct shop shops[] = {
		{ "near", 20 * WEFT_MS, 300 },
		{ "far", 60 * WEFT_S, 200 },
		{ "middle", 40 * WEFT_MS, 250 },
	};
	weft_threadlet asking[3];
	weft_scope scope;
	int price, rc;

	(void)arg;
	rc = weft_scope_open(&scope, 0, weft_after(500 * WEFT_MS));
	if (rc < 0)
		return rc;
	for (int i = 0; i < 3; i++)
		asking[i] = weft_scope_go(&scope, ask, &shops[i]);
	for (int i = 0; i < 3; i++) {
		rc = weft_join(asking[i], &price, WEFT_NEVER);
		if (rc == 0 && price >= 0)
			printf("%s: %d\n", shops[i].name, price);
		else
			printf("%s: %s\n", shops[i].name,
			       weft_strerror(rc < 0 ? rc : price));
	}
	return weft_scope_close(&scope);
}

int
main(void)
{
	return weft_main(NULL, run, NULL);
}
