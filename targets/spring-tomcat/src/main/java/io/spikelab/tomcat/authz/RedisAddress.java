package io.spikelab.tomcat.authz;

import io.spikelab.tomcat.InvalidValueException;
import java.net.URI;
import java.net.URISyntaxException;
import java.util.Map;
import java.util.Optional;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisClientConfig;

/**
 * Where Redis listens, from AUTHZ_REDIS_URL.
 *
 * @param host name or address
 * @param port TCP port
 */
public record RedisAddress(String host, int port) {

    static final String VARIABLE = "AUTHZ_REDIS_URL";
    /** The longest that a blocking command may block. */
    static final int BLOCK_MILLIS = 1000;

    private static final String PLACE = "AUTHZ_BLACKLIST";
    private static final String EXAMPLE = "redis://127.0.0.1:6379";
    private static final int TIMEOUT_MILLIS = 2000;

    /**
     * Reads the environment; empty where it names no Redis.
     *
     * @param place value of AUTHZ_BLACKLIST
     * @throws InvalidValueException where it is not such a URL, or is needed and not there
     */
    public static Optional<RedisAddress> from(Map<String, String> environment, String place) {
        Optional<RedisAddress> address = Optional.ofNullable(environment.get(VARIABLE)).map(String::strip)
                .filter(url -> !url.isEmpty()).map(RedisAddress::parse);
        if (address.isEmpty() && BlacklistConfiguration.REDIS.equals(place)) {
            throw new InvalidValueException(PLACE, place, "needs " + VARIABLE + ", such as " + EXAMPLE);
        }
        return address;
    }

    private static RedisAddress parse(String url) {
        try {
            URI uri = new URI(url);
            if (url.equals("redis://" + uri.getHost() + ":" + uri.getPort()) && uri.getPort() > 0
                    && uri.getPort() <= 65535) {
                return new RedisAddress(uri.getHost().replaceAll("[\\[\\]]", ""), uri.getPort());
            }
        } catch (URISyntaxException notAUrl) {
            // Said below.
        }
        // Whoever gives a password is not to find it in a log.
        throw new InvalidValueException(VARIABLE, url.replaceAll("//.*@", "//...@"),
                "must be redis://HOST:PORT, such as " + EXAMPLE);
    }

    /** A connection of its own; a stopped Redis fails it, and does not hang it. */
    Jedis connect() {
        return new Jedis(hostAndPort(), timeouts(TIMEOUT_MILLIS));
    }

    HostAndPort hostAndPort() {
        return new HostAndPort(host, port);
    }

    static JedisClientConfig timeouts(int millis) {
        return DefaultJedisClientConfig.builder().timeoutMillis(millis)
                .blockingSocketTimeoutMillis(BLOCK_MILLIS + millis).build();
    }

    @Override
    public String toString() {
        return host + ":" + port;
    }
}
