/* admin_owner.c - values of the program, which are read on the owner loop.
 *
 * If the owner loop is blocked, which may be what the user wants to find out, a handler on
 * another loop waits for it only a second, and then replies without the values.
 */
#include "admin_private.h"
#include <weft/loop.h>
#include <weft/threadlet.h>

#define ANSWER_NS WEFT_S

struct owner_call {
	weft_admin *admin;
	void (*write)(weft_admin *admin, struct weft__admin_text *text);
	struct weft__admin_text *text;
};

/* The program's functions are not called after weft_admin_close(), even if it could not wait. */
static int
run_on_owner(void *arg)
{
	const struct owner_call *owner_call = arg;

	if (!weft__admin_is_closing(owner_call->admin))
		owner_call->write(owner_call->admin, owner_call->text);
	return 0;
}

void
weft__admin_on_owner(weft_admin *admin,
                     void (*write)(weft_admin *admin, struct weft__admin_text *text),
                     struct weft__admin_text *text)
{
	struct owner_call owner_call = { admin, write, text };

	if (weft_loop_current() == admin->loop)
		(void)run_on_owner(&owner_call);
	else
		(void)weft_loop_call(admin->loop, run_on_owner, &owner_call, weft_after(ANSWER_NS));
}
