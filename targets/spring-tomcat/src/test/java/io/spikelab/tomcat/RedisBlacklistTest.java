package io.spikelab.tomcat;

import static io.spikelab.tomcat.AuthzCalls.counter;
import static io.spikelab.tomcat.AuthzCalls.logout;
import static io.spikelab.tomcat.AuthzCalls.mint;
import static io.spikelab.tomcat.AuthzCalls.ping;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.spikelab.tomcat.authz.SigningKit;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;

/** Look-ups in a Redis of the test's own. */
class RedisBlacklistTest {

    private static final String LOOKUPS = "ext_authz_blacklist_redis_lookup_duration_seconds_count";

    @TempDir
    private Path folder;
    private RedisServer redis;
    private Map<String, String> settings;

    @BeforeEach
    void start() throws Exception {
        redis = RedisServer.started();
        settings = new HashMap<>(Map.of("AUTHZ_BLACKLIST", "redis", "AUTHZ_REDIS_URL", redis.url(),
                "AUTHZ_PRIVATE_KEY_FILE", new SigningKit().writePrivate(folder.resolve("private.pem")).toString()));
    }

    @AfterEach
    void stop() {
        redis.close();
    }

    @Test
    void findsARevokedTokenAndNoOther() throws Exception {
        try (RunningTarget target = RunningTarget.changed(settings)) {
            String token = mint(target, "");
            assertEquals(200, ping(target, token).statusCode());
            assertEquals(204, logout(target, token));
            assertEquals(401, logout(target, token));
            assertEquals(401, ping(target, token).statusCode());
            assertEquals(200, ping(target, mint(target, "")).statusCode());
            assertEquals(1, target.metric(counter("deny", "revoked")));
            assertEquals(1, target.metric("ext_authz_blacklist_redis_hits_total"));
            assertEquals(2, target.metric("ext_authz_blacklist_redis_misses_total"));
            assertEquals(3, target.metric(LOOKUPS));
            assertEquals(0, target.metric("ext_authz_blacklist_cache_lookup_duration_seconds_count"));
            assertEquals(1, target.metric("tomcat_setting{name=\"AUTHZ_BLACKLIST\"}"));
        }
    }

    @Test
    void keepsARevocationUntilTheTokenExpires() throws Exception {
        try (RunningTarget target = RunningTarget.changed(settings); Jedis client = redis.client()) {
            assertEquals(204, logout(target, mint(target, "?ttl=5")));
            long left = client.pttl(client.keys("spikelab:revoked:*").iterator().next());
            assertTrue(left > 60_000 && left <= 65_000, "Redis keeps the key for " + left + " ms");
        }
    }

    @Test
    void sharesRevocationsWithALocalBlacklist() throws Exception {
        Map<String, String> local = new HashMap<>(settings);
        local.remove("AUTHZ_BLACKLIST");
        try (RunningTarget remote = RunningTarget.changed(settings);
                RunningTarget near = RunningTarget.changed(local)) {
            String revokedRemotely = mint(remote, "");
            String revokedNear = mint(near, "");
            assertEquals(204, logout(remote, revokedRemotely));
            assertEquals(204, logout(near, revokedNear));
            assertEquals(2, near.metricOnce("ext_authz_blacklist_cache_size", size -> size == 2));
            assertEquals(401, ping(near, revokedRemotely).statusCode());
            assertEquals(401, ping(remote, revokedNear).statusCode());
        }
    }

    @Test
    void acceptsNoTokenWhileRedisDoesNotAnswer() throws Exception {
        try (RunningTarget target = RunningTarget.changed(settings)) {
            String token = mint(target, "");
            assertEquals(200, ping(target, token).statusCode());
            redis.freeze();
            long begin = System.nanoTime();
            assertEquals(401, ping(target, token).statusCode());
            double seconds = (System.nanoTime() - begin) / 1e9;
            assertTrue(seconds < 1.5, "the refusal took " + seconds + " s");
            assertEquals(503, logout(target, token));
            redis.thaw();
            assertEquals(200, ping(target, token).statusCode());
            redis.kill();
            assertEquals(401, ping(target, token).statusCode());
            assertEquals(2, target.metric(counter("deny", "blacklist_unavailable")));
            assertEquals(1, target.metric("ext_authz_revocations_total{result=\"blacklist_unavailable\"}"));
            assertEquals(200, target.management("/actuator/health/readiness").statusCode());
            redis.start();
            assertEquals(200, ping(target, token).statusCode());
            assertEquals(5, target.metric(LOOKUPS));
        }
    }

    @Test
    void isNotReadyBeforeRedisAnswers() throws Exception {
        redis.kill();
        try (TargetProcess target = TargetProcess.onFreePorts(settings)) {
            target.awaitOutput("not ready until it has answered");
            assertEquals(503, target.management("/actuator/health/readiness").statusCode());
            redis.start();
            target.awaitStarted();
            assertEquals(200, ping(target, mint(target, "")).statusCode());
        }
    }

    @Test
    void servesManyWorkersWithFewConnections() throws Exception {
        settings.put("TOMCAT_MAX_THREADS", "100");
        assertServesManyClients();
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void servesVirtualThreads() throws Exception {
        settings.put("TOMCAT_VIRTUAL_THREADS", "true");
        settings.put("TOMCAT_MAX_THREADS", "1");
        assertServesManyClients();
    }

    private void assertServesManyClients() throws Exception {
        int clients = 100;
        try (RunningTarget target = RunningTarget.changed(settings); Jedis client = redis.client()) {
            String token = mint(target, "");
            ExecutorService pool = Executors.newFixedThreadPool(clients);
            List<Future<Integer>> answers = new ArrayList<>();
            for (int i = 0; i < 10 * clients; i++) {
                answers.add(pool.submit(() -> ping(target, token).statusCode()));
            }
            for (Future<Integer> answer : answers) {
                assertEquals(200, answer.get());
            }
            pool.shutdown();
            assertTrue(client.clientList().lines().count() <= 65, "more connections than the pool has");
        }
    }
}
