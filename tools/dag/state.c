/* state.c - saves the results of a run next to its file, until the run succeeds.
 *
 * A file of records; each has one header line and the bytes of a value:
 *
 *     weft dag state 1
 *     KEY KIND SIZE CHECK
 *     BYTES
 *
 *   1. KEY identifies the node or item, its definition, and the values of its dependencies
 *      (node.c).  A record is found only by the same key.
 *   2. A record is appended with one write when its node has succeeded; existing records are
 *      never rewritten.  A record may be torn if the process was killed.  CHECK, a hash of the
 *      rest of the record, detects that; reading stops at the first record that is wrong.
 *   3. A run starts with a new file, which replaces the old one by rename(2).  With --resume the
 *      new file starts with a copy of the old records.  So a complete file exists at all times.
 *   4. The file is locked while a run uses it.
 *   5. A record is taken once: two equal items each need a record of their own.
 *   6. The file must be owned by the user of the run, and must not be writable by others,
 *      because its values are passed to commands.  Any other file is rejected and left
 *      unchanged.
 */
#include <base/terminal.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "run.h"

#define FIRST_LINE  "weft dag state 1\n"
#define STATE_MAX   ((size_t)1 << 30)
#define CHECK_BYTES 8u
#define NO_RECORD   UINT32_MAX

struct record {
	unsigned char key[HASH_BYTES];
	char kind; /* n, t or l: no value, a text, a list */
	const char *bytes;
	size_t size;
	uint32_t next; /* next in the same slot */
	bool taken;
};

/* --- values as bytes -------------------------------------------------------- */

/* A list is, for each item, its size in decimal, a colon, and its bytes. */
static int
write_list(const weft_list *list, struct bytes *out)
{
	char digits[32];

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].type != &weft_type_text)
			return WEFT_EINVAL;
		(void)snprintf(digits, sizeof(digits), "%zu:", strlen(list->items[i].as.ptr));
		(void)bytes_add_text(out, digits);
		(void)bytes_add_text(out, list->items[i].as.ptr);
	}
	return out->rc;
}

static int
write_value(const weft_value *value, char *kind, struct bytes *out)
{
	*kind = !value->type ? 'n' : value->type == &weft_type_text ? 't' : 'l';
	if (*kind == 'l')
		return write_list(value->as.ptr, out);
	return bytes_add_text(out, *kind == 't' ? value->as.ptr : "");
}

/* Reads a decimal number followed by `mark`.  Returns false if there is none, or if it exceeds
 * STATE_MAX. */
static bool
read_size(const char **at, const char *end, char mark, size_t *out)
{
	const char *begin = *at;
	size_t number = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		number = number * 10 + (size_t)(**at - '0');
		if (number > STATE_MAX)
			return false;
	}
	if (*at == begin || *at == end || **at != mark)
		return false;
	(*at)++;
	*out = number;
	return true;
}

static weft_value
read_text(const char *bytes, size_t size)
{
	char *copy = strndup(bytes, size);
	weft_value value = copy ? weft_value_text(copy) : weft_value_error(WEFT_ENOMEM);

	free(copy);
	return value;
}

static size_t
count_items(const char *at, const char *end)
{
	size_t count = 0, size;

	for (; at < end; count++) {
		if (!read_size(&at, end, ':', &size) || size > (size_t)(end - at))
			return 0;
		at += size;
	}
	return count;
}

static weft_value
read_list(const char *at, const char *end)
{
	size_t count = count_items(at, end), size = 0;
	weft_value *items = calloc(count + 1, sizeof(*items)), list;

	if (!items)
		return weft_value_error(WEFT_ENOMEM);
	for (size_t i = 0; i < count; i++) {
		(void)read_size(&at, end, ':', &size); /* count_items() has checked it */
		items[i] = read_text(at, size);
		at += size;
	}
	list = weft_value_list(items, count);
	free(items);
	return list;
}

/* --- records ---------------------------------------------------------------- */

