/* verbs.h - the verbs of the weft program. */
#ifndef WEFT_VERBS_H
#define WEFT_VERBS_H

/* Returned instead of an exit status: print the usage of the verb. */
#define VERB_MISUSED (-1) /* to stderr; the verb has already reported what is wrong */
#define VERB_HELP    (-2) /* to stdout */

/* Each verb receives main()'s argc and argv unchanged, and returns an exit status. */
int verb_run(int argc, char **argv);
int verb_eval(int argc, char **argv);
int verb_dag(int argc, char **argv);
int verb_demo(int argc, char **argv);
int verb_store(int argc, char **argv);
int verb_top(int argc, char **argv);

#endif
