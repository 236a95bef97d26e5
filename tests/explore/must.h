/* must.h - run a model in its correct form and with its bug.
 *
 * For the explorer's own tests.  `planted` selects the variant that the model's functions run.
 */
#ifndef WEFT_TESTS_EXPLORE_MUST_H
#define WEFT_TESTS_EXPLORE_MUST_H

#include "base/sys.h"
#include "explore.h"
#include "test.h"

struct world {
	weft__a32  x;
	weft__a32  y;
	weft__a32  word;
	weft__aptr ptr;
	uint32_t   data;     /* plain */
	uint8_t    bytes[8]; /* plain */
	uint32_t   r[4];     /* values read; each has one writer */
};

/* The variant that runs. */
static bool planted;

static inline struct explore_result
explored(struct explore_model model, bool with_mistake)
{
	struct explore_result result;
	char name[128];

	snprintf(name, sizeof name, "%s%s", model.name,
	         with_mistake ? ", planted" : "");
	model.name = name;
	if (model.state_size == 0)
		model.state_size = sizeof(struct world);
	planted = with_mistake;
	(void)explore_report(&model, with_mistake, &result);
	return result;
}

static inline void
must_pass(struct explore_model model)
{
	struct explore_result result = explored(model, false);

	CHECK(result.failure == NULL);
	CHECK(result.complete);
	CHECK(result.executions > 1);
}

static inline void
must_fail(struct explore_model model, const char *text)
{
	struct explore_result result = explored(model, true);

	CHECK(result.failure != NULL);
	if (!strstr(result.failure, text))
		CHECK_STR(result.failure, text);
	CHECK(strstr(result.schedule, "FAILS") != NULL);
}

#endif
