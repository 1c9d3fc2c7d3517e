/*
 * Reads a whole file, scans it once against the bounds that the parser itself does not have, then parses it.
 */
#include "model/json.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"

#define READ_STEP_BYTES ((size_t)64 << 10)

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* O_NONBLOCK: opening a FIFO that nobody writes to must fail here, not hang. */
static int32_t open_regular(const char *path, int *ret_fd, struct cbn_error *err)
{
    __attribute__((cleanup(close_fd))) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot open %.256s", path);
    struct stat status;
    if (fstat(fd, &status) != 0)
        return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot stat %.256s", path);
    if (S_ISDIR(status.st_mode))
        return cbn__error_os(err, CBN_STATUS_IO, EISDIR, "%.256s is a folder; give the JSON file in it", path);
    if (!S_ISREG(status.st_mode))
        return cbn__error_own(err, CBN_STATUS_IO, "%.256s is not a regular file; give a JSON file", path);
    *ret_fd = fd;
    fd = -1;
    return CBN_STATUS_OK;
}

static int32_t read_all(const char *path, struct cbn__buf *text, struct cbn_error *err)
{
    __attribute__((cleanup(close_fd))) int fd = -1;
    int32_t status = open_regular(path, &fd, err);
    if (status != CBN_STATUS_OK)
        return status;
    for (;;) {
        if (!cbn__buf_reserve(text, READ_STEP_BYTES))
            return cbn__error_no_memory(err);
        ssize_t count = read(fd, text->data + text->size, READ_STEP_BYTES);
        if (count == 0)
            return CBN_STATUS_OK;
        if (count < 0 && errno != EINTR)
            return cbn__error_os(err, CBN_STATUS_IO, errno, "cannot read %.256s", path);
        text->size += count < 0 ? 0 : (size_t)count;
        if (text->size > CBN__JSON_BYTES_MAX)
            return cbn__error_own(err, CBN_STATUS_LIMIT, "%.256s is larger than 16 MiB; give a smaller file", path);
    }
}

/* Depth and number of values, before anything is allocated for them. What is not JSON passes: the parser refuses it. */
static int32_t check_bounds(const char *path, const struct cbn__buf *text, struct cbn_error *err)
{
    unsigned depth = 0, values = 0, line = 1;
    bool in_string = false;
    for (size_t i = 0; i < text->size; i++) {
        uint8_t byte = text->data[i];
        line += byte == '\n';
        if (in_string && byte == '\\') {
            i++;
            continue;
        }
        if (byte == '"')
            in_string = !in_string;
        if (in_string)
            continue;
        values += byte == '[' || byte == '{' || byte == ',';
        depth += byte == '[' || byte == '{';
        depth -= (byte == ']' || byte == '}') && depth > 0;
        if (depth > CBN__JSON_DEPTH_MAX)
            return cbn__error_own(err, CBN_STATUS_LIMIT, "%.256s line %u: nested deeper than %u; flatten the file",
                                  path, line, CBN__JSON_DEPTH_MAX);
        if (values > CBN__JSON_VALUES_MAX)
            return cbn__error_own(err, CBN_STATUS_LIMIT, "%.256s line %u: more than %u values; give a smaller file",
                                  path, line, CBN__JSON_VALUES_MAX);
    }
    return CBN_STATUS_OK;
}

static int32_t refuse_syntax(const char *path, const json_error_t *error, struct cbn_error *err)
{
    enum json_error_code code = json_error_code(error);
    if (code == json_error_out_of_memory)
        return cbn__error_no_memory(err);
    enum cbn_status status = code == json_error_numeric_overflow ? CBN_STATUS_LIMIT : CBN_STATUS_INVALID;
    char reason[CBN__JSON_QUOTE_BYTES];
    return cbn__error_own(err, status, "%.256s line %d column %d is not valid JSON: %s; mend the file there", path,
                          error->line, error->column, cbn__json_quote(error->text, reason));
}

int32_t cbn__json_load(const char *path, json_t **ret_root, struct cbn_error *err)
{
    if (!path || !*path)
        return cbn__error_own(err, CBN_STATUS_INVALID, "path is empty; name a JSON file");
    CBN__BUF_AUTO text = CBN__BUF_INIT;
    int32_t status = read_all(path, &text, err);
    if (status == CBN_STATUS_OK)
        status = check_bounds(path, &text, err);
    if (status != CBN_STATUS_OK)
        return status;
    if (text.size == 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%.256s is empty; give a JSON file", path);
    json_error_t error;
    json_t *root = json_loadb((const char *)text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return refuse_syntax(path, &error, err);
    *ret_root = root;
    return CBN_STATUS_OK;
}

bool cbn__json_is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

const char *cbn__json_type_name(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}

int32_t cbn__json_read_extent(const json_t *object, const char *where, const char *field, int64_t *ret_value,
                              struct cbn_error *err)
{
    const json_t *value = json_object_get(object, field);
    if (!json_is_integer(value))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s is %s; it must be a positive integer", where, field,
                              cbn__json_type_name(value));
    json_int_t number = json_integer_value(value);
    if (number <= 0)
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s is %lld; it must be a positive integer", where, field,
                              (long long)number);
    if (number > INT32_MAX)
        return cbn__error_own(err, CBN_STATUS_LIMIT, "%s%s is %lld; at most 2147483647 is taken", where, field,
                              (long long)number);
    *ret_value = number;
    return CBN_STATUS_OK;
}

int32_t cbn__json_read_text(const json_t *object, const char *where, const char *field, const char **ret_text,
                            struct cbn_error *err)
{
    const json_t *value = json_object_get(object, field);
    if (!cbn__json_is_absent(value) && !json_is_string(value))
        return cbn__error_own(err, CBN_STATUS_INVALID, "%s%s is %s; it must be a string", where, field,
                              cbn__json_type_name(value));
    *ret_text = json_string_value(value);
    return CBN_STATUS_OK;
}

const char *cbn__json_quote(const char *text, char ret_quote[CBN__JSON_QUOTE_BYTES])
{
    size_t length = 0;
    for (; text[length] && length < CBN__JSON_QUOTE_BYTES - 4; length++)
        ret_quote[length] = text[length] >= ' ' && text[length] <= '~' ? text[length] : '?';
    strcpy(ret_quote + length, text[length] ? "..." : "");
    return ret_quote;
}
