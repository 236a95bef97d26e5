/* os_symbol.c - describes a code address as text: "function+0x1f (file.c:12)".
 *
 * The dynamic linker knows the file that the code was loaded from.  The file is mapped during a
 * lookup, and image.c finds the function and the line.  Texts, and the spans of a file's line
 * programs, are cached, since both are slow to compute and requested often.
 *
 *   1. The list of loaded files is written under `busy`.  Once an entry is counted, only its
 *      cached spans change.  Files that were unloaded stay in the list; a search starts at the
 *      newest.
 *   2. Everything else under `busy` is a cache.  A thread that does not get `busy` at once
 *      works without the cache.  No thread waits for `busy`, so a child that was forked while
 *      another thread held it cannot hang.
 *   3. A signal handler uses the list only.  It opens and maps a file, which are plain system
 *      calls, and reads it with image.c.  It uses neither the dynamic linker, which has a lock,
 *      nor a cache, which the interrupted code may be writing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/atomic.h"
#include "base/image.h"
#include "base/os.h"

#define FILES_MAX  128u
#define TEXTS      512u /* number of cached texts */
#define TEXT_BYTES 120
#define PATH_BYTES 256
#define PROGRAM    "/proc/self/exe"

struct loaded {
	uintptr_t low, high; /* range of its segments in memory */
	uintptr_t bias;      /* address in memory minus address in the file */
	char path[PATH_BYTES];
	/* Under `busy`. */
	struct weft__lines_span *spans;
	size_t span_count;
};

static struct {
	weft__a32 busy;
	weft__a32 count; /* number of files; invariant 1 */
	struct loaded files[FILES_MAX];
	struct {
		const void *pc;
		char text[TEXT_BYTES];
	} texts[TEXTS];
} known;

/* --- the list of loaded files ------------------------------------------- */

struct question {
	uintptr_t pc;
	struct loaded file;
	bool all; /* list every file, instead of searching for one */
};

static void
copy_path(char *to, const char *path)
{
	size_t size = strnlen(path, PATH_BYTES - 1);

	memcpy(to, path, size);
	to[size] = '\0';
}

static struct loaded
loaded_of(const struct dl_phdr_info *info)
{
	struct loaded file = { .low = UINTPTR_MAX, .bias = info->dlpi_addr };

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t low = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		file.low = low < file.low ? low : file.low;
		if (low + part->p_memsz > file.high)
			file.high = low + part->p_memsz;
	}
	copy_path(file.path, info->dlpi_name[0] ? info->dlpi_name : PROGRAM);
	return file;
}

/* The entry of `file`, created if needed; NULL if the list is full.  Under `busy`. */
static struct loaded *
list_file(const struct loaded *file)
{
	uint32_t count = weft__load(&known.count, WEFT__RELAXED);

	for (uint32_t i = count; i-- > 0;)
		if (known.files[i].bias == file->bias
		    && strcmp(known.files[i].path, file->path) == 0)
			return &known.files[i];
	if (count == FILES_MAX)
		return NULL;
	known.files[count] = *file;
	weft__store(&known.count, count + 1, WEFT__RELEASE);
	return &known.files[count];
}

static int
on_file(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct question *question = arg;
	struct loaded file = loaded_of(info);

	(void)size;
	if (question->all) {
		(void)list_file(&file);
		return 0;
	}
	if (question->pc < file.low || question->pc >= file.high)
		return 0;
	question->file = file;
	return 1;
}

static bool
take_busy(void)
{
	return weft__exchange(&known.busy, 1, WEFT__ACQUIRE) == 0;
}

static void
give_busy(void)
{
	weft__store(&known.busy, 0, WEFT__RELEASE);
}

void
weft__os_symbols_prepare(void)
{
	struct question question = { .all = true };

	if (!take_busy())
		return;
	(void)dl_iterate_phdr(on_file, &question);
	give_busy();
}

/* --- one file ----------------------------------------------------------- */

static struct weft__bytes
map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct weft__bytes out = { 0 };
	struct stat st;
	void *at;

	if (fd < 0)
		return out;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at != MAP_FAILED)
			out = (struct weft__bytes){ at, (size_t)st.st_size };
	}
	(void)close(fd);
	return out;
}

