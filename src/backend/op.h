/* op.h - what lies in the opaque part of a weft_op.  Private.
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
	WEFT__OP_OWN,     /* weft_op_begin() */
	WEFT__OP_CLOSE,
	WEFT__OP_FILE_OPEN, /* from here on they are with the backend, */
	WEFT__OP_FILE_READ, /* these if it has files */
	WEFT__OP_FILE_WRITE,
	WEFT__OP_FILE_SYNC,
	WEFT__OP_FILE_CLOSE,
	WEFT__OP_POLL,    /* from here on they wait for a descriptor */
	WEFT__OP_RECV,
	WEFT__OP_RECV_MULTI,
	WEFT__OP_RECVMSG,
	WEFT__OP_ACCEPT,
	WEFT__OP_SEND,
	WEFT__OP_SENDMSG,
	WEFT__OP_SENDFILE,
	WEFT__OP_CONNECT,
};

enum {
	WEFT__OP_IDLE,
	WEFT__OP_WAITING, /* with the backend, the wheel or its owner */
	WEFT__OP_UNSENT,  /* io_uring: waits for room in the ring */
	WEFT__OP_SENT,    /* io_uring: the kernel has it */
	WEFT__OP_CANCELING, /* ... and is asked to give it back */
	WEFT__OP_PAUSED,  /* an accept that waits for descriptors to be had */
	WEFT__OP_ASKED,   /* an own kind, whose owner is to be told to finish it */
	WEFT__OP_TOLD,    /* ... and has been */
	WEFT__OP_DONE,    /* has its result and is in the list of finished ops */
};

/* Bytes of a file that are to be sent. */
struct weft__file_part {
	int      file;
	uint64_t offset;
	uint64_t left;
};

#define WEFT__SENDFILE_MAX ((uint64_t)1 << 20) /* by one call: others have their turn */

/* Laid out as weft_op. */
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
		uint16_t events;    /* of poll: WEFT_READABLE, WRITABLE; WEFT_MULTI */
		bool     has_text;  /* an own kind: the loop has one for it */
	};
	bool       background;
	union {
		bool connecting;  /* connect(2) has been called */
		bool queued;      /* an own kind: in the queue of a pool, under its lock */
	};
	struct weft__place   place; /* of its deadline */
	struct weft__node_head node; /* by which it stands in lists, and in the inbox if
	                                another thread has finished it; of an own kind
	                                that waits it is free for the owner's use */
	union {
		struct {
			int32_t fd;
			union {
				int32_t  flags;  /* of recv(2), send(2), open(2) */
				uint32_t length; /* of what is read or written */
			};
		};
		int64_t told;          /* an own kind's result, by another thread */
		struct weft__op *before; /* until then: in the queue of a pool, */
		const void *owned;       /* or what its owner has to do for it */
	};
	union {
		void                    *buf;
		const void              *data;
		struct msghdr           *msg;
		const struct weft__file_part *part;
		const struct sockaddr   *addr;
		weft_op_cancel_fn        on_cancel;
	};
	union {
		size_t   size;
		void    *cancel_arg;
		uint64_t offset; /* in a file; the mode of one to open */
	};
	int64_t    why;       /* the error it was asked to finish with */
};
WEFT_STATIC_ASSERT(sizeof(struct weft__op) == sizeof(weft_op), "one layout");

static inline struct weft__op *
weft__op_of(weft_op *op)
{
	return (struct weft__op *)(void *)op;
}

/* Of the events of a receive that has many results: it takes none for now, where that
 * can be told. */
#define WEFT__HELD 0x8000u

/* Any number of results may come before the last. */
static inline bool
weft__op_is_multi(const struct weft__op *op)
{
	return op->kind == WEFT__OP_RECV_MULTI || (op->events & WEFT_MULTI);
}

/* A call about a file: what a backend makes a request of, or a pool a system call. */
struct weft__file_call {
	uint8_t  kind; /* WEFT__OP_FILE_* */
	int32_t  fd;
	union {
		int32_t  flags;
		uint32_t length;
	};
	void    *buf;    /* bytes, or a path */
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
#define weft__place_op(p) \
	((struct weft__op *)(void *)((char *)(p) - offsetof(struct weft__op, place)))

#endif
