/* models.h - a program of models: each is run, with planted bugs, and weakened.
 *
 * Every model must hold in all its executions.  Every planted bug must be detected by its
 * model.  For every memory order that the models use, one of them must fail when that order is
 * made one step weaker.  Models of whole loops use many orders but depend on few of them; for
 * these models only the orders of failed compare-exchanges are weakened.
 */
#ifndef WEFT_TESTS_EXPLORE_MODELS_H
#define WEFT_TESTS_EXPLORE_MODELS_H

#include "explore.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct plant {
	int                         bug;   /* value of `planted`; 0: the model itself is wrong */
	const struct explore_model *model; /* must detect it */
	int                         more;  /* preemptions in addition to the model's */
	const char                 *what;
};

struct model_set {
	const struct explore_model *models;
	const struct plant         *plants;
	size_t                      model_count;
	size_t                      plant_count;
	bool                        as_it_is; /* weaken only orders of failed compare-exchanges */
	bool                        once;     /* its plants run in one build only */
};

/* Sets that share a program with another one. */
extern const struct model_set first_models, quota_models;

extern int planted; /* the bug in the worlds that are set up now; 0: none */

/* Run all sets and return the exit status for main().  If argc > 1, skip everything that is
 * needed in one build only. */
int models_run(const struct model_set *const *sets, size_t count, int argc);

#endif
