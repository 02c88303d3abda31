#include "tests/sim/disk_model.h"

#include <errno.h>
#include <stdlib.h>

/* The kernel's own patience with what nobody syncs (vm.dirty_expire_centisecs). */
#define WRITTEN_BACK_NS (30 * NS_PER_S)

const struct sim_disk_policy sim_disk_default = {.operation_min_ns = 20 * NS_PER_US,
                                                 .operation_max_ns = 80 * NS_PER_US,
                                                 .sync_min_ns = 200 * NS_PER_US,
                                                 .sync_max_ns = 2 * NS_PER_MS,
                                                 .lost = 300,
                                                 .torn = 100,
                                                 .garbled = 100,
                                                 .name_lost = 500,
                                                 .unlink_undone = 500};

/* ---- Bytes of a file ---- */

void content_grow(struct content *c, uint64_t size)
{
    c->size = max_u64(c->size, size);
}

void content_put(struct content *c, const void *data, size_t size, uint64_t offset)
{
    size_t end = offset + size;
    if (size == 0)
        return;
    if (end > c->room) {
        c->room = 2 * end;
        c->bytes = realloc(c->bytes, c->room);
        if (!c->bytes)
            abort();
    }
    if (end > c->held) {
        memset(c->bytes + c->held, 0, end - c->held);
        c->held = end;
    }
    memcpy(c->bytes + offset, data, size);
    content_grow(c, end);
}

static void content_cut(struct content *c)
{
    c->held = 0;
    c->size = 0;
}

static void content_shorten(struct content *c, uint64_t size)
{
    c->held = (size_t)min_u64(c->held, size);
    c->size = min_u64(c->size, size);
}

void content_copy(struct content *to, const struct content *from)
{
    content_cut(to);
    content_put(to, from->bytes, from->held, 0);
    content_grow(to, from->size);
}

void content_free(struct content *c)
{
    free(c->bytes);
    *c = (struct content){0};
}

/* ---- Inodes ---- */

struct inode *inode_new(struct sim_disk *disk, bool directory)
{
    struct inode *inode = sim_allocate(sizeof *inode);
    inode->disk = disk;
    inode->directory = directory;
    inode->last = &inode->first;
    inode->next = disk->inodes;
    inode->at = &disk->inodes;
    if (inode->next)
        inode->next->at = &inode->next;
    disk->inodes = inode;
    return inode;
}

static void forget_changes(struct inode *inode)
{
    while (inode->first) {
        struct change *change = inode->first;
        inode->first = change->next;
        free(change);
    }
    inode->last = &inode->first;
}

static void entry_free(struct entry *entry)
{
    if (entry->now)
        inode_release(entry->now, true);
    if (entry->safe)
        inode_release(entry->safe, false);
    free(entry);
}

static void inode_free(struct inode *inode)
{
    while (inode->entries) {
        struct entry *entry = inode->entries;
        inode->entries = entry->next;
        entry_free(entry);
    }
    forget_changes(inode);
    content_free(&inode->now);
    content_free(&inode->safe);
    *inode->at = inode->next;
    if (inode->next)
        inode->next->at = inode->at;
    free(inode);
}

void inode_hold(struct inode *inode, bool use)
{
    inode->references++;
    inode->uses += use;
}

void inode_release(struct inode *inode, bool use)
{
    assert(inode->references > 0 && inode->uses >= use);
    inode->uses -= use;
    if (--inode->references == 0)
        inode_free(inode);
}

/* ---- Changes ---- */

static size_t sectors_of(uint64_t offset, size_t size)
{
    return (size_t)((offset + size - 1) / SECTOR - offset / SECTOR + 1);
}

static void add_change(struct inode *inode, enum change_kind kind, const void *data, size_t size,
                       uint64_t offset)
{
    size_t sectors = size > 0 ? sectors_of(offset, size) : 0;
    struct change *change = sim_allocate(sizeof *change + size + sectors);
    change->kind = kind;
    change->offset = offset;
    change->size = size;
    change->settled = change->bytes + size;
    if (size > 0)
        memcpy(change->bytes, data, size);
    *inode->last = change;
    inode->last = &change->next;
}

