/* queue_few.c - as many writes as queue_weft queues at once, 1,000 at a time. */
#define QUEUED 1000
#include "queue_weft.c"
