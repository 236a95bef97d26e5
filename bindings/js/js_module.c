/* js_module.c - ES modules from files.
 *
 * A module is identified by its absolute path.  An import is relative to the importing file;
 * bare names are not supported.  Loading a file with weft_js_load() needs no grant, because the
 * host does it; imports are done by the script and need one.
 *
 * Loads nest: a module is loaded together with everything it imports.  When the loader callback
 * reports a failed import, QuickJS frees the modules that are waiting for it, although other
 * modules, loaded in the meantime, may have imported them and point to them.  Therefore:
 *
 *   1. Inside a load nothing fails.  A module that cannot be loaded is replaced by one that only
 *      throws.  All modules that are being loaded record the error, and the outermost fails at
 *      its end.
 *   2. Modules that failed in this way exist, but never run: `broken` maps their names to the
 *      error.
 *   3. If not even the replacement can be made, for lack of memory, modules are `lost`: from
 *      then on every import fails.
 */
#include <limits.h>
#include <stdio.h>
#include "engine.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* --- names -------------------------------------------------------------------------- */

/* Removes "." and ".." from a path, in place.  A ".." that leads above the start of a relative
 * path stays.  The write position never passes the read position. */
static void
tidy(char *path)
{
	bool rooted = *path == '/';
	char *begin = path + rooted, *to = begin, *fixed = begin;

	for (char *from = begin; *from;) {
		size_t size = strcspn(from, "/");
		char *next = from + size + (from[size] == '/');
		bool up = size == 2 && from[0] == '.' && from[1] == '.';

		if (up && to > fixed) {
			while (to > fixed && *--to != '/')
				;
		} else if (up ? !rooted : size > 0 && !(size == 1 && *from == '.')) {
			if (to > begin)
				*to++ = '/';
			memmove(to, from, size);
			to += size;
			fixed = up ? to : fixed;
		}
		from = next;
	}
	*to = '\0';
}

static bool
is_relative(const char *name)
{
	return strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0;
}

/* Converts a path to "file:///a%20b.js"; "" if it does not fit. */
static void
make_url(const char *path, char *out, size_t room)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/!$&'()*+,;=:@";
	size_t at = (size_t)snprintf(out, room, "file://");

	for (; *path; path++) {
		bool is_plain = strchr(plain, *path) != NULL;

		if (at + 4 > room) {
			*out = '\0';
			return;
		}
		at += (size_t)snprintf(out + at, room - at, is_plain ? "%c" : "%%%02X",
		                       is_plain ? *path : (unsigned char)*path);
	}
}

/* --- modules that failed ----------------------------------------------------------------- */

/* Why this module cannot be loaded; undefined if there is no error. */
static JSValue
recall(weft_js *js, const char *name)
{
	return JS_IsObject(js->broken) ? JS_GetPropertyStr(js->ctx, js->broken, name)
	                               : JS_UNDEFINED;
}

/* If out of memory the error is not recorded; running the module throws instead. */
static void
remember(weft_js *js, const char *name, JSValueConst error)
{
	JSContext *ctx = js->ctx;

	if (!JS_IsObject(js->broken))
		js->broken = JS_NewObjectProto(ctx, JS_NULL);
	if (JS_IsException(js->broken)
	    || JS_DefinePropertyValueStr(ctx, js->broken, name, JS_DupValue(ctx, error),
	                                 JS_PROP_C_W_E)
	               < 0)
		JS_FreeValue(ctx, JS_GetException(ctx));
}

/* Records the error in all modules that are being loaded: they depend on the one that failed. */
static void
blame(weft_js *js, JSValueConst error)
{
	struct weft__js_load *load;

	for (load = js->loading; load; load = load->outer)
		if (JS_IsUndefined(load->error))
			load->error = JS_DupValue(js->ctx, error);
}

static int
throw_reason(JSContext *ctx, JSModuleDef *module)
{
	JSAtom atom = JS_GetModuleName(ctx, module);
	const char *name = JS_AtomToCString(ctx, atom);
	JSValue error = name ? recall(weft__js_of(ctx), name) : JS_EXCEPTION;

	if (!JS_IsException(error))
		(void)JS_Throw(ctx, error);
	if (name)
		JS_FreeCString(ctx, name);
	JS_FreeAtom(ctx, atom);
	return -1;
}

