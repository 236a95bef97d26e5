/* image.c - the sections of an ELF file, and the functions in its symbol table.
 *
 * A stripped file only has the dynamic symbol table, which lists exported functions.
 */
#include <elf.h>
#include <string.h>
#include "base/image.h"

/* A part of `from`, or empty if the part is not completely inside. */
static struct weft__bytes
image_part(struct weft__bytes from, uint64_t offset, uint64_t size)
{
	if (offset > from.size || size > from.size - offset)
		return (struct weft__bytes){ 0 };
	return (struct weft__bytes){ from.at + offset, (size_t)size };
}

static bool
image_has_head(struct weft__bytes file, Elf64_Ehdr *head)
{
	const uint16_t one = 1;
	uint8_t order = *(const uint8_t *)&one ? ELFDATA2LSB : ELFDATA2MSB;

	if (file.size < sizeof(*head))
		return false;
	memcpy(head, file.at, sizeof(*head));
	return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64
	       && head->e_ident[EI_DATA] == order && head->e_shentsize == sizeof(Elf64_Shdr);
}

struct sections {
	struct weft__bytes file, table, names;
	size_t count;
};

static bool
image_section(const struct sections *in, size_t index, Elf64_Shdr *out)
{
	if (index >= in->count)
		return false;
	memcpy(out, in->table.at + index * sizeof(*out), sizeof(*out));
	return true;
}

static struct weft__bytes
image_content(const struct sections *in, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED)
		return (struct weft__bytes){ 0 };
	return image_part(in->file, section->sh_offset, section->sh_size);
}

static bool
image_is_named(const struct sections *in, const Elf64_Shdr *section, const char *name)
{
	size_t size = strlen(name) + 1;
	struct weft__bytes text = image_part(in->names, section->sh_name, size);

	return text.at && memcmp(text.at, name, size) == 0;
}

static void
image_take_symbols(struct weft__image *image, const struct sections *in, const Elf64_Shdr *section)
{
	Elf64_Shdr names;

	if (!image_section(in, section->sh_link, &names))
		return;
	image->symbols = image_content(in, section);
	image->names = image_content(in, &names);
}

static void
image_take(struct weft__image *image, const struct sections *in, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_SYMTAB
	    || (section->sh_type == SHT_DYNSYM && !image->symbols.at))
		image_take_symbols(image, in, section);
	else if (image_is_named(in, section, ".debug_line"))
		image->lines = image_content(in, section);
	else if (image_is_named(in, section, ".debug_str"))
		image->texts[0] = image_content(in, section);
	else if (image_is_named(in, section, ".debug_line_str"))
		image->texts[1] = image_content(in, section);
}

bool
weft__image_open(struct weft__image *image, struct weft__bytes file)
{
	struct sections in = { .file = file };
	Elf64_Shdr section;
	Elf64_Ehdr head;

	*image = (struct weft__image){ 0 };
	if (!image_has_head(file, &head))
		return false;
	in.table = image_part(file, head.e_shoff, (uint64_t)head.e_shnum * sizeof(section));
	in.count = in.table.size / sizeof(section);
	if (image_section(&in, head.e_shstrndx, &section))
		in.names = image_content(&in, &section);
	for (size_t i = 0; image_section(&in, i, &section); i++)
		image_take(image, &in, &section);
	return true;
}

/* The name, or NULL if it does not end inside its section. */
static const char *
image_name(const struct weft__image *image, uint32_t offset)
{
	struct weft__bytes names = image->names;

	if (offset >= names.size || !memchr(names.at + offset, '\0', names.size - offset))
		return NULL;
	return (const char *)names.at + offset;
}

/* Assembly may give a function no size; it then extends to the next symbol. */
static bool
image_symbol_covers(const Elf64_Sym *symbol, uint64_t address)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF
	       && symbol->st_value <= address
	       && (symbol->st_size == 0 || address - symbol->st_value < symbol->st_size);
}

bool
weft__image_function(const struct weft__image *image, uint64_t address, struct weft__function *out)
{
	size_t count = image->symbols.size / sizeof(Elf64_Sym);
	const char *best = NULL;
	uint64_t start = 0;

	for (size_t i = 0; i < count; i++) {
		const char *name;
		Elf64_Sym symbol;

		memcpy(&symbol, image->symbols.at + i * sizeof(symbol), sizeof(symbol));
		if (!image_symbol_covers(&symbol, address) || (best && symbol.st_value <= start))
			continue;
		name = image_name(image, symbol.st_name);
		if (name && *name) {
			best = name;
			start = symbol.st_value;
		}
	}
	if (best)
		*out = (struct weft__function){ best, start };
	return best != NULL;
}
