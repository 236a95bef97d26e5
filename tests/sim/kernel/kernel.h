/* kernel.h - descriptors and the files they refer to.
 *
 * A descriptor is a number that refers to a file (Linux: an open file description); after
 * dup(2) several numbers refer to one file.  Each kind of file has its operations and embeds
 * struct sim_file as its first member.
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
	bool        waits;   /* can be polled; if not, epoll rejects it */
	uint32_t  (*ready)(struct sim_file *file); /* EPOLL* bits that hold now */
	int64_t   (*read)(struct sim_file *file, void *buf, size_t size);
	int64_t   (*write)(struct sim_file *file, const void *buf, size_t size);
	void      (*end)(struct sim_file *file);   /* the last reference is gone */
};

struct sim_file {
	const struct sim_file_ops *ops;
	uint64_t         id;    /* from 1, never reused; 0 after its end */
	uint32_t         refs;
	struct sim_item *items; /* its registrations with epoll sets */
};

void sim_kernel_reset(void);

/* sim_keep(): zeroed memory that lives until the run ends.  sim_buffer_new(): a buffer that
 * lives until it is freed or the run ends. */
void *sim_keep(size_t size);
void *sim_buffer_new(size_t size);
void  sim_buffer_free(void *mem);

/* Make a file in `size` bytes, with one reference, not yet in the table. */
void *sim_file_new(const struct sim_file_ops *ops, size_t size);
void  sim_file_ref(struct sim_file *file);
void  sim_file_unref(struct sim_file *file);

/* Are there `count` free numbers?  0 or -EMFILE. */
int sim_fd_room(int count);

/* Assign the lowest free number to `file`; the number takes over the caller's reference. */
int sim_fd_new(struct sim_file *file);

/* The file that a number refers to, or NULL. */
struct sim_file *sim_fd_file(int fd);

/* Close a number; the run fails if it is not open. */
int sim_fd_close(int fd);

/* A change may have made `file` ready: EPOLL* bits, or 0 for all. */
void sim_file_notify(struct sim_file *file, uint32_t key);

/* Describe the open descriptors in `text`; returns how many there are. */
int sim_kernel_leaks(char *text, size_t size);

/* --- kinds of files --------------------------------------------------- */

int sim_pipe_new(int out[2]);
void sim_pipe_reset(bool calm); /* calm: all pipes have the usual size */
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

/* When a wait that begins now times out, and when a signal interrupts it. */
uint64_t sim_wait_end_ns(int64_t timeout_ns);
uint64_t sim_wait_signal_ns(enum sim_call call);

#endif
