/* turn_metrics.c - the same turns with metrics; its peer is turn_weft, without. */
#define TURN_FLAGS WEFT_LOOP_METRICS
#include "turn_weft.c"
