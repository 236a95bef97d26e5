/* client.h - the Redis client inside: commands, lines, wires.  Private.
 *
 * A command is what a caller waits for.  A line is a place that connections are made for:
 * one is shared by all ordinary commands, some are leased to commands that block at the
 * server, one is for feeds.  A wire is one connection, from its greeting to its end.
 *
 *   1. All of this is its loop's.  From elsewhere come tickets (ticket.c), by posts.
 *   2. A command is in one place at a time, and `state` says where: in a queue, in a
 *      slot of a wire, behind an entry of the cache, leaving with a wire, or nowhere.
 *   3. Replies pair with slots, oldest first, and with nothing else.  A command that is
 *      given up leaves its slot, which stays until its reply has come.
 *   4. done() is called once for each command, and it calls nothing of the user's.  So
 *      nothing changes behind the back of who calls it but the command.
 *   5. What of a command may have reached the server is known by bytes: slot->begin is
 *      its first in all that the wire was to send, wire->given how many the stream was
 *      given.  Beginning at `given` or beyond, it has not been sent.
 *   6. After a loss a command goes on if it was not sent, or if it only reads and has not
 *      been repeated TRIES times; on a session, never.
 *   7. Whoever is told an error has its text: in `text`, or in the reply.
 *   8. A wire's memory goes when its stream is gone, its write has finished, and its flush
 *      has run; a line's when it has no wire and does not connect; the endpoint's when
 *      none of them is left and it was closed (`refs`).
 */
#ifndef WEFT_REDIS_CLIENT_H
#define WEFT_REDIS_CLIENT_H

#include <weft/loop.h>
#include <weft/stream.h>
#include <weft/sync.h>
#include <weft/timer.h>
#include "resp.h"

#define WEFT__REDIS_TRIES 2 /* repetitions of a command that only reads */

/* --- lists ------------------------------------------------------------------- */

struct weft__redis_link {
	struct weft__redis_link *next, *prev;
};

#define WEFT__REDIS_OF(type, member, link_) \
	((struct type *)(void *)((char *)(link_) - offsetof(struct type, member)))

static inline void
weft__redis_ring(struct weft__redis_link *link)
{
	link->next = link->prev = link;
}

static inline bool
weft__redis_alone(const struct weft__redis_link *link)
{
	return link->next == link;
}

static inline void
weft__redis_link_before(struct weft__redis_link *at, struct weft__redis_link *link)
{
	link->next = at;
	link->prev = at->prev;
	at->prev->next = link;
	at->prev = link;
}

static inline void
weft__redis_unlink(struct weft__redis_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	weft__redis_ring(link);
}

/* --- commands ---------------------------------------------------------------- */

/* What is known of a command by its name (table.c). */
enum {
	WEFT__REDIS_READS  = 1 << 0, /* changes nothing, and may be repeated */
	WEFT__REDIS_BLOCKS = 1 << 1, /* waits at the server */
	WEFT__REDIS_STATE  = 1 << 2, /* changes the connection */
	WEFT__REDIS_NEVER  = 1 << 3, /* its replies cannot be paired */
	WEFT__REDIS_KEYED  = 1 << 4, /* reads one key, its second word: can be cached */
	WEFT__REDIS_MAYBE  = 1 << 5, /* blocks if one of its words is BLOCK */
	WEFT__REDIS_CLIENT = 1 << 6, /* the second word decides */
};

enum weft__redis_state {
	WEFT__REDIS_NOWHERE, WEFT__REDIS_QUEUED, WEFT__REDIS_SENT, WEFT__REDIS_BEHIND,
	WEFT__REDIS_LEAVING, /* with its wire */
};

