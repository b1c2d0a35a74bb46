package org.pocketbuild.hello;

import android.app.Activity;
import android.os.Bundle;
import android.widget.TextView;
import java.util.Calendar;

/** Greets by the time of day. */
public class MainActivity extends Activity {
    @Override
    protected void onCreate(Bundle state) {
        super.onCreate(state);
        setContentView(R.layout.main);
        int hour = Calendar.getInstance().get(Calendar.HOUR_OF_DAY);
        TextView greeting = (TextView) findViewById(R.id.greeting);
        greeting.setText(getString(R.string.greeting, getString(Daytime.of(hour).label)));
        greeting.setOnClickListener(view -> recreate());
    }
}
