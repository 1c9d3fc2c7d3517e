/*
 * Cubins as the fake driver sees them.
 *
 * Numbers seen in cubins of NVRTC 12.x and 13.0: e_machine 190; e_flags holds the capability in bits 8-15 from ABI
 * version 8 on, in bits 0-7 before. .nv.info.<kernel> is a list of (format:u8 attribute:u8 value:u16 [bytes]), format
 * 4 carrying value bytes of payload: 0x17 a parameter (index:u32 ordinal:u16 offset:u16 flags:u32, bytes in flags >>
 * 18), 0x19 the bytes of all parameters, 0x05 the bound on threads, 0x10 a required block shape.
 */
#include "fake/image.h"

#include <elf.h>
#include <string.h>

#define EM_CUDA_CUBIN 190
#define SECTIONS_MAX 4096

static const Elf64_Shdr *section_at(const uint8_t *image, uint32_t index)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    return (const Elf64_Shdr *)(image + header->e_shoff + (size_t)index * sizeof(Elf64_Shdr));
}

bool fake_image_check(const void *image, size_t *ret_bytes, uint32_t *ret_capability)
{
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    if (header.e_machine != EM_CUDA_CUBIN || header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
        header.e_shnum > SECTIONS_MAX || header.e_shoff == 0 || header.e_shoff % 8 != 0)
        return false;
    size_t bytes = header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr);
    size_t programs = header.e_phoff + (size_t)header.e_phnum * header.e_phentsize;
    *ret_bytes = bytes > programs ? bytes : programs;
    *ret_capability = header.e_ident[EI_ABIVERSION] >= 8 ? (header.e_flags >> 8) & 0xFF : header.e_flags & 0xFF;
    return true;
}

static const char *section_name(const uint8_t *image, const Elf64_Shdr *section)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    return (const char *)image + section_at(image, header->e_shstrndx)->sh_offset + section->sh_name;
}

static void read_parameter(const uint8_t *payload, struct fake_image_kernel *kernel)
{
    uint16_t ordinal = 0, offset = 0;
    uint32_t flags = 0;
    memcpy(&ordinal, payload + 4, sizeof(ordinal));
    memcpy(&offset, payload + 6, sizeof(offset));
    memcpy(&flags, payload + 8, sizeof(flags));
    if (ordinal >= FAKE_IMAGE_PARAMETERS_MAX)
        return;
    kernel->parameters[ordinal].offset = offset;
    kernel->parameters[ordinal].bytes = flags >> 18;
    if (ordinal + 1u > kernel->parameter_count)
        kernel->parameter_count = ordinal + 1u;
}

static void read_info(const uint8_t *info, size_t size, struct fake_image_kernel *kernel)
{
    size_t at = 0;
    while (at + 4 <= size) {
        uint8_t format = info[at], attribute = info[at + 1];
        uint16_t value = 0;
        memcpy(&value, info + at + 2, sizeof(value));
        const uint8_t *payload = info + at + 4;
        at += 4 + (format == 4 ? value : 0u);
        if (at > size)
            return;
        if (attribute == 0x17 && value >= 12)
            read_parameter(payload, kernel);
        else if (attribute == 0x19)
            kernel->parameter_bytes = value;
        else if (attribute == 0x05 && value >= 12) {
            uint32_t bound[3];
            memcpy(bound, payload, sizeof(bound));
            kernel->max_threads = bound[0] * bound[1] * bound[2];
        } else if (attribute == 0x10 && value >= 12)
            memcpy(kernel->required_block, payload, sizeof(kernel->required_block));
    }
}

static bool has_function(const uint8_t *image, const Elf64_Shdr *symbols, const char *name)
{
    const char *names = (const char *)image + section_at(image, symbols->sh_link)->sh_offset;
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image + symbols->sh_offset + at, sizeof(symbol));
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && strcmp(names + symbol.st_name, name) == 0)
            return true;
    }
    return false;
}

bool fake_image_find(const void *image, const char *name, struct fake_image_kernel *ret_kernel)
{
    const uint8_t *bytes = image;
    const Elf64_Ehdr *header = image;
    bool found = false;
    memset(ret_kernel, 0, sizeof(*ret_kernel));
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr *section = section_at(bytes, i);
        const char *label = section_name(bytes, section);
        if (section->sh_type == SHT_SYMTAB)
            found = found || has_function(bytes, section, name);
        else if (strncmp(label, ".nv.info.", 9) == 0 && strcmp(label + 9, name) == 0)
            read_info(bytes + section->sh_offset, section->sh_size, ret_kernel);
    }
    return found;
}