void inode_write(struct inode *inode, const void *data, size_t size, uint64_t offset)
{
    if (size == 0)
        return;
    content_put(&inode->now, data, size, offset);
    add_change(inode, CHANGE_WRITE, data, size, offset);
}

void inode_grow(struct inode *inode, uint64_t size)
{
    if (size <= inode->now.size)
        return;
    content_grow(&inode->now, size);
    add_change(inode, CHANGE_GROW, NULL, 0, size);
}

void inode_cut(struct inode *inode)
{
    if (inode->now.size == 0)
        return;
    content_cut(&inode->now);
    add_change(inode, CHANGE_CUT, NULL, 0, 0);
}

void inode_shorten(struct inode *inode, uint64_t size)
{
    inode_settle(inode, 0, UINT64_MAX, NULL);
    content_shorten(&inode->now, size);
    content_shorten(&inode->safe, size);
}

void inode_set(struct inode *inode, const struct content *content)
{
    forget_changes(inode);
    content_copy(&inode->safe, content);
    content_copy(&inode->now, content);
}

/* ---- What becomes durable, and what does not ---- */

/* False: it is lost. Only bytes of the write are ever damaged: what lies beside them is durable. */
static bool settle_sector(struct inode *inode, const uint8_t *bytes, size_t size, uint64_t offset,
                          const struct odds *odds)
{
    uint8_t garbage[SECTOR];
    struct random *random = &inode->disk->sim->random;
    uint64_t dice = odds ? random_below(random, 1000) : 1000;
    if (odds && dice < odds->lost)
        return false;
    if (odds && dice < odds->lost + odds->torn) {
        size = random_below(random, size);
    } else if (odds && dice < odds->lost + odds->torn + odds->garbled) {
        for (size_t i = 0; i < size; i++)
            garbage[i] = (uint8_t)random_next(random);
        bytes = garbage;
    }
    content_put(&inode->safe, bytes, size, offset);
    return true;
}

/* True: all of it is decided. */
static bool settle_write(struct inode *inode, struct change *c, uint64_t from, uint64_t to,
                         const struct odds *odds)
{
    uint64_t end = c->offset + c->size;
    bool whole = true, lost = false;
    size_t sector = 0;
    for (uint64_t at = c->offset, next; at < end; at = next, sector++) {
        uint64_t start = at / SECTOR * SECTOR;
        next = min_u64(start + SECTOR, end);
        if (!c->settled[sector] && start < to && start + SECTOR > from) {
            c->settled[sector] = 1;
            lost |= !settle_sector(inode, c->bytes + (at - c->offset), next - at, at, odds);
        }
        whole = whole && c->settled[sector];
    }
    if (lost && sim_chance(inode->disk->sim, 500))
        content_grow(&inode->safe, end); /* the size got there before the data */
    return whole;
}

static bool settle_change(struct inode *inode, struct change *c, uint64_t from, uint64_t to,
                          const struct odds *odds)
{
    if (c->kind == CHANGE_WRITE)
        return settle_write(inode, c, from, to, odds);
    if (odds && sim_chance(inode->disk->sim, odds->lost))
        return true;
    if (c->kind == CHANGE_GROW)
        content_grow(&inode->safe, c->offset);
    else
        content_cut(&inode->safe);
    return true;
}

static bool has_cut(const struct inode *inode)
{
    const struct change *c = inode->first;
    while (c && c->kind != CHANGE_CUT)
        c = c->next;
    return c != NULL;
}

