/* verbs.h - the verbs of the weft program. */
#ifndef WEFT_VERBS_H
#define WEFT_VERBS_H

#include "base/args.h"

extern const struct args_verb verb_run, verb_eval, verb_dag, verb_demo, verb_store, verb_top;

#endif
