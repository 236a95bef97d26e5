/* net.c - connects fetch to weft's HTTP client.
 *
 * An exchange is one request and its response. lib/fetch.js creates it, opens it, reads its body
 * and ends it.  The functions here are safe in any order.
 *
 *   1. At most one call uses an exchange at a time.  Ending it meanwhile fires its abort signal,
 *      and the call closes it before it returns; otherwise it is closed at once.
 *   2. Each exchange holds a reference to the engine's client, which is freed with the last one.
 *      So calls that are suspended when the engine is freed can still finish.
 */
#include <weft/abort.h>
#include <weft/http.h>
#include "engine.h"

#define PIECE_BYTES ((size_t)64 << 10)

struct weft__js_net {
	weft_http_client *client;
	struct weft__link exchanges;
	struct weft__refs refs; /* held by the engine and by exchanges */
};

struct exchange {
	struct weft__js_net *net;
	weft_abort *abort;
	weft_http *http; /* NULL: not open */
	struct weft__refs refs;
	bool busy, ended;
	struct weft__link of_net;
};

/* --- the client ----------------------------------------------------------------- */

static void
unref_net(struct weft__js_net *net)
{
	if (!weft__refs_drop(&net->refs))
		return;
	(void)weft_http_client_free(net->client);
	weft_release(net);
}

static struct weft__js_net *
net_of(weft_js *js)
{
	weft_http_client_opts opts = { .loop = js->loop, .tls = js->opts.tls };
	struct weft__js_net *net = js->net;

	if (net)
		return net;
	net = weft_alloc(sizeof(*net));
	if (!net)
		return NULL;
	*net = (struct weft__js_net){ .client = weft_http_client_new(&opts),
		                      .refs = WEFT__REFS_ONE };
	weft__link_init(&net->exchanges);
	if (net->client)
		return js->net = net;
	weft_release(net);
	return NULL;
}

/* --- exchanges ------------------------------------------------------------------- */

/* Invariant 1. */
static void
net_end(struct exchange *exchange)
{
	exchange->ended = true;
	if (exchange->busy) {
		(void)weft_abort_fire(exchange->abort, (weft_value){ 0 });
		return;
	}
	weft_http_close(exchange->http);
	exchange->http = NULL;
}

static void
share_exchange(void *ptr)
{
	weft__refs_add(&((struct exchange *)ptr)->refs);
}

/* No call is using the exchange: a call would hold a reference. */
static void
drop_exchange(void *ptr)
{
	struct exchange *exchange = ptr;

	if (!weft__refs_drop(&exchange->refs))
		return;
	net_end(exchange);
	weft__link_remove(&exchange->of_net);
	(void)weft_abort_unref(exchange->abort);
	unref_net(exchange->net);
	weft_release(exchange);
}

static const weft_type type_exchange = { .name = "exchange",
	                                 .drop = drop_exchange,
	                                 .share = share_exchange };

static int
net_begin(weft_js *js, const weft_value *args UNUSED, size_t count UNUSED, weft_value *out,
          void *arg UNUSED)
{
	struct weft__js_net *net;
	struct exchange *exchange;

	if (!(js->opts.grants & WEFT_JS_NET))
		return weft_fail(WEFT_EPERM, "fetch: the host has not granted the network");
	net = net_of(js);
	exchange = net ? weft_alloc(sizeof(*exchange)) : NULL;
	if (!exchange)
		return WEFT_ENOMEM;
	*exchange = (struct exchange){ .net = net,
		                       .abort = weft_abort_new(js->loop),
		                       .refs = WEFT__REFS_ONE };
	if (!exchange->abort) {
		weft_release(exchange);
		return WEFT_ENOMEM;
	}
	weft__refs_add(&net->refs);
	weft__link_after(&net->exchanges, &exchange->of_net);
	*out = weft_value_ptr(&type_exchange, exchange);
	return 0;
}

/* Returns the exchange that a call was given, for its exclusive use until net_give_back().  Returns
 * NULL if there is none, it was ended, or another call is using it. */
static struct exchange *
net_take(const weft_value *args, size_t count)
{
	struct exchange *exchange = NULL;

	if (count > 0 && args[0].type == &type_exchange)
		exchange = args[0].as.ptr;
	if (!exchange || exchange->busy || exchange->ended) {
		(void)weft_fail(WEFT_ECANCELED, "fetch: the request was ended");
		return NULL;
	}
	exchange->busy = true;
	return exchange;
}

