/* kernel.h - descriptors and what they stand for.
 *
 * A descriptor is a number; what it stands for is a file (Linux: an open file
 * description), which dup(2) shares between numbers.  Each kind of file has its
 * operations and embeds struct sim_file as its first member.
 *
 * Needs: schedule.h.
 */
#ifndef WEFT_SIM_KERNEL_H
#define WEFT_SIM_KERNEL_H

#include <sys/epoll.h>
#include "sim/run/sim.h"
#include "sim/run/trace.h"

struct sim_file;
struct sim_item;

struct sim_file_ops {
	const char *name;
	int         kind;    /* WEFT__FD_* */
	bool        waits;   /* can be waited for; if not, epoll refuses it */
	uint32_t  (*ready)(struct sim_file *file); /* EPOLL* that hold now */
	int64_t   (*read)(struct sim_file *file, void *buf, size_t size);
	int64_t   (*write)(struct sim_file *file, const void *buf, size_t size);
	void      (*end)(struct sim_file *file);   /* nobody has it any more */
};

struct sim_file {
	const struct sim_file_ops *ops;
	uint64_t         id;    /* from 1, never reused; 0 at its end */
	uint32_t         refs;
	struct sim_item *items; /* its registrations with epoll sets */
};

void sim_kernel_reset(void);

/* Zeroed memory that lasts until the run ends; and a buffer that lasts until it
 * is freed, or until then. */
void *sim_keep(size_t size);
void *sim_buffer_new(size_t size);
void  sim_buffer_free(void *mem);

/* Make a file in `size` bytes, with one reference, not yet in the table. */
void *sim_file_new(const struct sim_file_ops *ops, size_t size);
void  sim_file_ref(struct sim_file *file);
void  sim_file_unref(struct sim_file *file);

/* Is there a number for one more, or for two?  0 or -EMFILE. */
int sim_fd_room(int count);

/* Give `file` the lowest free number, which takes over its reference. */
int sim_fd_new(struct sim_file *file);

/* What a number stands for, or NULL. */
struct sim_file *sim_fd_file(int fd);

/* Free a number that is in use; the run fails if it is not. */
int sim_fd_close(int fd);

/* Something has changed that may make `file` ready: EPOLL* bits, or 0 for
 * all. */
void sim_file_notify(struct sim_file *file, uint32_t key);

/* What is open, into `text`; returns how many. */
int sim_kernel_leaks(char *text, size_t size);

/* --- kinds of files --------------------------------------------------- */

int sim_pipe_new(int out[2]);
void sim_pipe_reset(bool calm); /* calm: all of them have the usual size */
int sim_eventfd_new(void);
int sim_epoll_new(void);
void sim_epoll_reset(void);
int sim_epoll_change(int ep, int op, int fd, struct epoll_event *event);
int sim_epoll_sleep(int ep, struct epoll_event *events, int max,
                    int64_t timeout_ns);
int sim_poll_sleep(struct pollfd *fds, size_t count, int64_t timeout_ns);

/* For sim_file_notify() and the end of a file. */
void sim_items_wake(struct sim_file *file, uint32_t key);
void sim_items_drop(struct sim_file *file);
void sim_poll_wake(void);

/* The end of a wait that begins now, and when a signal disturbs it. */
uint64_t sim_wait_end_ns(int64_t timeout_ns);
uint64_t sim_wait_signal_ns(enum sim_call call);

#endif
