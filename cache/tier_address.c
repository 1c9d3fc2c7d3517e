/*
 * The URL of the fleet tier's server, strictly: what is not understood is refused, and not guessed. Errors quote names
 * of parts only: a password with a slash in it can reach any part.
 */
#include "cache/tier_address.h"

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/hash.h"

#define PORT_DEFAULT "6379"
#define PORT_MAX 65535u
#define DB_MAX 65535u
#define WAIT_MS_MAX 3600000u

/* What is left of the URL. */
struct part {
    const char *at;
    size_t size;
};

static int32_t refuse(struct cbn_error *err, const char *what)
{
    return cbn__error_own(err, CBN_STATUS_INVALID,
                          "fleet: %s; a server is named as redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or "
                          "unix://[[USER]:PASSWORD@]/PATH, with ?timeout_ms=N&retry_ms=N&lease_ms=N behind it",
                          what);
}

/* Splits at the first mark: *ret_head is what stands before it, rest what stands behind it. False: there is none. */
static bool cut(struct part *rest, char mark, struct part *ret_head)
{
    const char *found = memchr(rest->at, mark, rest->size);
    *ret_head = *rest;
    if (!found)
        return false;
    ret_head->size = (size_t)(found - rest->at);
    rest->size -= ret_head->size + 1;
    rest->at = found + 1;
    return true;
}

static bool starts_with(struct part *rest, const char *prefix)
{
    size_t size = strlen(prefix);
    if (rest->size < size || strncmp(rest->at, prefix, size) != 0)
        return false;
    rest->at += size;
    rest->size -= size;
    return true;
}

/* False: too long, a NUL, or a % without two digits. */
static bool decode(struct part from, char ret_text[CBN__TIER_TEXT_BYTES])
{
    size_t size = 0;
    for (size_t i = 0; i < from.size; i++) {
        int byte = (unsigned char)from.at[i];
        if (byte == '%') {
            if (from.size - i < 3 || cbn__hash_digit(from.at[i + 1]) < 0 || cbn__hash_digit(from.at[i + 2]) < 0)
                return false;
            byte = cbn__hash_digit(from.at[i + 1]) * 16 + cbn__hash_digit(from.at[i + 2]);
            i += 2;
        }
        if (byte == 0 || size + 1 >= CBN__TIER_TEXT_BYTES)
            return false;
        ret_text[size++] = (char)byte;
    }
    ret_text[size] = '\0';
    return true;
}

