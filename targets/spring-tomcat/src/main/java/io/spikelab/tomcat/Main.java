package io.spikelab.tomcat;

import org.springframework.boot.SpringApplication.AbandonedRunException;

/** {@code java -jar spring-tomcat.jar}: starts the target, or says in one line why it cannot. */
public final class Main {

    private Main() {
    }

    public static void main(String[] arguments) {
        try {
            TargetApplication.start(System.getenv());
        } catch (InvalidValueException invalid) {
            System.err.println(invalid.getMessage());
            System.exit(1);
        } catch (AbandonedRunException stopped) {
            // A signal came before the start was over; the stop goes on by itself.
        }
    }
}
