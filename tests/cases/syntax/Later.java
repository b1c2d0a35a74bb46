import module java.base;

/// A comment in Markdown with a ``` and an { open brace.
class Later extends Base {
    final char open = '\u007b';
    String told = STR."hi \{name + "}"} there";

    Later(int x) {
        if (x < 0) throw new IllegalArgumentException();
        super(x);
    }

    int of(int x) {
        return switch (x) { case int i when i > 3 -> i; case 0 -> 1; default -> 2; };
    }

    int f(Object o) { return o instanceof Pair(_, var y) ? 1 : 0; }
}

void main() { IO.println("}"); }
