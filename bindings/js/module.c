/* module.c - ES modules from files.
 *
 * A module is known by its absolute path.  What a module imports is named relative to its
 * own file; names without a path mean nothing here.  The file that the host loads is the
 * host's act; imports are the script's, and need the grant.
 */
#include <limits.h>
#include <stdio.h>
#include "engine.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

/* --- names -------------------------------------------------------------------------- */

/* Take "." and ".." out of a path, in place; what leads out of where a relative one begins
 * stays.  What is written is never ahead of what is read. */
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
		} else if (up ? !rooted
		              : size > 0 && !(size == 1 && *from == '.')) {
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

char *
weft__js_module_name(JSContext *ctx, const char *base, const char *name,
                     void *opaque)
{
	const char *slash = strrchr(base, '/');
	size_t folder = 0, size = strlen(name) + 1;
	char *path;

	(void)opaque;
	if (is_relative(name)) {
		folder = slash ? (size_t)(slash + 1 - base) : 0;
	} else if (*name != '/') {
		(void)JS_ThrowTypeError(
			ctx, "import of '%s': neither a path nor relative",
			name);
		return NULL;
	}
	path = js_malloc(ctx, folder + size);
	if (!path)
		return NULL;
	memcpy(path, base, folder);
	memcpy(path + folder, name, size);
	tidy(path);
	return path;
}

/* "file:///a%20b.js" of a path; "" if it does not fit. */
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
		at += (size_t)snprintf(out + at, room - at,
		                       is_plain ? "%c" : "%%%02X",
		                       is_plain ? *path : (unsigned char)*path);
	}
}

/* --- loading -------------------------------------------------------------------------- */

static int
set_meta(weft_js *js, JSModuleDef *module, const char *path, bool is_main)
{
	JSContext *ctx = js->ctx;
	JSValue meta = JS_GetImportMeta(ctx, module);
	char url[3 * PATH_MAX + 8], full[PATH_MAX];
	int rc;

	if (JS_IsException(meta))
		return -1;
	make_url(weft__js_real_path(path, full, sizeof(full)) ? full : path,
	         url, sizeof(url));
	rc = JS_DefinePropertyValueStr(ctx, meta, "url", JS_NewString(ctx, url),
	                               JS_PROP_C_W_E);
	if (rc >= 0)
		rc = JS_DefinePropertyValueStr(ctx, meta, "main",
		                               JS_NewBool(ctx, is_main),
		                               JS_PROP_C_W_E);
	JS_FreeValue(ctx, meta);
	return rc < 0 ? -1 : 0;
}

/* Read and compile, which also loads what it imports.  An exception if that fails. */
static JSValue
compile(weft_js *js, const char *path, bool is_main)
{
	JSContext *ctx = js->ctx;
	char *text = NULL;
	int64_t size = weft__js_read_file(ctx, path, &text);
	JSValue module;

	if (size < 0)
		return weft__js_throw(js, (int)size);
	module = JS_Eval(ctx, text, (size_t)size, path,
	                 JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
	js_free(ctx, text);
	if (!JS_IsException(module)
	    && set_meta(js, JS_VALUE_GET_PTR(module), path, is_main) < 0) {
		JS_FreeValue(ctx, module);
		return JS_EXCEPTION;
	}
	return module;
}

JSModuleDef *
weft__js_module_load(JSContext *ctx, const char *name, void *opaque)
{
	weft_js *js = opaque;
	JSModuleDef *module;
	JSValue compiled;

	if (!(js->opts.grants & WEFT_JS_FILES)) {
		(void)weft__js_throw(
			js,
			weft_fail(WEFT_EPERM,
		                  "import of %s: files are not granted", name));
		return NULL;
	}
	compiled = compile(js, name, false);
	if (JS_IsException(compiled))
		return NULL;
	module = JS_VALUE_GET_PTR(compiled);
	JS_FreeValue(ctx, compiled); /* the engine holds it by its name */
	return module;
}

/* What came of a module's body.  Takes `promise`. */
static int
finish(weft_js *js, JSValue promise, weft_value *out)
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
		return weft_fail(WEFT_ENOENT, "%s: %s", file,
		                 weft_strerror(WEFT_ENOENT));
	module = compile(js, path, true);
	if (JS_IsException(module))
		return weft__js_failure(js);
	js->jobs_first = true;
	promise = JS_EvalFunction(js->ctx, module);
	return JS_IsException(promise) ? weft__js_failure(js)
	                               : finish(js, promise, out);
}
