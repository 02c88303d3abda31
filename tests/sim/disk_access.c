/* A test's own access to a disk, past all faults; copies of all of it. */
#include "tests/sim/disk_model.h"

#include <stdlib.h>

static struct inode *find(const struct sim_disk *disk, const char *path)
{
    struct place place;
    return disk_walk(disk->root, path, &place) == 0 ? place.found : NULL;
}

/* Durable, too. */
static struct inode *make(struct sim_disk *disk, const char *path, bool directory)
{
    struct place place;
    int error = disk_walk(disk->root, path, &place);
    assert(error == 0 && "its directory is there");
    (void)error;
    if (!place.found) {
        place.found = inode_new(disk, directory);
        entry_set(place.directory, place.name, place.found);
    }
    assert(place.found->directory == directory);
    entry_settle(place.directory, place.name);
    return place.found;
}

bool sim_disk_read(struct sim_disk *disk, const char *path, uint8_t **bytes, size_t *size)
{
    const struct inode *inode = find(disk, path);
    if (!inode || inode->directory)
        return false;
    *size = inode->now.size;
    *bytes = sim_allocate(*size + 1); /* no bytes are bytes, too */
    if (inode->now.held > 0)
        memcpy(*bytes, inode->now.bytes, inode->now.held);
    return true;
}

void sim_disk_write(struct sim_disk *disk, const char *path, const void *bytes, size_t size)
{
    struct content content = {0};
    content_put(&content, bytes, size, 0);
    inode_set(make(disk, path, false), &content);
    content_free(&content);
}

void sim_disk_make_directory(struct sim_disk *disk, const char *path)
{
    make(disk, path, true);
}

bool sim_disk_remove(struct sim_disk *disk, const char *path)
{
    struct place place;
    if (disk_walk(disk->root, path, &place) < 0 || !place.found || place.found->directory)
        return false;
    entry_set(place.directory, place.name, NULL);
    entry_settle(place.directory, place.name);
    return true;
}

void sim_disk_list(struct sim_disk *disk, const char *path, void (*each)(void *context, const char *name),
                   void *context)
{
    const struct inode *directory = find(disk, path);
    assert(directory && directory->directory);
    for (const struct entry *entry = directory->entries; entry; entry = entry->next) {
        if (entry->now)
            each(context, entry->name);
    }
}

/* ---- Copies ---- */

struct sim_disk_copy {
    struct sim_disk_copy *next;  /* in its directory */
    struct sim_disk_copy *first; /* a directory's */
    bool directory;
    struct content content;
    char name[NAME_MAX + 1];
};

static struct sim_disk_copy *copy_of(const struct inode *inode, const char *name)
{
    struct sim_disk_copy *copy = sim_allocate(sizeof *copy);
    copy->directory = inode->directory;
    memcpy(copy->name, name, strlen(name) + 1);
    content_copy(&copy->content, &inode->safe);
    struct sim_disk_copy **last = &copy->first;
    for (const struct entry *entry = inode->entries; entry; entry = entry->next) {
        if (!entry->safe)
            continue;
        *last = copy_of(entry->safe, entry->name);
        last = &(*last)->next;
    }
    return copy;
}

struct sim_disk_copy *sim_disk_save(const struct sim_disk *disk)
{
    return copy_of(disk->root, "");
}

static void put_back(struct inode *inode, const struct sim_disk_copy *copy)
{
    if (!copy->directory)
        inode_set(inode, &copy->content);
    for (const struct sim_disk_copy *c = copy->first; c; c = c->next) {
        struct inode *child = inode_new(inode->disk, c->directory);
        entry_set(inode, c->name, child);
        put_back(child, c);
    }
    if (copy->directory)
        inode_settle(inode, 0, UINT64_MAX, NULL);
}

void sim_disk_restore(struct sim_disk *disk, const struct sim_disk_copy *copy)
{
    disk_close_all(disk);
    inode_release(disk->root, true);
    disk->root = inode_new(disk, true);
    inode_hold(disk->root, true);
    put_back(disk->root, copy);
    disk->cut_off = false;
    event_set(disk->sim, &disk->written_back, NEVER);
}

void sim_disk_copy_free(struct sim_disk_copy *copy)
{
    while (copy->first) {
        struct sim_disk_copy *child = copy->first;
        copy->first = child->next;
        sim_disk_copy_free(child);
    }
    content_free(&copy->content);
    free(copy);
}
