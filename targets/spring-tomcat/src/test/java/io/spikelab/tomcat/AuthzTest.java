package io.spikelab.tomcat;

import static io.spikelab.tomcat.AuthzCalls.PING;
import static io.spikelab.tomcat.AuthzCalls.TOKEN;
import static io.spikelab.tomcat.AuthzCalls.counter;
import static io.spikelab.tomcat.AuthzCalls.logout;
import static io.spikelab.tomcat.AuthzCalls.mint;
import static io.spikelab.tomcat.AuthzCalls.ping;
import static io.spikelab.tomcat.AuthzCalls.tokenIn;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.nimbusds.jwt.SignedJWT;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.spikelab.tomcat.authz.Refusal;
import io.spikelab.tomcat.authz.SigningKit;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tokens from their making to their end, each test on a target of its own. */
class AuthzTest {

    private static final String FULL = "ext_authz_blacklist_full";
    private static final String SIZE = "ext_authz_blacklist_cache_size";

    @TempDir
    private Path folder;

    @Test
    void mintsAcceptsAndRevokesWithAKeyOfItsOwn() throws Exception {
        try (RunningTarget target = RunningTarget.with()) {
            HttpResponse<String> minted = target.send("POST", TOKEN);
            String token = tokenIn(minted);
            assertEquals("{\"access_token\":\"" + token + "\",\"token_type\":\"Bearer\",\"expires_in\":1800}",
                    minted.body());
            assertEquals("no-store", minted.headers().firstValue("Cache-Control").orElse(""));
            assertNotEquals(token, mint(target, ""));
            assertEquals("ok\n", ping(target, token).body());
            assertEquals(200, target.send("GET", PING, "Authorization", "bEARER   " + token).statusCode());
            assertEquals(1, target.metric(counter("allow", "valid")) - 1);
            assertEquals(204, logout(target, token));
            assertEquals(1, target.metric(SIZE));
            assertEquals(401, ping(target, token).statusCode());
            assertEquals(401, logout(target, token));
            assertEquals(1, target.metric(counter("deny", "revoked")));
            assertEquals(1, target.metric("ext_authz_blacklist_cache_hits_total"));
            assertEquals(2, target.metric("ext_authz_blacklist_cache_misses_total"));
            assertEquals(1, target.metric("ext_authz_revocations_total{result=\"accepted\"}"));
            assertEquals(1, target.metric("ext_authz_revocations_total{result=\"invalid_token\"}"));
        }
    }

    @Test
    void keepsARevocationUntilTheTokenExpires() throws Exception {
        try (RunningTarget target = RunningTarget.with()) {
            String token = mint(target, "?ttl=6&subject=someone");
            assertEquals("someone", SignedJWT.parse(token).getJWTClaimsSet().getSubject());
            assertEquals(204, logout(target, token));
            assertEquals(1, target.metricOnce("ext_authz_blacklist_cache_evictions_total{cause=\"expired\"}",
                    evictions -> evictions == 1));
            assertEquals(0, target.metric(SIZE));
            assertEquals(401, ping(target, token).statusCode());
            assertEquals(1, target.metric(counter("deny", "expired")));
        }
    }

    @Test
    void acceptsNoTokenWhileARevocationIsMissing() throws Exception {
        try (RunningTarget target = RunningTarget.with("TARGET_AUTHZ_BLACKLIST_MAX_ENTRIES", "2")) {
            String bystander = mint(target, "");
            String revoked = mint(target, "");
            assertEquals(204, logout(target, revoked));
            assertEquals(204, logout(target, mint(target, "")));
            assertEquals(200, ping(target, bystander).statusCode());
            assertEquals(0, target.metric(FULL));
            String refused = mint(target, "?ttl=6");
            assertEquals(503, logout(target, refused));
            assertEquals(1, target.metric(FULL));
            assertEquals(1, target.metric("ext_authz_revocations_total{result=\"blacklist_full\"}"));
            for (String token : List.of(bystander, refused)) {
                assertRefused(target, ping(target, token), Refusal.BLACKLIST_FULL);
            }
            assertEquals(2, target.metric(counter("deny", "blacklist_full")));
            assertRefused(target, ping(target, revoked), Refusal.REVOKED);
            assertEquals(0, target.metricOnce(FULL, full -> full == 0));
            assertEquals(200, ping(target, bystander).statusCode());
            assertRefused(target, ping(target, refused), Refusal.EXPIRED);
            assertRefused(target, ping(target, revoked), Refusal.REVOKED);
        }
    }

    @Test
    void verifiesButDoesNotMintWithThePublicKeyAlone() throws Exception {
        SigningKit kit = new SigningKit();
        String file = kit.writePublic(folder.resolve("public.pem")).toString();
        try (RunningTarget target = RunningTarget.with("AUTHZ_PUBLIC_KEY_FILE", file)) {
            HttpResponse<String> answer = target.send("POST", TOKEN);
            assertEquals(404, answer.statusCode());
            assertEquals("no tokens are made here: AUTHZ_PRIVATE_KEY_FILE is not set\n", answer.body());
            String token = kit.validToken();
            assertEquals(200, ping(target, token).statusCode());
            assertEquals(204, logout(target, token));
            assertEquals(401, ping(target, token).statusCode());
        }
    }

