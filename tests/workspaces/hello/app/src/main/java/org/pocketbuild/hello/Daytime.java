package org.pocketbuild.hello;

/** A part of the day and the string that names it. */
enum Daytime {
    MORNING(R.string.morning),
    DAY(R.string.day),
    EVENING(R.string.evening);

    final int label;

    Daytime(int label) {
        this.label = label;
    }

    /** Gives the part of the day that an hour from 0 to 23 belongs to. */
    static Daytime of(int hour) {
        if (hour < 11) {
            return MORNING;
        }
        return hour < 18 ? DAY : EVENING;
    }
}
