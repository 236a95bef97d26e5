/* framing.c - what the headers say about the end of the message and about the connection.
 *
 * Headers are recorded as they arrive and checked together at the end of the head, so that
 * their order does not matter.  Two parsers that disagree about where a message ends allow
 * request smuggling: one client's bytes are taken as another client's request.  Therefore:
 *
 *   1. Content-Length is one header with one number, digits only.  A second one is refused,
 *      even with the same number.
 *   2. Transfer-Encoding is "chunked", once, in HTTP/1.1.  An empty element, anything after
 *      chunked, or a parameter of chunked is refused.  Another coding is 501.
 *   3. A message has Content-Length or Transfer-Encoding, not both.
 *   4. A request has exactly one Host; in HTTP/1.0 it may have none.
 *   5. CONNECT requests and 1xx and 204 responses have no body, and must not announce one.
 *
 * In a response to HEAD, and in a 304, the headers describe the body that another response
 * would have had.  They have to obey the same rules but frame nothing.  The same holds for a
 * response that opens a tunnel.
 */
#include "http/parse/parse_inner.h"

static int
framing_refuse(struct weft__http_head *head, const char *text)
{
	return weft__http_refuse(&head->fault, 400, text);
}

static int
note_host(struct weft__http_head *head, struct text value, struct weft__http_part part)
{
	if (head->is_response)
		return 0;
	if (head->seen & SEEN_HOST)
		return framing_refuse(head, "several Host headers");
	if (!weft__http_host_ok(value, false))
		return framing_refuse(head, "bad Host");
	head->seen |= SEEN_HOST;
	if (head->form == WEFT__HTTP_ORIGIN || head->form == WEFT__HTTP_ASTERISK)
		head->host = part; /* otherwise the target's host counts */
	return 0;
}

static int
note_length(struct weft__http_head *head, struct text value, struct weft__http_part part)
{
	(void)part;
	if (head->seen & SEEN_LENGTH)
		return framing_refuse(head, "several Content-Length headers");
	if (!weft__http_decimal(value, &head->length))
		return framing_refuse(head, "bad Content-Length");
	head->seen |= SEEN_LENGTH;
	return 0;
}

static int
note_coding(struct weft__http_head *head, struct text list, struct weft__http_part part)
{
	struct text coding, name;

	(void)part;
	while (weft__http_list_next(&list, &coding)) {
		name = coding;
		for (size_t i = 0; i < coding.size; i++)
			if (coding.data[i] == ';' || is_blank(coding.data[i])) {
				name.size = i;
				break;
			}
		if (!weft__http_is_token(name))
			return framing_refuse(head, "bad Transfer-Encoding");
		if (head->seen & SEEN_CHUNKED)
			return framing_refuse(head, "chunked is not the last coding");
		if (!weft__http_same(name, "chunked"))
			head->seen |= SEEN_CODING;
		else if (name.size != coding.size)
			return framing_refuse(head, "chunked must not have a parameter");
		else
			head->seen |= SEEN_CHUNKED;
	}
	return 0;
}

static int
note_connection(struct weft__http_head *head, struct text list, struct weft__http_part part)
{
	struct text option;

	(void)part;
	while (weft__http_list_next(&list, &option)) {
		if (option.size == 0)
			continue;
		if (!weft__http_is_token(option))
			return framing_refuse(head, "bad Connection");
		if (weft__http_same(option, "close"))
			head->seen |= SEEN_CLOSE;
		else if (weft__http_same(option, "keep-alive"))
			head->seen |= SEEN_KEEP_ALIVE;
		else if (weft__http_same(option, "upgrade"))
			head->seen |= SEEN_UPGRADING;
	}
	return 0;
}

static int
note_expect(struct weft__http_head *head, struct text value, struct weft__http_part part)
{
	(void)part;
	head->seen |= weft__http_same(value, "100-continue") ? SEEN_CONTINUE : SEEN_EXPECT;
	return 0;
}

static int
note_upgrade(struct weft__http_head *head, struct text value, struct weft__http_part part)
{
	(void)value;
	if (head->upgrade.size == 0)
		head->upgrade = part;
	return 0;
}

/* Indexed by the size of the name.  Size and first letter spare most headers the comparison. */
static const struct {
	const char *name;
	int (*note)(struct weft__http_head *head, struct text value, struct weft__http_part part);
} notes[] = {
	[4] = { "host", note_host },
	[6] = { "expect", note_expect },
	[7] = { "upgrade", note_upgrade },
	[10] = { "connection", note_connection },
	[14] = { "content-length", note_length },
	[17] = { "transfer-encoding", note_coding },
};

