package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.DoubleConsumer;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.support.GenericApplicationContext;

class FailingInstrumentTest {

    @Test
    void doesNotFailTheRequest() throws Exception {
        AtomicInteger failures = new AtomicInteger();
        DoubleConsumer broken = seconds -> {
            failures.incrementAndGet();
            throw new NoClassDefFoundError("an instrument that does not work");
        };
        try (RunningTarget target = RunningTarget.changed(Map.of("TARGET_HELLO_DELAY_MS", "0"),
                context -> replaceInstrument(context, broken));
                RawConnection connection = new RawConnection(target.port())) {
            for (int i = 0; i < 3; i++) {
                assertEquals(200, connection.get("/hello").status());
            }
            assertEquals(3, failures.get());
        }
    }

    private static void replaceInstrument(ConfigurableApplicationContext context, DoubleConsumer instrument) {
        ((GenericApplicationContext) context).registerBean("brokenInstrument", DoubleConsumer.class, () -> instrument,
                definition -> definition.setPrimary(true));
    }
}
