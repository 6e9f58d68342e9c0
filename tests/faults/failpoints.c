/* Makes the Nth call of the system that concerns a file below one directory fail, or end the process there.

   Loaded with LD_PRELOAD; Python, SQLite and native modules come by here alike.  Nothing is counted before
   `fault_arm`, and a child process has the counters of its parent at the time of the fork. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FAIL, SHORT, KILL, TORN };
enum { FDS = 4096 };

static char root[4096];
static size_t root_length;
static int armed, how, error_number;
static long nth;
static atomic_long seen;
static char fired[64], fired_at[4096];
static char only[64];
static unsigned char ours[FDS];

void fault_arm(const char *folder, const char *call, long number, int manner, int error)
{
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    snprintf(only, sizeof only, "%s", call);
    nth = number;
    how = manner;
    error_number = error;
    atomic_store(&seen, 0);
    fired[0] = fired_at[0] = 0;
    armed = 1;
}

void fault_disarm(void) { armed = 0; }
long fault_seen(void) { return atomic_load(&seen); }
const char *fault_fired(void) { return fired; }
const char *fault_where(void) { return fired_at; }

/* What is named from the working directory counts: the operation is done in the folder. */
static int below(const char *path)
{
    if (path && path[0] != '/')
        return 1;
    return path && root_length && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int is_ours(int fd) { return fd >= 0 && fd < FDS && ours[fd]; }
static int at(int fd, const char *path)
{
    return path && path[0] != '/' && fd != AT_FDCWD ? is_ours(fd) : below(path);
}
static int keep(int fd, int mine)
{
    if (fd >= 0 && fd < FDS)
        ours[fd] = (unsigned char)mine;
    return fd;
}

static void told(const char *call, int fd, const char *path)
{
    char link[64];
    snprintf(fired, sizeof fired, "%s", call);
    if (path)
        snprintf(fired_at, sizeof fired_at, "%s", path);
    else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = readlink(link, fired_at, sizeof fired_at - 1);
        fired_at[size > 0 ? size : 0] = 0;
    }
}

/* Whether this call is the one; what it is to come to is in `how`. */
static int due(int mine, const char *call, int fd, const char *path)
{
    if (!armed || !mine || (only[0] && !strstr(only, call)))
        return 0;
    if (atomic_fetch_add(&seen, 1) + 1 != nth)
        return 0;
    told(call, fd, path);
    if (how == KILL)
        kill(getpid(), SIGKILL);
    return 1;
}

#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) \
        real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define REFUSED(result) do { errno = error_number; return result; } while (0)

/* A call by descriptor, one by path, one by directory and path. */
#define BY_FD(result, bad, name, kind, fd, parameters, arguments) \
    result name parameters \
    { \
        REAL(name); \
        if (due(is_ours(fd), kind, fd, NULL)) \
            REFUSED(bad); \
        return real arguments; \
    }
#define BY_PATH(result, bad, name, kind, path, parameters, arguments) \
    result name parameters \
    { \
        REAL(name); \
        if (due(below(path), kind, -1, path)) \
            REFUSED(bad); \
        return real arguments; \
    }
#define BY_PLACE(result, bad, name, kind, folder, path, parameters, arguments) \
    result name parameters \
    { \
        REAL(name); \
        if (due(at(folder, path), kind, folder, path)) \
            REFUSED(bad); \
        return real arguments; \
    }

static mode_t mode_of(int flags, va_list list) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; }

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        REAL(name); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = mode_of(flags, list); \
        va_end(list); \
        if (due(below(path), "open", -1, path)) \
            REFUSED(-1); \
        return keep(real(path, flags, mode), below(path)); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) \
    { \
        REAL(name); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = mode_of(flags, list); \
        va_end(list); \
        int mine = at(folder, path); \
        if (due(mine, "open", folder, path)) \
            REFUSED(-1); \
        return keep(real(folder, path, flags, mode), mine); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd)
{
    REAL(close);
    int mine = is_ours(fd);
    int fails = due(mine, "close", fd, NULL);
    keep(fd, 0);
    int result = real(fd);
    if (fails)
        REFUSED(-1); /* as Linux does it: the descriptor is gone all the same */
    return result;
}

int dup(int fd)
{
    REAL(dup);
    return keep(real(fd), is_ours(fd));
}

int dup2(int fd, int other)
{
    REAL(dup2);
    return keep(real(fd, other), is_ours(fd));
}

#define FCNTL(name) \
    int name(int fd, int command, ...) \
    { \
        REAL(name); \
        va_list list; \
        va_start(list, command); \
        void *argument = va_arg(list, void *); \
        va_end(list); \
        if ((command == F_SETLK || command == F_SETLKW) && due(is_ours(fd), "lock", fd, NULL)) \
            REFUSED(-1); \
        int result = real(fd, command, argument); \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) \
            keep(result, is_ours(fd)); \
        return result; \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