/* JS_NewCModule() does not check for memory, so this checks in advance. */
static JSModuleDef *
make_module(JSContext *ctx, const char *name)
{
	JSAtom atom = JS_NewAtom(ctx, name);
	void *spare = js_malloc(ctx, 1024);
	JSModuleDef *made = NULL;

	js_free(ctx, spare);
	if (atom != JS_ATOM_NULL && spare)
		made = JS_NewCModule(ctx, name, throw_reason);
	JS_FreeAtom(ctx, atom);
	return made;
}

/* Makes a module that throws the pending exception: invariant 1.  Returns NULL if out of memory. */
static JSModuleDef *
stand_in(weft_js *js, const char *name)
{
	JSValue error = JS_GetException(js->ctx);

	blame(js, error);
	remember(js, name, error);
	JS_FreeValue(js->ctx, error);
	return make_module(js->ctx, name);
}

/* --- names of imports ----------------------------------------------------------------------- */

static char *
join(JSContext *ctx, const char *base, const char *name)
{
	const char *slash = *name == '/' ? NULL : strrchr(base, '/');
	size_t folder = slash ? (size_t)(slash + 1 - base) : 0;
	size_t size = strlen(name) + 1;
	char *path = js_malloc(ctx, folder + size);

	if (!path)
		return NULL;
	memcpy(path, base, folder);
	memcpy(path + folder, name, size);
	tidy(path);
	return path;
}

/* A name that is neither a path nor relative is put in brackets; js_module_load() rejects it. */
static char *
mark(JSContext *ctx, const char *name)
{
	size_t size = strlen(name) + 3;
	char *made = js_malloc(ctx, size);

	if (made)
		(void)snprintf(made, size, "<%s>", name);
	return made;
}

/* Returns false and throws if the module is broken.  Inside a load it returns true, and the
 * modules that are being loaded record the error. */
static bool
may_reach(weft_js *js, const char *path)
{
	JSValue error = recall(js, path);

	if (JS_IsUndefined(error))
		return true;
	if (!js->loading) {
		(void)JS_Throw(js->ctx, error);
		return false;
	}
	blame(js, error);
	JS_FreeValue(js->ctx, error);
	return true;
}

char *
weft__js_module_name(JSContext *ctx, const char *base, const char *name, void *opaque)
{
	weft_js *js = opaque;
	char *path;

	if (js->lost) {
		(void)JS_ThrowOutOfMemory(ctx);
		return NULL;
	}
	if (js->loading)
		js->loading->resolves = true;
	path = *name == '/' || is_relative(name) ? join(ctx, base, name) : mark(ctx, name);
	if (path && !may_reach(js, path)) {
		js_free(ctx, path);
		return NULL;
	}
	return path;
}

/* --- loading -------------------------------------------------------------------------- */

/* The URL of a file.  The buffers are on the heap because they are large and loads nest on the
 * stack. */
static JSValue
url_of(JSContext *ctx, const char *path)
{
	struct {
		char url[3 * PATH_MAX + 8], full[PATH_MAX];
	} *room = js_malloc(ctx, sizeof(*room));
	JSValue made;

	if (!room)
		return JS_EXCEPTION;
	if (weft__js_real_path(path, room->full, sizeof(room->full)))
		path = room->full;
	make_url(path, room->url, sizeof(room->url));
	made = JS_NewString(ctx, room->url);
	js_free(ctx, room);
	return made;
}

static int
set_meta(weft_js *js, JSModuleDef *module, const char *path, bool is_main)
{
	JSContext *ctx = js->ctx;
	JSValue meta = JS_GetImportMeta(ctx, module), url;
	int rc = -1;

	if (JS_IsException(meta))
		return -1;
	url = url_of(ctx, path);
	if (!JS_IsException(url))
		rc = JS_DefinePropertyValueStr(ctx, meta, "url", url, JS_PROP_C_W_E);
	if (rc >= 0)
		rc = JS_DefinePropertyValueStr(ctx, meta, "main", JS_NewBool(ctx, is_main),
		                               JS_PROP_C_W_E);
	JS_FreeValue(ctx, meta);
	return rc < 0 ? -1 : 0;
}

