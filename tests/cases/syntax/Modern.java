package a.b;

import java.util.*;
import java.util.function.*;

/** A comment with { and /* in it. */
sealed interface Shape permits Circle, Square, Modern.Pair {}

record Circle(double radius) implements Shape {
    Circle {
        if (radius < 0) throw new IllegalArgumentException("negative: }" + radius + '{');
    }
}

non-sealed class Square implements Shape {}

@interface Named {
    String[] value() default {"a", "b",};
}

enum Kind {
    ONE { @Override int of() { return 1; } }, TWO(2) {}, ;

    Kind(int... numbers) {}

    int of() { return 0x1_FF + 0b1010_1 + 0_17; }
}

@Named({"x", "y"})
public class Modern<T extends Comparable<? super T> & Runnable> {
    record Pair(Object left, Object right) implements Shape {}

    int record = 1, sealed = 2, permits = 3, when = 4;
    char quote = '"', apostrophe = '\'', back = '\\', brace = '{', octal = '\7';
    String escaped = "a \" b \\", empty = "", url = "http://x//y/*z*/", apostrophes = "it's '{'";
    String block = """
        {"name": "it's", 'x': [1, 2,
        /* no comment */ // nor this
        a "quoted" word, three \""" and a backslash \\ ""\
        """;
    String blockEnd = """
        ends with a quote \"""" + """
        """.strip();
    int[][] table = {{1, 2,}, {}}, other[] = new int[2][][];

    int of(Object o) {
        return switch (o) {
            case null -> 0;
            case Pair(String s, Pair(var a, Integer b)) when b > 3 && !s.isEmpty() -> { yield b; }
            case String s when s.equals("}") -> s.length();
            case Kind k -> k.of();
            default -> throw new IllegalStateException("no { here");
        };
    }

    void more() throws Exception {
        outer:
        for (int i = 0, j = 1; i < j; i++, j--) { /* } */ continue outer; }
        BiFunction<Integer, Integer, Integer> add = (a, b) -> a + b; // it's a }
        Function<String, int[]> make = s -> new int[]{s.charAt(0) == '"' ? 1 : 2}; /* it's " */
        Supplier<List<? extends Map<String, int[]>>> deep = ArrayList::new;
        Object o = (Runnable & java.io.Serializable) () -> {};
        try (var in = System.in) {
            if (o instanceof final String s && s.length() > 1 || o instanceof int[] a && a.length >>> 1 > 0) return;
        } catch (ArithmeticException | IllegalStateException e) { /**/ } finally { /***/ }
    }
    ; /* a lone semicolon */
}
