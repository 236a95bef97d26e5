/* dns_host.c - checks host names, and finds those of this host.
 *
 * A name is checked before it goes to a server: letters, digits, '-' and '_' (which is not for
 * hosts, but services use it), in labels of 1 to 63 characters, 253 in all.  One dot at the end
 * is the root, and disables the search list.  Non-ASCII names must be given in their ASCII form
 * (xn--...): the program that displays names has to translate them.
 */
#include <netinet/in.h>
#include <string.h>
#include "net/addr.h"
#include "net/dns/dns.h"

#define LABEL_MAX 63u
#define NAME_MAX  253u

static const char foreign[] = "non-ASCII names are not translated; use the ASCII form (xn--...)";

/* Fail with a text that shows the start of the name; unprintable characters become '?'. */
static int
dns_host_refuse(const char *host, size_t size, const char *why)
{
	char shown[65];
	size_t count = 0;

	for (size_t i = 0; i < size && count < sizeof(shown) - 1; i++)
		shown[count++] = host[i] > ' ' && host[i] < 127 ? host[i] : '?';
	shown[count] = 0;
	return weft_fail(WEFT_EINVAL, "resolve %s%s: %s", shown, size > count ? "..." : "", why);
}

static bool
is_of_label(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
	       || c == '-' || c == '_';
}

/* The reason why `host` is not a host name, or NULL. */
static const char *
fault_in(const char *host, size_t size)
{
	size_t label = 0;

	if (size > 0 && host[size - 1] == '.')
		size--;
	if (size == 0)
		return "the host name is empty";
	if (size > NAME_MAX)
		return "the host name is longer than 253 characters";
	for (size_t i = 0; i < size; i++) {
		if (host[i] & 0x80)
			return foreign;
		if (host[i] != '.' && !is_of_label(host[i]))
			return "the host name has a character that is not allowed";
		label = host[i] == '.' ? 0 : label + 1;
		if (label > LABEL_MAX)
			return "a label of the host name is longer than 63 characters";
		if (label == 0 && (i == 0 || host[i - 1] == '.'))
			return "a label of the host name is empty";
	}
	return label == 0 ? "a label of the host name is empty" : NULL;
}

int
weft__dns_check(const char *host, size_t size, char out[WEFT__DNS_HOST_MAX])
{
	const char *why = fault_in(host, size);

	if (why)
		return dns_host_refuse(host, size, why);
	for (size_t i = 0; i < size; i++)
		out[i] = host[i] >= 'A' && host[i] <= 'Z' ? (char)(host[i] + ('a' - 'A')) : host[i];
	out[size] = 0;
	return 0;
}

int
weft__dns_refuse_foreign(const char *text)
{
	return dns_host_refuse(text, strlen(text), foreign);
}

bool
weft__dns_is_local(const char *host)
{
	static const char local[] = "localhost";
	size_t size = strlen(host), tail = sizeof(local) - 1;

	if (size > 0 && host[size - 1] == '.')
		size--;
	return size >= tail && memcmp(host + size - tail, local, tail) == 0
	       && (size == tail || host[size - tail - 1] == '.');
}

void
weft__dns_make_addr(const struct weft__host *host, uint16_t port, uint32_t kind, weft_addr *out)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_scope_id = host->scope };
	bool is6 = host->family == AF_INET6;

	*out = (weft_addr){ .kind = kind, .size = is6 ? sizeof(in6) : sizeof(in) };
	memcpy(&in.sin_addr, host->ip, sizeof(in.sin_addr));
	memcpy(&in6.sin6_addr, host->ip, sizeof(in6.sin6_addr));
	memcpy(out->bytes, is6 ? (const void *)&in6 : (const void *)&in, out->size);
	weft__addr_set_port(out, port);
}
