/* suspend_net_scenarios.c - datagrams, disturbed while a threadlet waits for them.
 *
 * A message that a disturbed receive did not take is there for the next receive.
 */
#include <string.h>
#include "fault.h"
#include "suspend.h"

struct wire {
	weft_dgram *in, *out;
	weft_addr to;
	int spoken, heard;
};

static bool
open_wire(struct wire *wire)
{
	*wire = (struct wire){ 0 };
	EXPECT(weft_dgram_open("udp://127.0.0.1:0", NULL, &wire->in) == 0);
	EXPECT(weft_dgram_open("udp://127.0.0.1:0", NULL, &wire->out) == 0);
	return weft_dgram_local(wire->in, &wire->to) == 0;
}

static int
recv_one(struct wire *wire, uint64_t deadline_ns)
{
	char text[8] = "";
	weft_message message = { .data = text, .size = sizeof(text) };
	int rc = weft_dgram_recv(wire->in, &message, 1, deadline_ns);

	if (rc > 0) {
		EXPECT(message.size == 4 && memcmp(text, "weft", 4) == 0);
		wire->heard++;
	}
	return rc;
}

static int
hear(void *arg)
{
	struct wire *wire = arg;
	enum went went = WELL;

	for (int i = 0; i < 2 && went == WELL; i++)
		RETRY(went, how(recv_one(wire, WEFT_NEVER), 1));
	return 0;
}

static int
speak(void *arg)
{
	struct wire *wire = arg;
	weft_message message = { .data = (char[]){ "weft" }, .size = 4 };

	message.addr = wire->to;
	for (int i = 0; i < 2; i++) {
		(void)nap(1);
		EXPECT(weft_dgram_send(wire->out, &message, 1, WEFT_NOWAIT) == 1);
		wire->spoken++;
	}
	return 0;
}

int
run_dgram(void *arg)
{
	struct wire wire;
	weft_scope scope;

	(void)arg;
	EXPECT(open_wire(&wire));
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, hear, &wire);
	(void)start_in(&scope, NULL, speak, &wire);
	EXPECT(weft_scope_close(&scope) == 0);
	while (recv_one(&wire, WEFT_NOWAIT) > 0)
		;
	EXPECT(wire.heard == wire.spoken);
	weft_dgram_close(wire.in);
	weft_dgram_close(wire.out);
	return 0;
}

static int
hear_the_end(void *arg)
{
	enum went went;

	RETRY(went, how(recv_one(arg, WEFT_NEVER), WEFT_ESHUTDOWN));
	return 0;
}

/* Closing cannot be disturbed.  A receiver that was disturbed before has already returned. */
int
run_dgram_close(void *arg)
{
	struct wire wire;
	weft_scope scope;

	(void)arg;
	EXPECT(open_wire(&wire));
	EXPECT(weft_scope_open(&scope, 0, WEFT_NEVER) == 0);
	(void)start_in(&scope, NULL, hear_the_end, &wire);
	(void)nap(2);
	weft_dgram_close(wire.in);
	EXPECT(weft_scope_close(&scope) == 0);
	weft_dgram_close(wire.out);
	return 0;
}
