/* admin_owner.c - values of the program, which are read on the owner loop.
 *
 * A handler on another loop posts a question to the owner loop.  If the owner loop is blocked,
 * which may be what the user wants to find out, the reply does not wait for it: after a second
 * it is sent without the values.  The question has two owners, and the last one frees it.
 */
#include "admin_private.h"
#include <weft/loop.h>

#define ANSWER_NS WEFT_S

struct question {
	weft_node node;
	struct weft__refs refs;
	weft_admin *admin;
	void (*write)(weft_admin *admin, struct weft__admin_text *text);
	struct weft__admin_text text; /* the owner loop's, until `done` is set */
	weft_event done;
};

static void
question_drop(struct question *question)
{
	if (!weft__refs_drop(&question->refs))
		return;
	weft__admin_text_fini(&question->text);
	weft_release(question);
}

/* The program's functions are not called after weft_admin_close(), even if that could not wait. */
static void
on_owner(void *arg)
{
	struct question *question = arg;
	weft_admin *admin = question->admin;

	if (!weft__admin_is_closing(admin))
		question->write(admin, &question->text);
	(void)weft_event_set(&question->done);
	question_drop(question);
	weft__admin_drop(admin);
}

static void
question_wait(struct question *question, struct weft__admin_text *text)
{
	struct weft__admin_text *answer = &question->text;

	if (weft_event_wait(&question->done, weft_after(ANSWER_NS)) < 0)
		return;
	text->error = text->error ? text->error : answer->error;
	if (answer->size > 0)
		weft__admin_put(text, answer->data, answer->size);
}

void
weft__admin_on_owner(weft_admin *admin,
                     void (*write)(weft_admin *admin, struct weft__admin_text *text),
                     struct weft__admin_text *text)
{
	struct question *question;

	if (weft_loop_current() == admin->loop) {
		if (!weft__admin_is_closing(admin))
			write(admin, text);
		return;
	}
	question = weft_alloc(sizeof(*question));
	if (!question) {
		text->error = WEFT_ENOMEM;
		return;
	}
	*question = (struct question){ .node = { .fn = on_owner, .arg = question },
		                       .refs = WEFT__REFS(2),
		                       .admin = admin,
		                       .write = write,
		                       .done = WEFT_SHARED_INIT };
	weft__admin_hold(admin);
	if (weft_loop_post_node(admin->loop, &question->node) == 0) {
		question_wait(question, text);
	} else { /* the loop is stopping */
		weft__admin_drop(admin);
		question_drop(question);
	}
	question_drop(question);
}
