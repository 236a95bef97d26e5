/* admin_dashboard.c - the page: the embedded parts and the program's panels.
 *
 * It is one document: the browser loads no other script, style or image.  Scripts and styles need
 * a nonce, which is random for each reply, so injected ones do not run.
 */
#include "admin_private.h"
#include "admin_dashboard.h"
#include <stdio.h>
#include <string.h>
#include "os_admin.h"

#define NONCE_BYTES 16

struct page {
	weft_admin *admin;
	struct weft__admin_text text;
	char nonce[2 * NONCE_BYTES + 1];
};

static bool
make_nonce(char *out)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[NONCE_BYTES];

	if (!weft__admin_os_random(bytes, sizeof(bytes)))
		return false;
	for (int i = 0; i < NONCE_BYTES; i++) {
		out[2 * i] = digits[bytes[i] >> 4];
		out[2 * i + 1] = digits[bytes[i] & 15];
	}
	out[2 * NONCE_BYTES] = '\0';
	return true;
}

/* --- panels ------------------------------------------------------------------------ */

/* The panel's HTML, with the nonce at each <style>. */
static void
put_panel_html(struct page *page, const char *html)
{
	static const char style[] = "<style";
	const char *at;

	while ((at = strstr(html, style)) != NULL) {
		size_t size = (size_t)(at - html) + sizeof(style) - 1;

		weft__admin_put(&page->text, html, size);
		weft__admin_puts(&page->text, " nonce=\"");
		weft__admin_puts(&page->text, page->nonce);
		weft__admin_puts(&page->text, "\"");
		html += size;
	}
	weft__admin_puts(&page->text, html);
}

static struct weft__admin_panel *
next_panel(struct weft__admin_panel **link)
{
	return __atomic_load_n(link, __ATOMIC_ACQUIRE);
}

static void
put_panels(struct page *page)
{
	for (struct weft__admin_panel *p = next_panel(&page->admin->panels); p;
	     p = next_panel(&p->next)) {
		weft__admin_puts(&page->text, "<section class=\"panel\"><h2>");
		weft__admin_put_html(&page->text, p->title);
		weft__admin_puts(&page->text, "</h2>\n");
		put_panel_html(page, p->html);
		weft__admin_puts(&page->text, "</section>\n");
	}
}

static void
put_panel_scripts(struct page *page)
{
	for (struct weft__admin_panel *p = next_panel(&page->admin->panels); p;
	     p = next_panel(&p->next)) {
		if (!p->script)
			continue;
		weft__admin_puts(&page->text, "<script nonce=\"");
		weft__admin_puts(&page->text, page->nonce);
		weft__admin_puts(&page->text, "\">\n");
		weft__admin_puts(&page->text, p->script);
		weft__admin_puts(&page->text, "\n</script>\n");
	}
}

/* --- the document -------------------------------------------------------------------- */

static bool
is_word(const char *word, size_t size, const char *name)
{
	return strlen(name) == size && memcmp(word, name, size) == 0;
}

/* Write the text for {{word}}; an unknown word stays as it is. */
static void
put_word(struct page *page, const char *word, size_t size)
{
	struct weft__admin_text *text = &page->text;

	if (is_word(word, size, "nonce")) {
		weft__admin_puts(text, page->nonce);
	} else if (is_word(word, size, "title")) {
		weft__admin_put_html(text, page->admin->title);
	} else if (is_word(word, size, "style")) {
		weft__admin_puts(text, (const char *)weft__admin_page_style);
	} else if (is_word(word, size, "script")) {
		weft__admin_puts(text, (const char *)weft__admin_page_script);
	} else if (is_word(word, size, "panels")) {
		put_panels(page);
	} else if (is_word(word, size, "panel_scripts")) {
		put_panel_scripts(page);
	} else {
		weft__admin_puts(text, "{{");
		weft__admin_put(text, word, size);
		weft__admin_puts(text, "}}");
	}
}

static void
put_page(struct page *page)
{
	const char *at = (const char *)weft__admin_page_html, *open, *close;

	while ((open = strstr(at, "{{")) && (close = strstr(open, "}}"))) {
		weft__admin_put(&page->text, at, (size_t)(open - at));
		put_word(page, open + 2, (size_t)(close - open) - 2);
		at = close + 2;
	}
	weft__admin_puts(&page->text, at);
}

static int
send_page(weft_http *http, struct page *page)
{
	char policy[512];
	int rc = page->text.error;

	(void)snprintf(policy, sizeof(policy),
	               "default-src 'none'; script-src 'nonce-%s'; "
	               "style-src 'nonce-%s'; connect-src 'self'; "
	               "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	               page->nonce, page->nonce);
	if (rc == 0)
		rc = weft__admin_headers(http, policy);
	if (rc == 0)
		rc = weft_http_reply(http, 200, "text/html; charset=utf-8",
		                     (weft_span){ page->text.out.data, page->text.out.size },
		                     WEFT_NEVER);
	return rc;
}

int
weft__admin_page(weft_http *http, weft_admin *admin)
{
	struct page page = { .admin = admin };
	int rc;

	if (!make_nonce(page.nonce))
		return weft__admin_reply_line(http, 503, "the system has no random numbers");
	put_page(&page);
	rc = send_page(http, &page);
	weft__admin_text_fini(&page.text);
	return rc;
}
