/* target.c - the URL of the program that an argument names. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "top.h"

/* Fails if the URL does not fit. */
static int
write_url(char out[TARGET_MAX], const char *scheme, const char *rest)
{
	size_t size = (size_t)snprintf(out, TARGET_MAX, "%s%s", scheme, rest);
	char shown[256];

	if (size >= TARGET_MAX)
		return weft_fail(WEFT_EINVAL, "the URL is too long");
	if (strpbrk(rest, "?#"))
		return weft_fail(WEFT_EINVAL,
		                 "%s: the URL must not contain ? or #; pass a token with --token",
		                 weft_addr_mask(out, shown, sizeof(shown)));
	while (size > 0 && out[size - 1] == '/')
		out[--size] = '\0';
	return 0;
}

static bool
top_target_is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')
	       || (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_'
	       || byte == '~';
}

/* The path goes where a URL has the host, so every special byte is escaped. */
static int
write_path(char out[TARGET_MAX], const char *path)
{
	char whole[TARGET_MAX];
	size_t size = 0;

	if (*path == '/')
		size = (size_t)snprintf(whole, sizeof(whole), "%s", path);
	else if (getcwd(whole, sizeof(whole)))
		size = strlen(whole)
		       + (size_t)snprintf(whole + strlen(whole), sizeof(whole) - strlen(whole),
		                          "/%s", path);
	if (size == 0 || size >= sizeof(whole))
		return weft_fail(WEFT_EINVAL, "%s: the path is too long", path);
	size = (size_t)snprintf(out, TARGET_MAX, "http+unix://");
	for (const char *at = whole; *at; at++) {
		if (size + 4 > TARGET_MAX)
			return weft_fail(WEFT_EINVAL, "%s: the path is too long", path);
		if (top_target_is_plain(*at))
			out[size++] = *at;
		else
			size += (size_t)snprintf(out + size, 4, "%%%02X", (unsigned char)*at);
	}
	out[size] = '\0';
	return 0;
}

static bool
begins(const char *word, const char *with)
{
	return strncmp(word, with, strlen(with)) == 0;
}

static bool
is_socket(const char *path)
{
	struct stat info;

	return stat(path, &info) == 0 && S_ISSOCK(info.st_mode);
}

int
target_url(const char *word, char out[TARGET_MAX])
{
	char shown[256];

	if (begins(word, "http://") || begins(word, "https://") || begins(word, "http+unix://"))
		return write_url(out, "", word);
	if (begins(word, "tcp://"))
		return write_url(out, "http://", word + 6);
	if (begins(word, "tls://"))
		return write_url(out, "https://", word + 6);
	if (begins(word, "unix:"))
		return write_path(out, word + 5);
	if (!strstr(word, "://") && (strchr(word, '/') || is_socket(word)))
		return write_path(out, word);
	if (*word && strspn(word, "0123456789") == strlen(word))
		return write_url(out, "http://127.0.0.1:", word);
	if (!strstr(word, "://") && strchr(word, ':'))
		return write_url(out, "http://", word);
	return weft_fail(WEFT_EINVAL, "%s is not a URL, a HOST:PORT or a socket",
	                 weft_addr_mask(word, shown, sizeof(shown)));
}
