/* models.h - a program of models: each is run, with planted bugs, and weakened.
 *
 * Every model must hold in all its executions; every planted bug must be found by its
 * model; and of every memory order that the models come to, made one step weaker, one of
 * them must notice.  Models of whole loops come to many orders of which they show little:
 * of these only the orders of failed compare-exchanges are made weaker.
 */
#ifndef WEFT_TESTS_EXPLORE_MODELS_H
#define WEFT_TESTS_EXPLORE_MODELS_H

#include "explore.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct plant {
	int                         bug;   /* what `planted` is meanwhile; 0: the model
	                                    * is wrong by itself */
	const struct explore_model *model; /* that finds it */
	int                         more;  /* preemptions than the model has */
	const char                 *what;
};

struct model_set {
	const struct explore_model *models;
	const struct plant         *plants;
	size_t                      model_count;
	size_t                      plant_count;
	bool                        as_it_is; /* only orders of failure are weakened */
	bool                        once;     /* its plants are run in one build only */
};

/* Sets that share a program with another one. */
extern const struct model_set first_models;

extern int planted; /* in the worlds that are opened now; 0: none */

/* All sets in one run.  With an argument it leaves out what is needed in one build only.
 * For main() to return. */
int models_run(const struct model_set *const *sets, size_t count, int argc);

#endif