/* Ends the load of a module that was compiled together with its imports.  Takes ownership of
 * `module` and of the load's error. */
static JSValue
end_load(weft_js *js, struct weft__js_load *load, const char *path, JSValue module)
{
	JSContext *ctx = js->ctx;

	js->loading = load->outer;
	if (JS_IsException(module)) {
		js->lost |= load->resolves; /* QuickJS freed it, and others may point to it */
		JS_FreeValue(ctx, load->error);
		return module;
	}
	if (JS_IsUndefined(load->error))
		return module;
	remember(js, path, load->error);
	if (load->outer) {
		JS_FreeValue(ctx, load->error);
		return module;
	}
	JS_FreeValue(ctx, module);
	return JS_Throw(ctx, load->error);
}

/* Reads and compiles a file; this also loads its imports.  Returns an exception on failure. */
static JSValue
compile(weft_js *js, const char *path, bool is_main)
{
	JSContext *ctx = js->ctx;
	struct weft__js_load load = { .outer = js->loading, .error = JS_UNDEFINED };
	char *text = NULL;
	int64_t size = weft__js_read_file(ctx, path, &text);
	JSValue module;

	if (size < 0)
		return weft__js_throw(js, (int)size);
	js->loading = &load;
	module = JS_Eval(ctx, text, (size_t)size, path,
	                 JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	js_free(ctx, text);
	module = end_load(js, &load, path, module);
	if (!JS_IsException(module) && set_meta(js, JS_VALUE_GET_PTR(module), path, is_main) < 0) {
		JS_FreeValue(ctx, module);
		return JS_EXCEPTION;
	}
	return module;
}

static JSValue
js_module_load(weft_js *js, const char *name)
{
	if (*name == '<')
		return JS_ThrowTypeError(
			js->ctx,
			"import of '%.*s': use an absolute path or one that begins with ./ or ../",
			(int)strlen(name) - 2, name + 1);
	if (!(js->opts.grants & WEFT_JS_FILES))
		return weft__js_throw(js, weft_fail(WEFT_EPERM,
		                                    "import of %s: the host has not granted files",
		                                    name));
	return compile(js, name, false);
}

/* A dynamic import, which is not inside a load, may fail, and can be retried. */
JSModuleDef *
weft__js_module_load(JSContext *ctx, const char *name, void *opaque)
{
	weft_js *js = opaque;
	JSModuleDef *module;
	JSValue compiled = js_module_load(js, name);

	if (JS_IsException(compiled))
		return js->loading && !js->lost ? stand_in(js, name) : NULL;
	module = JS_VALUE_GET_PTR(compiled);
	JS_FreeValue(ctx, compiled); /* the engine keeps it by its name */
	return module;
}

/* Handles the result of a module's body.  Takes ownership of `promise`. */
static int
js_module_finish(weft_js *js, JSValue promise, weft_value *out)
{
	JSContext *ctx = js->ctx;
	int rc = 0;

	if (JS_PromiseState(ctx, promise) == JS_PROMISE_REJECTED) {
		weft__js_ignore(js, promise);
		(void)JS_Throw(ctx, JS_PromiseResult(ctx, promise));
		rc = weft__js_failure(js);
	} else if (out) {
		weft_value value = { 0 };

		rc = weft__js_to(js, promise, &value);
		if (rc == 0)
			*out = value;
	}
	JS_FreeValue(ctx, promise);
	return rc;
}

int
weft__js_module_run(weft_js *js, const char *file, weft_value *out)
{
	char path[PATH_MAX];
	JSValue module, promise;

	if (!weft__js_real_path(file, path, sizeof(path)))
		return weft_fail(WEFT_ENOENT, "%s: %s", file, weft_strerror(WEFT_ENOENT));
	module = compile(js, path, true);
	if (JS_IsException(module))
		return weft__js_failure(js);
	js->jobs_first = true;
	promise = JS_EvalFunction(js->ctx, module);
	return JS_IsException(promise) ? weft__js_failure(js) : js_module_finish(js, promise, out);
}
