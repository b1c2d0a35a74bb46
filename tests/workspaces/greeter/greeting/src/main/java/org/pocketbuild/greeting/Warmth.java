package org.pocketbuild.greeting;

/** How warm a greeting is. */
public enum Warmth {
    PLAIN(R.string.greeting_plain),
    WARM(R.string.greeting_warm);

    final int text;

    Warmth(int text) {
        this.text = text;
    }
}
