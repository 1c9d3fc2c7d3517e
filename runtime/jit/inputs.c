/*
 * Finds what a template would read besides its own texts: files, and the time of day. Pure.
 *
 * A walk over preprocessing tokens, not a preprocessor: it looks into groups that #if leaves out too, expands no macro,
 * and does not see a name that ## puts together.
 */
#include "jit/inputs.h"

#include <string.h>

#define WORD_BYTES 64

/* at never stands on a line splice. */
struct walk {
    const struct cbn__template *template;
    const char *text, *at;
    bool fresh; /* nothing but blanks and comments so far on this line */
    struct cbn__input *input;
};

static const char *skip_splices(const char *at)
{
    for (;;) {
        if (at[0] == '\\' && at[1] == '\n')
            at += 2;
        else if (at[0] == '\\' && at[1] == '\r' && at[2] == '\n')
            at += 3;
        else
            return at;
    }
}

static void step(struct walk *walk)
{
    if (*walk->at)
        walk->at = skip_splices(walk->at + 1);
}

static char peek(const struct walk *walk)
{
    return *walk->at ? *skip_splices(walk->at + 1) : 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_start(char c)
{
    return ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

static void skip_block_comment(struct walk *walk)
{
    step(walk);
    step(walk);
    while (*walk->at && !(*walk->at == '*' && peek(walk) == '/'))
        step(walk);
    step(walk);
    step(walk);
}

/* Blanks and comments; false: neither stands here. */
static bool skip_space(struct walk *walk)
{
    if (is_blank(*walk->at))
        step(walk);
    else if (*walk->at == '/' && peek(walk) == '*')
        skip_block_comment(walk);
    else if (*walk->at == '/' && peek(walk) == '/')
        while (*walk->at && *walk->at != '\n')
            step(walk);
    else
        return false;
    return true;
}

static void skip_spaces(struct walk *walk)
{
    while (skip_space(walk))
        ;
}

/* A literal ends at its quote; one without, as in "#error don't", at the end of its line. */
static void skip_quoted(struct walk *walk, char quote)
{
    step(walk);
    while (*walk->at && *walk->at != '\n' && *walk->at != quote) {
        if (*walk->at == '\\')
            step(walk);
        step(walk);
    }
    if (*walk->at == quote)
        step(walk);
}

/* at: the quote of R"delimiter(...)delimiter". A splice inside is text, so this walks the bytes as they are. */
static void skip_raw(struct walk *walk)
{
    char end[20] = ")";
    size_t length = strcspn(walk->at + 1, "() \\\t\v\f\n");
    if (length > 16 || walk->at[1 + length] != '(') {
        skip_quoted(walk, '"');
        return;
    }
    memcpy(end + 1, walk->at + 1, length);
    end[length + 1] = '"';
    const char *found = strstr(walk->at + 2 + length, end);
    walk->at = found ? skip_splices(found + length + 2) : walk->at + strlen(walk->at);
}

/* 1'000 holds no character literal. */
static void skip_number(struct walk *walk)
{
    while (is_digit(*walk->at) || is_word_start(*walk->at) || *walk->at == '.' ||
           (*walk->at == '\'' && (is_digit(peek(walk)) || is_word_start(peek(walk)))))
        step(walk);
}

static void take_word(struct walk *walk, char ret_word[WORD_BYTES])
{
    size_t length = 0;
    for (; is_word_start(*walk->at) || is_digit(*walk->at); step(walk))
        if (length < WORD_BYTES - 1)
            ret_word[length++] = *walk->at;
    ret_word[length] = 0;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

/* Always true: something was found. from: where it begins. */
static bool report(const struct walk *walk, const char *from, const char *why)
{
    struct cbn__input *input = walk->input;
    size_t length = 0;
    for (const char *at = from; at < walk->at && length < sizeof(input->text) - 1; at = skip_splices(at + 1))
        input->text[length++] = (char)(*at == '\n' || *at == '\r' ? ' ' : *at);
    while (length && is_blank(input->text[length - 1]))
        length--;
    input->text[length] = 0;
    input->why = why;
    input->line = 1;
    for (const char *at = walk->text; at < from; at++)
        input->line += *at == '\n';
    return true;
}

static bool is_given(const struct walk *walk, const char *name, size_t length)
{
    for (uint32_t i = 0; i < walk->template->header_count; i++)
        if (strlen(walk->template->header_names[i]) == length &&
            memcmp(walk->template->header_names[i], name, length) == 0)
            return true;
    return false;
}

/* Behind an #include or a __has_include: "name" or <name> of a given header. */
static bool check_header_name(struct walk *walk, const char *from)
{
    char name[512], end = 0;
    size_t length = 0;
    skip_spaces(walk);
    if (*walk->at == '"' || *walk->at == '<')
        end = *walk->at == '<' ? '>' : '"';
    else {
        while (*walk->at && *walk->at != '\n' && *walk->at != ')')
            step(walk);
        return report(walk, from, "does not name its header literally");
    }
    step(walk);
    for (; *walk->at && *walk->at != '\n' && *walk->at != end && length < sizeof(name); step(walk))
        name[length++] = *walk->at;
    bool closed = *walk->at == end;
    if (closed)
        step(walk);
    return closed && is_given(walk, name, length) ? false : report(walk, from, "names none of the given headers");
}

static bool check_directive(struct walk *walk)
{
    static const char *const others[] = {"include_next", "import", "embed", NULL};
    char word[WORD_BYTES];
    const char *from = walk->at;
    if (*walk->at == '%')
        step(walk);
    step(walk);
    skip_spaces(walk);
    walk->fresh = false;
    const char *name = walk->at;
    take_word(walk, word);
    if (strcmp(word, "include") == 0)
        return check_header_name(walk, from);
    if (is_one_of(word, others))
        return report(walk, from, "can read a file that was not given");
    walk->at = name; /* "#if", but also "# __DATE__" */
    return false;
}

static bool check_word(struct walk *walk)
{
    static const char *const clocks[] = {"__DATE__", "__TIME__", "__TIMESTAMP__", NULL};
    static const char *const probes[] = {"__has_include_next", "__has_embed", NULL};
    static const char *const raws[] = {"R", "LR", "uR", "UR", "u8R", NULL};
    char word[WORD_BYTES];
    const char *from = walk->at;
    take_word(walk, word);
    if (*walk->at == '"' && is_one_of(word, raws))
        skip_raw(walk);
    if (is_one_of(word, clocks))
        return report(walk, from, "changes with the time of the build");
    if (is_one_of(word, probes))
        return report(walk, from, "can look for a file that was not given");
    if (strcmp(word, "__has_include") != 0)
        return false;
    skip_spaces(walk);
    if (*walk->at != '(')
        return report(walk, from, "does not name its header literally");
    step(walk);
    return check_header_name(walk, from);
}

static bool check_token(struct walk *walk)
{
    char c = *walk->at, next = peek(walk);
    if (skip_space(walk))
        return false;
    if (walk->fresh && (c == '#' || (c == '%' && next == ':')))
        return check_directive(walk);
    walk->fresh = c == '\n';
    if (is_word_start(c))
        return check_word(walk);
    if (is_digit(c) || (c == '.' && is_digit(next)))
        skip_number(walk);
    else if (c == '"' || c == '\'')
        skip_quoted(walk, c);
    else
        step(walk);
    return false;
}

static bool check_text(const struct cbn__template *template, const char *text, struct cbn__input *ret_input)
{
    struct walk walk = {template, text, skip_splices(text), true, ret_input};
    while (*walk.at)
        if (check_token(&walk))
            return true;
    return false;
}

bool cbn__inputs_find_foreign(const struct cbn__template *template, struct cbn__input *ret_input)
{
    struct cbn__input input = {.header = -1};
    bool found = check_text(template, template->source, &input);
    for (uint32_t i = 0; i < template->header_count && !found; i++) {
        input.header = (int)i;
        found = check_text(template, template->header_texts[i], &input);
    }
    if (found)
        *ret_input = input;
    return found;
}
