"""Sentences of Gradle and its tools by the kind of failure they tell of, as patterns in order."""

from builder_bridge.log.problem import Kind

Patterns = tuple[tuple[Kind, str], ...]


MACHINE: Patterns = (
    (
        Kind.MEMORY,
        (
            r"OutOfMemoryError|Java heap space|GC overhead limit|^Metaspace$|Metaspace\b.*exhausted"
            r"|Out of memory|unable to create (?:new )?native thread"
            r"|Not enough memory to run compilation|insufficient memory|\bsignal 9\b|\bKilled\b|SIGKILL"
            r"|(?:code|status|value):? 137\b|Could not reserve enough space|Cannot allocate memory"
            r"|error=12\b|Not enough space|running out of JVM memory|collector is thrashing"
            r"|Invalid maximum heap size|exceed the maximum representable size|Compressed class space"
        ),
    ),
    (
        Kind.DISK,
        (
            r"No space left on device|ENOSPC|not enough space on the disk|Disk quota exceeded"
            r"|Read-only file system|error=28\b"
        ),
    ),
    (
        Kind.CANCELLED,
        (
            r"^Build cancelled|Build was cancell?ed|BuildCancelledException"
            r"|Task execution was interrupted"
        ),
    ),
    (
        Kind.SDK,
        (
            r"^AAPT2 .*(?:Daemon startup failed|startup|Failed to (?:start|shutdown)|Unexpected error during)"
            r"|AAPT2 process unexpectedly exit"
            r"|Cannot run program \"[^\"\n]*"
            r"(?:aapt2?|aidl|zipalign|apksigner|d8|dexdump|split-select)(?:\.exe)?\""
            r"|starting process 'command '[^'\n]*/(?:aapt2?|aidl|zipalign)'"
            r"|Failed to start AAPT2|Could not start AAPT2|Custom AAPT2 location does not point"
            r"|aapt2[^\n]*(?:not found|Exec format|cannot execute)|failed to load include path"
        ),
    ),
    (
        Kind.NATIVE,
        (
            r"starting process 'command '[^'\n]*(?:ninja|cmake|clang|ndk-build|strip|/llvm-)"
            r"|No native library found for os\.name|Failed to load native library|UnsatisfiedLinkError"
            r"|dlopen failed|NativeLibraryNotFoundException|Could not initialize native services"
            r"|SQLiteJDBCLoader"
            r"|Cannot run program \"[^\"\n]*"
            r"(?:ninja|cmake|clang|clang\+\+|ndk-build|make|strip|llvm-\w+|ld|sh)(?:\.exe|\.cmd)?\""
            r"|unable to find a build program corresponding to \"Ninja\""
            r"|ninja[^\n]*(?:Exec format|cannot execute|No such file)|libsqlitejdbc"
            r"|Could not load sqlite"
        ),
    ),
    (
        Kind.DAEMON,
        (
            r"daemon disappeared|Timeout waiting to (?:connect to the Gradle daemon|lock)"
            r"|Could not connect to the Gradle daemon"
            r"|daemon has been stopped|Unable to start the daemon process"
            r"|has already been locked by this process|Cannot lock .* as it has"
            r"|Could not receive a message from the daemon|Could not dispatch a message to the daemon"
            r"|Unable to (?:connect|find) .*daemon|A new daemon was started but could not be connected"
            r"|The first result from the daemon was empty|FileLockContentionHandler"
            r"|Could not connect to Kotlin compile daemon|Timed out waiting for .*lock"
            r"|Connection to the Kotlin daemon has been|Kotlin daemon .*lost"
            r"|daemon has terminated unexpectedly"
            r"|(?:build logic queue|executionHistory)\b.*currently in use"
            r"|Gradle Daemon.*(?:died|crashed)"
        ),
    ),
)
"""These beat whatever tool reported them."""


WHOLE: Patterns = (
    (
        Kind.OTHER,
        (
            r"\A(?:A problem was|Some problems were) found with the configuration of task"
            r"|Configuration cache problems found"
        ),
    ),
    (
        Kind.TOOLCHAIN,
        r"Unable to download toolchain|Unsupported class file major version",
    ),
    (
        Kind.SDK,
        r"PlatformAttrTransform",
    ),
)
"""These beat what the innermost cause of a failure block says."""


