package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TrafficTest {

    private static RunningTarget target;

    @BeforeAll
    static void start() {
        target = RunningTarget.with("TARGET_HELLO_DELAY_MS", "300");
    }

    @AfterAll
    static void stop() {
        target.close();
    }

    @Test
    void helloTakesItsDelay() throws Exception {
        target.get("/hello?ms=0");
        assertTakes(0.3, "/hello");
        assertTakes(1.5, "/hello?ms=1500");
        assertTakes(0.0, "/hello?ms=0");
    }

    private static void assertTakes(double seconds, String path) throws Exception {
        long begin = System.nanoTime();
        HttpResponse<String> answer = target.get(path);
        double taken = (System.nanoTime() - begin) / 1e9;
        assertEquals(200, answer.statusCode());
        assertEquals("Hello, world\n", answer.body());
        assertTrue(taken >= seconds && taken < seconds + 1, path + " took " + taken + " s");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "/hello?ms=abc|ms=abc: must be milliseconds, an integer from 0 to 600000",
        "/hello?ms=-1|ms=-1: must be milliseconds, an integer from 0 to 600000",
        "/hello?ms=600001|ms=600001: must be milliseconds, an integer from 0 to 600000",
        "/bytes/-1|n=-1: must be an integer from 0 to 1073741824",
        "/bytes/1073741825|n=1073741825: must be an integer from 0 to 1073741824",
        "/bytes/x|n=x: must be an integer from 0 to 1073741824",
    })
    void answersAWrongParameterWithOneLine(String path, String line) throws Exception {
        HttpResponse<String> answer = target.get(path);
        assertEquals(400, answer.statusCode());
        assertEquals(line + "\n", answer.body());
    }

    @ParameterizedTest
    @CsvSource({"0", "1", "1024", "8193", "5000000"})
    void sendsExactlyTheBytesAskedFor(int count) throws Exception {
        HttpResponse<String> answer = target.get("/bytes/" + count);
        assertEquals(200, answer.statusCode());
        assertEquals(count, answer.body().length());
        assertEquals(count, answer.headers().firstValueAsLong("Content-Length").orElse(-1));
    }

    @Test
    void echoesBodyAndType() throws Exception {
        byte[] body = new byte[1_000_000];
        new Random(1).nextBytes(body);
        HttpResponse<byte[]> answer = post(body, "image/png");
        assertEquals(200, answer.statusCode());
        assertEquals("image/png", answer.headers().firstValue("Content-Type").orElse(""));
        assertArrayEquals(body, answer.body());
    }

    @Test
    void refusesToEchoMoreThanItHolds() throws Exception {
        HttpResponse<byte[]> answer = post(new byte[(10 << 20) + 1], "text/plain");
        assertEquals(413, answer.statusCode());
        assertEquals("body: must be at most 10485760 bytes\n", new String(answer.body()));
    }

    private static HttpResponse<byte[]> post(byte[] body, String type) throws Exception {
        URI echo = URI.create("http://127.0.0.1:" + target.port() + "/echo");
        return HttpClient.newHttpClient().send(HttpRequest.newBuilder(echo).header("Content-Type", type)
                .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build(), HttpResponse.BodyHandlers.ofByteArray());
    }
}
