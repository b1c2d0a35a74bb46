package com.android.dx.command;

import com.android.tools.r8.D8;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.stream.Stream;

/** Answers to the command line of dx, which old Android Gradle plugins run, and lets D8 do the work. */
public final class Main {
    private final List<String> options = new ArrayList<>();
    private final List<String> inputs = new ArrayList<>();
    private String minSdk = "21";

    public static void main(String[] args) throws Exception {
        if (List.of(args).contains("--version")) {
            System.out.println("dx version 1.16");
            return;
        }
        Main main = new Main();
        main.read(new ArrayDeque<>(List.of(args)));
        D8.main(main.commandLine().toArray(new String[0]));
    }

    private void read(Deque<String> args) throws IOException {
        while (!args.isEmpty()) {
            String arg = args.pop();
            int equals = arg.indexOf('=');
            String name = arg.startsWith("--") && equals > 0 ? arg.substring(0, equals) : arg;
            switch (name) {
                case "--output" -> output(equals > 0 ? arg.substring(equals + 1) : args.pop());
                case "--input-list" -> inputs.addAll(Files.readAllLines(Path.of(arg.substring(equals + 1))));
                case "--min-sdk-version" -> minSdk = arg.substring(equals + 1);
                case "--num-threads", "--main-dex-list" -> {
                    if (equals < 0) {
                        args.pop();
                    }
                }
                default -> {
                    if (!arg.isEmpty() && !arg.startsWith("-")) {
                        inputs.add(arg);
                    }
                }
            }
        }
    }

    private void output(String path) {
        options.addAll(List.of("--output", path));
    }

    private List<String> commandLine() throws IOException {
        List<String> command = new ArrayList<>(List.of("--min-api", minSdk));
        String library = System.getenv("POCKETBUILD_DX_LIBRARY");
        if (library != null) {
            command.addAll(List.of("--lib", library));
        }
        command.addAll(options);
        for (String input : inputs) {
            Path path = Path.of(input);
            if (Files.isDirectory(path)) {
                try (Stream<Path> files = Files.walk(path)) {
                    files.map(Path::toString).filter(file -> file.endsWith(".class")).forEach(command::add);
                }
            } else {
                command.add(input);
            }
        }
        return command;
    }
}
