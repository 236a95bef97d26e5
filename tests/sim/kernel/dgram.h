/* dgram.h - datagram sockets of AF_INET, on a network that loses, delays and repeats.
 *
 * The calls take any descriptor; for a stream socket they call the function in socket.h.
 *
 * Needs: kernel.h, clock.h.
 */
#ifndef WEFT_SIM_DGRAM_H
#define WEFT_SIM_DGRAM_H

#include <sys/socket.h>
#include "sim/kernel/kernel.h"

void sim_dgram_reset(void);

int sim_any_new(int domain, int type, int protocol);
int sim_any_bind(int fd, const struct sockaddr *addr, socklen_t size);
int sim_any_connect(int fd, const struct sockaddr *addr, socklen_t size);
int sim_any_error(int fd, int *out);
int sim_any_name(int fd, struct sockaddr *addr, socklen_t *size);
int sim_any_check(int fd); /* 0, or -errno if it is not a socket */
int64_t sim_any_recv(enum sim_call call, int fd, struct msghdr *msg, int flags);
int64_t sim_any_send(enum sim_call call, int fd, const struct msghdr *msg,
                     int flags);

/* Store an error again that a call has taken but could not report. */
void sim_any_give_back(int fd, int error);

#endif