static int
net_give_back(struct exchange *exchange, int rc)
{
	exchange->busy = false;
	if (rc < 0)
		exchange->ended = true;
	if (!exchange->ended)
		return rc;
	net_end(exchange);
	return rc < 0 ? rc : weft_fail(WEFT_ECANCELED, "fetch: the request was ended");
}

/* --- opening ----------------------------------------------------------------------- */

static const char *
net_text_of(const weft_value *value)
{
	return value->type == &weft_type_text ? value->as.ptr : NULL;
}

/* Header values are bytes.  In a script each byte is a character, so bytes above 127 arrive here
 * as two bytes of UTF-8.  Writes the bytes to send, with a NUL; returns the position after it. */
static char *
narrow(const char *text, char *to)
{
	for (const unsigned char *from = (const void *)text; *from; from++)
		if (*from >= 0xc0 && from[1]) {
			*to++ = (char)(*from << 6 | (from[1] & 0x3f));
			from++;
		} else {
			*to++ = (char)*from;
		}
	*to++ = '\0';
	return to;
}

/* The reverse: converts header bytes to a script's text. */
static weft_value
widen(const char *text)
{
	char *wide = weft_alloc(2 * strlen(text) + 1), *to = wide;
	weft_value value;

	if (!wide)
		return weft_value_error(WEFT_ENOMEM);
	for (const unsigned char *from = (const void *)text; *from; from++) {
		if (*from >= 0x80)
			*to++ = (char)(0xc0 | *from >> 6);
		*to++ = (char)(*from >= 0x80 ? 0x80 | (*from & 0x3f) : *from);
	}
	*to = '\0';
	value = weft_value_text(wide);
	weft_release(wide);
	return value;
}

/* The size of all texts of a list, with their NULs; 0 if an item is not a text. */
static size_t
size_of_texts(const weft_list *list)
{
	size_t size = 1;

	for (size_t i = 0; i < list->count; i++) {
		const char *text = net_text_of(&list->items[i]);

		if (!text)
			return 0;
		size += strlen(text) + 1;
	}
	return size;
}

/* Converts a list of alternating names and values.  The texts are stored after the array, in the
 * same block.  Returns the number of headers, or an error. */
static int
make_fields(const weft_value *value, weft_http_field **out)
{
	const weft_list *list = value->as.ptr;
	size_t count, size;
	char *text;

	if (value->type != &weft_type_list || list->count % 2)
		return weft_fail(WEFT_EINVAL,
		                 "fetch: the headers are not a list of names and values");
	count = list->count / 2;
	size = size_of_texts(list);
	if (size == 0)
		return weft_fail(WEFT_EINVAL, "fetch: a header is not a text");
	*out = weft_alloc(count * sizeof(**out) + size);
	if (!*out)
		return WEFT_ENOMEM;
	text = (char *)(*out + count);
	for (size_t i = 0; i < count; i++) {
		(*out)[i].name = text;
		text = narrow(net_text_of(&list->items[2 * i]), text);
		(*out)[i].value = text;
		text = narrow(net_text_of(&list->items[2 * i + 1]), text);
	}
	return (int)count;
}

/* The headers of a response: a list of alternating names and values. */
static weft_value
list_fields(weft_http *http)
{
	weft_http_field field;
	weft_value *items, net_list;
	size_t count = 0;
	bool whole = true;

	while (weft_http_header_at(http, count, &field))
		count++;
	items = weft_alloc((2 * count + 1) * sizeof(*items));
	if (!items)
		return weft_value_error(WEFT_ENOMEM);
	for (size_t i = 0; i < count; i++) {
		(void)weft_http_header_at(http, i, &field);
		items[2 * i] = weft_value_text(field.name);
		items[2 * i + 1] = widen(field.value);
		whole &= net_text_of(&items[2 * i]) && net_text_of(&items[2 * i + 1]);
	}
	net_list = weft_value_list(items, 2 * count);
	if (!whole) {
		weft_value_drop(&net_list);
		net_list = weft_value_error(WEFT_ENOMEM);
	}
	weft_release(items);
	return net_list;
}

/* Makes the list [status, url, headers]. */
static int
make_reply(weft_http *http, weft_value *out)
{
	weft_value items[3] = { weft_value_integer(weft_http_status(http)),
		                weft_value_text(weft_http_url(http)), list_fields(http) };

	if (items[1].type == &weft_type_error || items[2].type == &weft_type_error) {
		weft__js_drop(items, 3);
		return WEFT_ENOMEM;
	}
	*out = weft_value_list(items, 3);
	return out->type == &weft_type_error ? WEFT_ENOMEM : 0;
}