struct weft__redis_command {
	struct weft__redis_link  link;    /* in a queue, or behind an entry */
	struct weft__redis_line *line;    /* of its queue or slot */
	const weft_span         *words;   /* borrowed; or, if `bytes` is not NULL, unused */
	size_t                   count;
	const char              *bytes;   /* as they are sent, or NULL: words are put */
	size_t                   size;    /* of bytes */
	weft_span                name;    /* for texts */
	weft_span                key;     /* of a KEYED one */
	uint64_t                 slot;    /* its number, if it was sent */
	uint32_t                 replies; /* that it has, 1 but for a unit */
	uint8_t                  flags, state, tries;
	bool                     fetches; /* for the cache, not for a caller */
	weft_redis_reply        *reply;
	char                    *text;    /* of an error, of weft_alloc(), or NULL */
	void                   (*done)(struct weft__redis_command *command, int rc);
	weft_op                 *op;      /* of done(), or these: */
	weft_event               over;
	int                      rc;
	bool                     is_over;
	weft_redis              *redis;   /* of one that blocks, and is waited for here */
};

/* Fill a command of words; of a name alone, its flags. */
int  weft__redis_command_init(const weft_redis *redis, struct weft__redis_command *command,
                              const weft_span *words, size_t count);
/* The n-th word, of `size` bytes, in a command as it is sent. */
weft_span weft__redis_word(const char *bytes, size_t index, size_t size);
uint32_t weft__redis_flags(const weft_redis *redis, const weft_span *words, size_t count);
void weft__redis_table_make(uint8_t *table);

/* May it be accepted?  0, WEFT_EINVAL, WEFT_EAGAIN, WEFT_ESHUTDOWN.  What depends on the
 * command alone can be asked on any thread. */
int  weft__redis_check(const weft_redis *redis, const struct weft__redis_command *command);
int  weft__redis_admit(weft_redis *redis, const struct weft__redis_command *command);
/* Accept it: done() will be called. */
void weft__redis_submit(weft_redis *redis, struct weft__redis_command *command);
/* Give it up, for the reason that done() is told. */
void weft__redis_forget(weft_redis *redis, struct weft__redis_command *command, int why);
/* The same for one that is nowhere any more. */
void weft__redis_end_early(weft_redis *redis, struct weft__redis_command *command,
                           int why);
/* End it: `text` (may be NULL) is copied. */
void weft__redis_end(weft_redis *redis, struct weft__redis_command *command, int rc,
                     const char *text);
/* It has this reply, which is taken. */
void weft__redis_answer(weft_redis *redis, struct weft__redis_command *command,
                        weft_redis_reply *reply);
/* What its caller is told: the result with its text, the reply in `out` (may be NULL). */
int  weft__redis_tell(struct weft__redis_command *command, int rc, weft_redis_reply **out);
/* Run it, from wherever, and wait. */
int  weft__redis_run(weft_redis *redis, struct weft__redis_command *command,
                     weft_redis_reply **out, uint64_t deadline_ns);
int  weft__redis_run_afar(weft_redis *redis, struct weft__redis_command *command,
                          weft_redis_reply **out, uint64_t deadline_ns);
/* Why there is nothing to suspend here, or 0. */
int  weft__redis_may_wait(void);

/* --- wires ------------------------------------------------------------------- */

struct weft__redis_bytes {
	char  *data;
	size_t size, room;
};

/* Room for `more` bytes behind those that are there; false without memory. */
bool weft__redis_bytes_reserve(struct weft__redis_bytes *bytes, size_t more);
void weft__redis_bytes_drop(struct weft__redis_bytes *bytes);

struct weft__redis_slot {
	struct weft__redis_command *command; /* NULL: given up, or a greeting */
	uint64_t begin;                      /* invariant 5 */
	uint32_t left;                       /* replies to come */
	uint8_t  greeting;                   /* which one, or 0 */
};

struct weft__redis_wire {
	weft_redis              *redis;
	struct weft__redis_line *line;      /* NULL: it has ended */
	weft_stream             *stream;
	weft_op                  write;     /* of `sending` */
	weft_span                write_span;
	weft_node                flush, closer;
	bool                     flush_queued, gone;
	bool                     is_resp3, tracks, fell_back;
	uint8_t                  greetings; /* replies to come */
	struct weft__redis_bytes out, sending, in;
	uint64_t                 put, given; /* bytes; invariant 5 */
	uint64_t                 seen;       /* `put` at the last try to flush */
	uint8_t                  turns_waited; /* for more, with that flush */
	struct weft__redis_slot *slots;
	uint32_t                 slot_mask;
	uint64_t                 head, tail; /* slots by number */
	struct weft__resp_scan   scan;
	struct weft__redis_command *leaving; /* is over when the wire is gone */
	int                      leaving_why;
};

