/* verbs.h - what the program does by its first word. */
#ifndef WEFT_VERBS_H
#define WEFT_VERBS_H

/* Instead of an exit status: print the usage of the verb. */
#define VERB_MISUSED (-1) /* to stderr; the verb has said what is wrong */
#define VERB_HELP    (-2) /* to stdout */

/* Each gets the words of the whole program, and returns an exit status. */
int verb_run(int argc, char **argv);
int verb_eval(int argc, char **argv);
int verb_dag(int argc, char **argv);
int verb_demo(int argc, char **argv);
int verb_store(int argc, char **argv);
int verb_top(int argc, char **argv);

#endif
