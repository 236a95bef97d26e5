/* turn_metrics.c - turn_weft.c with metrics; its peer is turn_weft.c without. */
#define TURN_FLAGS WEFT_LOOP_METRICS
#include "turn_weft.c"
