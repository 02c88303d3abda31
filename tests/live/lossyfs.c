/* lossyfs: a file system in memory that loses what was not synced, as a disk does in a power cut.
 *
 *     lossyfs DIRECTORY        an empty directory to mount it at; libfuse 3, low-level
 *
 * Every file has two contents: the live one, which reads see, and the safe one, which would be there after a
 * power cut. A file's sync makes its live bytes and size safe, a write with O_DSYNC (or RWF_DSYNC) only what
 * it wrote and a size that reaches so far; a directory's sync makes its names safe. Nothing else does: what
 * real file systems do beyond that is not relied on. There is no rename, no link and no rmdir.
 *
 * It prints "ready", then takes commands from standard input, a line each, and answers with a line:
 *
 *     cut SEED      the power goes: of each sector of 512 bytes, each size and each name that is not safe,
 * the seed says whether it is there afterwards (a sector may be torn). Until `on`, every call fails with EIO.
 * Answers "kept N lost N torn N names N of N" on            the power is back limit BYTES   how much files
 * may hold; beyond: ENOSPC. 0: no limit fail N        the next N syncs fail with EIO, and what they were to
 * make safe never becomes it, as in Linux' page cache, unless it is written again readonly 0|1  what would
 * change something fails with EROFS syncs         how many there were
 *
 * At the end of its input it unmounts and ends. */
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR     512
#define NAME_BYTES 128

struct content {
    uint8_t *bytes; /* room of them; zeros beyond size */
    size_t size, room;
};

struct node {
    struct node *next;
    bool directory;
    unsigned mode;
    uint64_t lookups; /* of the kernel's */
    unsigned opens;
    struct content live, safe;
    bool *dirty; /* by sector of live.room: differs from what is safe, or may */
};

/* A name. Gone if neither is there. */
struct entry {
    struct node *directory;
    char name[NAME_BYTES];
    struct node *live, *safe;
};

static struct lossyfs {
    struct fuse_session *session;
    struct node root, *nodes;
    struct entry *entries;
    size_t count, room;
    size_t limit;
    uint64_t failing; /* so many syncs are still to fail */
    bool off, read_only;
    uint64_t random;
} fs;

/* --- what there is --- */

static void *must(void *memory)
{
    if (!memory) {
        perror("lossyfs");
        exit(1);
    }
    return memory;
}

static struct node *node_of(fuse_ino_t ino)
{
    return ino == FUSE_ROOT_ID ? &fs.root : (struct node *)ino;
}

static struct entry *find(const struct node *directory, const char *name)
{
    for (size_t i = 0; i < fs.count; i++)
        if (fs.entries[i].directory == directory && strcmp(fs.entries[i].name, name) == 0)
            return &fs.entries[i];
    return NULL;
}

static bool named(const struct node *node, bool live_only)
{
    for (size_t i = 0; i < fs.count; i++)
        if (fs.entries[i].live == node || (!live_only && fs.entries[i].safe == node))
            return true;
    return false;
}

/* Removes names that are gone, and nodes that nothing leads to. */
static void collect(void)
{
    size_t left = 0;
    for (size_t i = 0; i < fs.count; i++)
        if (fs.entries[i].live || fs.entries[i].safe)
            fs.entries[left++] = fs.entries[i];
    fs.count = left;
    for (struct node **at = &fs.nodes; *at;) {
        struct node *node = *at;
        bool leads = node->lookups > 0 || node->opens > 0 || named(node, false);
        for (size_t i = 0; i < fs.count && !leads && node->directory; i++)
            leads = fs.entries[i].directory == node;
        if (leads) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        free(node->live.bytes);
        free(node->safe.bytes);
        free(node->dirty);
        free(node);
    }
}

static size_t bytes_used(void)
{
    size_t used = 0;
    for (const struct node *node = fs.nodes; node; node = node->next)
        if (node->opens > 0 || named(node, true))
            used += node->live.size;
    return used;
}

