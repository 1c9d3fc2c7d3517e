/*
 * The standalone driver: runs a fuzz target over files and folders of files, in order of their names, without
 * libFuzzer. usage: fuzz_TARGET FILE-OR-FOLDER...    exit 0 when every input came back and there was at least one
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz.h"

#define PATH_BYTES 4096
#define INPUT_BYTES_MAX ((long)64 << 20)

/* A copy of its own for each input, so that a sanitizer sees a read behind its end. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    if (size < 0 || size > INPUT_BYTES_MAX) {
        (void)fprintf(stderr, "cannot read %s\n", path);
        return -1;
    }
    rewind(file);
    uint8_t *bytes = malloc(size ? (size_t)size : 1);
    int count = bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size ? 1 : -1;
    (void)fclose(file);
    (void)fprintf(stderr, "%s: %ld bytes\n", path, size); /* ahead, so that a crash names its input */
    if (count == 1)
        (void)LLVMFuzzerTestOneInput(bytes, (size_t)size);
    free(bytes);
    return count;
}

static int is_visible(const struct dirent *item)
{
    return item->d_name[0] != '.';
}

static int replay_folder(const char *folder)
{
    struct dirent **items = NULL;
    int found = scandir(folder, &items, is_visible, alphasort), count = found < 0 ? -1 : 0;
    for (int i = 0; i < found; i++) {
        char path[PATH_BYTES];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, items[i]->d_name);
        if (count >= 0)
            count = replay_file(path) < 0 ? -1 : count + 1;
        free(items[i]);
    }
    free(items);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        int count = stat(argv[i], &status) != 0 ? -1
                    : S_ISDIR(status.st_mode)   ? replay_folder(argv[i])
                                                : replay_file(argv[i]);
        if (count < 0) {
            (void)fprintf(stderr, "%s cannot be replayed\n", argv[i]);
            return EXIT_FAILURE;
        }
        total += count;
    }
    (void)printf("%d inputs replayed\n", total);
    return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
