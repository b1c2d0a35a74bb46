package org.pocketbuild.greeter;

import android.app.Activity;
import android.os.Bundle;
import android.widget.TextView;
import org.pocketbuild.greeting.Greeting;

/** Shows the greeting that the edition of the app has chosen. */
public class GreeterActivity extends Activity {
    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        Greeting greeting = new Greeting(Edition.WARMTH);
        TextView text = new TextView(this);
        text.setText(greeting.to(getResources(), "world"));
        setContentView(text);
    }
}