static inline uint64_t
weft__redis_inflight(const struct weft__redis_wire *wire)
{
	return wire->tail - wire->head;
}

static inline struct weft__redis_slot *
weft__redis_slot_at(const struct weft__redis_wire *wire, uint64_t number)
{
	return &wire->slots[number & wire->slot_mask];
}

/* Make a wire of `line` over `stream`, which is taken.  Returns 0 or an error. */
int  weft__redis_wire_open(struct weft__redis_line *line, weft_stream *stream);
/* Take it from its line; it goes by itself. */
void weft__redis_wire_detach(struct weft__redis_wire *wire, bool at_once);
/* Put bytes with a slot for their replies.  Returns the slot, or NULL without memory. */
struct weft__redis_slot *weft__redis_wire_put(struct weft__redis_wire *wire,
                                              const struct weft__redis_command *command);
/* Read what has arrived. */
void weft__redis_wire_read(struct weft__redis_wire *wire, const char *data, size_t size);

/* --- lines ------------------------------------------------------------------- */

enum weft__redis_line_kind {
	WEFT__REDIS_SHARED, WEFT__REDIS_LEASED, WEFT__REDIS_FEEDS,
};

enum weft__redis_line_state {
	WEFT__REDIS_OFF,        /* and nobody waits, or before the next try */
	WEFT__REDIS_PAUSED,     /* the timer runs; who waits, waits for that */
	WEFT__REDIS_CONNECTING, WEFT__REDIS_GREETING, WEFT__REDIS_READY,
};

struct weft__redis_line {
	weft_redis              *redis;
	struct weft__redis_link  of_redis;    /* if leased */
	enum weft__redis_line_kind  kind;
	enum weft__redis_line_state state;
	bool                     dead;        /* goes when it does not connect any more */
	struct weft__redis_wire *wire;        /* while greeting and ready */
	struct weft__redis_link  queue;
	uint32_t                 queued;
	weft_op                  connect;
	weft_stream             *connected;   /* by that */
	weft_timer               timer;       /* of a pause, and of a greeting */
	uint64_t                 greet_by_ns;
};

void weft__redis_line_init(weft_redis *redis, struct weft__redis_line *line,
                           enum weft__redis_line_kind kind);
void weft__redis_line_submit(struct weft__redis_line *line,
                             struct weft__redis_command *command);
/* Its queue, by a place in it: put before that; take the first; end all. */
void weft__redis_queue_push(struct weft__redis_line *line, struct weft__redis_link *before,
                            struct weft__redis_command *command);
struct weft__redis_command *weft__redis_queue_pop(struct weft__redis_line *line);
void weft__redis_queue_end(struct weft__redis_line *line, int error, const char *text);
/* How long to wait before the next try, drawn anew each time. */
uint64_t weft__redis_pause(weft_redis *redis);
/* See that it is connected, soon. */
void weft__redis_line_start(struct weft__redis_line *line);
/* Send what waits as far as there is room. */
void weft__redis_line_pump(struct weft__redis_line *line);
/* Its greeting was answered well, or not. */
void weft__redis_line_ready(struct weft__redis_line *line);
void weft__redis_line_failed(struct weft__redis_line *line, int error, const char *text);
/* Its connection is of no use any more; weft_detail() says why. */
void weft__redis_line_lost(struct weft__redis_line *line, int error);
/* An ordinary reply has come, and some of its slots are free. */
void weft__redis_line_answered(struct weft__redis_line *line);
/* End it with all that waits for it; takes it if it was allocated. */
void weft__redis_line_close(struct weft__redis_line *line, int why);
void weft__redis_line_free(struct weft__redis_line *line);

/* Say hello; and hear the answer to that (taken). */
int  weft__redis_greet(struct weft__redis_wire *wire);
void weft__redis_greeted(struct weft__redis_wire *wire, unsigned which,
                         weft_redis_reply *reply);

