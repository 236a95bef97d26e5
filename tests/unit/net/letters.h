/* letters.h - shared by the datagram tests: sockets on the loopback address, and messages. */
#ifndef WEFT_TEST_LETTERS_H
#define WEFT_TEST_LETTERS_H

#include <weft/dgram.h>
#include "unit/threadlet/sched.h"

#define LOOPBACK "udp://127.0.0.1:0"

static inline weft_dgram *
open_at(const char *address)
{
	weft_dgram *dgram = NULL;

	OK(weft_dgram_open(address, NULL, &dgram));
	return dgram;
}

static inline weft_addr
local_of(weft_dgram *dgram)
{
	weft_addr addr;

	OK(weft_dgram_local(dgram, &addr));
	return addr;
}

/* Opens a socket that is connected to `peer`. */
static inline weft_dgram *
open_to(const char *address, const weft_addr *peer)
{
	weft_dgram_opts opts = { .peer = *peer };
	weft_dgram *dgram = NULL;

	OK(weft_dgram_open(address, &opts, &dgram));
	return dgram;
}

/* Returns a loopback address at which no socket is open. */
static inline weft_addr
nowhere(void)
{
	weft_dgram *dgram = open_at(LOOPBACK);
	weft_addr addr = local_of(dgram);

	weft_dgram_close(dgram);
	return addr;
}

static inline weft_message
letter(const char *text, const weft_addr *to)
{
	weft_message message = { .data = (void *)(uintptr_t)text,
		                 .size = strlen(text) };

	if (to)
		message.addr = *to;
	return message;
}

/* Sends to the connected peer if `to` is NULL. */
static inline int
send_text(weft_dgram *from, const weft_addr *to, const char *text)
{
	weft_message message = letter(text, to);

	return weft_dgram_send(from, &message, 1, WEFT_NOWAIT);
}

struct got {
	char         text[64];
	weft_message message;
};

/* Receives one message and terminates its text with a NUL. */
static inline int
recv_text(weft_dgram *dgram, struct got *got, uint64_t deadline_ns)
{
	int rc;

	got->message = (weft_message){ .data = got->text,
		                       .size = sizeof(got->text) - 1 };
	rc = weft_dgram_recv(dgram, &got->message, 1, deadline_ns);
	if (rc > 0)
		got->text[got->message.size] = '\0';
	return rc;
}

#define CHECK_GOT(dgram, want)                                           \
	do {                                                             \
		struct got got_;                                         \
		CHECK_EQ(recv_text(dgram, &got_, WEFT_NOWAIT), 1);          \
		CHECK_STR(got_.text, want);                              \
	} while (0)

#endif