static bool read_number(struct part from, uint32_t low, uint32_t high, uint32_t *ret_number)
{
    uint64_t number = 0;
    if (from.size == 0 || from.size > 9)
        return false;
    for (size_t i = 0; i < from.size; i++) {
        if (from.at[i] < '0' || from.at[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(from.at[i] - '0');
    }
    *ret_number = (uint32_t)number;
    return number >= low && number <= high;
}

static bool is_named(struct part name, const char *text)
{
    return name.size == strlen(text) && strncmp(name.at, text, name.size) == 0;
}

static int32_t read_options(struct part rest, struct cbn__tier_address *address, struct cbn_error *err)
{
    bool more = rest.size > 0;
    while (more) {
        struct part value, name;
        more = cut(&rest, '&', &value);
        (void)cut(&value, '=', &name);
        if (is_named(name, "timeout_ms")) {
            if (!read_number(value, 1, WAIT_MS_MAX, &address->timeout_ms))
                return refuse(err, "timeout_ms is not a number from 1 to 3600000");
        } else if (is_named(name, "retry_ms")) {
            if (!read_number(value, 1, WAIT_MS_MAX, &address->retry_ms))
                return refuse(err, "retry_ms is not a number from 1 to 3600000");
        } else if (is_named(name, "lease_ms")) {
            if (!read_number(value, 1, WAIT_MS_MAX, &address->lease_ms))
                return refuse(err, "lease_ms is not a number from 1 to 3600000");
        } else if (address->path[0] && is_named(name, "db")) {
            if (!read_number(value, 0, DB_MAX, &address->db))
                return refuse(err, "db is not a number from 0 to 65535");
        } else {
            return refuse(err, "an option behind the ? is not known");
        }
    }
    return CBN_STATUS_OK;
}

/* "USER:PASSWORD", ":PASSWORD" or "USER". */
static bool read_login(struct part login, struct cbn__tier_address *address)
{
    struct part user;
    bool has_password = cut(&login, ':', &user);
    return decode(user, address->user) && (!has_password || decode(login, address->password)) &&
           (!address->user[0] || address->password[0]);
}

static int32_t read_port(struct part port, struct cbn__tier_address *address, struct cbn_error *err)
{
    uint32_t number = 0;
    if (!read_number(port, 1, PORT_MAX, &number))
        return refuse(err, "the port is not a number from 1 to 65535");
    (void)snprintf(address->port, sizeof(address->port), "%u", number);
    return CBN_STATUS_OK;
}

/* "HOST", "HOST:PORT", "[::1]:PORT". */
static int32_t read_place(struct part place, struct cbn__tier_address *address, struct cbn_error *err)
{
    struct part host;
    bool has_port = false;
    (void)snprintf(address->port, sizeof(address->port), "%s", PORT_DEFAULT);
    if (starts_with(&place, "[")) {
        if (!cut(&place, ']', &host) || (place.size && place.at[0] != ':'))
            return refuse(err, "the address in brackets has no end");
        has_port = starts_with(&place, ":");
    } else {
        has_port = cut(&place, ':', &host);
    }
    if (host.size == 0 || memchr(host.at, '%', host.size) || !decode(host, address->host))
        return refuse(err, "it names no host");
    return has_port ? read_port(place, address, err) : CBN_STATUS_OK;
}

static int32_t read_path(struct part path, struct cbn__tier_address *address, struct cbn_error *err)
{
    if (!decode(path, address->path) || address->path[0] != '/' ||
        strlen(address->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return refuse(err, "the path of the socket is not absolute, or longer than 107 bytes");
    return CBN_STATUS_OK;
}

/* The last @ of where a login may stand. */
static bool cut_login(struct part *rest, size_t within, struct part *ret_login)
{
    const char *at = memrchr(rest->at, '@', within);
    if (!at)
        return false;
    *ret_login = (struct part){rest->at, (size_t)(at - rest->at)};
    rest->size -= ret_login->size + 1;
    rest->at = at + 1;
    return true;
}

static void show(struct cbn__tier_address *address)
{
    bool brackets = strchr(address->host, ':') != NULL;
    char login[CBN__TIER_TEXT_BYTES + 8] = "";
    if (address->password[0])
        (void)snprintf(login, sizeof(login), "%s:***@", address->user);
    if (address->path[0])
        (void)snprintf(address->shown, sizeof(address->shown), "unix://%s%s?db=%u", login, address->path, address->db);
    else
        (void)snprintf(address->shown, sizeof(address->shown), "%s://%s%s%s%s:%s/%u", address->tls ? "rediss" : "redis",
                       login, brackets ? "[" : "", address->host, brackets ? "]" : "", address->port, address->db);
}

static int32_t read_url(struct part rest, struct cbn__tier_address *address, struct cbn_error *err)
{
    struct part base, login, place;
    bool is_unix = starts_with(&rest, "unix://");
    address->tls = !is_unix && starts_with(&rest, "rediss://");
    if (!is_unix && !address->tls && !starts_with(&rest, "redis://"))
        return refuse(err, "it begins with none of redis://, rediss:// and unix://");
    bool has_options = cut(&rest, '?', &base);
    const char *slash = memchr(base.at, '/', base.size);
    if (cut_login(&base, slash ? (size_t)(slash - base.at) : base.size, &login) && !read_login(login, address))
        return refuse(err, "user or password is too long, empty where it may not be, or holds a % that is no %XX");
    int32_t status = CBN_STATUS_OK;
    if (is_unix) {
        status = read_path(base, address, err);
    } else {
        bool has_db = cut(&base, '/', &place);
        if (has_db && base.size && !read_number(base, 0, DB_MAX, &address->db))
            return refuse(err, "the database is not a number from 0 to 65535");
        status = read_place(place, address, err);
    }
    return status == CBN_STATUS_OK && has_options ? read_options(rest, address, err) : status;
}

int32_t cbn__tier_address_parse(const char *url, struct cbn__tier_address *ret_address, struct cbn_error *err)
{
    struct cbn__tier_address address = {
        .timeout_ms = CBN__TIER_TIMEOUT_MS, .retry_ms = CBN__TIER_RETRY_MS, .lease_ms = CBN__TIER_LEASE_MS};
    for (const char *at = url; *at; at++)
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return refuse(err, "it holds a blank or a control character");
    int32_t status = read_url((struct part){url, strlen(url)}, &address, err);
    if (status != CBN_STATUS_OK)
        return status;
    show(&address);
    *ret_address = address;
    return CBN_STATUS_OK;
}
