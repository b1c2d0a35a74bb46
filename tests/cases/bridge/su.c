/* Stands for the su of rooted phones; installed setuid root. Which one is read from /data/local/tmp/su.kind:
 *
 *   magisk    `-c` and all that follows, joined by blanks, is the command; no terminal between pipes
 *   kernelsu  `-c` takes the next word alone
 *   denied    Magisk's owner has said no
 *   silent    waits for an owner who does not look
 *   terminal  puts a terminal's line ends into what the command says
 *   android   that of debug builds: su [UID] [COMMAND...], which takes -c for a user
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    char kind[32] = "", line[8192] = "";
    FILE *file = fopen("/data/local/tmp/su.kind", "r");
    if (file == NULL || fscanf(file, "%31s", kind) != 1) return 1;
    fclose(file);
    if (strcmp(kind, "denied") == 0) {
        fprintf(stderr, "Permission denied\n");
        return 13;
    }
    if (strcmp(kind, "silent") == 0) {
        sleep(60);
        return 1;
    }
    if (strcmp(kind, "android") == 0 || count < 3 || strcmp(words[1], "-c") != 0) {
        fprintf(stderr, "su: invalid uid/gid '%s'\n", count > 1 ? words[1] : "");
        return 1;
    }
    for (int number = 2; number < count; number++) {
        if (number > 2 && strcmp(kind, "kernelsu") == 0) break;
        if (strlen(line) + strlen(words[number]) + 40 > sizeof line) return 1;
        if (number > 2) strcat(line, " ");
        strcat(line, words[number]);
    }
    if (strcmp(kind, "terminal") == 0) strcat(line, " | sed -e \"s/$/$(printf '\\\\r')/\"");
    if (setgid(0) != 0 || setuid(0) != 0) return 1;
    execl("/system/bin/sh", "sh", "-c", line, (char *)NULL);
    return 127;
}
