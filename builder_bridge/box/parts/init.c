/* PID 1 of the box: does what Android's init does for adbd, and nothing more.
 *
 *   init ADBD [kill-children]
 *
 * Keeps ADBD running as the user shell with adbd's framework socket, starts it anew when it ends,
 * and collects orphans. With kill-children the end of adbd ends all it had started, as on a phone,
 * where init kills the whole control group of the service. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define AID_SYSTEM 1000
#define AID_SHELL 2000

static const gid_t shell_groups[] = {1004, 1007, 1011, 1015, 1028, 1078, 1079, 3001, 3002, 3003, 3006, 3009, 3011};

static void die(const char *what) {
    fprintf(stderr, "init: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The socket on which the phone's owner is asked "Allow USB debugging?". adbd checks its name. */
static int make_framework_socket(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/dev/socket/adbd"};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    unlink(address.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0) die(address.sun_path);
    if (chown(address.sun_path, AID_SYSTEM, AID_SYSTEM) < 0 || chmod(address.sun_path, 0660) < 0) die("chmod");
    return fd;
}

static pid_t start_adbd(const char *adbd, int framework) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    char socket_variable[64];
    snprintf(socket_variable, sizeof socket_variable, "ANDROID_SOCKET_adbd=%d", framework);
    char *const argv[] = {"adbd", NULL};
    char *const envp[] = {
        "PATH=/product/bin:/apex/com.android.runtime/bin:/apex/com.android.art/bin:/system_ext/bin:"
        "/system/bin:/system/xbin:/odm/bin:/vendor/bin:/vendor/xbin",
        "ANDROID_ROOT=/system", "ANDROID_DATA=/data", "ANDROID_STORAGE=/storage",
        "EXTERNAL_STORAGE=/sdcard", "LD_PRELOAD=/system/lib64/libboxprops.so", socket_variable, NULL};
    setsid();
    if (setgroups(sizeof shell_groups / sizeof *shell_groups, shell_groups) < 0) die("setgroups");
    if (setresgid(AID_SHELL, AID_SHELL, AID_SHELL) < 0 || setresuid(AID_SHELL, AID_SHELL, AID_SHELL) < 0)
        die("become shell");
    execve(adbd, argv, envp);
    die(adbd);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    int kills_children = argc > 2 && strcmp(argv[2], "kill-children") == 0;
    umask(022);
    int framework = make_framework_socket();
    for (;;) {
        pid_t adbd = start_adbd(argv[1], framework), ended;
        int status = 0;
        if (adbd < 0) die("fork");
        do {
            ended = wait(&status);
        } while (ended != adbd && (ended > 0 || errno == EINTR));
        fprintf(stderr, "init: adbd ended, status 0x%x\n", status);
        if (kills_children) kill(-1, SIGKILL);
        usleep(200 * 1000);
    }
}
