package org.pocketbuild.greeting;

import android.content.res.Resources;

/** A way of greeting. */
public final class Greeting {
    private final Warmth warmth;

    public Greeting(Warmth warmth) {
        this.warmth = warmth;
    }

    /** Gives the greeting to someone, in the language of the resources. */
    public String to(Resources resources, String name) {
        return resources.getString(warmth.text, name);
    }
}
