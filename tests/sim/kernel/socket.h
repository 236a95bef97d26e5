/* socket.h - stream sockets: what socket.c, names.c, stream.c and ends.c share.
 *
 * socket.c connects, names.c keeps the bound names, stream.c transfers bytes, and ends.c ends
 * connections.
 *
 * Needs: kernel.h, clock.h.
 */
#ifndef WEFT_SIM_SOCKET_H
#define WEFT_SIM_SOCKET_H

#include <sys/socket.h>
#include "sim/kernel/kernel.h"

enum sim_sock_state {
	SIM_SOCK_FRESH,
	SIM_SOCK_CONNECTING,
	SIM_SOCK_CONNECTED, /* also half-closed, and after the peer has closed */
	SIM_SOCK_LISTENING,
	SIM_SOCK_FAILED,    /* the connect failed */
	SIM_SOCK_BROKEN,    /* was connected, then reset */
};

/* Bytes on their way to a socket, and in its buffer.  Positions count from the beginning of the
 * stream: credited <= taken <= arrived <= sent <= credited + capacity. */
struct sim_flow {
	unsigned char *bytes;    /* a ring; NULL until something is sent */
	size_t         capacity;
	uint64_t       sent, arrived, taken;
	uint64_t       credited; /* what the sender knows to be taken */
	uint64_t       last_ns;  /* when the last packet arrives */
};

struct sim_socket {
	struct sim_file     file;
	int                 domain;
	enum sim_sock_state state;
	int                 error;       /* SO_ERROR */
	bool                shut_read;   /* by us, by a FIN, or broken */
	bool                shut_write;
	bool                fin;         /* the peer's FIN has arrived */
	bool                reported;    /* a connect has returned success */
	bool                no_space;    /* a sender waits for room */
	bool                reset_sent;  /* by a peer that is gone */
	bool                ignores_syn; /* a listener: drops every connect request */
	bool                aborts;      /* a close is a reset: SO_LINGER of 0 s */
	uint64_t            hidden_in;   /* odd: input is hidden now */
	uint64_t            hidden_out;  /* odd: room to send is hidden now */
	struct sim_socket  *peer;        /* or NULL */
	struct sim_flow     in;
	struct sockaddr_storage name;    /* ss_family is 0 while unbound */
	socklen_t           name_size;
	struct sockaddr_storage target;  /* of the last connect */
	uint64_t            attempt;     /* counts connects */
	struct sim_socket  *named_next;  /* next bound socket */
	struct sim_socket  *queue_first, *queue_last; /* to be accepted */
	struct sim_socket  *queue_next;
	uint32_t            queue_count, queue_max;
};

/* sim_net_reset(): draw the network of this seed; calm: a fast one with large buffers. */
void sim_socket_reset(void);
void sim_net_reset(bool calm);

/* The table's calls, on descriptors. */
int sim_sock_new(int domain, int type, int protocol);
int sim_sock_bind(int fd, const struct sockaddr *addr, socklen_t size);
int sim_sock_listen(int fd, int backlog);
int sim_sock_accept(int fd);
int sim_sock_connect(int fd, const struct sockaddr *addr, socklen_t size);
int sim_sock_error(int fd, int *out);
int64_t sim_sock_unsent(int fd);
int sim_sock_ignore_syn(int fd);
int sim_sock_shutdown(int fd, int how);
void sim_sock_option(int fd, int level, int name, const void *value);
int sim_sock_name(int fd, struct sockaddr *addr, socklen_t *size);
int sim_sock_peer(int fd, struct sockaddr *addr, socklen_t *size);

/* A transfer.  Returns the number of bytes of `msg` that were transferred, or -errno. */
int64_t sim_sock_recv(enum sim_call call, int fd, struct msghdr *msg,
                      int flags);
int64_t sim_sock_send(enum sim_call call, int fd, const struct msghdr *msg,
                      int flags);

/* --- names.c ---------------------------------------------------------- */

void sim_names_reset(void);

/* Copy a name that a socket of `domain` can have; 0 or -errno.  `unknown` is the error for an
 * address that is not on this machine. */
int sim_name_copy(int domain, const struct sockaddr *addr, socklen_t size,
                  struct sockaddr_storage *out, int unknown);

/* Find the socket with that name, among all or only among listeners; or NULL. */
struct sim_socket *sim_name_find(struct sockaddr_storage *name, bool listening);

/* Bind to a name, or to any free one; 0 or -errno. */
int  sim_name_give(struct sim_socket *socket, struct sockaddr_storage *name,
                   socklen_t size);
int  sim_name_give_any(struct sim_socket *socket);
void sim_name_drop(struct sim_socket *socket);

/* --- between the files ------------------------------------------------ */

extern const struct sim_file_ops sim_socket_ops;

struct sim_socket *sim_sock_make(int domain);
int sim_sock_of(int fd, struct sim_socket **out);

/* Call fn(socket, arg) at a time, if the socket still exists then; or when a packet sent now
 * arrives at it. */
void sim_sock_at(struct sim_socket *socket, uint64_t at_ns,
                 void (*fn)(void *socket, uint64_t arg), uint64_t arg);
void sim_packet(struct sim_socket *socket,
                void (*fn)(void *socket, uint64_t arg), uint64_t arg);

/* Make two sockets the ends of one connection. */
void sim_stream_join(struct sim_socket *a, struct sim_socket *b);

/* End a connection, at the end of a file or by a fault. */
void sim_stream_close(struct sim_socket *socket);
void sim_stream_shutdown(struct sim_socket *socket, bool read, bool write);
void sim_stream_reset(void *socket, uint64_t error); /* a packet */
void sim_stream_break(struct sim_socket *socket);    /* both ends */

uint32_t sim_stream_ready(struct sim_socket *socket);

/* Hide input, or room to send, for a time that is drawn from `hit`. */
void sim_stream_hide(struct sim_socket *socket, bool in, struct sim_fault *hit);

#endif
