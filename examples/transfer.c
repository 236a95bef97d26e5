/* transfer.c - send a file over HTTP, or receive one, of any size.
 *
 *     transfer put FILE URL
 *     transfer get FILE URL
 *
 * A file that is received replaces FILE only when it is complete and on disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/http.h>
#include <weft/weft.h>

static const uint64_t wait_ns = 30 * WEFT_S; /* of each call */

struct names {
	const char *from, *to;
};

/* On a thread of the pool: the C library does not suspend. */
static int
rename_file(void *arg)
{
	struct names *names = arg;

	return rename(names->from, names->to) < 0 ? -errno : 0;
}

static ssize_t
write_all(int fd, const char *data, size_t size, uint64_t offset)
{
	ssize_t n = 0;

	for (size_t done = 0; n >= 0 && done < size; done += (size_t)n)
		n = weft_file_write(fd, data + done, size - done, offset + done,
		                    weft_after(wait_ns));
	return n;
}

static int
receive(weft_http *http, int fd)
{
	char buf[16384];
	uint64_t offset = 0;
	ssize_t n;

	while ((n = weft_http_read(http, buf, sizeof buf, weft_after(wait_ns)))
	       > 0) {
		ssize_t rc = write_all(fd, buf, (size_t)n, offset);

		if (rc < 0)
			return (int)rc;
		offset += (size_t)n;
	}
	return n < 0 ? (int)n : weft_file_sync(fd, weft_after(wait_ns));
}

static int
save(weft_http *http, const char *path)
{
	int rc, closed;
	int fd = weft_file_open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666,
	                        weft_after(wait_ns));

	if (fd < 0)
		return fd;
	rc = receive(http, fd);
	closed = weft_file_close(fd); /* the disk may report an error late */
	return rc < 0 ? rc : closed;
}

static int
get(weft_http_client *client, const char *path, const char *url)
{
	weft_http_request request = { .url = url };
	weft_http *http;
	char part[4096];
	struct names names = { part, path };
	int status, rc = weft_http_fetch(client, &request, &http,
	                                 weft_after(wait_ns));

	if (rc < 0)
		return rc;
	status = weft_http_status(http);
	snprintf(part, sizeof part, "%s.part", path);
	if (status == 200)
		rc = save(http, part);
	weft_http_close(http);
	if (status != 200)
		return weft_fail(WEFT_ENOENT, "%s: status %d", url, status);
	if (rc < 0)
		return rc;
	return weft_work(WEFT_BLOCKING, rename_file, &names,
	                 weft_after(wait_ns));
}

static ssize_t
send_file(weft_http *http, int fd)
{
	char buf[16384];
	uint64_t offset = 0;
	ssize_t n;

	while ((n = weft_file_read(fd, buf, sizeof buf, offset,
	                           weft_after(wait_ns)))
	       > 0) {
		offset += (size_t)n;
		n = weft_http_write(http, buf, (size_t)n, weft_after(wait_ns));
		if (n < 0)
			break;
	}
	return n;
}

static int
put(weft_http_client *client, const char *path, const char *url)
{
	weft_http_request request = { .method = "PUT",
		                      .url = url,
		                      .streamed = true };
	weft_http *http;
	int fd = weft_file_open(path, O_RDONLY, 0, weft_after(wait_ns));
	int status = 0;
	ssize_t rc = fd < 0 ? fd
	                    : weft_http_fetch(client, &request, &http,
	                                      weft_after(wait_ns));

	if (rc == 0) {
		rc = send_file(http, fd);
		/* A server may refuse before the end of the body. */
		if (rc == 0 || rc == WEFT_EPIPE || rc == WEFT_ECONNRESET)
			rc = weft_http_finish(http, weft_after(wait_ns));
		status = weft_http_status(http);
		weft_http_close(http);
	}
	if (fd >= 0)
		weft_file_close(fd);
	if (rc == 0 && status / 100 != 2)
		return weft_fail(WEFT_EPERM, "%s: status %d", url, status);
	return (int)rc;
}

static int
run(void *arg)
{
	char **words = arg; /* put or get, file, URL */
	weft_http_client *client = weft_http_client_new(NULL);
	int rc = WEFT_ENOMEM;

	if (client)
		rc = (words[0][0] == 'p' ? put : get)(client, words[1],
		                                      words[2]);
	weft_http_client_free(client);
	return rc;
}

int
main(int argc, char **argv)
{
	return argc != 4 ? 2 : weft_main(NULL, run, argv + 1);
}