/* --- leases ------------------------------------------------------------------ */

void weft__redis_lease(weft_redis *redis, struct weft__redis_command *command);
/* A leased line has nothing to do; or is gone. */
void weft__redis_lease_idle(struct weft__redis_line *line);
/* Close one that has nothing to do, if there is one. */
bool weft__redis_lease_drop(weft_redis *redis);
void weft__redis_lease_ended(struct weft__redis_line *line);
/* A try to connect has failed, for all who wait for a lease. */
void weft__redis_lease_failed(struct weft__redis_line *line, int error, const char *text);

/* --- pushes, cache, feeds ---------------------------------------------------- */

/* A message that is no reply (taken). */
void weft__redis_pushed(struct weft__redis_wire *wire, weft_redis_reply *push);

struct weft__redis_cache;
int  weft__redis_cache_open(weft_redis *redis);
void weft__redis_cache_close(weft_redis *redis);
/* The reply for these bytes, one more owner of it, or NULL. */
weft_redis_reply *weft__redis_cache_find(weft_redis *redis, const char *bytes, size_t size);
/* Put a command that may be answered by the cache behind its entry.  False: it goes its
 * usual way. */
bool weft__redis_cache_join(weft_redis *redis, struct weft__redis_command *command);
void weft__redis_cache_invalidate(weft_redis *redis, const weft_redis_reply *keys);
/* A command that is answered may have changed what it names. */
void weft__redis_cache_wrote(weft_redis *redis, const struct weft__redis_command *command);
void weft__redis_cache_clear(weft_redis *redis);
size_t weft__redis_cache_bytes(const weft_redis *redis);

/* What has come on the line of feeds; that line is ready; a try to connect it has failed;
 * all feeds end. */
void weft__redis_feed_message(weft_redis *redis, const weft_redis_reply *message);
void weft__redis_feed_ready(weft_redis *redis);
void weft__redis_feed_failed(weft_redis *redis, int error, const char *text);
void weft__redis_feed_end(weft_redis *redis);

/* --- the endpoint ------------------------------------------------------------ */

#define WEFT__REDIS_TABLE 1024 /* places for names of commands, a power of 2 */

struct weft_redis {
	weft_loop        *loop;     /* held */
	uint32_t          refs;     /* atomic; invariant 8, and calls from elsewhere */
	bool              closed;
	bool              session;
	bool              gate_is_set;
	weft_event        gate;     /* always open, see call.c */
	char             *address;  /* for weft_connect(), and for texts */
	char             *user, *password;
	char              database[12]; /* "": none is selected */
	weft_connect_opts connect;
	struct weft__resp_limits limits;
	uint32_t          inflight_max, queue_max, connections_max;
	size_t            cache_bytes;
	uint64_t          connect_ns, backoff_max_ns;
	uint64_t          random;   /* state of the jitter */
	uint64_t          retry_ns; /* no try before that, after failures, which are */
	uint32_t          failures; /* in a row, without a reply between them */
	struct weft__redis_line shared;
	struct weft__redis_link leased;     /* lines */
	uint32_t          leased_count;
	struct weft__redis_link blocked;    /* commands that wait for a lease */
	uint32_t          blocked_count;
	struct weft__redis_cache *cache;
	struct weft__redis_line  *feed_line;
	struct weft__redis_link   feeds, channels;
	uint32_t          wires;    /* that greet or are ready */
	weft_redis_stats  stats;
	uint8_t           table[WEFT__REDIS_TABLE];
};

weft_redis *weft__redis_ref(weft_redis *redis);
void weft__redis_unref(weft_redis *redis);

/* Fill address, user, password and database from the text.  Returns 0 or an error. */
int  weft__redis_address(weft_redis *redis, const char *text);

/* A copy of memory, or NULL. */
char *weft__redis_copy(const char *text, size_t size);

/* SHA-1 of `size` bytes, in 40 hexadecimal digits and a NUL. */
void weft__redis_sha1(const void *data, size_t size, char *out);

#endif