static void settle_file(struct inode *inode, uint64_t from, uint64_t to, const struct odds *odds)
{
    if (has_cut(inode)) { /* what was written before a cut must not come after it */
        from = 0;
        to = UINT64_MAX;
    }
    struct change **at = &inode->first;
    while (*at) {
        struct change *c = *at;
        if (settle_change(inode, c, from, to, odds)) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
    inode->last = at;
}

/* Of one name, or of all (NULL). */
static void settle_names(struct inode *directory, const char *name)
{
    struct entry **at = &directory->entries;
    while (*at) {
        struct entry *entry = *at;
        struct inode *before = entry->safe;
        if (name && strcmp(entry->name, name) != 0) {
            at = &entry->next;
            continue;
        }
        entry->safe = entry->now;
        if (entry->safe)
            inode_hold(entry->safe, false);
        if (before)
            inode_release(before, false);
        if (entry->now) {
            at = &entry->next;
        } else {
            *at = entry->next;
            free(entry);
        }
    }
}

void entry_settle(struct inode *directory, const char *name)
{
    settle_names(directory, name);
}

void inode_settle(struct inode *inode, uint64_t from, uint64_t to, const struct odds *odds)
{
    if (inode->directory)
        settle_names(inode, NULL);
    else
        settle_file(inode, from, to, odds);
}

/* ---- Names ---- */

struct entry *entry_find(const struct inode *directory, const char *name)
{
    struct entry *entry = directory->entries;
    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

static struct entry *entry_make(struct inode *directory, const char *name)
{
    struct entry **at = &directory->entries;
    while (*at && strcmp((*at)->name, name) < 0)
        at = &(*at)->next;
    if (*at && strcmp((*at)->name, name) == 0)
        return *at;
    size_t size = strlen(name) + 1;
    struct entry *entry = sim_allocate(sizeof *entry + size);
    memcpy(entry->name, name, size);
    entry->next = *at;
    *at = entry;
    return entry;
}

void entry_set(struct inode *directory, const char *name, struct inode *inode)
{
    struct entry *entry = entry_make(directory, name);
    struct inode *before = entry->now;
    if (inode)
        inode_hold(inode, true);
    entry->now = inode;
    if (!before)
        return;
    if (!entry->safe) { /* the disk may have heard of the name without a sync, and not of its end */
        entry->safe = before;
        inode_hold(before, false);
    }
    inode_release(before, true);
}

int disk_walk(struct inode *start, const char *path, struct place *place)
{
    struct inode *from = path[0] == '/' ? start->disk->root : start;
    *place = (struct place){.directory = from, .found = from};
    while (*path) {
        size_t length = strcspn(path, "/");
        bool here = length == 0 || (length == 1 && path[0] == '.');
        if (!here) {
            if (!place->found)
                return -ENOENT;
            if (!place->found->directory)
                return -ENOTDIR;
            if (length > NAME_MAX)
                return -ENAMETOOLONG;
            place->directory = place->found;
            memcpy(place->name, path, length);
            place->name[length] = '\0';
            struct entry *entry = entry_find(place->directory, place->name);
            place->found = entry ? entry->now : NULL;
        }
        path += length;
        path += *path == '/';
    }
    return 0;
}

/* ---- Crashes ---- */

/* What the name means after a crash. */
static struct inode *after_crash(struct sim_disk *disk, const struct entry *entry)
{
    if (entry->now == entry->safe)
        return entry->now;
    if (entry->now && !sim_chance(disk->sim, disk->policy.name_lost))
        return entry->now;
    bool back = entry->safe && sim_chance(disk->sim, disk->policy.unlink_undone);
    return back ? entry->safe : NULL;
}

static void crash_names(struct inode *directory)
{
    for (struct entry *entry = directory->entries; entry; entry = entry->next) {
        struct inode *after = after_crash(directory->disk, entry);
        if (after)
            inode_hold(after, true);
        if (entry->now)
            inode_release(entry->now, true);
        entry->now = after;
    }
    settle_names(directory, NULL);
    for (struct entry *entry = directory->entries; entry; entry = entry->next) {
        if (entry->now->directory)
            crash_names(entry->now);
    }
}

void disk_close_all(struct sim_disk *disk)
{
    struct sim *sim = disk->sim;
    for (unsigned i = 0; i < sim->descriptor_count; i++) {
        struct descriptor *d = sim->descriptors[i];
        if (d && d->kind == FD_FILE && d->file->inode->disk == disk)
            descriptor_close(sim, SIM_FIRST_FD + (int)i);
    }
}

void sim_disk_crash(struct sim_disk *disk)
{
    const struct sim_disk_policy *p = &disk->policy;
    struct odds odds = {p->lost, p->torn, p->garbled};
    disk_close_all(disk);
    for (struct inode *inode = disk->inodes; inode; inode = inode->next) {
        if (inode->directory)
            continue;
        inode_settle(inode, 0, UINT64_MAX, &odds);
        content_copy(&inode->now, &inode->safe);
    }
    crash_names(disk->root);
    disk->cut_off = false;
    event_set(disk->sim, &disk->written_back, NEVER);
    sim_note(disk->sim, 'p', sim_disk_used(disk), disk->syncs);
}

static void settle_tree(struct inode *directory)
{
    settle_names(directory, NULL);
    for (struct entry *entry = directory->entries; entry; entry = entry->next) {
        if (entry->now->directory)
            settle_tree(entry->now);
    }
}

static void write_back(struct sim *sim, struct event *event)
{
    (void)sim;
    struct sim_disk *disk = container_of(event, struct sim_disk, written_back);
    for (struct inode *inode = disk->inodes; inode; inode = inode->next)
        settle_file(inode, 0, UINT64_MAX, NULL);
    settle_tree(disk->root);
}

void sim_disk_process_ended(struct sim_disk *disk)
{
    disk_close_all(disk);
    disk->cut_off = false;
    event_set(disk->sim, &disk->written_back, disk->sim->now_ns + WRITTEN_BACK_NS);
}

/* ---- The disk ---- */

struct sim_disk *sim_disk_new(struct sim *sim)
{
    struct sim_disk *disk = sim_allocate(sizeof *disk);
    disk->sim = sim;
    disk->files.backend = &disk_files_backend;
    disk->policy = sim_disk_default;
    disk->written_back.happen = write_back;
    disk->root = inode_new(disk, true);
    inode_hold(disk->root, true);
    disk->next = sim->disks;
    sim->disks = disk;
    return disk;
}

uint64_t sim_disk_memory(const struct sim_disk *disk)
{
    uint64_t bytes = 0;
    for (const struct inode *inode = disk->inodes; inode; inode = inode->next) {
        bytes += sizeof *inode + inode->now.room + inode->safe.room;
        for (const struct change *change = inode->first; change; change = change->next)
            bytes += sizeof *change + change->size;
    }
    return bytes;
}

void disks_free(struct sim *sim)
{
    while (sim->disks) {
        struct sim_disk *disk = sim->disks;
        sim->disks = disk->next;
        inode_release(disk->root, true);
        assert(!disk->inodes && "every inode has its references");
        free(disk);
    }
}

void sim_disk_set(struct sim_disk *disk, const struct sim_disk_policy *policy)
{
    assert(policy->operation_min_ns <= policy->operation_max_ns &&
           policy->sync_min_ns <= policy->sync_max_ns);
    assert(policy->lost + policy->torn + policy->garbled <= 1000);
    disk->policy = *policy;
}

struct files *sim_disk_files(struct sim_disk *disk)
{
    return &disk->files;
}

void sim_host_disk(struct sim *sim, const char *host, struct sim_disk *disk)
{
    named_host(sim, host)->disk = disk;
}

uint64_t sim_disk_used(const struct sim_disk *disk)
{
    uint64_t used = 0;
    for (const struct inode *inode = disk->inodes; inode; inode = inode->next)
        used += inode->uses > 0 ? inode->now.size : 0;
    return used;
}

uint64_t sim_disk_syncs(const struct sim_disk *disk)
{
    return disk->syncs;
}
