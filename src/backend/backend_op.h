/* backend_op.h - the private layout of a weft_op.  Private.
 *
 * Needs: timer, base.
 */
#ifndef WEFT_BACKEND_OP_H
#define WEFT_BACKEND_OP_H

#include <weft/op.h>
#include "base/node.h"
#include "timer/wheel.h"

enum {
	WEFT__OP_NONE,    /* never started */
	WEFT__OP_SLEEP,
	WEFT__OP_OWN,     /* a custom op: weft_op_begin() */
	WEFT__OP_CLOSE,
	WEFT__OP_FILE_OPEN, /* from here on ops are submitted to the backend; */
	WEFT__OP_FILE_READ, /* ... file ops only if it accepts them */
	WEFT__OP_FILE_WRITE,
	WEFT__OP_FILE_SYNC,
	WEFT__OP_FILE_CLOSE,
	WEFT__OP_POLL,    /* from here on ops wait for a descriptor */
	WEFT__OP_RECV,
	WEFT__OP_RECV_MULTI,
	WEFT__OP_ACCEPT,
	WEFT__OP_SEND,
	WEFT__OP_SENDMSG,
	WEFT__OP_SENDFILE,
	WEFT__OP_CONNECT,
};

enum {
	WEFT__OP_IDLE,
	WEFT__OP_WAITING, /* for the backend, the wheel or the owner of a custom op */
	WEFT__OP_UNSENT,  /* io_uring: waits for room in the ring */
	WEFT__OP_SENT,    /* io_uring: the kernel has it */
	WEFT__OP_CANCELING, /* io_uring: the kernel has it, and must cancel it */
	WEFT__OP_THROTTLED, /* an accept that waits for a free descriptor */
	WEFT__OP_CANCEL_REQUESTED, /* a custom op whose owner is to be called to finish it */
	WEFT__OP_OWNER_NOTIFIED, /* a custom op whose owner has been called */
	WEFT__OP_DONE,    /* has its result; in the list of finished ops */
};

/* A part of a file to be sent. */
struct weft__file_part {
	int      file;
	uint64_t offset;
	uint64_t left;
};

/* Bytes per system call: one op must not hold the loop for long. */
#define WEFT__SENDFILE_MAX ((uint64_t)1 << 20)

/* Same layout as weft_op. */
struct weft__op {
	weft_op_fn on_done;
	void      *arg;
	weft_loop *loop;
	int64_t    result;
	bool       more;
	bool       pending;
	uint8_t    kind;      /* WEFT__OP_* */
	uint8_t    state;     /* WEFT__OP_* */
	union {
		uint16_t events;    /* poll: WEFT_READABLE, WRITABLE; WEFT_MULTI */
		bool     has_text;  /* custom op: an error text is stored for it */
	};
	bool       background;
	union {
		bool connecting;  /* connect(2) was called */
		bool queued;      /* custom op: in a pool's queue; under the pool's lock */
	};
	struct weft__wheel_entry entry; /* of its deadline, in the wheel */
	struct weft__node_head node; /* links the op in lists; in the inbox, if another
	                                thread has finished the op; while a custom op
	                                waits, its owner may use this member */
	union {
		struct {
			int32_t fd;
			union {
				int32_t  flags;  /* of recv(2), send(2), open(2) */
				uint32_t length; /* bytes to read or write */
			};
		};
		int64_t posted_result; /* custom op: its result, or a pointer to result and text */
		struct weft__op *before; /* until there is a result: link in a pool's queue, */
		const void *owned;       /* or data of the op's owner */
	};
	union {
		void                    *buf;
		const void              *data;
		const struct msghdr     *msg;
		const struct weft__file_part *part;
		const struct sockaddr   *addr;
		weft_op_cancel_fn        on_cancel;
	};
	union {
		size_t   size;
		void    *cancel_arg;
		uint64_t offset; /* in a file; for open, the mode */
	};
	int64_t    why;       /* the error that cancellation finishes it with */
};
WEFT_STATIC_ASSERT(sizeof(struct weft__op) == sizeof(weft_op), "one layout");

static inline struct weft__op *
weft__op_of(weft_op *op)
{
	return (struct weft__op *)(void *)op;
}

/* In `events` of a receive with many results: the receive is throttled.  A request that io_uring
 * executes delivers results nevertheless. */
#define WEFT__RECV_THROTTLED 0x8000u

/* Whether several results may come before the last one. */
static inline bool
weft__op_is_multi(const struct weft__op *op)
{
	return op->kind == WEFT__OP_RECV_MULTI || (op->events & WEFT_MULTI);
}

/* A call on a file: the io_uring backend turns it into a request, the blocking pool into a system
 * call. */
struct weft__file_call {
	uint8_t  kind; /* WEFT__OP_FILE_* */
	int32_t  fd;
	union {
		int32_t  flags;
		uint32_t length;
	};
	void    *buf;    /* data, or a path */
	uint64_t offset; /* or the mode */
};

static inline bool
weft__op_is_file(const struct weft__op *op)
{
	return op->kind >= WEFT__OP_FILE_OPEN && op->kind < WEFT__OP_POLL;
}

static inline struct weft__node *
weft__op_node(struct weft__op *op)
{
	return (struct weft__node *)(void *)&op->node;
}

#define weft__node_op(n) \
	((struct weft__op *)(void *)((char *)(n) - offsetof(struct weft__op, node)))
#define weft__entry_op(p) \
	((struct weft__op *)(void *)((char *)(p) - offsetof(struct weft__op, entry)))

#endif
