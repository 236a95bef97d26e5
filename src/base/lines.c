/* lines.c - maps an address to a file and line, using DWARF line tables 2 to 5.
 *
 * A line program is byte code that produces rows (address, file, line) in sequences of rising
 * addresses.  An address belongs to the last row at or below it, provided that a later row of
 * the same sequence is above it.  Only .debug_line and its strings are read, not .debug_info;
 * so there are no abbreviations, attributes or units to handle.
 *
 *   1. A cursor never leaves its bytes.  A read that would leave them returns zero and marks
 *      the cursor bad.  Every loop over a cursor ends at that mark or at the end.
 *   2. Each step of a loop consumes at least one byte, so reading takes linear time.
 *
 * A linker that drops a function leaves its sequence at address 0; such sequences are skipped.
 */
#include <string.h>
#include "base/image.h"

/* From DWARF 5, sections 6.2 and 7.22. */
enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_CONST_ADD_PC = 8,
	LNS_FIXED_ADVANCE_PC,
	LNE_END_SEQUENCE = 1,
	LNE_SET_ADDRESS,
	LNCT_PATH = 1,
	FORM_DATA2 = 5,
	FORM_DATA4,
	FORM_DATA8,
	FORM_STRING,
	FORM_BLOCK,
	FORM_DATA1 = 0x0b,
	FORM_STRP = 0x0e,
	FORM_UDATA = 0x0f,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP = 0x1f,
};

#define FORMATS_MAX 16 /* most fields in a file entry; DWARF defines five */

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

/* The header of a line program. */
struct program {
	struct weft__bytes all; /* without the length field */
	struct cursor code;
	struct cursor tables;   /* the directory and file tables */
	const uint8_t *lengths; /* operand counts of the standard opcodes, from opcode 1 */
	uint16_t version;
	uint8_t offset_bytes; /* 4 or 8: 32-bit or 64-bit DWARF */
	uint8_t step, line_range, opcode_base;
	int8_t line_base;
};

struct row {
	uint64_t address, file;
	int64_t line;
};

/* The address to find, and the state of the search. */
struct search {
	uint64_t address;
	uint64_t low, high; /* range of all sequences */
	struct row row, before;
	uint64_t start; /* first address of the current sequence */
	bool has_before;
	bool found; /* `before` is the row of `address` */
};

/* --- reading ------------------------------------------------------------ */

static uint64_t
lines_take(struct cursor *in, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < bytes) {
		in->bad = true; /* invariant 1 */
		in->at = in->end;
		return 0;
	}
	/* Assumes little endian, like the library's assembly code. */
	memcpy(&value, in->at, bytes);
	in->at += bytes;
	return value;
}

static void
skip(struct cursor *in, uint64_t bytes)
{
	if (bytes > (uint64_t)(in->end - in->at)) {
		in->bad = true;
		in->at = in->end;
		return;
	}
	in->at += bytes;
}