static void make_room(struct content *content, size_t size)
{
    if (size <= content->room)
        return;
    size_t room = (size + SECTOR - 1) / SECTOR * SECTOR;
    room = room < 2 * content->room ? 2 * content->room : room;
    content->bytes = must(realloc(content->bytes, room));
    memset(content->bytes + content->room, 0, room - content->room);
    content->room = room;
}

/* Beyond the end are zeros, so that growing it later needs nothing. */
static void set_size(struct content *content, size_t size)
{
    make_room(content, size);
    if (size < content->size)
        memset(content->bytes + size, 0, content->size - size);
    content->size = size;
}

/* 0 or an errno. */
static int resize(struct node *node, size_t size)
{
    size_t sectors = node->live.room / SECTOR;
    if (size > node->live.size && fs.limit > 0 && bytes_used() + size - node->live.size > fs.limit)
        return ENOSPC;
    set_size(&node->live, size);
    if (node->live.room / SECTOR > sectors) {
        node->dirty = must(realloc(node->dirty, node->live.room / SECTOR));
        memset(node->dirty + sectors, 0, node->live.room / SECTOR - sectors);
    }
    return 0;
}

static struct node *make_node(bool directory, mode_t mode)
{
    struct node *node = must(calloc(1, sizeof *node));
    node->directory = directory;
    node->mode = (unsigned)(mode & 07777) | (directory ? S_IFDIR : S_IFREG);
    node->next = fs.nodes;
    fs.nodes = node;
    return node;
}

/* Name and node live from now on; 0 or an errno. */
static int add(struct node *directory, const char *name, bool is_directory, mode_t mode, struct node **node)
{
    struct entry *entry = find(directory, name);
    if (entry && entry->live)
        return EEXIST;
    if (strlen(name) >= NAME_BYTES)
        return ENAMETOOLONG;
    *node = make_node(is_directory, mode);
    if (!entry) {
        if (fs.count == fs.room) {
            fs.room = fs.room ? 2 * fs.room : 64;
            fs.entries = must(realloc(fs.entries, fs.room * sizeof *fs.entries));
        }
        entry = &fs.entries[fs.count++];
        *entry = (struct entry){.directory = directory};
        strcpy(entry->name, name);
    }
    entry->live = *node;
    return 0;
}

/* --- syncs, and power cuts --- */

static void copy_sector(struct node *node, size_t sector, size_t bytes)
{
    make_room(&node->safe, (sector + 1) * SECTOR);
    memcpy(node->safe.bytes + sector * SECTOR, node->live.bytes + sector * SECTOR, bytes);
}

/* 0 or EIO. */
static int sync_range(struct node *node, size_t from, size_t to)
{
    bool fails = fs.failing > 0;
    fs.failing -= fails;
    for (size_t sector = from / SECTOR; sector * SECTOR < to; sector++) {
        if (node->dirty[sector] && !fails)
            copy_sector(node, sector, SECTOR);
        node->dirty[sector] = false;
    }
    return fails ? EIO : 0;
}

static int sync_file(struct node *node)
{
    int error = sync_range(node, 0, node->live.size);
    if (error == 0)
        set_size(&node->safe, node->live.size);
    return error;
}

static int sync_names(const struct node *directory)
{
    if (fs.failing > 0) {
        fs.failing--;
        return EIO;
    }
    for (size_t i = 0; i < fs.count; i++)
        if (fs.entries[i].directory == directory)
            fs.entries[i].safe = fs.entries[i].live;
    return 0;
}

