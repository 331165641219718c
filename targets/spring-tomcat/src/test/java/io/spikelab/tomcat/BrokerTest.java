package io.spikelab.tomcat;

import static io.spikelab.tomcat.AuthzCalls.counter;
import static io.spikelab.tomcat.AuthzCalls.logout;
import static io.spikelab.tomcat.AuthzCalls.mint;
import static io.spikelab.tomcat.AuthzCalls.ping;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.spikelab.tomcat.authz.SigningKit;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.StreamEntryID;

/** Revocations shared by the stream in a Redis of the test's own, with its outages. */
class BrokerTest {

    private static final String BROKER = "ext_authz_blacklist_broker_";
    private static final String CONNECTED = BROKER + "connected";
    private static final String RECEIVED = BROKER + "received_total";
    private static final String FAILED = BROKER + "failed_total";
    private static final String RECONNECTS = BROKER + "reconnects_total";
    private static final String PENDING = BROKER + "pending";
    private static final String SIZE = "ext_authz_blacklist_cache_size";

    private final SigningKit kit = new SigningKit();
    @TempDir
    private Path folder;
    private RedisServer redis;
    private Map<String, String> settings;

    @BeforeEach
    void start() throws Exception {
        redis = RedisServer.started();
        settings = Map.of("AUTHZ_REDIS_URL", redis.url(),
                "AUTHZ_PRIVATE_KEY_FILE", kit.writePrivate(folder.resolve("private.pem")).toString());
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    @Test
    void losesNoRevocationToAnOutage() throws Exception {
        try (TargetProcess one = TargetProcess.onFreePorts(settings);
                TargetProcess other = TargetProcess.onFreePorts(settings)) {
            one.awaitStarted();
            other.awaitStarted();
            List<String> tokens = List.of(mint(one, ""), mint(other, ""), mint(one, ""), mint(other, ""),
                    mint(one, ""), mint(other, ""));
            revokeAndAwait(tokens.get(0), one, other);
            revokeAndAwait(tokens.get(1), other, one);

            redis.kill();
            for (TargetProcess target : List.of(one, other)) {
                assertEquals(0, target.metricOnce(CONNECTED, connected -> connected == 0));
            }
            assertEquals(204, logout(one, tokens.get(2)));
            assertEquals(204, logout(other, tokens.get(3)));
            assertEquals(401, ping(one, tokens.get(2)).statusCode());
            assertEquals(200, ping(one, tokens.get(3)).statusCode());
            assertEquals(1, one.metric(PENDING));
            assertEquals(200, one.management("/actuator/health/readiness").statusCode());
            redis.start();
            awaitRevoked(one, tokens.get(3));
            awaitRevoked(other, tokens.get(2));

            redis.freeze();
            long begin = System.nanoTime();
            assertEquals(204, logout(one, tokens.get(4)));
            assertEquals(204, logout(other, tokens.get(5)));
            assertTrue(System.nanoTime() - begin < 1_000_000_000L, "a logout waited for Redis");
            assertEquals(200, ping(other, tokens.get(4)).statusCode());
            for (TargetProcess target : List.of(one, other)) {
                assertEquals(0, target.metricOnce(CONNECTED, connected -> connected == 0));
            }
            redis.thaw();
            awaitRevoked(other, tokens.get(4));
            awaitRevoked(one, tokens.get(5));

            for (TargetProcess target : List.of(one, other)) {
                assertEquals(1, target.metricOnce(CONNECTED, connected -> connected == 1));
                assertEquals(2, target.metric(RECONNECTS));
                assertEquals(0, target.metricOnce(PENDING, pending -> pending == 0));
                assertEquals(6, target.metric(SIZE));
                assertEquals(0, target.metric(FAILED));
            }
            try (RunningTarget late = RunningTarget.changed(settings)) {
                for (String token : tokens) {
                    assertEquals(401, ping(late, token).statusCode());
                }
                assertEquals(6, late.metric(counter("deny", "revoked")));
            }
        }
    }

    @Test
    void acceptsNoRevokedTokenFromItsFirstAnswerOn() throws Exception {
        String revoked = kit.sign(SigningKit.claims().jwtID("revoked").build().toString());
        String other = kit.validToken();
        fill(20_000);
        redis.publish("id", "revoked", "expires_ms", inAMinute());
        try (TargetProcess target = TargetProcess.onFreePorts(settings)) {
            int answers = 0;
            while (answers == 0 || !target.outputLines().toString().contains("listens on")) {
                try {
                    assertEquals(401, ping(target, revoked).statusCode());
                    answers++;
                } catch (IOException notYet) {
                    // Refused, or cut off: the start tries whether the port is free.
                    Thread.sleep(1);
                }
            }
            assertEquals(200, ping(target, other).statusCode());
            assertEquals(401, ping(target, revoked).statusCode());
            assertEquals(answers + 1, target.metric("ext_authz_requests_total") - 1);
            assertEquals(20_001, target.metric(RECEIVED));
        }
    }

    @Test
    void isNotReadyBeforeItHasReadTheStream() throws Exception {
        redis.kill();
        try (TargetProcess target = TargetProcess.onFreePorts(settings);
                TargetProcess given = TargetProcess.onFreePorts(settings)) {
            awaitManagement(target);
            awaitManagement(given);
            given.terminate();
            assertEquals(200, target.management("/actuator/health/liveness").statusCode());
            assertEquals(503, target.management("/actuator/health/readiness").statusCode());
            String token = kit.validToken();
            assertEquals(401, ping(target, token).statusCode());
            assertEquals(503, logout(target, token));
            assertEquals(1, target.metric(counter("deny", "blacklist_unavailable")));
            assertEquals(1, target.metric("ext_authz_revocations_total{result=\"blacklist_unavailable\"}"));
            assertEquals(0, target.metric(CONNECTED));
            redis.start();
            target.awaitStarted();
            assertEquals(200, target.management("/actuator/health/readiness").statusCode());
            assertEquals(200, ping(target, token).statusCode());
            assertEquals(0, target.metric(RECONNECTS));
            assertEquals(3, target.outputLines().size(), target.outputLines().toString());
            assertEquals(143, given.exitCode());
            assertEquals(List.of(), given.errorLines());
            assertEquals(1, given.outputLines().size(), given.outputLines().toString());
        }
    }

    @Test
    void countsAndSkipsWhatIsNoRevocation() throws Exception {
        try (RunningTarget target = RunningTarget.changed(settings)) {
            redis.publish("other", "field");
            redis.publish("id", "without an expiry");
            redis.publish("expires_ms", inAMinute());
            redis.publish("id", " ", "expires_ms", inAMinute());
            redis.publish("id", "i".repeat(256), "expires_ms", inAMinute());
            for (String expires : List.of("", "soon", "-1", "1e12", "999999999999999", "99999999999999999999")) {
                redis.publish("id", "a", "expires_ms", expires);
            }
            redis.publish("id", "expired", "expires_ms", "1000");
            redis.publish("id", "good", "expires_ms", inAMinute(), "from", "elsewhere");
            assertEquals(2, target.metricOnce(RECEIVED, received -> received == 2));
            assertEquals(11, target.metric(FAILED));
            assertEquals(1, target.metric(SIZE));
            assertEquals(0, target.metric(RECONNECTS));
            String token = kit.sign(SigningKit.claims().jwtID("good").build().toString());
            assertEquals(401, ping(target, token).statusCode());
        }
    }

    @Test
    void waitsUntilTheStreamCanBeRead() throws Exception {
        try (RunningTarget target = RunningTarget.changed(settings); Jedis client = redis.client()) {
            String token = mint(target, "");
            assertEquals(204, logout(target, token));
            awaitKey(client);
            client.set(RedisServer.STREAM, "of another type");
            assertEquals(0, target.metricOnce(CONNECTED, connected -> connected == 0));
            client.del(RedisServer.STREAM);
            assertEquals(1, target.metricOnce(CONNECTED, connected -> connected == 1));
            assertEquals(0, target.metricOnce(PENDING, pending -> pending == 0));
            assertEquals(1, client.xlen(RedisServer.STREAM));
        }
    }

    @Test
    void fillsALostStreamAgain() throws Exception {
        try (RunningTarget target = RunningTarget.changed(settings); Jedis client = redis.client()) {
            assertEquals(204, logout(target, mint(target, "")));
            assertEquals(1, target.metricOnce(RECEIVED, received -> received == 1));
            Thread.sleep(1200);
            client.flushAll();
            redis.publish("id", "added at once", "expires_ms", inAMinute());
            assertEquals(2, target.metricOnce(SIZE, size -> size == 2));
            awaitKey(client);
            assertEquals(2, client.xlen(RedisServer.STREAM));
            assertEquals(1, target.metric(CONNECTED));
            assertEquals(0, target.metric(RECONNECTS));
        }
    }

    @Test
    void keepsARevocationUntilTheTokenExpires() throws Exception {
        try (RunningTarget one = RunningTarget.changed(settings); RunningTarget other = RunningTarget.changed(settings);
                Jedis client = redis.client()) {
            client.xadd(RedisServer.STREAM, new StreamEntryID(1000, 0), Map.of("id", "old", "expires_ms", "2000"));
            String token = mint(one, "?ttl=6");
            assertEquals(204, logout(one, token));
            assertEquals(1, other.metricOnce(SIZE, size -> size == 1));
            long left = client.pttl(awaitKey(client));
            assertTrue(left > 60_000 && left <= 66_000, "Redis keeps the key for " + left + " ms");
            assertEquals(1, client.xlen(RedisServer.STREAM), "the old entry is still there");
            assertEquals(0, other.metricOnce(SIZE, size -> size == 0));
            assertEquals(401, ping(other, token).statusCode());
            assertEquals(1, other.metric(counter("deny", "expired")));
        }
    }

    @Test
    void acceptsNoTokenWhereThereIsNoRoomForOthersRevocations() throws Exception {
        Map<String, String> small = new HashMap<>(settings);
        small.put("TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES", "10");
        fill(12);
        try (RunningTarget target = RunningTarget.changed(small)) {
            assertEquals(10, target.metric(RECEIVED));
            assertEquals(2, target.metric(FAILED));
            assertEquals(401, ping(target, kit.validToken()).statusCode());
            assertEquals(1, target.metric(counter("deny", "blacklist_full")));
        }
    }

    private void fill(int entries) {
        try (Jedis client = redis.client(); var pipeline = client.pipelined()) {
            for (int i = 0; i < entries; i++) {
                pipeline.xadd(RedisServer.STREAM, StreamEntryID.NEW_ENTRY,
                        Map.of("id", UUID.randomUUID().toString(), "expires_ms", inAMinute()));
            }
        }
    }

    private static String inAMinute() {
        return String.valueOf(SigningKit.secondsFromNow(60).getTime());
    }

    /** The key of the only revocation. */
    private static String awaitKey(Jedis client) throws InterruptedException {
        for (int i = 0; i < 250 && client.keys("spikelab:revoked:*").isEmpty(); i++) {
            Thread.sleep(20);
        }
        return client.keys("spikelab:revoked:*").iterator().next();
    }

    private static void revokeAndAwait(String token, TargetClient from, TargetClient to) throws Exception {
        assertEquals(200, ping(to, token).statusCode());
        assertEquals(204, logout(from, token));
        long begin = System.nanoTime();
        awaitRevoked(to, token);
        assertTrue(System.nanoTime() - begin < 1_000_000_000L, "it took more than a second to arrive");
    }

    private static void awaitRevoked(TargetClient target, String token) throws Exception {
        for (int i = 0; i < 500 && ping(target, token).statusCode() == 200; i++) {
            Thread.sleep(10);
        }
        assertEquals(401, ping(target, token).statusCode());
    }

    private static void awaitManagement(TargetClient target) throws Exception {
        for (int i = 0; i < 1500; i++) {
            try {
                target.management("/actuator/health/liveness");
                return;
            } catch (IOException notYet) {
                Thread.sleep(20);
            }
        }
    }
}
