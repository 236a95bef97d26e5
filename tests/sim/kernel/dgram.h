/* dgram.h - datagram sockets of AF_INET, on a network that loses, delays and repeats.
 *
 * Calls on descriptors, which go to stream sockets if it is one of those.
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
int sim_any_check(int fd); /* 0, or it is no socket */
int64_t sim_any_recv(enum sim_call call, int fd, struct msghdr *msg, int flags);
int64_t sim_any_send(enum sim_call call, int fd, const struct msghdr *msg,
                     int flags);

/* An error that was read for nobody is there again. */
void sim_any_give_back(int fd, int error);

#endif
