/* types.c - content types of files by their suffixes. */
#include "http/server/files.h"

static const struct {
	const char *suffix, *type;
} types[] = {
	{ "html", "text/html; charset=utf-8" },
	{ "htm", "text/html; charset=utf-8" },
	{ "css", "text/css; charset=utf-8" },
	{ "js", "text/javascript; charset=utf-8" },
	{ "mjs", "text/javascript; charset=utf-8" },
	{ "json", "application/json" },
	{ "map", "application/json" },
	{ "txt", "text/plain; charset=utf-8" },
	{ "md", "text/markdown; charset=utf-8" },
	{ "csv", "text/csv; charset=utf-8" },
	{ "xml", "application/xml" },
	{ "svg", "image/svg+xml" },
	{ "png", "image/png" },
	{ "jpg", "image/jpeg" },
	{ "jpeg", "image/jpeg" },
	{ "gif", "image/gif" },
	{ "webp", "image/webp" },
	{ "avif", "image/avif" },
	{ "ico", "image/x-icon" },
	{ "woff", "font/woff" },
	{ "woff2", "font/woff2" },
	{ "ttf", "font/ttf" },
	{ "otf", "font/otf" },
	{ "wasm", "application/wasm" },
	{ "pdf", "application/pdf" },
	{ "zip", "application/zip" },
	{ "gz", "application/gzip" },
	{ "mp3", "audio/mpeg" },
	{ "ogg", "audio/ogg" },
	{ "wav", "audio/wav" },
	{ "mp4", "video/mp4" },
	{ "webm", "video/webm" },
};

const char *
weft__http_type_of(const char *name)
{
	const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');

	if (dot && (!slash || dot > slash))
		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
			if (weft__http_same((struct text){ dot + 1, strlen(dot + 1) },
			                    types[i].suffix))
				return types[i].type;
	return "application/octet-stream";
}
