/* run-as of the box: runs a command as a debuggable package's user, in its data folder.
 *
 *   run-as PACKAGE [--user N] [COMMAND [ARGS]]
 *
 * Installed setuid root. Rules, messages and exit codes are those of Android's own run-as, as
 * documented there; the box has no SELinux, so the security context is the one thing left out.
 * The environment is inherited but for HOME, PATH, IFS and the user's names: TMPDIR stays adbd's
 * /data/local/tmp, where the package's user may not write. */
#define _GNU_SOURCE
#include <errno.h>
#include <error.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AID_SYSTEM 1000
#define AID_SHELL 2000
#define AID_APP 10000
#define AID_SHARED_GID 50000
#define USER_OFFSET 100000

struct package { unsigned uid; int debuggable; };

/* Each line of packages.list: NAME UID DEBUGGABLE DATA_DIR SEINFO GIDS ... */
static struct package find_package(const char *wanted) {
    struct package found = {0, 0};
    char line[1024], name[256];
    FILE *list = fopen("/data/system/packages.list", "re");
    if (list == NULL) error(1, errno, "packagelist_parse failed");
    while (fgets(line, sizeof line, list) != NULL) {
        unsigned uid;
        int debuggable;
        if (sscanf(line, "%255s %u %d", name, &uid, &debuggable) == 3 && strcmp(name, wanted) == 0) {
            found = (struct package){uid, debuggable};
            break;
        }
    }
    fclose(list);
    return found;
}

/* libc drops TMPDIR from the environment of a setuid program; the kernel still shows what was given. */
static void keep_temporary_folder(void) {
    char *variable = NULL;
    size_t size = 0;
    FILE *given = fopen("/proc/self/environ", "re");
    while (given != NULL && getdelim(&variable, &size, '\0', given) > 0)
        if (strncmp(variable, "TMPDIR=", 7) == 0) setenv("TMPDIR", variable + 7, 1);
    free(variable);
    if (given != NULL) fclose(given);
}

static int is_set(const char *file, const char *property) {
    char line[1024];
    size_t size = strlen(property);
    int set = 0;
    FILE *props = fopen(file, "re");
    while (props != NULL && fgets(line, sizeof line, props) != NULL)
        if (strncmp(line, property, size) == 0 && line[size] == '=')
            set = strcmp(line + size, "=true\n") == 0 || strcmp(line + size, "=1\n") == 0;
    if (props != NULL) fclose(props);
    return set;
}

static int is_disabled(void) {
    const char *property = "ro.boot.disable_runas";
    return is_set("/system/build.prop", property) || is_set("/data/property/box.prop", property);
}

static void check_folder(const char *path, unsigned uid) {
    struct stat st;
    if (lstat(path, &st) < 0) error(1, errno, "couldn't stat %s", path);
    if (!S_ISDIR(st.st_mode)) error(1, 0, "%s not a directory: %o", path, st.st_mode);
    if (st.st_uid != uid || st.st_gid != uid)
        error(1, 0, "%s has wrong owner: %d/%d, not %d", path, st.st_uid, st.st_gid, uid);
    if (st.st_mode & (S_IROTH | S_IWOTH))
        error(1, 0, "%s readable or writable by others: %o", path, st.st_mode);
}

static void become(unsigned uid) {
    gid_t groups[65];
    int count = getgroups(64, groups);
    if (count < 0) error(1, errno, "getgroups failed");
    groups[count++] = uid % USER_OFFSET - AID_APP + AID_SHARED_GID;
    if (setgroups((size_t)count, groups) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        error(1, errno, "couldn't become uid %u", uid);
}

int main(int argc, char **argv) {
    char folder[512], user_folder[64], user_name[32];
    int user = 0, command = 2;
    program_invocation_name = program_invocation_short_name; /* Android's error() prints no path */
    if (argc < 2) error(1, 0, "usage: run-as <package-name> [--user <uid>] <command> [<args>]\n");
    if (getuid() != AID_SHELL && getuid() != 0) error(1, 0, "only 'shell' or 'root' users can run this program");
    if (is_disabled()) error(1, 0, "run-as is disabled from the kernel commandline");
    if (argc >= 4 && strcmp(argv[2], "--user") == 0) {
        user = atoi(argv[3]);
        if (user < 0) error(1, 0, "negative user id: %d", user);
        command = 4;
    }
    keep_temporary_folder();
    struct package package = find_package(argv[1]);
    if (package.uid == 0) error(1, 0, "unknown package: %s", argv[1]);
    if ((0xffffffffu - package.uid) / USER_OFFSET < (unsigned)user) error(1, 0, "user id too big: %d", user);
    unsigned uid = package.uid + USER_OFFSET * (unsigned)user;
    if (uid < AID_APP) error(1, 0, "package not an application: %s", argv[1]);
    if (!package.debuggable) error(1, 0, "package not debuggable: %s", argv[1]);

    snprintf(user_folder, sizeof user_folder, "/data/user/%d", user);
    snprintf(folder, sizeof folder, "%s/%s", user_folder, argv[1]);
    check_folder("/data", AID_SYSTEM);
    check_folder("/data/user", AID_SYSTEM);
    check_folder(user_folder, AID_SYSTEM);
    check_folder(folder, uid);
    become(uid);
    if (chdir(folder) < 0) error(1, errno, "couldn't chdir to package's data directory '%s'", folder);

    snprintf(user_name, sizeof user_name, "u%d_a%u", user, package.uid - AID_APP);
    setenv("HOME", folder, 1);
    setenv("PATH", "/product/bin:/apex/com.android.runtime/bin:/apex/com.android.art/bin:/system_ext/bin:"
                   "/system/bin:/system/xbin:/odm/bin:/vendor/bin:/vendor/xbin", 1);
    unsetenv("IFS");
    setenv("LOGNAME", user_name, 1);
    setenv("SHELL", "/system/bin/sh", 1);
    setenv("USER", user_name, 1);
    if (argc > command) {
        execvp(argv[command], argv + command);
        error(1, errno, "exec failed for %s", argv[command]);
    }
    execl("/system/bin/sh", "sh", NULL);
    error(1, errno, "exec failed");
}
