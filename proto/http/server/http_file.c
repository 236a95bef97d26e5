/* http_file.c - replies with static files.
 *
 * A name is cleaned here first, so that the opened name has no "..", whatever the handler
 * passed.  The kernel rejects links that lead out of the root (os_http.c).
 */
#include "http/server/files.h"
#include "http/parse/http_values.h"

#define INDEX  "/index.html"
#define RANGES 16 /* ranges of a request that are parsed */

/* --- names -------------------------------------------------------------------- */

/* Write `name` to `out` without empty and "." parts, and with index.html appended if `index`.
 * `out` needs room for `name`, INDEX and a NUL.  Returns 0, or WEFT_ENOENT if a part is "..". */
static int
clean(const char *name, bool index, char *out)
{
	char *at = out;

	for (;;) {
		size_t size;

		name += strspn(name, "/");
		size = strcspn(name, "/");
		if (size == 0)
			break;
		if (size == 2 && memcmp(name, "..", 2) == 0)
			return WEFT_ENOENT;
		if (size != 1 || *name != '.') {
			if (at != out)
				*at++ = '/';
			memcpy(at, name, size);
			at += size;
		}
		name += size;
	}
	if (index)
		at = weft__http_put_text(at, at == out ? WEFT__HTTP_LITERAL("index.html")
		                                       : WEFT__HTTP_LITERAL(INDEX));
	*at = '\0';
	return 0;
}

static bool
ends_as_folder(const char *name)
{
	size_t size = strlen(name);

	return size == 0 || name[size - 1] == '/';
}

/* --- conditions ---------------------------------------------------------------- */

/* Whether the file's tag is in a header of that name, which may occur several times.  Returns
 * 1, 0, or -1 if there is no such header. */
static int
match_tags(weft_http *http, const char *name, const struct weft__http_file *file, bool weak)
{
	const struct weft__http_field *field;
	uint32_t index = 0;
	int found = -1;

	while (found != 1
	       && (field = weft__http_field_next(&http->in.head.lines, http->in.text, name,
	                                         &index))) {
		struct text value = part_text(http->in.text, field->value);

		found = weft__http_etag_match(value.data, value.size, file->etag, weak);
	}
	return found;
}

/* Whether a precondition (If-Match, If-Unmodified-Since) fails. */
static bool
fails_condition(weft_http *http, const struct weft__http_file *file)
{
	int match = match_tags(http, "if-match", file, false);
	struct text value;
	int64_t date;

	if (match >= 0)
		return match == 0;
	return weft__http_value(http, "if-unmodified-since", &value)
	       && weft__http_date_parse(value.data, value.size, weft__http_os_seconds(), &date) == 0
	       && file->opened.modified_s > date;
}

/* Whether the client has the current version (If-None-Match, If-Modified-Since). */
static bool
is_current(weft_http *http, const struct weft__http_file *file)
{
	int match = match_tags(http, "if-none-match", file, true);
	struct text value;

	if (match >= 0)
		return match == 1;
	if (weft__http_value(http, "if-modified-since", &value))
		return !weft__http_modified_since(value.data, value.size, file->opened.modified_s,
		                                  weft__http_os_seconds());
	return false;
}

/* Whether a range may be sent: If-Range is missing or matches the current version. */
static bool
may_send_range(weft_http *http, const struct weft__http_file *file)
{
	struct text value;

	if (!weft__http_value(http, "if-range", &value))
		return true;
	if (weft__http_etag_match(value.data, value.size, file->etag, false))
		return true;
	return text_is(value, file->modified);
}

/* Choose the status and the part of the file to send. */
static int
choose_part(weft_http *http, const struct weft__http_file *file, struct weft__http_range *part)
{
	struct weft__http_range ranges[RANGES];
	struct text value;
	int count;

	*part = (struct weft__http_range){ 0, file->opened.size };
	if (fails_condition(http, file))
		return 412;
	if (is_current(http, file))
		return 304;
	if (strcmp(weft_http_method(http), "GET") != 0 || !weft__http_value(http, "range", &value)
	    || !may_send_range(http, file))
		return 200;
	count = weft__http_range_parse(value.data, value.size, file->opened.size, ranges, RANGES);
	if (count == WEFT_ENOENT)
		return 416;
	if (count != 1)
		return 200;
	*part = ranges[0];
	return 206;
}

/* --- sending ------------------------------------------------------------------- */

/* Set Content-Range: "bytes 0-9/100"; without a part, an asterisk takes the place of the range. */
static int
set_range(weft_http *http, const struct weft__http_range *part, uint64_t total)
{
	char text[80], *at = text;

	at = weft__http_put_text(at, WEFT__HTTP_LITERAL("bytes "));
	if (part) {
		at = weft__http_put_number(at, part->first);
		*at++ = '-';
		at = weft__http_put_number(at, part->first + part->size - 1);
	} else {
		*at++ = '*';
	}
	*at++ = '/';
	at = weft__http_put_number(at, total);
	*at = '\0';
	return weft_http_set_header(http, "Content-Range", text);
}

/* Send the body after the head in the buffer; in the same write if the body is small and in the
 * page cache. */