static uint64_t draw(uint64_t below)
{
    fs.random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = fs.random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

enum fate { LOST, KEPT, TORN, FATES };

/* Three of four cuts are of one kind, since what is all lost or all kept finds other faults than a mixture.
 */
static enum fate fate_in(uint64_t kind)
{
    uint64_t number = draw(8);
    if (kind < 2)
        return kind == 0 ? LOST : KEPT;
    return kind == 2 && number == 7 ? TORN : number % 2 ? KEPT : LOST;
}

static void cut_file(struct node *node, uint64_t kind, unsigned counts[FATES])
{
    size_t size = fate_in(kind) == LOST ? node->safe.size : node->live.size;
    for (size_t sector = 0; sector * SECTOR < node->live.room; sector++) {
        if (!node->dirty[sector])
            continue;
        enum fate fate = fate_in(kind);
        counts[fate]++;
        if (fate != LOST)
            copy_sector(node, sector, fate == KEPT ? SECTOR : 1 + (size_t)draw(SECTOR - 1));
        node->dirty[sector] = false;
    }
    node->safe.size = node->safe.room; /* what was kept beyond the end is cut off */
    set_size(&node->safe, size);
    set_size(&node->live, 0);
    set_size(&node->live, size);
    if (size > 0)
        memcpy(node->live.bytes, node->safe.bytes, size);
}

static void cut(uint64_t seed)
{
    unsigned counts[FATES] = {0}, names = 0, kept = 0;
    fs.random = seed;
    fs.off = true;
    uint64_t kind = draw(4);
    for (size_t i = 0; i < fs.count; i++) {
        struct entry *entry = &fs.entries[i];
        if (entry->live == entry->safe)
            continue;
        names++;
        if (fate_in(kind) != LOST) {
            entry->safe = entry->live;
            kept++;
        }
        entry->live = entry->safe;
    }
    for (struct node *node = fs.nodes; node; node = node->next)
        if (!node->directory)
            cut_file(node, kind, counts);
    collect();
    printf("kept %u lost %u torn %u names %u of %u\n", counts[KEPT], counts[LOST], counts[TORN], kept, names);
}

/* --- the calls --- */

/* 0, or why no call is served now. */
static int refused(bool changes)
{
    return fs.off ? EIO : changes && fs.read_only ? EROFS : 0;
}

/* Answers with the error, if there is one. */
static bool failed(fuse_req_t request, int error)
{
    if (error)
        fuse_reply_err(request, error);
    return error != 0;
}

static void attributes_of(struct node *node, struct stat *status)
{
    *status = (struct stat){.st_ino = node == &fs.root ? FUSE_ROOT_ID : (ino_t)(uintptr_t)node,
                            .st_mode = node->mode,
                            .st_nlink = node == &fs.root || named(node, true) ? 1 : 0,
                            .st_size = (off_t)node->live.size,
                            .st_blocks = (blkcnt_t)((node->live.size + SECTOR - 1) / SECTOR),
                            .st_uid = getuid(),
                            .st_gid = getgid()};
}

/* Nothing is cached by the kernel: a power cut changes everything. */
static struct fuse_entry_param entry_for(struct node *node)
{
    struct fuse_entry_param param = {.ino = (fuse_ino_t)node};
    attributes_of(node, &param.attr);
    node->lookups++;
    return param;
}

static void lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    const struct entry *entry = find(node_of(parent), name);
    int error = refused(false);
    if (error == 0 && (!entry || !entry->live))
        error = ENOENT;
    if (failed(request, error))
        return;
    struct fuse_entry_param param = entry_for(entry->live);
    fuse_reply_entry(request, &param);
}

static void forget(fuse_req_t request, fuse_ino_t ino, uint64_t count)
{
    if (ino != FUSE_ROOT_ID)
        node_of(ino)->lookups -= count;
    collect();
    fuse_reply_none(request);
}

static void getattr(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
    struct stat status;
    (void)file;
    attributes_of(node_of(ino), &status);
    if (!failed(request, refused(false)))
        fuse_reply_attr(request, &status, 0);
}

