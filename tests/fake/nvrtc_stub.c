/*
 * A stand-in for libnvrtc.so: counts, delays, fails or dies on demand, and otherwise answers with a small valid ELF of
 * EM_CUDA that holds the kernels named in the source. No compiler inside. Controlled by the environment:
 *
 *   FAKE_NVRTC_COUNT=file     one byte is appended to the file for every compile
 *   FAKE_NVRTC_DELAY_MS=n     a compile takes n ms longer
 *   FAKE_NVRTC_FAIL=1         a compile fails with a log
 *   FAKE_NVRTC_FAIL_ON=text   a compile whose source holds the text fails with a log
 *   FAKE_NVRTC_KILL=signal    a compile raises the signal
 *   FAKE_NVRTC_VERSION=12.9   the version told (13.0)
 *   FAKE_NVRTC_REFUSE=option  an option that is not recognised
 *   FAKE_NVRTC_BUILTINS=name  a compile fails as with a missing libnvrtc-builtins of that name
 *   FAKE_NVRTC_UNKNOWN=121    a compute capability that is not known
 *   FAKE_NVRTC_NO_WAIT=1      the PTX holds no griddepcontrol.wait
 *
 * Equal source, headers and options give equal cubins; any difference gives another cubin.
 */
#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nvrtc.h>

#define EXPORT __attribute__((visibility("default")))
#define KERNELS_MAX 8
#define NAME_BYTES 128
#define EM_CUDA_MACHINE 190

struct text {
    char *data;
    size_t size, capacity;
};

struct _nvrtcProgram {
    char *source;
    int header_count;
    char **headers;
    struct text log, ptx, cubin;
};

static void append(struct text *text, const void *data, size_t size)
{
    if (text->size + size > text->capacity) {
        text->capacity = (text->size + size) * 2;
        text->data = realloc(text->data, text->capacity);
    }
    memcpy(text->data + text->size, data, size);
    text->size += size;
}

static void append_string(struct text *text, const char *string)
{
    append(text, string, strlen(string));
}

static void clear(struct text *text)
{
    free(text->data);
    *text = (struct text){NULL, 0, 0};
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "1") == 0;
}

/* ---- kernels of a source ---- */

