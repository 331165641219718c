package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.spikelab.tomcat.authz.SigningKit;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Damaged requests over real sockets: answered or refused in time, never with an error of the server's own. */
class HttpFuzzTest {

    private static final int CHECKED_EVERY = 500;
    private static final int PATIENCE_MILLIS = 5_000;
    private static final int ENOUGH_BYTES = 1 << 16;
    private static final Pattern STATUS = Pattern.compile("HTTP/1\\.1 ([0-9]{3})");
    /** What a server says of a request that asks for what no server has to know. */
    private static final Set<String> DOCUMENTED = Set.of("501", "505");
    /** A wait that was asked for is none that hangs. */
    private static final Pattern LONG_WAIT = Pattern.compile("ms=[0-9]{3,}");
    private static final SigningKit KIT = new SigningKit();

    private static Path keyFile;
    private static RunningTarget target;
    private static List<byte[]> valid;

    @BeforeAll
    static void start() throws Exception {
        keyFile = KIT.writePublic(Files.createTempFile("public", ".pem"));
        target = RunningTarget.with("AUTHZ_PUBLIC_KEY_FILE", keyFile.toString(), "TARGET_HELLO_DELAY_MS", "0",
                "TOMCAT_CONNECTION_TIMEOUT", "1000");
        String token = "Authorization: Bearer " + KIT.sign("{\"sub\":\"a\",\"jti\":\"b\",\"exp\":99999999999}") + "\r\n";
        valid = List.of(request("GET /hello?ms=0", "", ""), request("GET /bytes/9", "Accept: */*\r\n", ""),
                request("POST /echo", "Content-Type: text/plain\r\nContent-Length: 3\r\n", "abc"),
                request("POST /echo", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
                request("GET /api/v1/authz/ping", token, ""),
                request("POST /api/v1/auth/token?subject=a&ttl=60", "", ""),
                request("POST /api/v1/auth/logout", "Authorization: Bearer x.y.z\r\n", ""));
    }

    @AfterAll
    static void stop() throws Exception {
        target.close();
        Files.delete(keyFile);
    }

    private static byte[] request(String line, String headers, String body) {
        return (line + " HTTP/1.1\r\nHost: target\r\n" + headers + "\r\n" + body)
                .getBytes(StandardCharsets.ISO_8859_1);
    }

    @Test
    @Timeout(3600)
    void answersOrRefusesEveryDamagedRequest() throws Exception {
        assertEquals(List.of("200", "200", "200", "200", "200", "404", "401"), statusesOfValid());
        for (byte[] input : Fuzzing.findings("http")) {
            check(input, "of the findings");
        }
        for (int number = 0; number < Fuzzing.CASES; number++) {
            Random random = Fuzzing.random(number);
            byte[] damaged = Mutations.mutate(valid.get(random.nextInt(valid.size())), valid, random);
            if (!LONG_WAIT.matcher(text(damaged)).find()) {
                check(damaged, "case " + number + " of the seed " + Fuzzing.SEED);
            }
            if (number % CHECKED_EVERY == 0) {
                assertEquals(200, target.get("/hello?ms=0").statusCode());
            }
        }
        assertEquals(List.of("200", "200", "200", "200", "200", "404", "401"), statusesOfValid());
        assertTrue(target.metric("tomcat_threads_busy_threads") < 5, "workers hang");
        Fuzzing.report("http");
    }

    private static List<String> statusesOfValid() throws IOException {
        List<String> statuses = new ArrayList<>();
        for (byte[] each : valid) {
            statuses.add(statuses(answer(each)).get(0));
        }
        return statuses;
    }

    private static void check(byte[] request, String told) throws IOException {
        try {
            for (String status : statuses(answer(request))) {
                assertTrue(status.charAt(0) < '5' || DOCUMENTED.contains(status), told + ": " + status + " for "
                        + text(request));
            }
        } catch (java.net.SocketTimeoutException hangs) {
            fail(told + ": no end within " + PATIENCE_MILLIS + " ms: " + text(request), hangs);
        } catch (SocketException closed) {
            // Refused before all of it was read.
        }
    }

    /** What the server says until it closes, or as much as matters. */
    private static String answer(byte[] request) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", target.port())) {
            socket.setSoTimeout(PATIENCE_MILLIS);
            socket.setSoLinger(true, 0);
            socket.getOutputStream().write(request);
            socket.shutdownOutput();
            return text(socket.getInputStream().readNBytes(ENOUGH_BYTES));
        }
    }

    private static List<String> statuses(String answers) {
        List<String> found = new ArrayList<>();
        Matcher matcher = STATUS.matcher(answers);
        while (matcher.find()) {
            found.add(matcher.group(1));
        }
        return found;
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }
}
