#!/bin/sh
# Turns an instance's folder into a running box. It is the first process of new mount, PID, IPC and
# UTS namespaces and becomes the box's init.
#
#   enter.sh INSTANCE overlay|copy ADBD [kill-children]
#
# INSTANCE holds root (link to the made root) with upper and work, or copy; boot_id; build.prop.
# First of all it writes INSTANCE/pid, the number that this process has on the host.
set -eu
cd "$1"
way=$2
shift 2
read -r host_pid _ < /proc/self/stat # the host's proc is still mounted here
echo "$host_pid" > pid.new
mv pid.new pid

if [ "$way" = overlay ]; then
    mount -t overlay -o lowerdir=root,upperdir=upper,workdir=work box merged
else
    mount --bind copy merged
fi
cd merged

mount -t proc proc proc
mount --bind ../boot_id proc/sys/kernel/random/boot_id
mount --bind ../build.prop system/build.prop
mount -t tmpfs -o mode=755,nosuid tmpfs dev
mkdir dev/pts dev/shm dev/socket
for node in null zero full random urandom tty; do
    : > "dev/$node"
    mount --bind "/dev/$node" "dev/$node"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mount --bind data/data data/user/0
mount --bind storage/emulated/0 storage/emulated/0
mount -o remount,bind,noexec,nosuid,nodev storage/emulated/0
echo localhost > /proc/sys/kernel/hostname

exec chroot . /system/bin/init "$@"
