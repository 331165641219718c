package io.spikelab.tomcat.authz;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.spikelab.tomcat.InvalidValueException;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RedisAddressTest {

    @ParameterizedTest
    @CsvSource({"redis://127.0.0.1:6379,127.0.0.1,6379", " redis://redis:1 ,redis,1", "redis://[::1]:65535,::1,65535"})
    void readsHostAndPort(String url, String host, int port) {
        assertEquals(Optional.of(new RedisAddress(host, port)), read(url, "local"));
    }

    @Test
    void isEmptyWhereNoneIsGiven() {
        assertEquals(Optional.empty(), RedisAddress.from(Map.of(), "local"));
        assertEquals(Optional.empty(), read(" ", "local"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"127.0.0.1:6379", "http://127.0.0.1:6379", "redis://127.0.0.1", "redis://127.0.0.1:0",
        "redis://127.0.0.1:65536", "redis://127.0.0.1:6379/1", "redis://:6379", "redis://a b:1", "redis:6379"})
    void refusesEverythingElse(String url) {
        assertEquals("AUTHZ_REDIS_URL=" + url + ": must be redis://HOST:PORT, such as redis://127.0.0.1:6379",
                assertThrows(InvalidValueException.class, () -> read(url, "local")).getMessage());
    }

    @Test
    void doesNotRepeatAPassword() {
        assertEquals("AUTHZ_REDIS_URL=redis://...@127.0.0.1:1: must be redis://HOST:PORT, "
                        + "such as redis://127.0.0.1:6379",
                assertThrows(InvalidValueException.class, () -> read("redis://user:p@ss@127.0.0.1:1", "local"))
                        .getMessage());
    }

    @Test
    void isNeededForLookUpsThere() {
        assertEquals("AUTHZ_BLACKLIST=redis: needs AUTHZ_REDIS_URL, such as redis://127.0.0.1:6379",
                assertThrows(InvalidValueException.class, () -> read("", "redis")).getMessage());
    }

    private static Optional<RedisAddress> read(String url, String place) {
        return RedisAddress.from(Map.of(RedisAddress.VARIABLE, url), place);
    }
}