/* Under `busy`.  If memory runs out, the file has no spans. */
static void
find_spans(struct loaded *file, const struct weft__image *image)
{
	size_t count = weft__lines_spans(image, NULL, 0);
	void *at;

	if (file->spans || count == 0)
		return;
	at = mmap(NULL, count * sizeof(*file->spans), PROT_READ | PROT_WRITE,
	          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return;
	file->spans = at;
	file->span_count = weft__lines_spans(image, file->spans, count);
}

/* `file` has spans only if this thread holds `busy`. */
static bool
find_line(const struct loaded *file, const struct weft__image *image, uint64_t address,
          struct weft__line *out)
{
	if (!file->spans)
		return weft__lines_find(image, address, out);
	for (size_t i = 0; i < file->span_count; i++) {
		const struct weft__lines_span *span = &file->spans[i];

		if (address >= span->low && address < span->high
		    && weft__lines_find_in(image, span->at, address, out))
			return true;
	}
	return false;
}

/* --- text --------------------------------------------------------------- */

static const char *
last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void
add_file(struct weft__text *text, const struct loaded *file)
{
	if (strcmp(file->path, PROGRAM) == 0)
		weft__os_add_program(text);
	else
		weft__text_add(text, last_part(file->path));
}

/* Compilers append ".part.0" and the like to the names of split functions; omit such suffixes. */
static void
add_function(struct weft__text *text, const char *name)
{
	char piece[2] = { 0 };

	for (const char *at = name; *at && (*at != '.' || at == name); at++) {
		piece[0] = *at;
		weft__text_add(text, piece);
	}
}

static void
add_place(struct weft__text *text, const struct loaded *file, const struct weft__line *line)
{
	weft__text_add(text, " (");
	if (line) {
		weft__text_add(text, last_part(line->file));
		weft__text_add(text, ":");
		weft__text_number(text, (int64_t)line->number);
	} else {
		add_file(text, file);
	}
	weft__text_add(text, ")");
}

/* An address behind the start of a function is taken for a return address.  The call is the
 * instruction that ends there, so its line is looked up for the byte before the address. */
static bool
os_symbol_describe(struct weft__text *text, const struct loaded *file,
                   const struct weft__image *image, uint64_t address)
{
	struct weft__function function;
	struct weft__line line;
	uint64_t inside;
	bool has_line;

	if (!weft__image_function(image, address, &function) || function.start != address) {
		address--;
		if (!weft__image_function(image, address, &function))
			return false;
		address++;
	}
	inside = address - function.start;
	has_line = find_line(file, image, inside ? address - 1 : address, &line);
	add_function(text, function.name);
	if (inside) {
		weft__text_add(text, "+");
		weft__text_hex(text, inside);
	}
	add_place(text, file, has_line ? &line : NULL);
	return true;
}

/* Changes `file` only if this thread holds `busy`. */
static void
add_address(struct weft__text *text, struct loaded *file, uintptr_t pc, bool is_busy)
{
	struct weft__bytes bytes = map_file(file->path);
	struct weft__image image;
	bool done = false;

	if (bytes.at && weft__image_open(&image, bytes)) {
		if (is_busy)
			find_spans(file, &image);
		done = os_symbol_describe(text, file, &image, pc - file->bias);
	}
	if (bytes.at)
		(void)munmap((void *)(uintptr_t)bytes.at, bytes.size);
	if (done)
		return;
	add_file(text, file);
	weft__text_add(text, "+");
	weft__text_hex(text, pc - file->bias);
}

static void
symbol_lookup(struct weft__text *text, const void *pc, bool is_busy)
{
	struct question question = { .pc = (uintptr_t)pc };
	struct loaded *file = &question.file;

	if (!dl_iterate_phdr(on_file, &question)) {
		weft__text_hex(text, (uintptr_t)pc);
		return;
	}
	if (is_busy)
		file = list_file(&question.file);
	add_address(text, file ? file : &question.file, (uintptr_t)pc, is_busy && file);
}

void
weft__os_add_symbol(struct weft__text *text, const void *pc)
{
	size_t slot = ((uintptr_t)pc ^ (uintptr_t)pc >> 9) % TEXTS;
	struct weft__text memo;

	if (!take_busy()) {
		symbol_lookup(text, pc, false);
		return;
	}
	if (known.texts[slot].pc != pc || !pc) {
		memo = weft__text_begin(known.texts[slot].text, TEXT_BYTES);
		symbol_lookup(&memo, pc, true);
		known.texts[slot].pc = pc;
	}
	weft__text_add(text, known.texts[slot].text);
	give_busy();
}

void
weft__os_add_symbol_in_handler(struct weft__text *text, const void *pc)
{
	uintptr_t at = (uintptr_t)pc;

	for (uint32_t i = weft__load(&known.count, WEFT__ACQUIRE); i-- > 0;) {
		struct loaded file = known.files[i];

		file.spans = NULL; /* invariant 3 */
		if (at < file.low || at >= file.high)
			continue;
		add_address(text, &file, at, false);
		return;
	}
	weft__text_hex(text, at);
}
