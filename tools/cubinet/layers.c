/*
 * The folders of the open session, its cache and its bases, whether or not each could be opened.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

struct layers {
    size_t count, capacity;
    char **paths; /* the cache first, when there is one */
    bool has_cache;
};

static void add_folder(struct layers *layers, const char *path, size_t length)
{
    layers->paths = cli_grow(layers->paths, &layers->capacity, layers->count, sizeof(*layers->paths));
    layers->paths[layers->count++] = cli_text_format("%.*s", (int)length, path);
}

static void hear(void *user, const char *name, const char *value, const char *origin)
{
    struct layers *layers = user;
    if (strcmp(name, "cache_dir") == 0 && *value) {
        layers->has_cache = true;
        add_folder(layers, value, strlen(value));
    }
    /* Only the environment's list is cut at its colons: a folder that --base names may hold one. */
    bool from_environment = strcmp(origin, "option") != 0;
    while (strcmp(name, "bases") == 0 && from_environment && *value) {
        size_t length = strcspn(value, ":");
        if (length)
            add_folder(layers, value, length);
        value += length + (value[length] == ':');
    }
}

static void read_layers(const struct cli *cli, struct layers *ret_layers)
{
    cbn_runtime_settings(cli->runtime, hear, ret_layers);
    for (uint32_t i = 0; i < cli->options.bases.count; i++)
        add_folder(ret_layers, cli->options.bases.items[i], strlen(cli->options.bases.items[i]));
}

static void free_layers(struct layers *layers)
{
    for (size_t i = 0; i < layers->count; i++)
        free(layers->paths[i]);
    free(layers->paths);
}

static bool is_same(const char *left, const char *right)
{
    struct stat a, b;
    return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int cli_layers_check(const struct cli *cli)
{
    struct layers layers = {0};
    int result = CLI_OK;
    read_layers(cli, &layers);
    for (size_t i = 1; i < layers.count; i++)
        for (size_t j = 0; j < i && result == CLI_OK; j++)
            if (is_same(layers.paths[i], layers.paths[j]))
                result = cli_fail(cli, CLI_USAGE, "the base %s is the same folder as the %s %s; name each once",
                                  layers.paths[i], j == 0 && layers.has_cache ? "cache" : "base", layers.paths[j]);
    free_layers(&layers);
    return result;
}
