package org.pocketbuild.greeter;

import org.pocketbuild.greeting.Warmth;

/** What the paid edition does otherwise than the others. */
final class Edition {
    static final Warmth WARMTH = Warmth.WARM;

    private Edition() {}
}