GRADLE: Patterns = (
    (
        Kind.SCRIPT,
        (
            r"Could not (?:get|set) unknown property|Could not find (?:method|matching constructor)"
            r"|compileSdk(?:Version)? is not specified|Namespace not specified"
            r"|\.gradle(?:\.kts)?' does not exist"
            # What the compilers of the scripts say may name anything.
            r"|\A(?:Unresolved reference|(?:Argument |Return )?[Tt]ype mismatch|Initializer type mismatch"
            r"|None of the following|Overload resolution ambiguity|No value passed for parameter"
            r"|Too many arguments|Cannot infer|Not enough information to infer"
            r"|'?[Vv]al'? cannot be reassigned|(?:Syntax error: )?(?:Expecting |Unexpected (?:input|token)))"
            r"|@ line \d+, column \d+"
        ),
    ),
    (
        Kind.ANNOTATION_PROCESSING,
        r"data binding error",
    ),
    (
        Kind.NATIVE,
        r"NDK toolchains folder|host (?:CPU )?architecture",
    ),
    (
        Kind.OFFLINE_DEPENDENCY,
        r"available for offline mode|in offline mode|--offline|offline mode\b",
    ),
    (
        Kind.TOOLCHAIN,
        (
            r"Unsupported class file major version|Unsupported major\.minor version"
            r"|UnsupportedClassVersionError|has been compiled by a more recent"
            r"|requires (?:at least )?(?:Java|JVM|JDK)|Minimum supported Gradle version"
            r"|Gradle version .* is required|requires Gradle|Cannot find a Java installation"
            r"|required JDK tools|cannot open this project, please retry with version"
            r"|No matching toolchains|No locally installed toolchains|toolchain"
            r"|Inconsistent JVM[- ]target|Unsupported Java\b|Java home supplied is invalid"
            r"|org\.gradle\.java\.home|JAVA_HOME|invalid source release|invalid target release"
            r"|release version \d+ not supported|Could not target platform"
            r"|Source option \d+ is no longer supported|Target option \d+ is no longer supported"
            r"|Unknown Kotlin JVM target|Unknown JVM target|incompatible with (?:the )?Java"
            r"|incompatible Java|compatible with Java \d+|JVM runtime version|Java runtime version"
            r"|Could not determine java version|Could not initialize class org\.codehaus\.groovy"
            r"|(?:Android Gradle|Kotlin Gradle|KSP|kotlin) plugin.*(?:requires|minimum|too (?:old|new))"
            r"|ksp-[\d.-]+ is too (?:old|new)|The Android Gradle plugin supports only"
            r"|plugin version .* (?:required|is not supported)|incompatible version \(AGP"
            r"|Using .*Gradle.* is not supported|This version of .* requires|Unsupported Gradle"
            r"|minimum (?:required )?(?:compatible|supported)? ?Gradle|module java\.base does not"
            r"|InaccessibleObjectException|superclass access check failed|does not export .* to unnamed"
            r"|JdkImageTransform|core-for-system-modules|jlink|Could not find tools\.jar"
            r"|does not provide the required capabilities|org\.gradle\.wrapper|GradleWrapperMain"
            r"|gradle-wrapper|distributionUrl|services\.gradle\.org|Can't use Java"
            r"|Dependency requires at least JVM|not compatible with the (?:Kotlin|Android) Gradle plugin"
            r"|AAR metadata:\s+1\.\s+Dependency '[^'\n]*' requires\s+Android\s+Gradle\s+plugin"
        ),
    ),
    (
        Kind.SDK,
        (
            r"SDK location not found|licen[cs]es? have not been accepted"
            r"|Failed to find (?:target|Build Tools|Platform SDK)|failed to find target"
            r"|Failed to install the following|when checking AAR metadata:\s|compile against version"
            r"|SDK Build Tools|Build Tools revision|Installed Build Tools|build-tools|The SDK directory"
            r"|sdk\.dir|ANDROID_HOME|ANDROID_SDK_ROOT|Android SDK|platforms;android|compileSdk"
            r"|android-\d+ .*not (?:found|installed)|SDK directory"
            r"|Android Gradle Plugin: project ':.*' does not specify"
        ),
    ),
    (
        Kind.SIGNING,
        (
            r"[Kk]eystore|[Kk]ey ?store|signing config|SigningConfig|Failed to read key"
            r"|key (?:alias|password)|\bjks\b|No key with alias|apksig"
        ),
    ),
    (
        Kind.DEX,
        (
            r"Duplicate class|DexArchive|DexIndexOverflow|method ID not in|cannot exceed 64K|dexing"
            r"|\bD8\b|\bR8\b|Type .* is defined multiple times|Program type already present|DexException"
            r"|com\.android\.tools\.r8|Default interface methods|transformClassesWith(?:Dex|Desugar)"
        ),
    ),
    (
        Kind.NATIVE,
        (
            r"\bNDK\b|\[CXX\d+\]|CMake|\bninja\b|ndkBuild|ndk-build|externalNativeBuild"
            r"|C\+\+ build system|native-platform|NDK_"
        ),
    ),
    (
        Kind.MANIFEST,
        (
            r"[Mm]anifest merger|AndroidManifest\.xml|Incorrect package=|ManifestMerger"
            r"|SAXParseException"
        ),
    ),
    (
        Kind.PLUGIN,
        (
            r"^Plugin \[id|Plugin with id .* not found|was not found in any of the following sources"
            r"|Failed to apply plugin|applying plugin|plugin is already on the classpath"
            r"|Compose Compiler Gradle plugin is required|plugin request"
            r"|plugin .* (?:could not be|cannot be) (?:found|resolved|applied)"
            r"|Could not (?:find|create) plugin|plugin artifact|plugin is applied|Plugin .* not found"
            r"|plugin can't be used|plugin should be (?:applied|enabled) before"
        ),
    ),
    (
        Kind.DEPENDENCY,
        (
            r"Could not (?:resolve|find|download|get|GET|HEAD|parse POM)\b|Could not determine artifacts"
            r"|No matching (?:variant|configuration)|Cannot resolve external dependency"
            r"|Cannot find a version of|capability|UnknownHostException|status code \d+ from server"
            r"|No such host|Unable to resolve|Connection (?:refused|timed out|reset)"
            r"|Connect to .* (?:failed|timed out)|Cannot choose between"
            r"|satisfies the version constraints|unable to find valid certification path|PKIX"
            r"|Dependency verification failed|Failed to transform"
        ),
    ),
    (
        Kind.RESOURCE,
        (
            r"Android resource|[Rr]esource (?:compilation|linking|and asset)|\baapt2?\b"
            r"|file-based resource name"
        ),
    ),
    (
        Kind.TEST,
        r"failing tests?|Test process|No tests found|instrumentation|Gradle Test Executor",
    ),
    (
        Kind.LINT,
        r"\bLint found|\blint\b",
    ),
    (
        Kind.SCRIPT,
        (
            r"A problem occurred (?:evaluating|configuring)"
            r"|Could not compile (?:build|settings|initialization|script)|startup failed"
            r"|Script compilation|Could not get unknown property|Could not find method"
            r"|Could not set unknown property|[Vv]ersion catalog|TOML|Namespace not specified"
            r"|No signature of method|Could not open .* (?:class|cache)"
            r"|Could not create an instance of type|Could not create task"
            r"|Cannot (?:add|create|change|query|mutate|run Project)|Project with path"
            r"|Could not (?:read|load) .*properties|unresolved reference"
            r"|Extension .* (?:does not exist|with name)|MissingPropertyException|Cannot set the value"
            r"|Cannot get property"
        ),
    ),
)
"""What Gradle's own sentences mean; the order decides where several fit."""


