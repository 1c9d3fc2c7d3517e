/*
 * Reads a cubin: ELF64, little-endian. Pure; every offset is checked, and fields are copied out, never pointed at.
 *
 * Seen in cubins of NVRTC 12.x and 13.0: a kernel is a global STT_FUNC whose st_other has the bit 0x10;
 * .nv.info.<kernel> is a list of (format:u8 attribute:u8 value:u16 [payload]), format 4 carrying value bytes of
 * payload. Attribute 0x17 is a parameter (index:u32 ordinal:u16 offset:u16 flags:u32, its bytes in flags >> 18). A
 * kernel without parameters has none.
 */
#include "jit/image.h"

#include <elf.h>
#include <string.h>

#define SYMBOL_CUDA_ENTRY 0x10u
#define FORMAT_SIZED 4u
#define ATTRIBUTE_PARAMETER 0x17u
#define INFO_PREFIX ".nv.info."

struct reader {
    struct cbn__blob image;
    Elf64_Ehdr header;
    const char *symbol;
    struct cbn__image_kernel *kernel;
};

/* From the first byte of the parameters to the last. */
struct extent {
    bool known;
    uint32_t begin, end;
};

static bool read_at(struct cbn__blob from, uint64_t at, void *ret_bytes, size_t count)
{
    if (at > from.size || count > from.size - at)
        return false;
    memcpy(ret_bytes, (const uint8_t *)from.data + at, count);
    return true;
}

static bool read_section(const struct reader *reader, uint32_t index, Elf64_Shdr *ret_section)
{
    uint64_t at = (uint64_t)index * sizeof(*ret_section);
    return index < reader->header.e_shnum && reader->header.e_shoff <= reader->image.size &&
           read_at(reader->image, reader->header.e_shoff + at, ret_section, sizeof(*ret_section));
}

static bool read_body(const struct reader *reader, const Elf64_Shdr *section, struct cbn__blob *ret_body)
{
    if (section->sh_offset > reader->image.size || section->sh_size > reader->image.size - section->sh_offset)
        return false;
    *ret_body = (struct cbn__blob){(const uint8_t *)reader->image.data + section->sh_offset, section->sh_size};
    return true;
}

/* NULL where the text has no NUL inside its table. */
static const char *string_at(struct cbn__blob table, uint64_t at)
{
    if (at >= table.size || !memchr((const char *)table.data + at, 0, table.size - at))
        return NULL;
    return (const char *)table.data + at;
}

static bool read_strings(const struct reader *reader, uint32_t index, struct cbn__blob *ret_table)
{
    Elf64_Shdr section;
    return read_section(reader, index, &section) && section.sh_type == SHT_STRTAB &&
           read_body(reader, &section, ret_table);
}

static void add_other(struct cbn__image_kernel *kernel, const char *name)
{
    size_t used = strlen(kernel->others), left = sizeof(kernel->others) - used;
    const char *comma = used ? ", " : "";
    size_t length = strlen(name), extra = strlen(comma);
    if (left <= extra + 1)
        return;
    memcpy(kernel->others + used, comma, extra);
    if (length > left - extra - 1)
        length = left - extra - 1;
    memcpy(kernel->others + used + extra, name, length);
    kernel->others[used + extra + length] = 0;
}

static bool is_kernel(const Elf64_Sym *symbol)
{
    return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && ELF64_ST_BIND(symbol->st_info) == STB_GLOBAL &&
           (symbol->st_other & SYMBOL_CUDA_ENTRY) && symbol->st_shndx != SHN_UNDEF;
}

static bool read_symbols(const struct reader *reader, const Elf64_Shdr *section)
{
    struct cbn__blob symbols, names;
    Elf64_Sym symbol;
    if (!read_body(reader, section, &symbols) || !read_strings(reader, section->sh_link, &names))
        return false;
    for (uint64_t at = 0; read_at(symbols, at, &symbol, sizeof(symbol)); at += sizeof(symbol)) {
        if (!is_kernel(&symbol))
            continue;
        const char *name = string_at(names, symbol.st_name);
        if (!name)
            return false;
        reader->kernel->found |= strcmp(name, reader->symbol) == 0;
        add_other(reader->kernel, name);
    }
    return true;
}

/*
 * The parameters end where the last of them does. The first stands off the area's start where it is aligned to more than
 * that is (48 bytes for one of 64-byte alignment), so the span of all is sizeof(struct) for the one that a template takes.
 */
static void read_parameter(struct cbn__blob payload, struct extent *extent)
{
    uint16_t offset = 0;
    uint32_t flags = 0;
    if (!read_at(payload, 6, &offset, sizeof(offset)) || !read_at(payload, 8, &flags, sizeof(flags)))
        return;
    uint32_t end = offset + (flags >> 18);
    extent->begin = extent->known && extent->begin < offset ? extent->begin : offset;
    extent->end = extent->known && extent->end > end ? extent->end : end;
    extent->known = true;
}

/* A list that is cut off, or of formats not seen yet, tells nothing: the driver has the last word. */
static struct extent read_info(struct cbn__blob info)
{
    struct {
        uint8_t format, attribute;
        uint16_t value;
    } item;
    struct extent extent = {0};
    uint64_t at = 0;
    while (read_at(info, at, &item, sizeof(item))) {
        struct cbn__blob payload = {(const uint8_t *)info.data + at + sizeof(item), 0};
        at += sizeof(item);
        if (item.format == FORMAT_SIZED)
            payload.size = item.value;
        if (payload.size > info.size - at)
            break;
        at += payload.size;
        if (item.attribute == ATTRIBUTE_PARAMETER && item.format == FORMAT_SIZED)
            read_parameter(payload, &extent);
    }
    extent.known = extent.known && at == info.size;
    return extent;
}

static void tell_parameters(struct extent extent, struct cbn__image_kernel *kernel)
{
    kernel->argument_bytes_known = extent.known;
    kernel->argument_bytes = extent.end - extent.begin;
}

static bool is_info(const char *label, const char *symbol)
{
    size_t prefix = sizeof(INFO_PREFIX) - 1;
    return label && strncmp(label, INFO_PREFIX, prefix) == 0 && strcmp(label + prefix, symbol) == 0;
}

static bool read_image(struct reader *reader)
{
    const Elf64_Ehdr *header = &reader->header;
    struct cbn__blob labels, body;
    if (!read_at(reader->image, 0, &reader->header, sizeof(reader->header)) ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof(Elf64_Shdr) ||
        !read_strings(reader, header->e_shstrndx, &labels))
        return false;
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        if (!read_section(reader, i, &section))
            return false;
        if (section.sh_type == SHT_SYMTAB && !read_symbols(reader, &section))
            return false;
        if (is_info(string_at(labels, section.sh_name), reader->symbol) && read_body(reader, &section, &body))
            tell_parameters(read_info(body), reader->kernel);
    }
    return true;
}

void cbn__image_find(struct cbn__blob image, const char *symbol, struct cbn__image_kernel *ret_kernel)
{
    struct reader reader = {.image = image, .symbol = symbol, .kernel = ret_kernel};
    *ret_kernel = (struct cbn__image_kernel){0};
    ret_kernel->readable = read_image(&reader);
}