static const char *skip_parentheses(const char *at)
{
    int depth = 0;
    do {
        if (*at == '(')
            depth++;
        if (*at == ')')
            depth--;
    } while (*at && (at++, depth));
    return at;
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The identifier before the parameter list; attributes such as __launch_bounds__(128) are passed over. */
static bool kernel_name(const char *at, char ret_name[NAME_BYTES])
{
    char name[NAME_BYTES] = "";
    while (*at && *at != ';' && *at != '{') {
        if (*at == '(' && name[0] && strncmp(name, "__", 2) != 0) {
            memcpy(ret_name, name, NAME_BYTES);
            return true;
        }
        if (*at == '(') {
            at = skip_parentheses(at);
        } else if (is_name(*at)) {
            size_t length = 0;
            while (is_name(at[length]))
                length++;
            (void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
            at += length;
        } else {
            at++;
        }
    }
    return false;
}

static int find_kernels(const char *source, char names[KERNELS_MAX][NAME_BYTES], int count)
{
    static const char mark[] = "__global__";
    for (const char *at = strstr(source, mark); at && count < KERNELS_MAX; at = strstr(at, mark)) {
        at += sizeof(mark) - 1;
        if (kernel_name(at, names[count]))
            count++;
    }
    return count;
}

/* ---- ELF ---- */

static uint64_t fnv(uint64_t hash, const char *string)
{
    for (; *string; string++)
        hash = (hash ^ (uint8_t)*string) * 0x100000001b3ull;
    return (hash ^ 0xff) * 0x100000001b3ull;
}

enum { SECTION_NULL, SECTION_SHSTRTAB, SECTION_STRTAB, SECTION_SYMTAB, SECTION_TEXT, SECTION_COUNT };

struct layout {
    struct text strtab, shstrtab, symtab, code;
    Elf64_Shdr sections[SECTION_COUNT];
};

static uint32_t add_string(struct text *table, const char *string)
{
    uint32_t offset = (uint32_t)table->size;
    append(table, string, strlen(string) + 1);
    return offset;
}

static void add_kernel(struct layout *layout, const char *name, uint64_t hash)
{
    Elf64_Sym symbol = {.st_name = add_string(&layout->strtab, name),
                        .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                        .st_other = 0x10, /* STO_CUDA_ENTRY */
                        .st_shndx = SECTION_TEXT,
                        .st_value = layout->code.size,
                        .st_size = 128};
    append(&layout->symtab, &symbol, sizeof(symbol));
    for (int i = 0; i < 16; i++)
        append(&layout->code, &hash, sizeof(hash));
}

static void add_section(struct layout *layout, int index, const char *name, uint32_t type, const struct text *body,
                        struct text *file)
{
    static const char zeros[16];
    uint32_t name_offset = add_string(&layout->shstrtab, name); /* first: body may be the table of names itself */
    append(file, zeros, (16 - file->size % 16) % 16);
    layout->sections[index] = (Elf64_Shdr){.sh_name = name_offset,
                                           .sh_type = type,
                                           .sh_offset = file->size,
                                           .sh_size = body->size,
                                           .sh_addralign = index == SECTION_TEXT ? 128 : 8};
    append(file, body->data, body->size);
}

static void write_elf(struct text *file, struct layout *layout, unsigned capability)
{
    Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT, 0x41, 8},
                       .e_type = ET_EXEC,
                       .e_machine = EM_CUDA_MACHINE,
                       .e_version = 1,
                       .e_flags = 0x06000004u | capability << 8,
                       .e_ehsize = sizeof(head),
                       .e_phentsize = sizeof(Elf64_Phdr),
                       .e_shentsize = sizeof(Elf64_Shdr),
                       .e_shnum = SECTION_COUNT,
                       .e_shstrndx = SECTION_SHSTRTAB};
    append(file, &head, sizeof(head));
    add_string(&layout->shstrtab, "");
    add_section(layout, SECTION_STRTAB, ".strtab", SHT_STRTAB, &layout->strtab, file);
    add_section(layout, SECTION_SYMTAB, ".symtab", SHT_SYMTAB, &layout->symtab, file);
    layout->sections[SECTION_SYMTAB].sh_link = SECTION_STRTAB;
    layout->sections[SECTION_SYMTAB].sh_info = 1;
    layout->sections[SECTION_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    add_section(layout, SECTION_TEXT, ".text", SHT_PROGBITS, &layout->code, file);
    layout->sections[SECTION_TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    add_section(layout, SECTION_SHSTRTAB, ".shstrtab", SHT_STRTAB, &layout->shstrtab, file);
    append(file, "\0\0\0\0\0\0\0", (8 - file->size % 8) % 8);
    head.e_shoff = file->size;
    append(file, layout->sections, sizeof(layout->sections));
    memcpy(file->data, &head, sizeof(head));
}

static void make_cubin(struct _nvrtcProgram *program, char names[KERNELS_MAX][NAME_BYTES], int count,
                       unsigned capability, uint64_t hash)
{
    struct layout layout;
    memset(&layout, 0, sizeof(layout));
    Elf64_Sym null_symbol = {0};
    add_string(&layout.strtab, "");
    append(&layout.symtab, &null_symbol, sizeof(null_symbol));
    for (int i = 0; i < count; i++)
        add_kernel(&layout, names[i], hash);
    write_elf(&program->cubin, &layout, capability);
    clear(&layout.strtab);
    clear(&layout.shstrtab);
    clear(&layout.symtab);
    clear(&layout.code);
}

/* ---- what a compile does ---- */

static void count_compile(void)
{
    const char *path = getenv("FAKE_NVRTC_COUNT");
    if (!path)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "x", 1) != 1)
        perror(path);
    if (fd >= 0)
        close(fd);
}