    @Test
    void targetsWithTheSameKeyAcceptEachOthersTokens() throws Exception {
        SigningKit kit = new SigningKit();
        Map<String, String> files = Map.of(
                "AUTHZ_PRIVATE_KEY_FILE", kit.writePrivate(folder.resolve("private.pem")).toString(),
                "AUTHZ_PUBLIC_KEY_FILE", kit.writePublic(folder.resolve("public.pem")).toString());
        try (RunningTarget one = RunningTarget.changed(files); RunningTarget other = RunningTarget.changed(files)) {
            assertEquals(200, ping(other, mint(one, "")).statusCode());
        }
    }

    @Test
    void answersAWrongParameterWithOneLine() throws Exception {
        Map<String, String> lines = Map.of(
                "?ttl=0", "ttl=0: must be an integer from 1 to 86400\n",
                "?ttl=86401", "ttl=86401: must be an integer from 1 to 86400\n",
                "?ttl=1h", "ttl=1h: must be an integer from 1 to 86400\n",
                "?subject=%20", "subject=: must have 1 to 128 characters\n");
        try (RunningTarget target = RunningTarget.with()) {
            for (String query : lines.keySet()) {
                HttpResponse<String> answer = target.send("POST", TOKEN + query);
                assertEquals(400, answer.statusCode());
                assertEquals(lines.get(query), answer.body());
            }
        }
    }

    @Test
    void countsEveryDecisionUnderLoad() throws Exception {
        int threads = 4;
        int each = 300;
        try (RunningTarget target = RunningTarget.with("TOMCAT_MAX_KEEP_ALIVE_REQUESTS", "-1")) {
            List<String> tokens = List.of(mint(target, ""), mint(target, "") + "x", "");
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            List<Future<?>> clients = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                clients.add(pool.submit(() -> pingInTurn(target, tokens, each)));
            }
            for (Future<?> client : clients) {
                client.get();
            }
            pool.shutdown();
            double third = threads * each / 3.0;
            assertEquals(third, target.metric(counter("allow", "valid")));
            assertEquals(third, target.metric(counter("deny", "garbage")));
            assertEquals(third, target.metric(counter("deny", "missing_token")));
            assertEquals(3 * third, target.metric("ext_authz_request_duration_seconds_count"));
            assertEquals(2 * third, target.metric("ext_authz_jwt_verify_duration_seconds_count"));
            assertEquals(third, target.metric("ext_authz_blacklist_cache_lookup_duration_seconds_count"));
        }
    }

    @Test
    void showsEverySeriesFromTheStart() throws Exception {
        try (RunningTarget target = RunningTarget.with()) {
            for (Refusal refusal : Refusal.values()) {
                assertEquals(0, target.metric(counter("deny", refusal.label())), refusal.label());
            }
            for (String name : List.of(counter("allow", "valid"), "ext_authz_blacklist_cache_hits_total",
                    "ext_authz_blacklist_cache_misses_total", SIZE, FULL,
                    "ext_authz_blacklist_cache_evictions_total{cause=\"expired\"}",
                    "ext_authz_request_duration_seconds_bucket{le=\"1.0E-5\"}",
                    "ext_authz_request_duration_seconds_bucket{le=\"10.0\"}",
                    "ext_authz_jwt_verify_duration_seconds_bucket{le=\"1.0E-5\"}",
                    "ext_authz_blacklist_cache_lookup_duration_seconds_bucket{le=\"1.0E-8\"}",
                    "ext_authz_blacklist_redis_hits_total", "ext_authz_blacklist_redis_misses_total",
                    "ext_authz_blacklist_redis_lookup_duration_seconds_bucket{le=\"1.0E-6\"}")) {
                assertEquals(0, target.metric(name), name);
            }
            double timerCost = target.metric("ext_authz_timer_cost_seconds");
            assertTrue(timerCost > 0 && timerCost < 1e-4, "timer cost " + timerCost);
            long natives = target.registry().scrape().stream()
                    .filter(metric -> metric instanceof HistogramSnapshot histogram
                            && metric.getMetadata().getName().startsWith("ext_authz_")
                            && histogram.getDataPoints().get(0).getNativeSchema() == 5).count();
            assertEquals(4, natives);
        }
    }

    private static Void pingInTurn(RunningTarget target, List<String> tokens, int times) throws Exception {
        try (RawConnection connection = new RawConnection(target.port())) {
            for (int i = 0; i < times; i++) {
                String token = tokens.get(i % tokens.size());
                connection.send("GET " + PING + " HTTP/1.1\r\nHost: target\r\nAuthorization: Bearer " + token
                        + "\r\n\r\n");
                assertEquals(i % tokens.size() == 0 ? 200 : 401, connection.status());
            }
        }
        return null;
    }

    private static void assertRefused(RunningTarget target, HttpResponse<String> answer, Refusal refusal)
            throws Exception {
        assertEquals(401, answer.statusCode());
        assertTrue(target.metric(counter("deny", refusal.label())) > 0, refusal.label());
    }
}