int
weft__http_note_field(struct weft__http_head *head, const char *data,
                      const struct weft__http_field *field)
{
	struct text name = part_text(data, field->name);
	const char *noted = name.size < sizeof(notes) / sizeof(*notes) ? notes[name.size].name
	                                                               : NULL;

	if (!noted || *noted != (*name.data | 0x20) || !weft__http_same(name, noted))
		return 0;
	return notes[name.size].note(head, part_text(data, field->value), field->value);
}

/* Rules 2 and 3, which need all headers. */
static int
check_coding(struct weft__http_head *head)
{
	if (!(head->seen & (SEEN_CHUNKED | SEEN_CODING)))
		return 0;
	if (head->seen & SEEN_LENGTH)
		return framing_refuse(head, "Content-Length with Transfer-Encoding");
	if (head->minor == 0)
		return framing_refuse(head, "Transfer-Encoding in HTTP/1.0");
	if (head->seen & SEEN_CODING)
		return weft__http_refuse(&head->fault, 501, "unknown transfer coding");
	return 0;
}

static enum weft__http_framing
framing_of_fields(const struct weft__http_head *head)
{
	if (head->seen & SEEN_CHUNKED)
		return WEFT__HTTP_CHUNKED;
	if (head->length > 0)
		return WEFT__HTTP_LENGTH;
	return WEFT__HTTP_NO_BODY;
}

static int
conclude_request(struct weft__http_head *head)
{
	enum weft__http_framing framing = framing_of_fields(head);

	if (!(head->seen & SEEN_HOST) && head->minor > 0)
		return framing_refuse(head, "no Host header");
	if (head->form == WEFT__HTTP_AUTHORITY && framing != WEFT__HTTP_NO_BODY)
		return framing_refuse(head, "CONNECT with a body");
	if ((head->seen & SEEN_EXPECT) && head->minor > 0)
		return weft__http_refuse(&head->fault, 417, "unknown expectation");
	if ((head->seen & SEEN_CONTINUE) && head->minor > 0 && framing != WEFT__HTTP_NO_BODY)
		head->flags |= WEFT__HTTP_CONTINUE;
	head->framing = (uint8_t)framing;
	return 0;
}

/* Whether a response with this status never has a body. */
static bool
is_bodiless(int status)
{
	return status / 100 == 1 || status == 204;
}

static enum weft__http_framing
framing_of_response(const struct weft__http_head *head)
{
	if (head->status == 101)
		return WEFT__HTTP_TUNNEL;
	if (head->reply_to == WEFT__HTTP_REPLY_TO_CONNECT && head->status / 100 == 2)
		return WEFT__HTTP_TUNNEL;
	if (head->reply_to == WEFT__HTTP_REPLY_TO_HEAD || head->status == 304
	    || is_bodiless(head->status))
		return WEFT__HTTP_NO_BODY;
	if (!(head->seen & (SEEN_CHUNKED | SEEN_LENGTH)))
		return WEFT__HTTP_UNTIL_CLOSE;
	return framing_of_fields(head);
}

static int
conclude_response(struct weft__http_head *head)
{
	if (is_bodiless(head->status) && head->reply_to == WEFT__HTTP_REPLY_TO_OTHER
	    && framing_of_fields(head) != WEFT__HTTP_NO_BODY)
		return framing_refuse(head, "a response with this status must not have a body");
	head->framing = (uint8_t)framing_of_response(head);
	return 0;
}

static void
conclude_connection(struct weft__http_head *head)
{
	bool keep_alive = head->minor > 0 || (head->seen & SEEN_KEEP_ALIVE);

	if (keep_alive && !(head->seen & SEEN_CLOSE) && head->framing != WEFT__HTTP_UNTIL_CLOSE
	    && head->framing != WEFT__HTTP_TUNNEL)
		head->flags |= WEFT__HTTP_KEEP_ALIVE;
	if (head->minor > 0 && (head->seen & SEEN_UPGRADING) && head->upgrade.size > 0)
		head->flags |= WEFT__HTTP_UPGRADE;
}

int
weft__http_conclude(struct weft__http_head *head)
{
	int rc = check_coding(head);

	if (rc < 0)
		return rc;
	rc = head->is_response ? conclude_response(head) : conclude_request(head);
	if (rc < 0)
		return rc;
	if (head->framing == WEFT__HTTP_LENGTH && head->length > head->limits.body_max)
		return weft__http_refuse(&head->fault, 413, "body too large");
	conclude_connection(head);
	return 0;
}