static uint64_t
take_unsigned(struct cursor *in)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)lines_take(in, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

static int64_t
take_signed(struct cursor *in)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)lines_take(in, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

/* A NUL-terminated string, or NULL if it does not end inside the bytes. */
static const char *
take_text(struct cursor *in)
{
	const uint8_t *start = in->at;
	const uint8_t *end = memchr(start, '\0', (size_t)(in->end - start));

	if (!end) {
		in->bad = true;
		in->at = in->end;
		return NULL;
	}
	in->at = end + 1;
	return (const char *)start;
}

static const char *
text_at(struct weft__bytes section, uint64_t offset)
{
	struct cursor in = { section.at, section.at + section.size, false };

	skip(&in, offset);
	return in.bad || in.at == in.end ? NULL : take_text(&in);
}

/* --- the header of a program -------------------------------------------- */

static bool
read_head(struct program *program)
{
	struct cursor in = { program->all.at, program->all.at + program->all.size, false };
	uint64_t head_bytes;

	program->version = (uint16_t)lines_take(&in, 2);
	if (program->version < 2 || program->version > 5)
		return false;
	if (program->version >= 5)
		skip(&in, 2); /* sizes of addresses and segment selectors */
	head_bytes = lines_take(&in, program->offset_bytes);
	program->code = in;
	skip(&program->code, head_bytes);
	program->step = (uint8_t)lines_take(&in, 1);
	if (program->version >= 4)
		skip(&in, 1); /* maximum_operations_per_instruction */
	skip(&in, 1);         /* default_is_stmt */
	program->line_base = (int8_t)lines_take(&in, 1);
	program->line_range = (uint8_t)lines_take(&in, 1);
	program->opcode_base = (uint8_t)lines_take(&in, 1);
	program->lengths = in.at;
	skip(&in, program->opcode_base ? program->opcode_base - 1u : 0);
	program->tables = in;
	return !in.bad && !program->code.bad && program->line_range > 0 && program->opcode_base > 0;
}

/* Open the program at offset `at`; *next is the offset of the one after it.  False at the end
 * of the section.  A program that cannot be read gets no code. */
static bool
open_program(const struct weft__image *image, size_t at, size_t *next, struct program *out)
{
	struct cursor in = { image->lines.at, image->lines.at + image->lines.size, false };
	uint64_t size;

	*out = (struct program){ .offset_bytes = 4 };
	skip(&in, at);
	size = lines_take(&in, 4);
	if (size == UINT32_MAX) {
		out->offset_bytes = 8;
		size = lines_take(&in, 8);
	}
	out->all.at = in.at;
	skip(&in, size);
	if (in.bad)
		return false;
	out->all.size = (size_t)size;
	*next = (size_t)(in.at - image->lines.at);
	if (!read_head(out))
		out->code.at = out->code.end = NULL;
	return true;
}

/* --- files -------------------------------------------------------------- */

struct format {
	uint64_t kinds[FORMATS_MAX], forms[FORMATS_MAX];
	unsigned count;
};

static bool
take_format(struct cursor *in, struct format *out)
{
	out->count = (unsigned)lines_take(in, 1);
	if (out->count > FORMATS_MAX)
		return false;
	for (unsigned i = 0; i < out->count; i++) {
		out->kinds[i] = take_unsigned(in);
		out->forms[i] = take_unsigned(in);
	}
	return !in->bad;
}

/* Consume one field of an entry.  Returns a string, or NULL if the field is something else. */
static const char *
take_field(const struct weft__image *image, const struct program *program, struct cursor *in,
           uint64_t form)
{
	switch (form) {
	case FORM_STRING:
		return take_text(in);
	case FORM_STRP:
	case FORM_LINE_STRP:
		return text_at(image->texts[form == FORM_LINE_STRP],
		               lines_take(in, program->offset_bytes));
	case FORM_UDATA:
		(void)take_unsigned(in);
		break;
	case FORM_BLOCK:
		skip(in, take_unsigned(in));
		break;
	case FORM_DATA1:
		skip(in, 1);
		break;
	case FORM_DATA2:
		skip(in, 2);
		break;
	case FORM_DATA4:
		skip(in, 4);
		break;
	case FORM_DATA8:
		skip(in, 8);
		break;
	case FORM_DATA16:
		skip(in, 16);
		break;
	default:
		in->bad = true; /* unknown size */
	}
	return NULL;
}

/* The path in entry `number`, or NULL.  An entry of zero bytes is not repeated (invariant 2). */
static const char *
take_entry(const struct weft__image *image, const struct program *program, struct cursor *in,
           uint64_t number)
{
	struct format format;
	const char *path = NULL;
	uint64_t count;

	if (!take_format(in, &format))
		return NULL;
	count = take_unsigned(in);
	if (format.count == 0)
		return NULL;
	for (uint64_t i = 0; i < count && i <= number && !in->bad; i++) {
		path = NULL;
		for (unsigned k = 0; k < format.count; k++) {
			const char *text = take_field(image, program, in, format.forms[k]);

			if (format.kinds[k] == LNCT_PATH)
				path = text;
		}
	}
	return number < count && !in->bad ? path : NULL;
}

/* Before version 5: directories, then files, counted from 1. */
static const char *
find_old_file(struct cursor in, uint64_t number)
{
	const char *text;

	while ((text = take_text(&in)) && *text)
		;
	while ((text = take_text(&in)) && *text) {
		for (int i = 0; i < 3; i++) /* directory, time, size */
			(void)take_unsigned(&in);
		if (--number == 0)
			return text;
	}
	return NULL;
}

static const char *
find_file(const struct weft__image *image, const struct program *program, uint64_t number)
{
	struct cursor in = program->tables;

	if (program->version < 5)
		return number ? find_old_file(in, number) : NULL;
	(void)take_entry(image, program, &in, UINT64_MAX); /* directories */
	return in.bad ? NULL : take_entry(image, program, &in, number);
}

/* --- rows --------------------------------------------------------------- */

static void
begin_sequence(struct search *search)
{
	search->row = (struct row){ .file = 1, .line = 1 };
	search->has_before = false;
}

static void
write_row(struct search *search)
{
	const struct row *row = &search->row;

	if (!search->has_before)
		search->start = row->address;
	else if (search->start != 0 && search->before.address <= search->address
	         && search->address < row->address)
		search->found = true;
	if (search->found)
		return;
	search->before = *row;
	search->has_before = true;
	if (search->start == 0)
		return;
	search->low = row->address < search->low ? row->address : search->low;
	search->high = row->address > search->high ? row->address : search->high;
}

static void
do_extended(struct cursor *in, struct search *search)
{
	uint64_t size = take_unsigned(in);
	struct cursor inside = { in->at, in->at, false };

	skip(in, size);
	inside.end = in->at;
	if (in->bad || size == 0)
		return;
	switch (lines_take(&inside, 1)) {
	case LNE_END_SEQUENCE:
		write_row(search);
		if (!search->found)
			begin_sequence(search);
		break;
	case LNE_SET_ADDRESS:
		search->row.address = lines_take(&inside, size - 1 < 8 ? (unsigned)size - 1 : 8);
		break;
	default:
		break;
	}
}

static void
do_standard(const struct program *program, struct cursor *in, struct search *search, uint8_t opcode)
{
	struct row *row = &search->row;

	switch (opcode) {
	case LNS_COPY:
		write_row(search);
		break;
	case LNS_ADVANCE_PC:
		row->address += take_unsigned(in) * program->step;
		break;
	case LNS_ADVANCE_LINE:
		row->line = (int64_t)((uint64_t)row->line + (uint64_t)take_signed(in));
		break;
	case LNS_SET_FILE:
		row->file = take_unsigned(in);
		break;
	case LNS_CONST_ADD_PC:
		row->address += (uint64_t)((255 - program->opcode_base) / program->line_range)
		                * program->step;
		break;
	case LNS_FIXED_ADVANCE_PC:
		row->address += lines_take(in, 2);
		break;
	default:
		for (unsigned i = 0; i < program->lengths[opcode - 1]; i++)
			(void)take_unsigned(in);
	}
}

static void
do_special(const struct program *program, struct search *search, uint8_t opcode)
{
	unsigned by = opcode - program->opcode_base;

	search->row.address += (uint64_t)(by / program->line_range) * program->step;
	search->row.line = (int64_t)((uint64_t)search->row.line
	                             + (uint64_t)(int64_t)(program->line_base
	                                                   + (int)(by % program->line_range)));
	write_row(search);
}

/* Run until the address is found, or to the end. */
static void
run_program(const struct program *program, struct search *search)
{
	struct cursor in = program->code;

	search->low = UINT64_MAX;
	search->high = 0;
	search->found = false;
	begin_sequence(search);
	while (in.at < in.end && !in.bad && !search->found) {
		uint8_t opcode = (uint8_t)lines_take(&in, 1);

		if (opcode >= program->opcode_base)
			do_special(program, search, opcode);
		else if (opcode == 0)
			do_extended(&in, search);
		else
			do_standard(program, &in, search, opcode);
	}
}

/* --- searching ---------------------------------------------------------- */

size_t
weft__lines_spans(const struct weft__image *image, struct weft__lines_span *out, size_t max)
{
	size_t at = 0, next = 0, count = 0;
	struct program program;

	for (; open_program(image, at, &next, &program); at = next, count++) {
		struct search search = { .address = UINT64_MAX };

		if (count >= max)
			continue;
		run_program(&program, &search);
		out[count] = (struct weft__lines_span){ search.low, search.high, at };
	}
	return count;
}

bool
weft__lines_find_in(const struct weft__image *image, size_t at, uint64_t address,
                    struct weft__line *out)
{
	struct search search = { .address = address };
	struct program program;
	const char *file;
	size_t next;

	if (!open_program(image, at, &next, &program))
		return false;
	run_program(&program, &search);
	if (!search.found || search.before.line <= 0)
		return false;
	file = find_file(image, &program, search.before.file);
	if (file)
		*out = (struct weft__line){ file, (uint64_t)search.before.line };
	return file != NULL;
}

bool
weft__lines_find(const struct weft__image *image, uint64_t address, struct weft__line *out)
{
	size_t at = 0, next = 0;
	struct program program;

	for (; open_program(image, at, &next, &program); at = next)
		if (weft__lines_find_in(image, at, address, out))
			return true;
	return false;
}
