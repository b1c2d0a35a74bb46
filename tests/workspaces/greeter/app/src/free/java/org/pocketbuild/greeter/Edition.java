package org.pocketbuild.greeter;

import org.pocketbuild.greeting.Warmth;

/** What the free edition does otherwise than the others. */
final class Edition {
    static final Warmth WARMTH = Warmth.PLAIN;

    private Edition() {}
}