static void setattr(fuse_req_t request, fuse_ino_t ino, struct stat *to, int which,
                    struct fuse_file_info *file)
{
    struct node *node = node_of(ino);
    int error = refused(true);
    if (error == 0 && (which & FUSE_SET_ATTR_SIZE))
        error = resize(node, (size_t)to->st_size);
    if (failed(request, error))
        return;
    if (which & FUSE_SET_ATTR_MODE)
        node->mode = (node->mode & S_IFMT) | (unsigned)(to->st_mode & 07777);
    getattr(request, ino, file);
}

static void open_file(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
    struct node *node = node_of(ino);
    int error = refused((file->flags & O_ACCMODE) != O_RDONLY);
    if (error == 0 && (file->flags & O_TRUNC))
        error = resize(node, 0);
    if (failed(request, error))
        return;
    file->direct_io = 1;
    node->opens++;
    fuse_reply_open(request, file);
}

static void create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
                   struct fuse_file_info *file)
{
    struct node *node;
    int error = refused(true);
    if (error == 0)
        error = add(node_of(parent), name, false, mode, &node);
    if (failed(request, error))
        return;
    struct fuse_entry_param param = entry_for(node);
    file->direct_io = 1;
    node->opens++;
    fuse_reply_create(request, &param, file);
}

static void make_directory(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct node *node;
    int error = refused(true);
    if (error == 0)
        error = add(node_of(parent), name, true, mode, &node);
    if (failed(request, error))
        return;
    struct fuse_entry_param param = entry_for(node);
    fuse_reply_entry(request, &param);
}

static void release(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
    (void)file;
    node_of(ino)->opens--;
    collect();
    fuse_reply_err(request, 0);
}

static void remove_name(fuse_req_t request, fuse_ino_t parent, const char *name)
{
    struct entry *entry = find(node_of(parent), name);
    int error = refused(true);
    if (error == 0 && (!entry || !entry->live))
        error = ENOENT;
    if (error == 0)
        entry->live = NULL;
    collect();
    fuse_reply_err(request, error);
}

static void read_file(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
                      struct fuse_file_info *file)
{
    const struct content *live = &node_of(ino)->live;
    size_t at = (size_t)offset;
    (void)file;
    if (failed(request, refused(false)))
        return;
    size_t left = at < live->size ? live->size - at : 0;
    fuse_reply_buf(request, left ? (const char *)live->bytes + at : NULL, size < left ? size : left);
}

static void write_file(fuse_req_t request, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                       struct fuse_file_info *file)
{
    struct node *node = node_of(ino);
    size_t at = (size_t)offset, end = at + size;
    int error = refused(true);
    if (error == 0 && end > node->live.size)
        error = resize(node, end);
    if (error == 0 && size > 0) {
        memcpy(node->live.bytes + at, bytes, size);
        for (size_t sector = at / SECTOR; sector * SECTOR < end; sector++)
            node->dirty[sector] = true;
        if (file->flags & (O_DSYNC | O_SYNC))
            error = sync_range(node, at, end);
        if (error == 0 && (file->flags & (O_DSYNC | O_SYNC)) && node->safe.size < end)
            set_size(&node->safe, end);
    }
    if (!failed(request, error))
        fuse_reply_write(request, size);
}

static void allocate(fuse_req_t request, fuse_ino_t ino, int mode, off_t offset, off_t size,
                     struct fuse_file_info *file)
{
    struct node *node = node_of(ino);
    size_t end = (size_t)(offset + size);
    int error = refused(true);
    (void)file;
    if (error == 0 && mode != 0)
        error = EOPNOTSUPP;
    if (error == 0 && end > node->live.size)
        error = resize(node, end);
    fuse_reply_err(request, error);
}

static void sync_call(fuse_req_t request, fuse_ino_t ino, int data_only, struct fuse_file_info *file)
{
    struct node *node = node_of(ino);
    (void)data_only, (void)file;
    int error = refused(false);
    if (error == 0)
        error = node->directory ? sync_names(node) : sync_file(node);
    fuse_reply_err(request, error);
}

