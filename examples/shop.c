/* shop.c - a shop in Redis: scripts, transactions, messages, promises.
 *
 *     shop [ADDRESS]
 *
 * Five customers order at once, and there are three items.  A script takes
 * one from the stock; a transaction books the order and notifies the
 * warehouse, which subscribes to orders.
 */
#include <inttypes.h>
#include <stdio.h>
#include <weft/redis.h>
#include <weft/weft.h>

#define STOCK 3

static weft_redis *redis;

/* Returns 1 if there was an item left. */
static int
take_item(void)
{
	static const char script[] =
		"if tonumber(redis.call('GET', KEYS[1])) == 0 then return 0 end"
		" redis.call('DECR', KEYS[1]) return 1";
	weft_span args[] = { weft_text("1"), weft_text("shop:stock") };
	weft_redis_reply *reply = NULL;
	int64_t taken = 0;
	int rc = weft_redis_script(redis, script, args, 2, &reply,
	                           weft_after(5 * WEFT_S));

	if (rc == 0)
		rc = weft_redis_integer(reply, &taken);
	weft_redis_reply_free(reply);
	return rc < 0 ? rc : (int)taken;
}

static int
book(const char *customer)
{
	weft_span push[] = { weft_text("RPUSH"), weft_text("shop:orders"),
		             weft_text(customer) };
	weft_span earn[] = { weft_text("INCRBY"), weft_text("shop:cents"),
		             weft_text("250") };
	weft_span notify[] = { weft_text("PUBLISH"), weft_text("shop:ordered"),
		               weft_text(customer) };
	weft_redis_command commands[] = { { push, 3 },
		                          { earn, 3 },
		                          { notify, 3 } };

	return weft_redis_multi(redis, commands, 3, NULL,
	                        weft_after(5 * WEFT_S));
}

static int
order(void *customer)
{
	int rc = take_item();

	if (rc == 0)
		printf("%s: sold out\n", (char *)customer);
	return rc <= 0 ? rc : book(customer);
}

/* Ship the orders, which arrive as lists of channel and customer. */
static int
ship(weft_redis_subscription *orders)
{
	int rc = 0;

	for (int i = 0; i < STOCK && rc == 0; i++) {
		weft_redis_reply *message = NULL;
		weft_span customer;

		rc = weft_redis_subscription_recv(orders, &message,
		                                  weft_after(5 * WEFT_S));
		if (rc == 0)
			rc = weft_redis_text(weft_redis_item(message, 1),
			                     &customer);
		if (rc == 0)
			printf("ship to %s\n", (const char *)customer.data);
		weft_redis_reply_free(message);
	}
	return rc;
}

/* Three questions in one round trip. */
static int
print_totals(void)
{
	static const char *const words[][2] = { { "LLEN", "shop:orders" },
		                                { "GET", "shop:cents" },
		                                { "GET", "shop:stock" } };
	weft_promise *replies[3], *all;
	int64_t totals[3] = { 0 };
	weft_value value;
	int rc;

	for (int i = 0; i < 3; i++) {
		weft_span args[] = { weft_text(words[i][0]),
			             weft_text(words[i][1]) };

		replies[i] = weft_redis_call_promise(redis, args, 2,
		                                     weft_after(5 * WEFT_S));
	}
	all = weft_promise_all(replies, 3);
	rc = weft_await(all, &value, WEFT_NEVER);
	for (int i = 0; i < 3 && rc == 0; i++) {
		const weft_list *list = value.as.ptr;

		rc = weft_redis_integer(list->items[i].as.ptr, &totals[i]);
	}
	weft_promise_unref(all);
	if (rc == 0)
		printf("%" PRId64 " orders, %" PRId64 " cents, %" PRId64
		       " left\n",
		       totals[0], totals[1], totals[2]);
	return rc;
}

static int
sell(void)
{
	static char customers[][4] = { "ann", "bob", "cid", "dee", "eve" };
	static const char *const channels[] = { "shop:ordered", NULL };
	weft_redis_subscription *orders = NULL;
	weft_scope scope;
	int rc = weft_redis_callf(redis, NULL, weft_after(5 * WEFT_S),
	                          "MSET shop:stock %d shop:cents 0", STOCK);

	if (rc == 0)
		rc = weft_redis_callf(redis, NULL, weft_after(5 * WEFT_S),
		                      "DEL shop:orders");
	if (rc == 0)
		rc = weft_redis_subscribe(redis, channels, &orders,
		                          weft_after(5 * WEFT_S));
	if (rc < 0)
		return rc;
	weft_scope_open(&scope, WEFT_FAIL_FAST, WEFT_NEVER);
	for (int i = 0; i < 5; i++)
		if (weft_scope_go(&scope, order, customers[i]) < 0)
			weft_scope_cancel(&scope);
	rc = ship(orders); /* a failure of an order cancels this, too */
	if (rc < 0)
		weft_scope_cancel(&scope);
	if (weft_scope_close(&scope) < 0)
		rc = scope.error;
	weft_redis_subscription_close(orders);
	return rc < 0 ? rc : print_totals();
}

static void
print_traffic(void)
{
	struct weft_redis_stats stats;

	if (weft_redis_stats(redis, &stats) == 0)
		printf("%" PRIu64 " bytes sent, over %" PRIu64 " connections\n",
		       stats.bytes_out, stats.connects);
}

static int
run(void *address)
{
	int rc = weft_redis_open(address, NULL, &redis);

	if (rc == 0)
		rc = sell();
	if (rc == 0)
		print_traffic();
	weft_redis_close(redis);
	return rc;
}

int
main(int argc, char **argv)
{
	static char here[] = "redis://127.0.0.1";

	return weft_main(NULL, run, argc > 1 ? argv[1] : here);
}
