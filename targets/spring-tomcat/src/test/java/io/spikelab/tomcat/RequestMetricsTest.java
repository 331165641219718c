package io.spikelab.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The timer of requests has the name and the labels of Spring Boot's own. */
class RequestMetricsTest {

    private static RunningTarget target;

    @BeforeAll
    static void start() {
        target = RunningTarget.with("TARGET_HELLO_DELAY_MS", "0");
    }

    @AfterAll
    static void stop() {
        target.close();
    }

    @ParameterizedTest
    @CsvSource({
        "GET,  /hello,                 200, SUCCESS,      GET,     /hello",
        "GET,  /hello?ms=x,            400, CLIENT_ERROR, GET,     /hello",
        "GET,  /bytes/9,               200, SUCCESS,      GET,     /bytes/{n}",
        "GET,  /absent,                404, CLIENT_ERROR, GET,     /**",
        "GET,  /api/v1/authz/ping,     401, CLIENT_ERROR, GET,     /api/v1/authz/ping",
        "HEAD, /api/v1/authz/ping,     401, CLIENT_ERROR, HEAD,    /api/v1/authz/ping",
        "POST, /api/v1/authz/ping,     405, CLIENT_ERROR, POST,    /api/v1/authz/ping",
        "POST, /api/v1/auth/token,     200, SUCCESS,      POST,    /api/v1/auth/token",
        "PUT,  /hello,                 405, CLIENT_ERROR, PUT,     UNKNOWN",
        "WORD, /hello,                 405, CLIENT_ERROR, UNKNOWN, UNKNOWN",
    })
    void countsEachRequestUnderItsHandler(String method, String path, int status, String outcome, String counted,
            String handler) throws Exception {
        String series = "http_server_requests_seconds_count{error=\"none\",exception=\"none\",method=\"" + counted
                + "\",outcome=\"" + outcome + "\",status=\"" + status + "\",uri=\"" + handler + "\"}";
        double before = target.metric(series);
        assertEquals(status, target.send(method, path).statusCode());
        double after = Double.isNaN(before) ? 1 : before + 1;
        assertEquals(after, target.metricOnce(series, count -> count == after));
    }
}
