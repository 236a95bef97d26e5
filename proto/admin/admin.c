/* admin.c - open and close the admin endpoint; panels of the program. */
#include "admin_private.h"
#include <string.h>
#include <sys/socket.h>
#include <weft/loop.h>
#include <weft/scope.h>
#include "os_admin.h"

#define CONNECTIONS_MAX 32u
#define OTHERS_MAX      8u  /* in addition to readers of events, which may stay for days */
#define IDLE_MAX        16u /* more are closed, so that idle peers cannot lock out the owner */
#define TRACE_MAX       ((size_t)64 << 20)
#define TOKEN_MAX       ((size_t)256)

/* --- lifetime ------------------------------------------------------------------ */

void
weft__admin_ref(weft_admin *admin)
{
	weft__refs_add(&admin->refs);
}

bool
weft__admin_is_closing(weft_admin *admin)
{
	return weft_event_wait(&admin->closing, WEFT_NOWAIT) == 0;
}

static void
free_lists(weft_admin *admin)
{
	while (admin->values) {
		struct weft__admin_value *next = admin->values->next;

		weft_release(admin->values);
		admin->values = next;
	}
	while (admin->panels) {
		struct weft__admin_panel *next = admin->panels->next;

		weft_release(admin->panels);
		admin->panels = next;
	}
	while (admin->mounts) {
		struct weft__admin_mount *next = admin->mounts->next;

		weft_release(admin->mounts);
		admin->mounts = next;
	}
}

static void
free_admin(weft_admin *admin)
{
	(void)weft_http_server_free(admin->server); /* nothing is served now */
	weft__admin_snapshot_drop(admin->snapshot);
	free_lists(admin);
	if (admin->loop)
		(void)weft_loop_unref(admin->loop);
	weft_release(admin->token);
	weft_release(admin->title);
	weft_release(admin);
}

void
weft__admin_unref(weft_admin *admin)
{
	weft_event *gone;

	if (!weft__refs_drop(&admin->refs))
		return;
	gone = admin->gone;
	free_admin(admin);
	if (gone)
		(void)weft_event_set(gone);
}

static char *
admin_copy(const char *text)
{
	size_t size = strlen(text) + 1;
	char *mem = weft_alloc(size);

	if (mem)
		memcpy(mem, text, size);
	return mem;
}

static weft_admin *
admin_make(const weft_admin_opts *opts)
{
	weft_admin *admin = weft_alloc(sizeof(*admin));
	weft_loop *loop = opts->loop ? opts->loop : weft_loop_current();

	if (!admin)
		return NULL;
	*admin = (weft_admin){
		.loop = weft_loop_ref(loop),
		.connections_max = opts->connections_max ? opts->connections_max : CONNECTIONS_MAX,
		.trace_max = opts->trace_max ? opts->trace_max : TRACE_MAX,
		.refs = WEFT__REFS_ONE,
		.closing = WEFT_SHARED_INIT,
		.broadcast = WEFT_SHARED_INIT,
	};
	admin->title = admin_copy(opts->title ? opts->title : weft__admin_os_program());
	admin->token = opts->token ? admin_copy(opts->token) : NULL;
	if (admin->title && (admin->token || !opts->token)
	    && weft__admin_os_random(admin->secret, sizeof(admin->secret)))
		return admin;
	free_admin(admin);
	return NULL;
}

/* --- server -------------------------------------------------------------------- */

/* Check the address before anything is bound.  An inherited socket ("fd:") is checked later. */
static int
check_address(const char *address, const weft_admin *admin)
{
	weft_addr addr;

	if (admin->token || strncmp(address, "fd:", 3) == 0)
		return 0;
	if (weft_addr_parse(address, &addr) < 0 || weft_addr_is_local(&addr))
		return 0; /* errors in the address are reported when it is opened */
	return weft_fail(
		WEFT_EPERM,
		"weft_admin_open %s: other machines can reach this address, so a token is required",
		address);
}

/* Close the listener, if it is not closed yet.  Both weft_admin_close() and the serving
 * threadlet do this: the latter when it can no longer accept, so that no peer waits in vain. */
static void
close_listener(weft_admin *admin)
{
	weft_listener *listener = admin->listener;

	admin->listener = NULL;
	weft_listener_close(listener);
}

static int
serve(void *arg)
{
	weft_admin *admin = arg;

	if (!weft__admin_is_closing(admin)) /* otherwise the listener is closed */
		(void)weft_http_serve(admin->server, admin->listener, WEFT_NEVER);
	close_listener(admin);
	weft__admin_unref(admin);
	return 0;
}

static int
admin_start(weft_admin *admin)
{
	const weft_go_opts go = { .name = "admin", .loop = admin->loop, .background = true };
	weft_threadlet rc;

	weft__admin_ref(admin);
	rc = weft_go_with(&go, serve, admin);
	if (rc > 0) {
		admin->serving = rc;
		return 0;
	}
	weft__admin_unref(admin);
	return (int)rc;
}

static int
open_listener(weft_admin *admin, const char *address)
{
	uint32_t readers = admin->connections_max;
	weft_listener_opts opts = { .connections_max = readers, .replace = true };
	int rc = check_address(address, admin);

	/* Connections that are being closed count until they are closed. */
	if (readers < UINT32_MAX - OTHERS_MAX - 2 * IDLE_MAX)
		opts.connections_max += OTHERS_MAX + 2 * IDLE_MAX;
	if (rc == 0)
		rc = weft_listener_open(address, &opts, &admin->listener);
	if (rc == 0)
		rc = weft_listener_local(admin->listener, &admin->addr);
	if (rc == 0 && !admin->token && !weft_addr_is_local(&admin->addr))
		rc = weft_fail(
			WEFT_EPERM,
			"weft_admin_open %s: other machines can reach this address, so a token "
			"is required",
			address);
	return rc;
}