static int
send_part(weft_http *http, const struct weft__http_file *file, struct weft__http_range part,
          uint64_t deadline_ns)
{
	struct weft__http_io *io = http->io;
	size_t room = WEFT__HTTP_SLAB - io->out_size;
	int rc;

	if (part.size <= room) {
		char *at = io->out + io->out_size;
		ssize_t n = weft__http_os_read_now(file->opened.fd, at, (size_t)part.size,
		                                   part.first);

		if (n == (ssize_t)part.size) {
			weft__http_io_add(io, at + n);
			return 0;
		}
	}
	rc = weft__http_io_flush(io, deadline_ns);
	return rc < 0 ? rc : weft__http_io_file(io, file->opened.fd, part, deadline_ns);
}

static int
send_file(weft_http *http, const struct weft__http_file *file, uint64_t deadline_ns)
{
	struct weft__http_range part;
	int status = choose_part(http, file, &part), rc;
	const char *type = weft__http_has_field(http, "content-type") ? NULL : file->type;

	if (status == 412)
		return weft__http_reply_status(http, 412, deadline_ns);
	if (status == 416) {
		rc = set_range(http, NULL, file->opened.size);
		return rc < 0 ? rc : weft__http_reply_status(http, 416, deadline_ns);
	}
	weft__http_cut_field(http, "etag");
	weft__http_cut_field(http, "last-modified");
	weft__http_cut_field(http, "accept-ranges");
	rc = weft__http_add_lines(http, (struct text){ file->lines, file->lines_size });
	if (rc == 0 && status == 206)
		rc = set_range(http, &part, file->opened.size);
	if (rc == 0)
		rc = weft__http_begin_reply(http, status, status == 304 ? NULL : type, part.size,
		                            deadline_ns);
	if (rc < 0)
		return rc;
	if (!http->out.bodyless && part.size > 0)
		rc = send_part(http, file, part, deadline_ns);
	if (rc == 0) {
		http->out.left = 0;
		http->out.stage = WEFT__HTTP_ENDED;
	}
	return rc;
}

/* --- folders and errors ----------------------------------------------------------- */

/* Redirect to the same path with a slash, so that relative links in the page work. */
static int
redirect(weft_http *http, uint64_t deadline_ns)
{
	struct text path = part_text(http->in.text, http->in.head.path);
	struct text query = part_text(http->in.text, http->in.head.query);
	char *to, *at;
	int rc;

	/* A browser would take a Location of "//x" for the host x. */
	if (path.size == 0 || (path.size > 1 && path.data[1] == '/'))
		return weft__http_reply_status(http, 404, deadline_ns);
	to = at = weft__http_arena_take(&http->arena, path.size + query.size + 3);
	if (!to)
		return weft_fail(WEFT_ENOMEM, "weft_http_reply_file: out of memory");
	at = weft__http_put_text(at, path);
	*at++ = '/';
	if (query.size > 0) {
		*at++ = '?';
		at = weft__http_put_text(at, query);
	}
	*at = '\0';
	rc = weft_http_set_header(http, "Location", to);
	return rc < 0 ? rc : weft__http_reply_status(http, 301, deadline_ns);
}

static int
answer_error(weft_http *http, int error, uint64_t deadline_ns)
{
	switch (error) {
	case WEFT_ENOENT:
	case -ENOTDIR:
	case -ELOOP:
	case -ENAMETOOLONG:
	case -EXDEV: /* the name leads out of the root */
	case WEFT_EINVAL:
	case -ENXIO:
		return weft__http_reply_status(http, 404, deadline_ns);
	case -EACCES:
	case WEFT_EPERM:
		return weft__http_reply_status(http, 403, deadline_ns);
	case -EMFILE:
	case -ENFILE:
	case WEFT_ENOMEM:
	case WEFT_EAGAIN:
		return weft__http_reply_status(http, 503, deadline_ns);
	default:
		return error;
	}
}

static int
check_method(weft_http *http)
{
	const char *method = weft_http_method(http);

	return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

int
weft_http_reply_file(weft_http *http, const char *root, const char *name, uint64_t deadline_ns)
{
	struct weft__http_file *file;
	bool index;
	char *clear;
	int rc;

	if (!http || !http->is_server || !root || !name)
		return weft_fail(
			WEFT_EINVAL,
			"weft_http_reply_file: an argument is NULL, or not an exchange of a "
			"server");
	if (http->out.stage != WEFT__HTTP_NOT_BEGUN)
		return weft_fail(WEFT_EALREADY,
		                 "weft_http_reply_file: the reply has already begun");
	if (!check_method(http)) {
		rc = weft_http_set_header(http, "Allow", "GET, HEAD");
		return rc < 0 ? rc : weft__http_reply_status(http, 405, deadline_ns);
	}
	clear = weft__http_arena_take(&http->arena, strlen(name) + sizeof(INDEX));
	if (!clear)
		return weft_fail(WEFT_ENOMEM, "weft_http_reply_file: out of memory");
	index = ends_as_folder(name);
	rc = clean(name, index, clear);
	if (rc == 0)
		rc = weft__http_file_take(weft__http_conn_of(http)->server, root, clear, &file);
	if (rc < 0)
		return answer_error(http, rc, deadline_ns);
	if (!file->opened.is_folder)
		rc = send_file(http, file, deadline_ns);
	else if (index)
		rc = weft__http_reply_status(http, 404, deadline_ns);
	else
		rc = redirect(http, deadline_ns);
	weft__http_file_give(file);
	return rc;
}