static void
put_hex(char *out, const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void
check_of(char kind, const unsigned char *key, const char *bytes, size_t size,
         char out[2 * CHECK_BYTES + 1])
{
	unsigned char full[HASH_BYTES];
	struct hash hash;

	hash_begin(&hash);
	hash_add(&hash, key, HASH_BYTES);
	hash_add(&hash, &kind, 1);
	hash_add_number(&hash, size);
	hash_add(&hash, bytes, size);
	hash_end(&hash, full);
	put_hex(out, full, CHECK_BYTES);
}

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool
read_key(const char **at, const char *end, unsigned char *out)
{
	if ((size_t)(end - *at) < 2 * HASH_BYTES + 3)
		return false;
	for (size_t i = 0; i < HASH_BYTES; i++) {
		int high = hex((*at)[2 * i]), low = hex((*at)[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	*at += 2 * HASH_BYTES;
	return *(*at)++ == ' ';
}

/* Reads one record and advances `*at` to the next.  Returns false if it is not valid. */
static bool
read_record(const char **at, const char *end, struct record *out)
{
	char check[2 * CHECK_BYTES + 1];

	if (!read_key(at, end, out->key))
		return false;
	out->kind = *(*at)++;
	if (!strchr("ntl", out->kind) || !out->kind || *(*at)++ != ' '
	    || !read_size(at, end, ' ', &out->size)
	    || (size_t)(end - *at) < 2 * CHECK_BYTES + 2 + out->size)
		return false;
	out->bytes = *at + 2 * CHECK_BYTES + 1;
	check_of(out->kind, out->key, out->bytes, out->size, check);
	if (memcmp(*at, check, 2 * CHECK_BYTES) != 0 || out->bytes[-1] != '\n'
	    || out->bytes[out->size] != '\n')
		return false;
	*at = out->bytes + out->size + 1;
	return true;
}

static uint32_t
slot_of(const struct state *state, const unsigned char *key)
{
	return (key[0] | (uint32_t)key[1] << 8 | (uint32_t)key[2] << 16) & state->mask;
}

static int
index_records(struct state *state)
{
	uint32_t room = 16;

	while (room < state->count && room < (1u << 23))
		room *= 2;
	state->slots = malloc(room * sizeof(*state->slots));
	if (!state->slots)
		return WEFT_ENOMEM;
	state->mask = room - 1;
	memset(state->slots, 0xff, room * sizeof(*state->slots));
	for (uint32_t i = state->count; i-- > 0;) {
		uint32_t *slot = &state->slots[slot_of(state, state->records[i].key)];

		state->records[i].next = *slot;
		*slot = i;
	}
	return 0;
}

/* Reads all valid records.  Returns the size of the part of the file that contains them. */
static size_t
read_records(struct state *state)
{
	const char *at = state->last.data, *end = at + state->last.size, *good;
	uint32_t room = 0;

	if (state->last.size < strlen(FIRST_LINE)
	    || memcmp(at, FIRST_LINE, strlen(FIRST_LINE)) != 0)
		return 0;
	good = at += strlen(FIRST_LINE);
	for (;;) {
		struct record record = { 0 }, *more;

		if (!read_record(&at, end, &record))
			return (size_t)(good - state->last.data);
		if (state->count == room) {
			room = room ? room * 2 : 64;
			more = realloc(state->records, room * sizeof(*more));
			if (!more)
				return (size_t)(good - state->last.data);
			state->records = more;
		}
		state->records[state->count++] = record;
		good = at;
	}
}

/* --- the file --------------------------------------------------------------- */

/* Reads the file of the last run.  The size is checked before memory is spent on it. */
static int
read_last(struct state *state, int fd)
{
	struct stat about;

	if (fstat(fd, &about) < 0)
		return -errno;
	if (about.st_size > (off_t)STATE_MAX)
		return weft_fail(WEFT_EMSGSIZE, "%s is not a state file of weft dag", state->path);
	return bytes_read(&state->last, fd, (size_t)about.st_size);
}

/* Invariant 6. */
static int
check_owner(const struct state *state, int fd)
{
	struct stat about;
	char line[sizeof(FIRST_LINE) - 1];
	ssize_t n;

	if (fstat(fd, &about) < 0)
		return weft_fail(-errno, "%s: %s", state->path, strerror(errno));
	n = S_ISREG(about.st_mode) ? pread(fd, line, sizeof(line), 0) : -1;
	if (n < 0 || (n > 0 && memcmp(line, FIRST_LINE, (size_t)n) != 0))
		return weft_fail(WEFT_EPERM, "%s is not a state file of weft dag; move it away",
		                 state->path);
	if (about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)))
		return weft_fail(WEFT_EPERM,
		                 "%s belongs to another user, or others may write it; move it away",
		                 state->path);
	return 0;
}

/* Locks the old file, and reads the records to keep. */
static int
take_over(struct state *state, int fd, bool resume, size_t *reused)
{
	int rc = check_owner(state, fd);

	if (rc < 0)
		return rc;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return weft_fail(WEFT_EBUSY, "%s is in use by another run", state->path);
	if (!resume)
		return 0;
	rc = read_last(state, fd);
	if (rc < 0)
		return rc;
	*reused = read_records(state);
	return index_records(state);
}

static int
begin_file(struct state *state, size_t reused)
{
	int rc, fd;

	(void)unlink(state->temporary); /* left over from a dead process with the same PID */
	fd = open(state->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return weft_fail(-errno, "%s: %s", state->temporary, strerror(errno));
	rc = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (rc == 0)
		rc = reused ? terminal_write_all(fd, state->last.data, reused)
		            : terminal_write_all(fd, FIRST_LINE, strlen(FIRST_LINE));
	if (rc == 0 && rename(state->temporary, state->path) < 0)
		rc = -errno;
	if (rc < 0) {
		(void)close(fd);
		(void)unlink(state->temporary);
		return weft_fail(rc, "%s: %s", state->path, strerror(-rc));
	}
	state->fd = fd;
	return 0;
}

static char *
join(const char *a, const char *b)
{
	size_t size = strlen(a) + strlen(b) + 1;
	char *text = malloc(size);

	if (text)
		(void)snprintf(text, size, "%s%s", a, b);
	return text;
}

int
state_open(struct state *state, const char *path, bool resume)
{
	char end[40];
	size_t reused = 0;
	int fd, rc = 0;

	*state = (struct state){ .fd = -1 };
	state->path = join(path, ".state");
	(void)snprintf(end, sizeof(end), ".state.%ld", (long)getpid());
	state->temporary = join(path, end);
	if (!state->path || !state->temporary)
		return weft_fail(WEFT_ENOMEM, "out of memory");
	fd = open(state->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return weft_fail(-errno, "%s: %s", state->path, strerror(errno));
	if (fd >= 0)
		rc = take_over(state, fd, resume, &reused);
	if (rc == 0)
		rc = begin_file(state, reused);
	if (fd >= 0)
		(void)close(fd);
	return rc;
}

/* If the state cannot be written, the run continues without it. */
static void
dagfile_state_append(struct state *state, const struct bytes *record)
{
	if (terminal_write_all(state->fd, record->data, record->size) == 0)
		return;
	(void)close(state->fd);
	state->fd = -1;
}

void
state_put(struct state *state, const unsigned char *key, const weft_value *value)
{
	struct bytes bytes = { 0 }, record = { 0 };
	char head[2 * HASH_BYTES + 64], check[2 * CHECK_BYTES + 1], kind;
	int rc;

	if (state->fd < 0)
		return;
	rc = write_value(value, &kind, &bytes);
	if (rc == 0) {
		check_of(kind, key, bytes.data, bytes.size, check);
		put_hex(head, key, HASH_BYTES);
		(void)snprintf(head + 2 * HASH_BYTES, 64, " %c %zu %s\n", kind, bytes.size, check);
		(void)bytes_add_text(&record, head);
		(void)bytes_add(&record, bytes.data, bytes.size);
		if (bytes_add_text(&record, "\n") == 0)
			dagfile_state_append(state, &record);
	}
	bytes_free(&bytes);
	bytes_free(&record);
}

bool
state_take(struct state *state, const unsigned char *key, weft_value *out)
{
	uint32_t i = state->slots ? state->slots[slot_of(state, key)] : NO_RECORD;
	struct record *record;

	for (; i != NO_RECORD; i = record->next) {
		record = &state->records[i];
		if (!record->taken && memcmp(record->key, key, HASH_BYTES) == 0)
			break;
	}
	if (i == NO_RECORD)
		return false;
	*out = (weft_value){ 0 };
	if (record->kind == 't')
		*out = read_text(record->bytes, record->size);
	else if (record->kind == 'l')
		*out = read_list(record->bytes, record->bytes + record->size);
	if (out->type == &weft_type_error)
		return false;
	record->taken = true;
	return true;
}

void
state_close(struct state *state, bool done)
{
	if (state->fd >= 0) {
		if (done)
			(void)unlink(state->path);
		(void)close(state->fd);
	}
	free(state->path);
	free(state->temporary);
	free(state->records);
	free(state->slots);
	bytes_free(&state->last);
	*state = (struct state){ .fd = -1 };
}
