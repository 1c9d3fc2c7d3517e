/*
 * What a disk may hold after the power went: the steps that libfaults wrote down, cut, without some of what was not
 * synced, the last of it torn.
 *
 * The disk that is modelled: a synced file is whole; of what was not synced any 4 KiB block may be there or not, and
 * one may be torn at 512 bytes; names change in order, and a sync of any file takes all earlier ones along.
 */
#ifndef CBN_TEST_DISK_IMAGE_H
#define CBN_TEST_DISK_IMAGE_H

#include "cache_fixture.h"
#include "fake/faults.h"

#define IMAGE_FILES 16u
#define BLOCK 4096u
#define SECTOR 512u

/* Of what was not synced. PAGES: some of all writes but those of less than a sector. */
enum loss { LOSE_ALL, LOSE_NONE, LOSE_SOME, LOSE_PAGES, LOSSES };

struct image_file {
    ino_t inode;
    uint8_t *bytes;
    size_t size, room;
    size_t pending; /* the first step that no sync has reached */
};

struct image_name {
    char name[64];
    ino_t inode; /* 0: no such file */
};

struct image {
    struct image_file files[IMAGE_FILES];
    struct image_name names[IMAGE_FILES];
    size_t pending_names; /* the first step whose names no sync has reached */
    enum loss loss;
    uint64_t random;
};

static inline uint64_t image_draw(struct image *image)
{
    image->random = image->random * 6364136223846793005ull + 1442695040888963407ull;
    return image->random >> 33;
}

static inline struct image_file *image_file(struct image *image, ino_t inode)
{
    uint32_t i = 0;
    while (i < IMAGE_FILES - 1 && image->files[i].inode != inode && image->files[i].inode != 0)
        i++;
    image->files[i].inode = inode;
    return &image->files[i];
}

static inline void image_resize(struct image_file *file, size_t size)
{
    if (size > file->room) {
        file->bytes = realloc(file->bytes, size);
        memset(file->bytes + file->room, 0, size - file->room);
        file->room = size;
    }
    if (size < file->size)
        memset(file->bytes + size, 0, file->size - size);
    file->size = size;
}

static inline void image_write(struct image_file *file, size_t at, const uint8_t *bytes, size_t size)
{
    if (at + size > file->size)
        image_resize(file, at + size);
    memcpy(file->bytes + at, bytes, size);
}

/* A step that no sync has reached, as far as it got. */
static inline void image_apply_some(struct image *image, struct image_file *file, const struct fault_step *step,
                                    bool last)
{
    if (image->loss == LOSE_ALL)
        return;
    if (step->kind == STEP_SIZE) {
        if (image->loss == LOSE_NONE || image_draw(image) % 2)
            image_resize(file, (size_t)step->offset);
        return;
    }
    for (size_t at = 0; at < step->size; at += BLOCK) {
        size_t size = step->size - at < BLOCK ? step->size - at : BLOCK;
        bool torn = last && at + BLOCK >= step->size && step->size >= SECTOR;
        bool whole = image->loss == LOSE_NONE || (image->loss == LOSE_PAGES && step->size < SECTOR);
        if (torn)
            size = image_draw(image) % (size / SECTOR + 1) * SECTOR;
        if (whole || torn || image_draw(image) % 2)
            image_write(file, (size_t)step->offset + at, step->bytes + at, size);
    }
}

static inline bool image_touches(const struct fault_step *step, ino_t inode)
{
    return (step->kind == STEP_WRITE || step->kind == STEP_SIZE) && step->inode == inode;
}

/* Up to step `end`: all of it, or what a loss leaves. */
static inline void image_settle(struct image *image, struct image_file *file, const struct fault_step *steps,
                                size_t end, bool whole)
{
    size_t last = end;
    for (size_t i = file->pending; i < end; i++)
        last = image_touches(&steps[i], file->inode) ? i : last;
    for (size_t i = file->pending; i < end; i++) {
        if (!image_touches(&steps[i], file->inode))
            continue;
        if (!whole)
            image_apply_some(image, file, &steps[i], i == last);
        else if (steps[i].kind == STEP_SIZE)
            image_resize(file, (size_t)steps[i].offset);
        else
            image_write(file, (size_t)steps[i].offset, steps[i].bytes, steps[i].size);
    }
    file->pending = end;
}

static inline ino_t *image_named(struct image *image, const char *name)
{
    uint32_t i = 0;
    while (i < IMAGE_FILES - 1 && image->names[i].name[0] && strcmp(image->names[i].name, name) != 0)
        i++;
    (void)snprintf(image->names[i].name, sizeof(image->names[i].name), "%.63s", name);
    return &image->names[i].inode;
}

static inline void image_rename(struct image *image, const struct fault_step *step)
{
    if (step->kind == STEP_CREATE)
        *image_named(image, step->name) = step->inode;
    else if (step->kind == STEP_UNLINK)
        *image_named(image, step->name) = 0;
    else if (step->kind == STEP_RENAME) {
        *image_named(image, step->to) = *image_named(image, step->name);
        *image_named(image, step->name) = 0;
    }
}

static inline void image_settle_names(struct image *image, const struct fault_step *steps, size_t end)
{
    for (; image->pending_names < end; image->pending_names++)
        image_rename(image, &steps[image->pending_names]);
}

/* The disk after the first `cut` steps. */
static inline struct image image_of(const struct fault_step *steps, size_t cut, enum loss loss, uint64_t seed)
{
    struct image image = {.loss = loss, .random = seed};
    for (size_t i = 0; i < cut; i++) {
        if (steps[i].kind == STEP_WRITE || steps[i].kind == STEP_SIZE || steps[i].kind == STEP_CREATE)
            (void)image_file(&image, steps[i].inode);
        if (steps[i].kind != STEP_SYNC)
            continue;
        image_settle(&image, image_file(&image, steps[i].inode), steps, i, true);
        image_settle_names(&image, steps, i);
    }
    size_t names = cut - image.pending_names;
    image_settle_names(&image, steps,
                       loss == LOSE_ALL    ? image.pending_names
                       : loss == LOSE_NONE ? cut
                                           : image.pending_names + image_draw(&image) % (names + 1));
    for (uint32_t i = 0; i < IMAGE_FILES && image.files[i].inode; i++)
        image_settle(&image, &image.files[i], steps, cut, false);
    return image;
}

static inline const struct image_file *image_find(struct image *image, const char *name)
{
    ino_t inode = *image_named(image, name);
    return inode ? image_file(image, inode) : NULL;
}

static inline void image_save(struct image *image, const char *folder)
{
    char path[3 * PATH_BYTES];
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    for (uint32_t i = 0; i < IMAGE_FILES && image->names[i].name[0]; i++) {
        if (image->names[i].inode == 0)
            continue;
        const struct image_file *file = image_file(image, image->names[i].inode);
        (void)snprintf(path, sizeof(path), "%s/%s", folder, image->names[i].name);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        ck_assert_int_ge(fd, 0);
        ck_assert(file->size == 0 || write(fd, file->bytes, file->size) == (ssize_t)file->size);
        (void)close(fd);
    }
}

static inline void image_done(struct image *image)
{
    for (uint32_t i = 0; i < IMAGE_FILES; i++)
        free(image->files[i].bytes);
}

#endif
