/* models.c - runs a program of models. */
#include <stdio.h>
#include <string.h>
#include "models.h"

int planted;

static unsigned passed, failed;

static void
count(bool good)
{
	passed += good;
	failed += !good;
}

static void
run_models(const struct model_set *set)
{
	for (size_t i = 0; i < set->model_count; i++) {
		struct explore_result result;
		int rc = explore_report(&set->models[i], false, &result);

		count(rc == 0 && result.complete && result.executions >= 2);
	}
}

static void
run_plants(const struct model_set *set)
{
	for (size_t i = 0; i < set->plant_count; i++) {
		const struct plant *plant = &set->plants[i];
		struct explore_model model = *plant->model;
		struct explore_result result;

		planted = plant->bug;
		model.preemptions += plant->more;
		printf("planted: %s\n", plant->what);
		count(explore_report(&model, true, &result) != 0);
	}
	planted = 0;
}

/* Weaken together the models of all sets whose `as_it_is` has this value. */
static void
weaken(const struct model_set *const *sets, size_t set_count, bool as_it_is)
{
	static struct explore_model all[EXPLORE_MODELS_MAX];
	size_t made = 0;

	for (size_t i = 0; i < set_count; i++) {
		if (sets[i]->as_it_is != as_it_is)
			continue;
		if (made + sets[i]->model_count > COUNT(all)) {
			printf("more than %zu models\n", COUNT(all));
			count(false);
			return;
		}
		memcpy(&all[made], sets[i]->models, sets[i]->model_count * sizeof(all[0]));
		made += sets[i]->model_count;
	}
	if (made > 0)
		count((as_it_is ? explore_weaken_failed(all, (int)made)
		                : explore_weaken_all(all, (int)made))
		      == 0);
}

int
models_run(const struct model_set *const *sets, size_t set_count, int argc)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < set_count; i++)
		run_models(sets[i]);
	if (argc > 1) /* the same source in another build: weakening it once is enough */
		printf("not weakened in this build, nor all planted\n");
	for (size_t i = 0; i < set_count; i++)
		if (argc == 1 || !sets[i]->once)
			run_plants(sets[i]);
	for (int as_it_is = 0; as_it_is < 2 && argc == 1; as_it_is++)
		weaken(sets, set_count, as_it_is);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
