// Preloaded into Debian's adbd, which is built without Android's property service and init.
// It gives adbd three things it has on a phone and lets go of its own preloading at once, so that
// no command started by adbd inherits it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
__attribute__((constructor)) void leave_the_environment() { unsetenv("LD_PRELOAD"); }
}  // namespace

// System properties, from /system/build.prop: where adbd listens, and its banner.
namespace android::base {
std::string GetProperty(const std::string& key, const std::string& default_value) {
  std::string value = default_value;
  std::FILE* props = std::fopen("/system/build.prop", "re");
  if (props == nullptr) return value;
  char line[1024];
  while (std::fgets(line, sizeof line, props) != nullptr) {
    if (std::strncmp(line, key.c_str(), key.size()) != 0 || line[key.size()] != '=') continue;
    line[std::strcspn(line, "\n")] = '\0';
    value = line + key.size() + 1;
    break;
  }
  std::fclose(props);
  return value;
}
}  // namespace android::base

// adbd 34 looks at errno after a listen() that succeeded and takes a stale one, left by its own
// parsing of "localhost:PORT", for a failure.
extern "C" int listen(int fd, int backlog) {
  const int result = static_cast<int>(syscall(SYS_listen, fd, backlog));
  if (result == 0) errno = 0;
  return result;
}

// The framework socket that init made, named in the environment as Android's init does.
extern "C" int android_get_control_socket(const char* name) {
  const char* fd = std::getenv((std::string("ANDROID_SOCKET_") + name).c_str());
  return fd == nullptr ? -1 : std::atoi(fd);
}