TASKS: Patterns = (
    (
        Kind.LINT,
        r"lint(?!VitalAnalyze$)",
    ),
    (
        Kind.TEST,
        r"(?:test\w*(?:UnitTest)?|connected\w*Test|\w*AndroidTest|jvmTest|allTests|check)$",
    ),
    (
        Kind.ANNOTATION_PROCESSING,
        r"ksp|kapt|hiltJavaCompile|hiltAggregate",
    ),
    (
        Kind.NATIVE,
        r"(?:buildCMake|configureCMake|externalNativeBuild|buildNdkBuild|configureNdkBuild|generateJsonModel|ndk)",
    ),
    (
        Kind.MANIFEST,
        r"process\w*Manifest",
    ),
    (
        Kind.RESOURCE,
        r"(?:merge|process|package|link|verify|compile|parse)\w*Resources",
    ),
    (
        Kind.SIGNING,
        r"validateSigning|sign\w*Bundle",
    ),
    (
        Kind.DEX,
        r"(?:dex|merge\w*Dex|minify|desugar|check\w*DuplicateClasses|l8DexDesugar|transform\w*(?:Dex|Proguard))",
    ),
    (
        Kind.COMPILE,
        r"compile\w*(?:Kotlin\w*|Java\w*|Groovy|Javac|Sources|Aidl)$|javac",
    ),
)
"""What to expect of a task, by its own name."""