static void wait_and_die(void)
{
    const char *delay = getenv("FAKE_NVRTC_DELAY_MS");
    if (delay) {
        long ms = strtol(delay, NULL, 10);
        struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
        while (nanosleep(&pause, &pause) != 0)
            continue;
    }
    const char *signal_number = getenv("FAKE_NVRTC_KILL");
    if (signal_number)
        raise((int)strtol(signal_number, NULL, 10));
}

/* The number of --gpu-architecture; 0 when it is missing or unknown. */
static unsigned find_capability(int option_count, const char *const *options)
{
    static const char prefix[] = "--gpu-architecture=sm_";
    static const unsigned known[] = {80, 86, 87, 89, 90, 100, 103, 110, 120, 121};
    for (int i = 0; i < option_count; i++) {
        if (strncmp(options[i], prefix, sizeof(prefix) - 1) != 0)
            continue;
        unsigned capability = (unsigned)strtoul(options[i] + sizeof(prefix) - 1, NULL, 10);
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
            if (known[k] == capability)
                return capability;
    }
    return 0;
}

static nvrtcResult check_options(struct _nvrtcProgram *program, int option_count, const char *const *options)
{
    const char *refused = getenv("FAKE_NVRTC_REFUSE");
    for (int i = 0; refused && i < option_count; i++) {
        if (strcmp(options[i], refused) == 0) {
            append_string(&program->log, "nvrtc: error: unrecognized option ");
            append_string(&program->log, refused);
            append_string(&program->log, " found\n");
            return NVRTC_ERROR_INVALID_OPTION;
        }
    }
    if (!find_capability(option_count, options)) {
        append_string(&program->log, "nvrtc: error: invalid value for --gpu-architecture (-arch)\n");
        return NVRTC_ERROR_INVALID_OPTION;
    }
    return NVRTC_SUCCESS;
}

static nvrtcResult fail_on_demand(struct _nvrtcProgram *program)
{
    const char *builtins = getenv("FAKE_NVRTC_BUILTINS");
    if (builtins) {
        append_string(&program->log, "nvrtc: error: failed to open ");
        append_string(&program->log, builtins);
        append_string(&program->log, ".\n  Make sure that ");
        append_string(&program->log, builtins);
        append_string(&program->log, " is installed correctly.\n");
        return NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    const char *text = getenv("FAKE_NVRTC_FAIL_ON");
    if (is_set("FAKE_NVRTC_FAIL") || (text && strstr(program->source, text))) {
        append_string(&program->log, "stub.cu(1): error: told to fail\n\n1 error detected in the compilation.\n");
        return NVRTC_ERROR_COMPILATION;
    }
    return NVRTC_SUCCESS;
}

static void write_log(struct _nvrtcProgram *program, char names[KERNELS_MAX][NAME_BYTES], int count,
                      unsigned capability)
{
    append_string(&program->log, "ptxas info    : 0 bytes gmem\n");
    for (int i = 0; i < count; i++) {
        char lines[3 * NAME_BYTES + 512];
        (void)snprintf(lines, sizeof(lines),
                       "ptxas info    : Compiling entry function '%.127s' for 'sm_%u'\n"
                       "ptxas info    : Function properties for %.127s\n"
                       "ptxas         .     0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
                       "ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem\n"
                       "ptxas info    : Compile time = 1.000 ms\n",
                       names[i], capability, names[i]);
        append_string(&program->log, lines);
    }
}

static void write_ptx(struct _nvrtcProgram *program, char names[KERNELS_MAX][NAME_BYTES], int count)
{
    append_string(&program->ptx, ".version 9.0\n.target sm_90a\n.address_size 64\n");
    for (int i = 0; i < count; i++) {
        append_string(&program->ptx, ".visible .entry ");
        append_string(&program->ptx, names[i]);
        append_string(&program->ptx, "()\n{\n");
        if (!is_set("FAKE_NVRTC_NO_WAIT"))
            append_string(&program->ptx, "\tgriddepcontrol.wait;\n");
        append_string(&program->ptx, "\tret;\n}\n");
    }
}

static uint64_t hash_input(const struct _nvrtcProgram *program, int option_count, const char *const *options)
{
    uint64_t hash = fnv(0xcbf29ce484222325ull, program->source);
    for (int i = 0; i < program->header_count; i++)
        hash = fnv(hash, program->headers[i]);
    for (int i = 0; i < option_count; i++)
        hash = fnv(hash, options[i]);
    return hash;
}

EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count, const char *const *options)
{
    clear(&program->log);
    clear(&program->ptx);
    clear(&program->cubin);
    nvrtcResult result = check_options(program, option_count, options);
    if (result != NVRTC_SUCCESS)
        return result;
    count_compile();
    wait_and_die();
    result = fail_on_demand(program);
    if (result != NVRTC_SUCCESS)
        return result;
    char names[KERNELS_MAX][NAME_BYTES];
    int count = find_kernels(program->source, names, 0);
    for (int i = 0; i < program->header_count; i++)
        count = find_kernels(program->headers[i], names, count);
    unsigned capability = find_capability(option_count, options);
    make_cubin(program, names, count, capability, hash_input(program, option_count, options));
    write_log(program, names, count, capability);
    write_ptx(program, names, count);
    return NVRTC_SUCCESS;
}