static int
open_server(weft_admin *admin, const char *address)
{
	weft_http_server_opts opts = { .body_max = 4096, .idle_max = IDLE_MAX };
	int rc = open_listener(admin, address);

	if (rc < 0)
		return rc;
	admin->server = weft_http_server_new(&opts);
	if (!admin->server)
		return weft_fail(WEFT_ENOMEM, "weft_admin_open: no memory");
	rc = weft_admin_mount(admin, admin->server, "");
	return rc < 0 ? rc : admin_start(admin);
}

/* Whether the token can be sent: a header allows no other bytes, and drops blanks at both ends. */
static bool
is_token(const char *token)
{
	size_t size = strlen(token);

	for (size_t i = 0; i < size; i++)
		if ((unsigned char)token[i] < ' ' || token[i] == 0x7f)
			return false;
	return size > 0 && size <= TOKEN_MAX && token[0] != ' ' && token[size - 1] != ' ';
}

int
weft_admin_open(const char *address, const weft_admin_opts *opts, weft_admin **out)
{
	static const weft_admin_opts defaults;
	weft_admin *admin;
	int rc = 0;

	opts = opts ? opts : &defaults;
	if (!out || (!opts->loop && !weft_loop_current()))
		return weft_fail(
			WEFT_EINVAL,
			"weft_admin_open: out is NULL, or no loop was given and none runs here");
	if (opts->token && !is_token(opts->token))
		return weft_fail(WEFT_EINVAL, "weft_admin_open: a token must have 1 to 256 bytes, "
		                              "no control bytes, and no blank at its ends");
	admin = admin_make(opts);
	if (!admin)
		return weft_fail(WEFT_ENOMEM, "weft_admin_open: no memory");
	if (address)
		rc = open_server(admin, address);
	if (rc < 0) {
		close_listener(admin);
		free_admin(admin);
		return rc;
	}
	*out = admin;
	return 0;
}

int
weft_admin_local(weft_admin *admin, weft_addr *out)
{
	if (!admin || !out)
		return weft_fail(WEFT_EINVAL, "weft_admin_local: an argument is NULL");
	if (!admin->server)
		return weft_fail(
			WEFT_ENOENT,
			"weft_admin_local: the admin endpoint is only mounted and has no address");
	*out = admin->addr;
	return 0;
}

/* A threadlet waits until the last reference is released, even if it is canceled; the scope
 * shields it.  On another loop it could neither close the listener nor wait.  weft_cancel()
 * limits the drain, which a peer that stops reading would otherwise hold up. */
void
weft_admin_close(weft_admin *admin)
{
	weft_event gone = WEFT_SHARED_INIT;
	weft_scope scope;
	bool waits;

	if (!admin)
		return;
	if (weft_loop_current() && weft_loop_current() != admin->loop) {
		(void)weft_fail(
			WEFT_EWRONGLOOP,
			"weft_admin_close: the admin endpoint belongs to another loop; nothing "
			"was closed");
		return;
	}
	waits = weft_can_suspend() && weft_scope_open(&scope, WEFT_SHIELD, WEFT_NEVER) == 0;
	admin->gone = waits ? &gone : NULL;
	(void)weft_event_set(&admin->closing);
	close_listener(admin);
	if (admin->serving)
		(void)weft_cancel(admin->serving);
	weft__admin_unref(admin);
	if (!waits)
		return;
	(void)weft_event_wait(&gone, WEFT_NEVER);
	(void)weft_scope_close(&scope);
}

/* --- metrics, panels and mounts -------------------------------------------------- */

static bool
is_prefix(const char *prefix)
{
	size_t size = strlen(prefix);

	return size == 0
	       || (size < 256 && prefix[0] == '/' && prefix[size - 1] != '/'
	           && !strpbrk(prefix, "{}?# \t\r\n%"));
}

int
weft_admin_mount(weft_admin *admin, weft_http_server *server, const char *prefix)
{
	struct weft__admin_mount *mount;
	size_t size;

	if (!admin || !server || !prefix || !is_prefix(prefix))
		return weft_fail(
			WEFT_EINVAL,
			"weft_admin_mount: an argument is NULL, or the prefix is not \"\" or "
			"\"/path\"");
	size = strlen(prefix) + 1;
	mount = weft_alloc(sizeof(*mount) + size);
	if (!mount)
		return weft_fail(WEFT_ENOMEM, "weft_admin_mount: no memory");
	mount->admin = admin;
	memcpy(mount->prefix, prefix, size);
	weft__spin_lock(&admin->lock);
	/* The mount stays even if not all routes can be added: those that were refer to it. */
	mount->next = admin->mounts;
	admin->mounts = mount;
	weft__spin_unlock(&admin->lock);
	return weft__admin_routes(mount, server);
}

int
weft_admin_add_panel(weft_admin *admin, const char *title, const char *html, const char *script)
{
	struct weft__admin_panel *panel, **link;

	if (!admin || !title || !html)
		return weft_fail(WEFT_EINVAL, "weft_admin_add_panel: an argument is NULL");
	panel = weft_alloc(sizeof(*panel));
	if (!panel)
		return weft_fail(WEFT_ENOMEM, "weft_admin_add_panel: no memory");
	*panel = (struct weft__admin_panel){ NULL, title, html, script };
	weft__spin_lock(&admin->lock);
	link = &admin->panels;
	while (*link)
		link = &(*link)->next;
	__atomic_store_n(link, panel, __ATOMIC_RELEASE);
	weft__spin_unlock(&admin->lock);
	return 0;
}
