# The builder prefix's environment, for any POSIX shell:  . PREFIX/etc/env.sh
# PREFIX stays what it was where it is set already.
export PREFIX="${PREFIX:-@PREFIX@}"
export HOME="${PREFIX%/*}/home"
export TMPDIR="$PREFIX/tmp"
export PATH="$PREFIX/bin:/system/bin"
export JAVA_HOME="$PREFIX/lib/jvm"
export ANDROID_HOME="$PREFIX/share/android-sdk"
export ANDROID_SDK_HOME="$HOME" # where this prefix's Android Gradle plugin keeps its debug key
export GRADLE_USER_HOME="$HOME/.gradle"
export LANG=C.UTF-8
