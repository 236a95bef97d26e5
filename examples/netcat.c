/* netcat.c - send standard input to a server and print its replies, with ops.
 *
 *     netcat tcp://127.0.0.1:7000
 *
 * Both directions proceed at once.  The end of the input ends only sending;
 * the program ends when the server closes the connection.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

struct session {
	int fd, error;
	weft_addr server;
	weft_op connect, receive, send, close;
	weft_op input; /* standard input is readable */
	char buf[4096];
	size_t size, sent;
};

static void
finish(struct session *session, int error)
{
	if (session->close.pending)
		return;
	session->error = error;
	weft_op_cancel(&session->input);
	weft_op_close(&session->close, session->fd); /* cancels its ops */
}

static void
send_rest(struct session *session)
{
	int rc;

	if (session->sent < session->size)
		rc = weft_op_send(&session->send, session->fd,
		                  session->buf + session->sent,
		                  session->size - session->sent, 0,
		                  weft_after(30 * WEFT_S));
	else
		rc = weft_op_poll(&session->input, STDIN_FILENO, WEFT_READABLE,
		                  WEFT_NEVER);
	if (rc < 0)
		finish(session, rc);
}

static void
on_sent(weft_op *op, int64_t result, void *arg)
{
	struct session *session = arg;

	(void)op;
	if (result < 0) {
		finish(session, (int)result);
		return;
	}
	session->sent += (size_t)result;
	send_rest(session);
}

static void
on_input(weft_op *op, int64_t result, void *arg)
{
	struct session *session = arg;
	ssize_t size;

	(void)op;
	if (result < 0)
		return; /* canceled by finish() */
	size = read(STDIN_FILENO, session->buf, sizeof session->buf);
	if (size <= 0) {
		shutdown(session->fd, SHUT_WR);
		return;
	}
	session->size = (size_t)size;
	session->sent = 0;
	send_rest(session);
}

static void
on_received(weft_op *op, int64_t result, void *arg)
{
	if (result > 0) /* the bytes are in a buffer of the loop */
		fwrite(weft_op_data(op), 1, (size_t)result, stdout);
	else
		finish(arg, (int)result);
}

static void
on_connected(weft_op *op, int64_t result, void *arg)
{
	struct session *session = arg;

	(void)op;
	if (result == 0)
		result = weft_op_recv_multi(&session->receive, session->fd,
		                            WEFT_NEVER);
	if (result < 0)
		finish(session, (int)result);
	else
		send_rest(session);
}

static int
start(struct session *session, weft_loop *loop)
{
	const struct sockaddr *to = (struct sockaddr *)session->server.bytes;

	weft_op_init(&session->connect, loop, on_connected, session);
	weft_op_init(&session->input, loop, on_input, session);
	weft_op_init(&session->send, loop, on_sent, session);
	weft_op_init(&session->receive, loop, on_received, session);
	weft_op_init(&session->close, loop, NULL, NULL);
	session->fd = socket(to->sa_family,
	                     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (session->fd < 0)
		return -errno;
	return weft_op_connect(&session->connect, session->fd, to,
	                       session->server.size, weft_after(5 * WEFT_S));
}

int
main(int argc, char **argv)
{
	weft_loop *loop = weft_loop_new(NULL);
	struct session session = { 0 };
	int rc = loop ? 0 : WEFT_ENOMEM;

	if (argc != 2 || weft_addr_parse(argv[1], &session.server) < 0) {
		fprintf(stderr, "usage: %s tcp://ADDRESS:PORT\n", argv[0]);
		return 2;
	}
	if (rc == 0)
		rc = start(&session, loop);
	if (rc == 0)
		rc = weft_loop_run(loop); /* until the connection is closed */
	if (rc == 0)
		rc = session.error;
	if (rc < 0)
		fprintf(stderr, "%s: %s\n", argv[1], weft_strerror(rc));
	return weft_loop_free(loop) < 0 || rc < 0;
}