/* ---- the rest of the C interface ---- */

EXPORT nvrtcResult nvrtcVersion(int *major, int *minor)
{
    const char *version = getenv("FAKE_NVRTC_VERSION");
    *major = 13;
    *minor = 0;
    if (version && sscanf(version, "%d.%d", major, minor) != 2)
        return NVRTC_ERROR_INTERNAL_ERROR;
    return NVRTC_SUCCESS;
}

static const int supported[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int *count)
{
    *count = (int)(sizeof(supported) / sizeof(supported[0]));
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetSupportedArchs(int *archs)
{
    const char *unknown = getenv("FAKE_NVRTC_UNKNOWN");
    for (size_t i = 0; i < sizeof(supported) / sizeof(supported[0]); i++)
        archs[i] = unknown && strtol(unknown, NULL, 10) == supported[i] ? supported[0] : supported[i];
    return NVRTC_SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(nvrtcResult result)
{
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_INVALID_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    default:
        return "NVRTC_ERROR_INTERNAL_ERROR";
    }
}

EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *ret_program, const char *source, const char *name, int header_count,
                                      const char *const *headers, const char *const *names)
{
    (void)name;
    (void)names;
    struct _nvrtcProgram *program = calloc(1, sizeof(*program));
    program->source = strdup(source);
    program->header_count = header_count;
    program->headers = calloc((size_t)header_count + 1, sizeof(*program->headers));
    for (int i = 0; i < header_count; i++)
        program->headers[i] = strdup(headers[i]);
    *ret_program = program;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    for (int i = 0; i < (*program)->header_count; i++)
        free((*program)->headers[i]);
    free((*program)->headers);
    free((*program)->source);
    clear(&(*program)->log);
    clear(&(*program)->ptx);
    clear(&(*program)->cubin);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

static nvrtcResult give_text(const struct text *text, char *ret_text)
{
    if (text->size)
        memcpy(ret_text, text->data, text->size);
    ret_text[text->size] = 0;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *ret_size)
{
    *ret_size = program->log.size + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *ret_log)
{
    return give_text(&program->log, ret_log);
}

EXPORT nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *ret_size)
{
    *ret_size = program->ptx.size + 1;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *ret_ptx)
{
    return give_text(&program->ptx, ret_ptx);
}

EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *ret_size)
{
    *ret_size = program->cubin.size;
    return NVRTC_SUCCESS;
}

EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *ret_cubin)
{
    if (program->cubin.size)
        memcpy(ret_cubin, program->cubin.data, program->cubin.size);
    return NVRTC_SUCCESS;
}
