/* queue_few.c - as many writes as queue_weft.c, but with only 1,000 queued at a time. */
#define QUEUED 1000
#include "queue_weft.c"