/* The arguments after the exchange: method, URL, headers, body, whether to follow redirects. */
static int
make_request(const weft_value *args, weft_http_request *request, weft_http_field **fields)
{
	int rc = make_fields(&args[3], fields);

	if (rc < 0)
		return rc;
	request->method = net_text_of(&args[1]);
	request->url = net_text_of(&args[2]);
	request->fields = *fields;
	request->field_count = (size_t)rc;
	if (args[4].type == &weft_type_bytes)
		request->body = *(const weft_span *)args[4].as.ptr;
	request->no_redirect = args[5].as.integer == 0;
	return request->method && request->url
	               ? 0
	               : weft_fail(WEFT_EINVAL, "fetch: the method or the URL is not a text");
}

static int
open_exchange(weft_js *js UNUSED, const weft_value *args, size_t count, weft_value *out,
              void *arg UNUSED)
{
	struct exchange *exchange = count == 6 ? net_take(args, count) : NULL;
	weft_http_field *fields = NULL;
	weft_http_request request = { 0 };
	int rc;

	if (!exchange)
		return WEFT_ECANCELED;
	request.abort = exchange->abort;
	rc = make_request(args, &request, &fields);
	if (rc == 0)
		rc = weft_http_fetch(exchange->net->client, &request, &exchange->http, WEFT_NEVER);
	weft_release(fields);
	if (rc == 0)
		rc = make_reply(exchange->http, out);
	rc = net_give_back(exchange, rc);
	if (rc < 0)
		weft_value_drop(out);
	return rc;
}

/* --- reading ------------------------------------------------------------------------ */

static int
read_piece(weft_http *http, weft_value *out)
{
	void *piece = weft_alloc(PIECE_BYTES);
	ssize_t size = piece ? weft_http_read(http, piece, PIECE_BYTES, WEFT_NEVER) : WEFT_ENOMEM;

	if (size > 0) {
		*out = weft_value_bytes((weft_span){ piece, (size_t)size });
		if (out->type == &weft_type_error)
			size = WEFT_ENOMEM;
	}
	weft_release(piece);
	return size < 0 ? (int)size : 0;
}

/* Returns no value at the end of the body. */
static int
read_exchange(weft_js *js UNUSED, const weft_value *args, size_t count, weft_value *out,
              void *arg UNUSED)
{
	struct exchange *exchange = net_take(args, count);
	int rc;

	if (!exchange)
		return WEFT_ECANCELED;
	rc = exchange->http ? read_piece(exchange->http, out) : WEFT_EINVAL;
	rc = net_give_back(exchange, rc);
	if (rc < 0)
		weft_value_drop(out);
	return rc;
}

static int
end_exchange(weft_js *js UNUSED, const weft_value *args, size_t count, weft_value *out UNUSED,
             void *arg UNUSED)
{
	if (count > 0 && args[0].type == &type_exchange)
		net_end(args[0].as.ptr);
	return 0;
}

/* --- initialization ------------------------------------------------------------------ */

int
weft__js_net_init(weft_js *js, JSValueConst host)
{
	static const struct {
		const char *name;
		bool suspends;
		weft_js_fn fn;
	} functions[] = {
		{ "fetchBegin", false, net_begin },
		{ "fetchOpen", true, open_exchange },
		{ "fetchRead", true, read_exchange },
		{ "fetchEnd", false, end_exchange },
	};
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sizeof(functions) / sizeof(*functions); i++) {
		JSValue fn = weft__js_function(js, functions[i].name, functions[i].suspends,
		                               functions[i].fn, NULL);

		rc = JS_IsException(fn)
		             ? -1
		             : JS_DefinePropertyValueStr(js->ctx, host, functions[i].name, fn,
		                                         JS_PROP_C_W_E);
	}
	return rc < 0 ? -1 : 0;
}

/* Invariant 2. */
void
weft__js_net_fini(weft_js *js)
{
	struct weft__js_net *net = js->net;

	if (!net)
		return;
	js->net = NULL;
	for (struct weft__link *at = net->exchanges.next; at != &net->exchanges; at = at->next)
		net_end(WEFT__LINK_OF(exchange, of_net, at));
	unref_net(net);
}