#define WRITE(name, parameters, half, arguments) \
    ssize_t name parameters \
    { \
        REAL(name); \
        if (due(is_ours(fd), "write", fd, NULL)) { \
            if (how == SHORT && size > 1) \
                return real half; \
            if (how == TORN) { \
                real half; \
                kill(getpid(), SIGKILL); \
            } \
            if (how == FAIL) \
                REFUSED(-1); \
        } \
        return real arguments; \
    }
WRITE(write, (int fd, const void *data, size_t size), (fd, data, size / 2), (fd, data, size))
WRITE(pwrite, (int fd, const void *data, size_t size, off_t offset), (fd, data, size / 2, offset), (fd, data, size, offset))
WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t offset), (fd, data, size / 2, offset), (fd, data, size, offset))

BY_FD(ssize_t, -1, read, "read", fd, (int fd, void *data, size_t size), (fd, data, size))
BY_FD(ssize_t, -1, pread, "read", fd, (int fd, void *data, size_t size, off_t offset), (fd, data, size, offset))
BY_FD(ssize_t, -1, pread64, "read", fd, (int fd, void *data, size_t size, off64_t offset), (fd, data, size, offset))
BY_FD(ssize_t, -1, writev, "write", fd, (int fd, const struct iovec *data, int count), (fd, data, count))
BY_FD(int, -1, fsync, "fsync", fd, (int fd), (fd))
BY_FD(int, -1, fdatasync, "fsync", fd, (int fd), (fd))
BY_FD(int, -1, ftruncate, "truncate", fd, (int fd, off_t size), (fd, size))
BY_FD(int, -1, ftruncate64, "truncate", fd, (int fd, off64_t size), (fd, size))
BY_FD(int, -1, flock, "lock", fd, (int fd, int operation), (fd, operation))
BY_FD(int, -1, fchmod, "chmod", fd, (int fd, mode_t mode), (fd, mode))
BY_FD(int, -1, fstat, "stat", fd, (int fd, struct stat *found), (fd, found))
BY_FD(int, -1, fstat64, "stat", fd, (int fd, struct stat64 *found), (fd, found))
BY_PATH(int, -1, stat, "stat", path, (const char *path, struct stat *found), (path, found))
BY_PATH(int, -1, stat64, "stat", path, (const char *path, struct stat64 *found), (path, found))
BY_PATH(int, -1, lstat, "stat", path, (const char *path, struct stat *found), (path, found))
BY_PATH(int, -1, lstat64, "stat", path, (const char *path, struct stat64 *found), (path, found))
BY_PLACE(int, -1, fstatat, "stat", folder, path, (int folder, const char *path, struct stat *found, int flags), (folder, path, found, flags))
BY_PLACE(int, -1, fstatat64, "stat", folder, path, (int folder, const char *path, struct stat64 *found, int flags), (folder, path, found, flags))
BY_PATH(int, -1, chmod, "chmod", path, (const char *path, mode_t mode), (path, mode))
BY_PATH(int, -1, rename, "rename", to, (const char *from, const char *to), (from, to))
BY_PLACE(int, -1, renameat, "rename", there, to, (int here, const char *from, int there, const char *to), (here, from, there, to))
BY_PATH(int, -1, link, "link", to, (const char *from, const char *to), (from, to))
BY_PLACE(int, -1, linkat, "link", there, to, (int here, const char *from, int there, const char *to, int flags), (here, from, there, to, flags))
BY_PATH(int, -1, unlink, "unlink", path, (const char *path), (path))
BY_PLACE(int, -1, unlinkat, "unlink", folder, path, (int folder, const char *path, int flags), (folder, path, flags))
BY_PATH(int, -1, mkdir, "mkdir", path, (const char *path, mode_t mode), (path, mode))
BY_PLACE(int, -1, mkdirat, "mkdir", folder, path, (int folder, const char *path, mode_t mode), (folder, path, mode))
BY_PATH(DIR *, NULL, opendir, "opendir", path, (const char *path), (path))
BY_PATH(int, -1, inotify_add_watch, "inotify", path, (int fd, const char *path, uint32_t mask), (fd, path, mask))
BY_FD(void *, MAP_FAILED, mmap, "mmap", fd, (void *place, size_t size, int protection, int flags, int fd, off_t offset), (place, size, protection, flags, fd, offset))
BY_FD(void *, MAP_FAILED, mmap64, "mmap", fd, (void *place, size_t size, int protection, int flags, int fd, off64_t offset), (place, size, protection, flags, fd, offset))

/* What Rust's library asks, by descriptor where the path is empty. */
int statx(int folder, const char *path, int flags, unsigned int wanted, struct statx *found)
{
    REAL(statx);
    int named = path && path[0];
    if (due(named ? at(folder, path) : is_ours(folder), "stat", folder, named ? path : NULL))
        REFUSED(-1);
    return real(folder, path, flags, wanted, found);
}

int inotify_init1(int flags)
{
    REAL(inotify_init1);
    /* It has no path: any watching of the process is meant. */
    if (due(1, "inotify", -1, "inotify"))
        REFUSED(-1);
    return real(flags);
}