static void list(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *file)
{
    char *buffer = must(malloc(size));
    size_t used = 0;
    (void)file;
    for (size_t i = (size_t)offset; i < fs.count; i++) {
        const struct entry *entry = &fs.entries[i];
        struct stat status;
        if (entry->directory != node_of(ino) || !entry->live)
            continue;
        attributes_of(entry->live, &status);
        size_t takes =
            fuse_add_direntry(request, buffer + used, size - used, entry->name, &status, (off_t)i + 1);
        if (takes > size - used)
            break;
        used += takes;
    }
    if (!failed(request, refused(false)))
        fuse_reply_buf(request, buffer, used);
    free(buffer);
}

static void space(fuse_req_t request, fuse_ino_t ino)
{
    size_t limit = fs.limit ? fs.limit : (size_t)1 << 40, used = bytes_used();
    struct statvfs status = {.f_bsize = SECTOR, .f_frsize = SECTOR, .f_namemax = NAME_BYTES - 1};
    (void)ino;
    status.f_blocks = limit / SECTOR;
    status.f_bfree = status.f_bavail = used < limit ? (limit - used) / SECTOR : 0;
    fuse_reply_statfs(request, &status);
}

static const struct fuse_lowlevel_ops operations = {
    .lookup = lookup,
    .forget = forget,
    .getattr = getattr,
    .setattr = setattr,
    .open = open_file,
    .create = create,
    .mkdir = make_directory,
    .unlink = remove_name,
    .release = release,
    .read = read_file,
    .write = write_file,
    .fallocate = allocate,
    .fsync = sync_call,
    .fsyncdir = sync_call,
    .readdir = list,
    .statfs = space,
};

/* --- the loop --- */

static void command(const char *line)
{
    unsigned long long number;
    if (sscanf(line, "cut %llu", &number) == 1)
        cut(number);
    else if (strcmp(line, "on\n") == 0)
        printf("ok\n"), fs.off = false;
    else if (sscanf(line, "limit %llu", &number) == 1)
        printf("ok\n"), fs.limit = (size_t)number;
    else if (sscanf(line, "fail %llu", &number) == 1)
        printf("ok\n"), fs.failing = number;
    else if (sscanf(line, "readonly %llu", &number) == 1)
        printf("ok\n"), fs.read_only = number != 0;
    else
        printf("unknown: %s", line);
}

static void serve(void)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = fuse_session_fd(fs.session), .events = POLLIN}};
    struct fuse_buf buffer = {0};
    char line[128];
    while (!fuse_session_exited(fs.session)) {
        if (poll(fds, 2, -1) < 0)
            break;
        if (fds[1].revents) {
            int got = fuse_session_receive_buf(fs.session, &buffer);
            if (got > 0)
                fuse_session_process_buf(fs.session, &buffer);
            else if (got != -EINTR && got != -EAGAIN)
                break;
        }
        if (fds[0].revents) {
            if (!fgets(line, sizeof line, stdin))
                break;
            command(line);
        }
    }
    free(buffer.mem);
}

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    if (argc != 2) {
        fprintf(stderr, "usage: lossyfs DIRECTORY\n");
        return 2;
    }
    setvbuf(stdin, NULL, _IONBF, 0); /* poll sees what is not read yet */
    setvbuf(stdout, NULL, _IOLBF, 0);
    fs.root = (struct node){.directory = true, .mode = S_IFDIR | 0700};
    fs.session = fuse_session_new(&args, &operations, sizeof operations, NULL);
    fuse_opt_free_args(&args);
    if (!fs.session || fuse_session_mount(fs.session, argv[1]) != 0) {
        fprintf(stderr, "lossyfs: cannot be mounted at %s\n", argv[1]);
        return 1;
    }
    printf("ready\n");
    serve();
    fuse_session_unmount(fs.session);
    fuse_session_destroy(fs.session);
    return 0;
}
